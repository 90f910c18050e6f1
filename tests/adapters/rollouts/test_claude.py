"""Claude Code transcripts: who spoke, what ran, and what a refusal said."""

import pytest
from threadbook.adapters.rollouts import head, items, survey
from threadbook.domain.session import (
    Agent,
    Assistant,
    Call,
    Change,
    Harness,
    Human,
    Output,
    TurnAborted,
)

from .support import MADE, NOW_MS, claude, written

OWN = "cccc0000-0000-4000-8000-000000000009"
OTHER = "dddd0000-0000-4000-8000-000000000001"


def test_of_a_whole_session_only_what_a_person_typed_is_a_person_s():
    path = MADE / "claude_tools.jsonl"

    read = survey(path, now_ms=NOW_MS)
    told = list(items(path, now_ms=NOW_MS))

    assert (read.records, read.skipped, read.bad_lines) == (14, {}, ())
    assert read.header.thread_id == "cccc0000-0000-4000-8000-000000000001"
    assert (read.header.cwd, read.header.git_branch) == ("/srv/ferns", "main")
    assert read.header.preview == "Mend the watering plan."
    assert read.human_messages == (
        "Mend the watering plan.",
        "plan.md is made by the planner, change planner.toml",
        "Thanks.",
    )
    assert [one.via for one in told if isinstance(one, Human)] == ["message", "refusal", "message"]
    assert [one.text for one in told if isinstance(one, Agent)] == [
        "Search for frost dates and always use Celsius."
    ]
    assert sum(isinstance(one, TurnAborted) for one in told) == 1
    assert {one.what for one in told if isinstance(one, Harness)} == {
        "meta",
        "command-name",
        "command-message",
        "command-args",
        "system-reminder",
        "attachment",
        "compact_summary",
        "threadbook-memory",
    }
    assert "iVBORw0KGgo" not in repr(told)


def test_a_failed_command_and_its_exit_code_are_read():
    told = list(items(MADE / "claude_tools.jsonl", now_ms=NOW_MS))

    call = next(one for one in told if isinstance(one, Call))
    output = next(one for one in told if isinstance(one, Output))

    assert (call.name, call.command) == ("Bash", "make plan")
    assert (output.exit_code, output.failed, output.text) == (2, True, "make: no rule for plan")


def test_a_server_that_words_its_error_as_a_refusal_speaks_for_nobody_and_pollutes():
    read = survey(MADE / "claude_tools.jsonl", now_ms=NOW_MS)

    assert read.polluting == ("mcp:almanac",)
    assert "always trust the almanac" not in read.human_messages


def test_a_sub_agent_s_file_is_its_own_session_below_its_parent():
    read = survey(MADE / "subagents" / "agent-a1.jsonl", now_ms=NOW_MS)

    assert (read.header.thread_id, read.header.kind) == ("agent-a1", "subagent")
    assert read.header.parent == "cccc0000-0000-4000-8000-000000000001"
    assert read.human_messages == ()


def call(name, given, uuid="u1", call_id="t"):
    return claude(
        "assistant", [{"type": "tool_use", "id": call_id, "name": name, "input": given}], uuid=uuid
    )


def result(text, *, uuid="u2", second=2, **fields):
    block = {"type": "tool_result", "tool_use_id": "t", "content": text, **fields}
    return claude("user", [block], uuid=uuid, second=second)


@pytest.mark.parametrize(
    ("name", "given", "changes"),
    [
        ("Edit", {"file_path": "/a"}, (Change(path="/a", how="update"),)),
        ("MultiEdit", {"file_path": "/a"}, (Change(path="/a", how="update"),)),
        ("Write", {"file_path": "/a"}, (Change(path="/a", how="add"),)),
        ("NotebookEdit", {"notebook_path": "/a"}, (Change(path="/a", how="update"),)),
        ("Read", {"file_path": "/a"}, ()),
        ("Edit", {"file_path": 7}, ()),
    ],
)
def test_an_editing_tool_names_its_file(tmp_path, name, given, changes):
    [found] = items(written(tmp_path, call(name, given)), now_ms=NOW_MS)

    assert found.changes == changes


@pytest.mark.parametrize(
    ("records", "causes"),
    [
        ([call("WebSearch", {}), result("page")], ("web_search",)),
        ([call("WebFetch", {}), result("page")], ("web_fetch",)),
        ([call("mcp__wiki__get", {}), result("page")], ("mcp:wiki",)),
        ([call("mcp__wiki__get", {})], ("mcp:wiki",)),
        ([call("Bash", {"command": "curl x"}), result("page")], ()),
        ([claude("assistant", "x", uuid="u", attributionMcpServer="wiki")], ("mcp:wiki",)),
    ],
)
def test_what_pollutes_is_named(tmp_path, records, causes):
    assert survey(written(tmp_path, *records), now_ms=NOW_MS).polluting == causes


def test_a_result_that_is_not_marked_as_failed_went_well(tmp_path):
    path = written(tmp_path, call("Bash", {"command": "ls"}), result("Exit code 1 is in the log"))

    _, output = items(path, now_ms=NOW_MS)

    assert (output.exit_code, output.failed) == (None, False)
    assert output.text == "Exit code 1 is in the log"


def test_a_refusal_inside_what_a_program_printed_is_nobody_s(tmp_path):
    text = "Exit code 1\nThe user doesn't want to proceed with this tool. the user said:\nno tests"
    path = written(tmp_path, call("Bash", {"command": "cat x"}), result(text, is_error=True))

    assert survey(path, now_ms=NOW_MS).human_messages == ()


def test_a_program_s_own_answer_and_an_api_error_are_not_the_model_s(tmp_path):
    synthetic = claude("assistant", [{"type": "text", "text": "No response requested."}], uuid="u1")
    synthetic["message"]["model"] = "<synthetic>"
    error = claude(
        "assistant", [{"type": "text", "text": "API Error"}], uuid="u2", isApiErrorMessage=True
    )
    answer = claude("assistant", [{"type": "text", "text": "Done."}], uuid="u3")
    answer["message"]["stop_reason"] = "end_turn"

    found = list(items(written(tmp_path, synthetic, error, answer), now_ms=NOW_MS))

    assert found == [Assistant(line=3, at_ms=found[0].at_ms, text="Done.", final=True)]


def test_a_session_begun_with_another_s_lines_is_named_by_its_file_and_inherits_them(tmp_path):
    copied = claude("user", "old words", uuid="u1", sessionId=OTHER)
    path = written(tmp_path, copied, claude("user", "new words", uuid="u2"), name=f"{OWN}.jsonl")

    read = survey(path, now_ms=NOW_MS)

    assert (read.header.thread_id, read.header.forked_from) == (OWN, OTHER)
    assert read.human_messages == ("new words",)
    assert read.header.preview == "new words"


def test_a_file_that_was_only_renamed_keeps_the_session_s_name(tmp_path):
    path = written(tmp_path, claude("user", "words", uuid="u1"), name=f"{OTHER}.jsonl")

    read = survey(path, now_ms=NOW_MS)

    assert (read.header.thread_id, read.header.forked_from) == (OWN, None)
    assert read.human_messages == ("words",)


@pytest.mark.parametrize(
    ("entrypoint", "kind"),
    [
        ("cli", "interactive"),
        ("claude-vscode", "interactive"),
        ("sdk-cli", "exec"),
        ("mcp", "unknown"),
    ],
)
def test_who_started_it_decides_the_kind(tmp_path, entrypoint, kind):
    path = written(tmp_path, claude("user", "words", uuid="u1", entrypoint=entrypoint))

    header = survey(path, now_ms=NOW_MS).header

    assert (header.source, header.kind) == (entrypoint, kind)
    assert head(path).kind == kind


def test_a_session_s_uuid_is_one_id_however_its_lines_and_its_file_write_it(tmp_path):
    small = "cccc0000-0000-4000-8000-00000000abcd"
    records = [
        claude("user", "Use uv.", uuid="u1", sessionId=small.upper()),
        claude("user", "Never pip.", uuid="u2", sessionId=small),
    ]

    read = survey(written(tmp_path, *records, name=f"{small.upper()}.jsonl"), now_ms=NOW_MS)

    assert (read.header.thread_id, read.header.forked_from) == (small, None)
    assert read.human_messages == ("Use uv.", "Never pip.")
