from functools import reduce

import pytest
from msgspec import UNSET
from threadbook.domain.events import ThreadForgotten, ThreadPolluted
from threadbook.domain.refusals import (
    AlreadyRegistered,
    Forgotten,
    NotForgotten,
    UnknownThread,
)
from threadbook.domain.thread import (
    Thread,
    change,
    evolve,
    first_mode,
    follow_transcript,
    forget,
    lift,
    outside_text,
    pollute,
    register,
    rescope,
    set_mode,
)

from tests.support import NOON, header, registered

NEW = Thread(thread_id="t1")
FIRST = {"scope": "global", "root": None, "preview_ref": None, "mode_reason": "default"}


def after(thread, *events):
    return reduce(evolve, events, thread)


def forgotten(thread=None):
    return after(thread or registered(), ThreadForgotten(at=NOON, thread_id="t1", reason="person"))


def polluted():
    event = ThreadPolluted(at=NOON, thread_id="t1", cause="web_search", mode_before="enabled")
    return after(registered(), event)


def test_a_thread_is_registered_with_what_its_transcript_says():
    event = register(NEW, header=header(cwd="/w/fern"), **FIRST, mode="enabled", now=NOON)

    thread = after(NEW, event)

    assert thread.exists
    assert (thread.cwd, thread.git_branch, thread.mode) == ("/w/fern", "main", "enabled")


def test_no_password_of_a_remote_is_recorded():
    secret = "https://dana:hunter2@forge.test/fern.git?token=abc"

    event = register(NEW, header=header(repository_url=secret), **FIRST, mode="enabled", now=NOON)

    assert event.repository_url == "https://forge.test/fern.git"


def test_a_thread_is_registered_once():
    with pytest.raises(AlreadyRegistered):
        register(registered(), header=header(), **FIRST, mode="enabled", now=NOON)


def test_a_reading_that_says_nothing_new_is_no_event():
    thread = registered()

    assert change(thread, header=header(), now=NOON) is None


def test_a_change_names_only_what_changed():
    thread = registered()

    event = change(thread, header=header(updated_at_ms=NOON * 1000, archived=True), now=NOON)

    assert (event.updated_at_ms, event.archived) == (NOON * 1000, True)
    assert (event.git_branch, event.cwd, event.preview_ref) == (UNSET, UNSET, UNSET)
    assert after(thread, event).archived


def test_a_reading_may_move_the_last_update_back():
    thread = registered(updated_at_ms=NOON * 1000)

    event = change(thread, header=header(updated_at_ms=NOON * 1000 - 1), now=NOON)

    assert event.updated_at_ms == NOON * 1000 - 1


def test_a_change_says_on_whose_disk_the_file_is_and_that_alone_is_no_change():
    thread = registered()

    none = change(thread, header=header(), machine_id="m1", now=NOON)
    event = change(thread, header=header(rollout_path="/b.jsonl"), machine_id="m1", now=NOON)

    assert none is None
    assert (after(thread, event).rollout_path, after(thread, event).machine_id) == (
        "/b.jsonl",
        "m1",
    )


def test_a_copy_elsewhere_fills_in_what_nobody_knew_and_changes_nothing_else():
    thread = registered(updated_at_ms=NOON * 1000, git_branch=None, machine_id="m1")
    copy = header(
        rollout_path="/b.jsonl",
        updated_at_ms=NOON * 1000,
        archived=True,
        git_branch="main",
        source="vscode",
    )

    event = change(thread, header=copy, machine_id="m2", elsewhere=True, now=NOON)
    again = change(after(thread, event), header=copy, machine_id="m2", elsewhere=True, now=NOON)

    assert event.git_branch == "main"
    assert (event.rollout_path, event.archived, event.source, event.machine_id) == (UNSET,) * 4
    assert again is None


def test_a_copy_elsewhere_that_says_more_is_the_session_from_then_on():
    thread = registered(updated_at_ms=NOON * 1000, machine_id="m1")
    longer = header(rollout_path="/b.jsonl", updated_at_ms=NOON * 1000 + 1)

    event = change(thread, header=longer, machine_id="m2", elsewhere=True, now=NOON)

    assert (event.rollout_path, event.machine_id) == ("/b.jsonl", "m2")
    assert event.updated_at_ms == NOON * 1000 + 1


def test_an_existing_branch_is_kept_and_a_missing_one_is_filled():
    first, later = header(git_branch="main"), header(git_branch="fix")

    kept = change(registered(git_branch=first.git_branch), header=later, now=NOON)
    filled = change(registered(git_branch=None), header=later, now=NOON)

    assert kept is None
    assert filled.git_branch == "fix"


def test_an_existing_remote_is_kept_and_a_missing_one_is_filled():
    later = header(repository_url="https://u:p@forge.test/b")

    kept = change(registered(repository_url="https://forge.test/a"), header=later, now=NOON)
    filled = change(registered(), header=later, now=NOON)

    assert kept is None
    assert filled.repository_url == "https://forge.test/b"


def test_a_folder_that_is_gone_from_disk_stays_known():
    thread = registered(root="/w/fern")

    event = change(thread, header=header(cwd=None), root=None, now=NOON)

    assert event is None


def test_a_new_preview_replaces_the_old_one():
    thread = registered(preview_ref="preview-1")

    event = change(thread, header=header(), preview_ref="preview-2", now=NOON)

    assert after(thread, event).preview_ref == "preview-2"


def test_creation_mode_is_kept_by_later_readings():
    thread = registered(mode="disabled")

    event = change(thread, header=header(updated_at_ms=NOON * 1000), now=NOON)

    assert after(thread, event).mode == "disabled"


@pytest.mark.parametrize(
    ("facts", "settings", "mode"),
    [
        ({}, {}, ("enabled", "default")),
        ({}, {"generate_memories": False}, ("disabled", "generate_memories")),
        ({"memory_mode": "disabled"}, {}, ("disabled", "transcript")),
        ({"memory_mode": "polluted"}, {"generate_memories": False}, ("polluted", "transcript")),
        ({"memory_mode": "enabled"}, {}, ("enabled", "default")),
    ],
)
def test_the_stricter_word_decides_the_first_mode(facts, settings, mode):
    assert first_mode(header(**facts), **settings) == mode


def test_a_server_that_a_person_trusts_and_our_own_bring_nothing_from_outside():
    triggers = ("mcp:threadbook", "web_search", "mcp:wiki", "mcp:glossary", "mcp:threadbook2")

    assert outside_text(triggers) == ("web_search", "mcp:wiki", "mcp:glossary", "mcp:threadbook2")
    assert outside_text(triggers, trusted=("wiki", "web_search")) == (
        "web_search",
        "mcp:glossary",
        "mcp:threadbook2",
    )


def test_pollution_is_recorded_once():
    event = pollute(registered(), cause="web_search", detail="search", now=NOON)

    assert (event.cause, event.detail, event.mode_before) == ("web_search", "search", "enabled")
    assert pollute(after(registered(), event), cause="mcp", now=NOON) is None


def test_a_disabled_thread_can_be_polluted():
    event = pollute(registered(mode="disabled"), cause="mcp", now=NOON)

    assert event.mode_before == "disabled"


def test_a_person_may_leave_pollution():
    event = set_mode(polluted(), mode="enabled", reason="person", now=NOON)

    assert event.mode_before == "polluted"
    assert after(polluted(), event).mode == "enabled"


@pytest.mark.parametrize("said", ["enabled", "disabled", "polluted", None])
def test_a_transcript_never_leaves_pollution(said):
    assert follow_transcript(polluted(), memory_mode=said, now=NOON) is None


def test_a_transcript_may_restrict_itself_and_take_only_that_back():
    thread = registered()

    restricted = after(thread, follow_transcript(thread, memory_mode="disabled", now=NOON))
    reopened = after(restricted, follow_transcript(restricted, memory_mode="enabled", now=NOON))
    by_person = after(thread, set_mode(thread, mode="disabled", reason="person", now=NOON))

    assert (restricted.mode, reopened.mode) == ("disabled", "enabled")
    assert follow_transcript(by_person, memory_mode="enabled", now=NOON) is None


def test_a_transcript_that_says_it_is_polluted_pollutes_its_thread():
    event = follow_transcript(registered(), memory_mode="polluted", now=NOON)

    assert isinstance(event, ThreadPolluted)


def test_a_mode_that_is_set_already_is_no_event():
    assert set_mode(registered(), mode="enabled", reason="person", now=NOON) is None


def test_a_scope_that_is_set_already_is_no_event():
    thread = registered(scope="project:a-1")

    moved = rescope(thread, scope="project:b-2", reason="person", now=NOON)

    assert (moved.scope, moved.scope_before) == ("project:b-2", "project:a-1")
    assert rescope(thread, scope="project:a-1", reason="person", now=NOON) is None


def test_an_id_can_be_forgotten_before_it_is_seen():
    event = forget(NEW, reason="person", now=NOON)

    with pytest.raises(Forgotten):
        register(after(NEW, event), header=header(), **FIRST, mode="enabled", now=NOON)


def test_forgetting_twice_is_one_event():
    assert forget(forgotten(), reason="person", now=NOON) is None


@pytest.mark.parametrize(
    "command",
    [
        lambda thread: register(thread, header=header(), **FIRST, mode="enabled", now=NOON),
        lambda thread: change(thread, header=header(archived=True), now=NOON),
        lambda thread: set_mode(thread, mode="disabled", reason="person", now=NOON),
        lambda thread: pollute(thread, cause="mcp", now=NOON),
        lambda thread: rescope(thread, scope="global", reason="person", now=NOON),
        lambda thread: follow_transcript(thread, memory_mode="polluted", now=NOON),
    ],
)
def test_a_forgotten_thread_refuses_everything_but_lifting(command):
    with pytest.raises(Forgotten, match="only a person can lift it"):
        command(forgotten())


def test_lifting_brings_the_thread_back_without_its_texts():
    thread = forgotten(registered(mode="disabled"))

    lifted = after(thread, lift(thread, now=NOON))

    assert (lifted.exists, lifted.forgotten) == (True, False)
    assert (lifted.mode, lifted.preview_ref) == ("disabled", None)


def test_only_a_forgotten_thread_can_be_lifted():
    with pytest.raises(NotForgotten):
        lift(registered(), now=NOON)


def test_a_thread_that_was_never_seen_has_no_mode_to_change():
    with pytest.raises(UnknownThread):
        set_mode(NEW, mode="disabled", reason="person", now=NOON)
