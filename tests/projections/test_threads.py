"""threads: one row a session, whatever is read of it again; forgetting is the end until lifted."""

from hypothesis import given
from msgspec import UNSET
from msgspec.structs import asdict
from threadbook.domain.events import (
    ForgettingLifted,
    MemoryModeSet,
    ThreadChanged,
    ThreadForgotten,
    ThreadPolluted,
    ThreadRegistered,
    ThreadRescoped,
)
from threadbook.projections import threads
from threadbook.projections.fold import fold

from tests.projections.histories import lawful, logs, unhurried
from tests.projections.specimens import find, plain, tables


def only(log):
    [row] = fold(threads, log)
    return row


@unhurried
@given(log=logs)
def test_a_thread_is_what_was_said_of_it_last(log):
    said = {}
    for event in log:
        match event:
            case ThreadRegistered():
                row = said.setdefault(event.thread_id, {"forgotten": False})
                row |= {"registered": True} | without_envelope(event)
            case ThreadChanged() if event.thread_id in said:
                fields = without_envelope(event).items()
                said[event.thread_id] |= {k: v for k, v in fields if v is not UNSET}
            case MemoryModeSet() if event.thread_id in said:
                said[event.thread_id] |= {"mode": event.mode, "mode_reason": event.reason}
            case ThreadPolluted() if event.thread_id in said:
                said[event.thread_id] |= {"mode": "polluted", "mode_reason": event.cause}
            case ThreadRescoped() if event.thread_id in said:
                said[event.thread_id]["scope"] = event.scope
            case ThreadForgotten():
                said.setdefault(event.thread_id, {"registered": False})["forgotten"] = True
            case ForgettingLifted() if event.thread_id in said:
                said[event.thread_id]["forgotten"] = False
                if not said[event.thread_id]["registered"]:
                    del said[event.thread_id]

    found = {row.thread_id: asdict(row) for row in fold(threads, log)}

    assert found.keys() == said.keys()
    for thread_id, expected in said.items():
        for column, value in expected.items():
            if column != "preview_ref":  # Forgetting has its own word on it, below.
                assert found[thread_id][column] == value, column


def without_envelope(event):
    return {name: value for name, value in asdict(event).items() if name != "at"}


@unhurried
@given(log=logs)
def test_a_forgotten_thread_keeps_no_preview_whatever_follows(log):
    forgotten = [row for row in fold(threads, log) if row.forgotten]

    assert [row.preview_ref for row in forgotten] == [None] * len(forgotten)


@unhurried
@given(log=logs)
def test_a_thread_is_forgotten_from_its_forgetting_until_it_is_lifted(log):
    expected = {}
    for event in lawful(log):
        match event:
            case ThreadForgotten():
                expected[event.thread_id] = event.at
            case ForgettingLifted():
                expected.pop(event.thread_id, None)

    found = fold(threads, lawful(log))

    assert {row.thread_id: row.forgotten_at for row in found if row.forgotten} == expected


def test_flags_are_the_numbers_that_sqlite_keeps():
    row = only([plain(ThreadRegistered, archived=True), plain(ThreadForgotten)])

    assert (type(row.archived), type(row.registered), type(row.forgotten)) == (int, int, int)
    assert (row.archived, row.registered, row.forgotten) == (1, 1, 1)


def test_an_unset_field_is_unchanged_and_none_is_cleared():
    registered = plain(ThreadRegistered, cwd="/a", git_branch="main")

    row = only([registered, ThreadChanged(at=2, thread_id="t1", git_branch=None, archived=True)])

    assert (row.cwd, row.git_branch, row.archived) == ("/a", None, 1)


def test_a_change_leaves_mode_and_scope_to_their_own_events():
    log = [
        plain(ThreadRegistered),
        plain(ThreadPolluted, at=5),
        plain(ThreadRescoped, scope="user"),
        ThreadChanged(at=9, thread_id="t1", cwd="/b"),
    ]

    row = only(log)

    assert (row.mode, row.mode_reason, row.mode_changed_at) == ("polluted", "web_search", 5)
    assert row.scope == "user"


def test_a_thread_can_be_forgotten_before_it_is_seen():
    row = only([plain(ThreadForgotten, at=7)])

    assert (row.registered, row.forgotten, row.forgotten_at) == (0, 1, 7)


def test_neither_a_registration_nor_a_change_brings_a_forgotten_preview_back():
    log = [
        plain(ThreadForgotten),
        plain(ThreadRegistered, preview_ref="words"),
        ThreadChanged(at=2, thread_id="t1", preview_ref="words", cwd="/b"),
    ]

    assert only(log[:2]).preview_ref is only(log).preview_ref is None
    assert only(log).cwd == "/b"


def test_lifting_brings_back_a_seen_thread_and_leaves_nothing_of_an_unseen_one():
    unseen = [plain(ThreadForgotten), plain(ForgettingLifted)]

    row = only([plain(ThreadRegistered), *unseen])

    assert (row.forgotten, row.forgotten_at, row.preview_ref) == (0, None, None)
    assert fold(threads, unseen) == []


def candidates(log, *, current=None, oldest=0, newest=9_999, limit=9):
    found = find(
        tables(log),
        threads,
        threads.STARTUP_CANDIDATES,
        current_thread_id=current,
        oldest_ms=oldest,
        newest_ms=newest,
        scan_limit=limit,
    )
    return [row.thread_id for row in found]


def test_both_ends_of_the_startup_window_are_inside():
    log = [plain(ThreadRegistered, updated_at_ms=2_000)]

    assert candidates(log, oldest=2_000, newest=2_000) == ["t1"]
    assert candidates(log, oldest=2_001) == []
    assert candidates(log, newest=1_999) == []


def test_startup_takes_the_newest_first_and_ties_by_id():
    log = [
        plain(ThreadRegistered, thread_id=thread_id, updated_at_ms=updated_at_ms)
        for thread_id, updated_at_ms in [("a", 1), ("b", 3), ("c", 3), ("d", 2)]
    ]

    assert candidates(log) == ["c", "b", "d", "a"]
    assert candidates(log, limit=2) == ["c", "b"]
    assert candidates(log, limit=0) == []


def test_a_filtered_thread_does_not_use_up_the_scan_limit():
    log = [
        plain(ThreadRegistered, thread_id="old", updated_at_ms=1),
        plain(ThreadRegistered, thread_id="current", updated_at_ms=2),
    ]

    assert candidates(log, current="current", limit=1) == ["old"]


def test_startup_reads_only_enabled_interactive_sessions_in_which_somebody_wrote():
    registered = {"enabled": plain(ThreadRegistered, thread_id="enabled")}
    for field, value in {
        "mode": "disabled",
        "archived": True,
        "preview_ref": None,
        "kind": "exec",
    }.items():
        registered[field] = plain(ThreadRegistered, thread_id=field, **{field: value})
    later = [
        plain(ThreadRegistered, thread_id="polluted"),
        plain(ThreadPolluted, thread_id="polluted"),
        plain(ThreadRegistered, thread_id="forgotten"),
        plain(ThreadForgotten, thread_id="forgotten"),
        plain(ThreadForgotten, thread_id="never seen"),
    ]

    assert candidates([*registered.values(), *later]) == ["enabled"]


def test_threads_are_listed_newest_first_without_the_never_seen():
    log = [
        plain(ThreadRegistered, thread_id="a", updated_at_ms=1),
        plain(ThreadRegistered, thread_id="b", updated_at_ms=2, scope="user", root="/b"),
        plain(ThreadForgotten, thread_id="unseen"),
    ]

    def ids(rest, **values):
        return [row.thread_id for row in find(tables(log), threads, rest, **values)]

    assert ids(threads.NEWEST_FIRST) == ["b", "a"]
    assert ids(threads.OF_SCOPE, scope="user") == ["b"]
    assert ids(threads.OF_ROOT, root="/home/ann/a") == ["a"]
