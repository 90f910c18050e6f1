"""The box in honest use: what each tool does, what it is offered as, and what is kept of a call."""

import json
import resource
import signal

import pytest
from threadbook.adapters.staging import resolver
from threadbook.adapters.staging.box import TOOLS, Box, Limits
from threadbook.adapters.staging.folder import staged
from threadbook.application.ports import Failure, ToolUse

GIVEN = {
    "MEMORY.md": "# Task Group: greeter\nuse make check\n",
    "memory_summary.md": "v1\n",
    "raw_memories.md": "## Thread `a`\nuse make check\n",
    "rollout_summaries/a.md": "thread_id: a\nUse MAKE check\n",
}


@pytest.fixture
def staging(tmp_path):
    with staged(tmp_path / "home", GIVEN, owner="worker") as (made, _):
        yield made


@pytest.fixture
def box(staging):
    with Box(staging.path) as made:
        yield made


def call(box, tool, **arguments):
    return box.call(tool, json.dumps(arguments))


def test_a_memory_is_written_with_the_tools(box, staging):
    listed = call(box, "list", path=None, start=None)
    below = call(box, "list", path="rollout_summaries/", start=None)
    read = call(box, "read", path="raw_memories.md", offset=None)
    rest = call(box, "read", path="raw_memories.md", offset=14)
    found = call(box, "search", text="make CHECK", path=None, ignore_case=True, start=None)
    exact = call(box, "search", text="MAKE", path="rollout_summaries", ignore_case=False, start=1)
    written = call(box, "write", path="skills/release/SKILL.md", content="ünï\n")
    replaced = call(box, "replace", path="MEMORY.md", old="make check", new="make all")
    moved = call(box, "move", path="skills/release/SKILL.md", to="skills/ship/SKILL.md")
    renamed = call(box, "move", path="skills/ship/SKILL.md", to="skills/ship/skill.md")
    deleted = call(box, "delete", path="memory_summary.md")
    finished = call(box, "finish")

    assert listed.split("\n") == [
        "4 entries",
        "MEMORY.md  37",
        "memory_summary.md  3",
        "raw_memories.md  29",
        "rollout_summaries/",
    ]
    assert below == "1 entries\na.md  28"
    assert read == "characters 0 to 29 of 29\n\n## Thread `a`\nuse make check\n"
    assert rest == "characters 14 to 29 of 29\n\nuse make check\n"
    assert found.split("\n") == [
        "3 finds",
        "MEMORY.md:2: use make check",
        "raw_memories.md:2: use make check",
        "rollout_summaries/a.md:2: Use MAKE check",
    ]
    assert exact == "finds 2 to 1 of 1"
    assert written == "skills/release/SKILL.md has 6 bytes now"
    assert replaced == "MEMORY.md has 35 bytes now"
    assert moved == "skills/release/SKILL.md is skills/ship/SKILL.md now"
    assert renamed == "skills/ship/SKILL.md is skills/ship/skill.md now"
    assert deleted == "memory_summary.md is gone"
    assert finished == "finished; the folder is checked now"
    assert staging.files().files == {
        "MEMORY.md": "# Task Group: greeter\nuse make all\n",
        "raw_memories.md": GIVEN["raw_memories.md"],
        "rollout_summaries/a.md": GIVEN["rollout_summaries/a.md"],
        "skills/ship/skill.md": "ünï\n",
    }
    assert not (staging.path / "skills" / "release").exists()


def test_of_a_call_the_tool_the_path_and_the_size_are_kept_and_no_text(box):
    secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    call(box, "write", path="MEMORY.md", content=f"token {secret}")
    call(box, "write", path=f"skills/{secret}.md", content="x")
    call(box, "write", path=f"../{secret}", content="x")
    call(box, "move", path="MEMORY.md", to="a.md")
    call(box, "search", text=secret, path="a.md", ignore_case=False, start=None)
    call(box, secret, path="a.md")
    box.call("write", secret)

    assert box.done == [
        ToolUse(tool="write", path="MEMORY.md", bytes=46),
        ToolUse(tool="write", path="skills/[REDACTED_SECRET].md", bytes=1),
        ToolUse(tool="write", refused="bad_name"),
        ToolUse(tool="move", path="MEMORY.md", to="a.md"),
        ToolUse(tool="search", path="a.md"),
        ToolUse(tool="unknown", refused="bad_call"),
        ToolUse(tool="write", refused="bad_call"),
    ]
    assert box.calls == {"write": 4, "move": 1, "search": 1, "unknown": 1}


def test_the_tools_are_offered_as_strict_functions(box):
    offered = box.tools()

    assert [tool["name"] for tool in offered] == list(TOOLS)
    for tool in offered:
        parameters = tool["parameters"]
        assert (tool["type"], tool["strict"]) == ("function", True)
        assert tool["description"].endswith(".")
        assert parameters["additionalProperties"] is False
        assert parameters["required"] == list(parameters["properties"])
        assert "title" not in json.dumps(tool)
    assert json.dumps(offered).isascii()


def test_a_call_without_arguments_may_have_no_text_at_all(box):
    assert box.call("finish", "").startswith("finished")


@pytest.mark.parametrize("old", ["e", "aa", ""])
def test_a_passage_that_is_not_there_exactly_once_is_not_replaced(box, old):
    call(box, "write", path="x.md", content="eeaaa")  # "aa" is there twice, one over the other.

    answer = call(box, "replace", path="x.md", old=old, new="y")

    assert answer.startswith("error: old ")
    assert call(box, "read", path="x.md", offset=None).endswith("eeaaa")


def test_a_deleted_file_makes_room_for_another(staging):
    with Box(staging.path, Limits(files=0)) as box:
        full = call(box, "write", path="x.md", content="x")
        call(box, "delete", path="MEMORY.md")
        after = call(box, "write", path="x.md", content="x")

    assert "0 more files than were given are the most" in full
    assert after == "x.md has 1 bytes now"


def test_a_disk_that_fails_is_told_to_the_model(box):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limit[1]))
    try:
        answer = call(box, "write", path="MEMORY.md", content="x" * 2_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)

    assert answer.startswith("error: the disk did not do it (File too large)")
    assert call(box, "read", path="MEMORY.md", offset=None).endswith(GIVEN["MEMORY.md"])
    assert "4 entries" in call(box, "list", path=None, start=None)
    assert box.bytes_written == 0


def test_where_nothing_can_be_opened_below_a_folder_no_box_is(staging, monkeypatch):
    monkeypatch.setattr(resolver, "HAS_AT", False)

    with pytest.raises(Failure, match="Linux, macOS or WSL, or use the offline model"):
        Box(staging.path)
