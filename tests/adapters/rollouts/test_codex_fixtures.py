"""What the real Codex 0.171.0 wrote is read as a person reads it. Numbers were taken by eye."""

import json

import pytest
from threadbook.adapters.rollouts import NotASession, head, items, survey
from threadbook.domain.session import (
    Assistant,
    Call,
    Change,
    Harness,
    Human,
    Output,
    TurnAborted,
)

from .support import EXTRA, MADE, NOW_MS, ROLLOUTS

#  file: records, source, kind, what was typed, exit codes, polluting
SESSIONS = {
    "tools": (
        38,
        "vscode",
        "interactive",
        (
            "Please run the unit tests of the greeter and fix what fails."
            " FACT[greeter tests run with python3 -m unittest]",
        ),
        [0, 0, 0, 0],
        (),
    ),
    "error": (
        29,
        "vscode",
        "interactive",
        ("deploy to staging with ship.sh FACT[ship.sh needs SHIP_REGION]",),
        [2, 3, 127],
        (),
    ),
    "http500": (
        15,
        "vscode",
        "interactive",
        ("ask the model while it is broken FACT[the mock broke]",),
        [0],
        (),
    ),
    "overflow": (12, "vscode", "interactive", ("context overflow please",), [], ()),
    "longout": (
        19,
        "vscode",
        "interactive",
        ("print the big log FACT[the big log has 6000 lines]",),
        [0],
        (),
    ),
    "secrets": (
        19,
        "vscode",
        "interactive",
        (
            "what is in the env file? my own key is sk-test-ZZZZZZZZZZZZZZZZZZZZZZZZZZZZ0000"
            " FACT[env example lists five keys]",
        ),
        [0],
        (),
    ),
    "unicode": (
        19,
        "vscode",
        "interactive",
        ("Bitte übersetze das — 日本語 🚀 FACT[Nutzer schreibt Deutsch \u2013 ünïcode ok]",),
        [0],
        (),
    ),
    "resume": (
        42,
        "vscode",
        "interactive",
        (
            "first turn of three FACT[work goes in three steps]",
            "second turn of three",
            "third turn of three",
        ),
        [0, 0],
        (),
    ),
    "patch": (
        19,
        "vscode",
        "interactive",
        ("add a changelog with a patch FACT[changelog lives in CHANGELOG.md]",),
        [0],
        (),
    ),
    "mcp": (
        19,
        "vscode",
        "interactive",
        ("use the glossary for frobnicate FACT[glossary came from MCP]",),
        [None],
        ("mcp:glossary",),
    ),
    "skill": (
        15,
        "vscode",
        "interactive",
        ("$release-notes write notes FACT[release notes use past tense]",),
        [],
        (),
    ),
    "trivial": (14, "vscode", "interactive", ("just say thanks",), [], ()),
    "interrupted": (
        16,
        "vscode",
        "interactive",
        ("sleep for a while FACT[was interrupted]",),
        [None],
        (),
    ),
    "exec": (19, "exec", "exec", ("exec mode question FACT[exec was used]",), [0], ()),
    "tui": (19, "cli", "interactive", ("tui question FACT[the TUI was used]",), [0], ()),
}
EXTRAS = {
    "web": (18, ("web search case FACT[web]",), [], ("web_search",)),
    "think": (23, ("think case FACT[think]",), [0], ()),
    "image": (14, ("image case FACT[img]",), [], ()),
    "fork": (20, ("think case in the fork",), [0], ()),
    "compact": (
        53,
        ("think case before compaction FACT[compact]", "think case after compaction"),
        [0, 0],
        (),
    ),
}
ROWS = {row["fixture"]: row for row in json.loads((ROLLOUTS / "threads.json").read_text())}


def exit_codes(path):
    return [one.exit_code for one in items(path, now_ms=NOW_MS) if isinstance(one, Output)]


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_of_codex_is_read_right(name):
    path = ROLLOUTS / f"{name}.jsonl"
    records, source, kind, typed, codes, polluting = SESSIONS[name]

    read = survey(path, now_ms=NOW_MS)

    assert (read.records, read.header.source, read.header.kind) == (records, source, kind)
    assert read.human_messages == typed
    assert exit_codes(path) == codes
    assert read.polluting == polluting
    assert (read.bad_lines, read.skipped, read.unfinished_tail) == ((), {}, False)
    assert (read.header.forked_from, read.header.parent) == (None, None)
    assert read.resume_offset == path.stat().st_size


@pytest.mark.parametrize("name", SESSIONS)
def test_codex_s_own_row_says_the_same(name):
    row = ROWS[f"{name}.jsonl"]

    header = survey(ROLLOUTS / f"{name}.jsonl", now_ms=NOW_MS).header

    assert header.thread_id == row["id"]
    assert header.updated_at_ms // 1000 == row["updated_at"]
    assert header.created_at_ms // 1000 == row["created_at"]
    assert header.preview == row["preview"]
    assert header.source == row["source"]
    assert header.cwd == row["cwd"]
    assert header.git_branch == row["git_branch"]
    assert header.archived is bool(row["archived"])


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("name", EXTRAS)
def test_an_extra_session_is_read_right(name, version):
    path = EXTRA / f"{name}-{version}.jsonl"
    records, typed, codes, polluting = EXTRAS[name]

    read = survey(path, now_ms=NOW_MS)

    assert (read.records, read.human_messages) == (records, typed)
    assert exit_codes(path) == codes
    assert read.polluting == polluting
    assert (read.bad_lines, read.skipped) == ((), {})


def test_a_fork_by_reference_names_its_parent_and_holds_only_its_own_items():
    parent = survey(EXTRA / "think-v1.jsonl", now_ms=NOW_MS).header

    fork = survey(EXTRA / "fork-v1.jsonl", now_ms=NOW_MS).header

    assert fork.forked_from == parent.thread_id
    assert not any(one.inherited for one in items(EXTRA / "fork-v1.jsonl", now_ms=NOW_MS))


def test_a_patch_inside_a_shell_call_names_the_file_it_adds():
    read = list(items(ROLLOUTS / "patch.jsonl", now_ms=NOW_MS))

    call, output = [one for one in read if isinstance(one, Call | Output)]

    assert call.changes == (Change(path="CHANGELOG.md", how="add"),)
    assert call.command.startswith("apply_patch <<'EOF'")
    assert output.text == "Success. Updated the following files:\nA CHANGELOG.md\n"
    assert output.failed is False


def test_an_interrupted_turn_is_marked_once():
    read = list(items(ROLLOUTS / "interrupted.jsonl", now_ms=NOW_MS))

    assert sum(isinstance(one, TurnAborted) for one in read) == 1
    assert [one.what for one in read if isinstance(one, Harness)][-1] == "generic.turn_aborted"


def test_what_no_person_typed_stays_with_the_harness():
    read = list(items(ROLLOUTS / "skill.jsonl", now_ms=NOW_MS))

    harness = "\n".join(one.text for one in read if isinstance(one, Harness))
    typed = "\n".join(one.text for one in read if isinstance(one, Human))

    assert "SKILL_BODY_CANARY" in harness
    assert "AGENTSMD_CANARY" in harness
    assert "CANARY" not in typed


@pytest.mark.parametrize("name", ["think", "image", "compact"])
def test_no_reasoning_and_no_picture_is_kept(name):
    read = repr(list(items(EXTRA / f"{name}-v1.jsonl", now_ms=NOW_MS)))

    assert "SECRET_REASONING" not in read
    assert "AAAA" not in read
    assert "iVBORw0KGgo" not in read


@pytest.mark.parametrize("name", ["history", "session_index"])
def test_codex_s_own_lists_are_not_sessions(name):
    path = ROLLOUTS / f"{name}.jsonl"

    with pytest.raises(NotASession, match="holds no session"):
        survey(path, now_ms=NOW_MS)

    assert head(path) is None


def test_the_bare_lines_of_2025_are_read():
    path = MADE / "bare_2025.jsonl"

    read = survey(path, now_ms=NOW_MS)
    told = list(items(path, now_ms=NOW_MS))

    assert read.header.thread_id == "5973b6c0-94b8-487b-a530-2aeb6098ae0e"
    assert (read.header.source, read.header.kind) == ("vscode", "interactive")
    assert read.header.cwd == "/srv/herbs"
    assert read.header.repository_url == "https://example.test/herbs.git"
    assert (read.records, read.skipped, read.bad_lines) == (11, {}, ())
    assert read.human_messages == ("Run the herb tests.",)
    assert [one.command for one in told if isinstance(one, Call)] == ["make test", "ls 'my herbs'"]
    assert [(one.exit_code, one.text) for one in told if isinstance(one, Output)] == [
        (0, "4 passed\n"),
        (2, "ls: cannot access 'my herbs'\n"),
    ]
    assert [one.text for one in told if isinstance(one, Assistant)] == ["There is no such folder."]
