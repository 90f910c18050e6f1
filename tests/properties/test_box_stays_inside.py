"""Whatever a model asks of its tools, in whatever order, only its own files change, as it was told.

A plain dictionary is kept beside the folder: a call that was answered without an error did to it
what the tool's name says, and one that was refused did nothing. The box's counts are compared with
what was asked and with what lies on the disk.
"""

import json
import os
import tempfile
from pathlib import Path

from hypothesis import assume, event, example, given, settings
from hypothesis import strategies as st
from threadbook.adapters import git
from threadbook.adapters.staging.box import INPUTS, TOOLS, Box, Limits
from threadbook.adapters.staging.folder import staged
from threadbook.adapters.workspace import Workspace
from threadbook.domain.path import BadName, folded, names_of

GIVEN = {
    "MEMORY.md": "one two one\n",
    "skills/a/SKILL.md": "two\n",
    "raw_memories.md": "input one\n",
    "rollout_summaries/x.md": "input two\n",
    "extensions/ad_hoc/notes/n.md": "input three\n",
}
LIMITS = Limits(bytes_total=200, bytes_file=60, files=3, calls_turn=9, calls=25, wall_s=1e9)
PARTS = [
    *("MEMORY.md", "memory.md", "skills", "Skills", "a", "A", "SKILL.md", "b.md", "new", "x.md"),
    *("raw_memories.md", "rollout_summaries", "extensions", "..", ".", ".git", "~", "nul", "c:"),
    *("", "trap", "trap.md", "outside", "e\u0301", "\u00e9", "\0", "\u200b", "x" * 256),
]
HONEST = st.sampled_from(
    [
        *("MEMORY.md", "memory.md", "skills/a/SKILL.md", "Skills/a/SKILL.md", "new.md", "a/b/c.md"),
        "rollout_summaries/new.md",
    ]
)
ANY = st.one_of(
    st.sampled_from(list(GIVEN)),
    st.lists(st.sampled_from(PARTS), max_size=5).map("/".join),
    st.text(max_size=6),
)
PATHS = st.one_of(HONEST, HONEST, ANY)
TEXTS = st.one_of(
    st.sampled_from(["", "one", "two", "two", "one two one\n", "x" * 61, "\0"]),
    st.text(max_size=30),
)
NUMBERS = st.one_of(st.none(), st.integers(-1, 12))
THERE = st.sampled_from(["MEMORY.md", "skills/a/SKILL.md", "new.md"])
CALLS = st.one_of(
    st.tuples(
        st.just("replace"),
        st.fixed_dictionaries(
            {"path": THERE, "old": st.sampled_from(["two", "one two", "one"]), "new": TEXTS}
        ),
    ),
    st.tuples(st.just("move"), st.fixed_dictionaries({"path": THERE, "to": HONEST})),
    st.tuples(st.just("write"), st.fixed_dictionaries({"path": PATHS, "content": TEXTS})),
    st.tuples(
        st.just("replace"), st.fixed_dictionaries({"path": PATHS, "old": TEXTS, "new": TEXTS})
    ),
    st.tuples(st.just("move"), st.fixed_dictionaries({"path": PATHS, "to": PATHS})),
    st.tuples(st.just("delete"), st.fixed_dictionaries({"path": PATHS})),
    st.tuples(
        st.just("list"),
        st.fixed_dictionaries({"path": st.none() | PATHS, "start": NUMBERS}),
    ),
    st.tuples(st.just("read"), st.fixed_dictionaries({"path": PATHS, "offset": NUMBERS})),
    st.tuples(
        st.just("search"),
        st.fixed_dictionaries(
            {"text": TEXTS, "path": st.none() | PATHS, "ignore_case": st.booleans(),
             "start": NUMBERS}
        ),
    ),
    st.tuples(st.just("turn"), st.just({})),
    st.tuples(st.sampled_from(["shell", "finish ", ""]), st.just({"cmd": "rm"})),
    st.tuples(st.sampled_from(list(TOOLS)), st.sampled_from([{}, {"path": 1}, {"path": "x.md"}])),
)  # fmt: skip


def told(files, tool, asked):
    """What a call does that is answered without an error."""
    if tool == "write":
        files[asked["path"]] = asked["content"]
    elif tool == "replace":
        assert files[asked["path"]].count(asked["old"]) == 1
        files[asked["path"]] = files[asked["path"]].replace(asked["old"], asked["new"])
    elif tool == "move":
        assert asked["to"] == asked["path"] or asked["to"] not in files
        files[asked["to"]] = files.pop(asked["path"])
    elif tool == "delete":
        del files[asked["path"]]


def is_input(path):
    return any(path == each.rstrip("/") or path.startswith(f"{each}") for each in INPUTS)


def on_disk(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


@settings(max_examples=200)
@given(st.lists(CALLS, min_size=3, max_size=40))
@example([("write", {"path": f"{n}.md", "content": "x"}) for n in range(9)])
@example([("write", {"path": "x.md", "content": "x" * 60}) for _ in range(5)])
@example([("write", {"path": "trap/planted.md", "content": "x"}),
          ("write", {"path": "trap.md", "content": "x"}),
          ("read", {"path": "trap.md", "offset": None}),
          ("move", {"path": "trap/secret.md", "to": "secret.md"}),
          ("move", {"path": "MEMORY.md", "to": "trap/MEMORY.md"}),
          ("delete", {"path": "trap.md"})])  # fmt: skip
@example([("move", {"path": "MEMORY.md", "to": "skills/a/SKILL.md"}),
          ("move", {"path": "MEMORY.md", "to": "memory.md"}),
          ("replace", {"path": "memory.md", "old": "two", "new": "2"}),
          ("delete", {"path": "skills/a/SKILL.md"}),
          ("write", {"path": "skills", "content": "a file where a folder was"})])  # fmt: skip
def test_only_its_own_files_change_as_it_was_told_and_are_counted(calls):
    with (
        tempfile.TemporaryDirectory() as made,
        staged(Path(made), GIVEN, owner="a") as (staging, _),
    ):
        home = Path(made)
        (home / "outside").mkdir()
        (home / "outside" / "secret.md").write_text("secret")
        (staging.path / "trap").symlink_to(home / "outside")
        (staging.path / "trap.md").symlink_to(home / "outside" / "secret.md")
        files, asked, written, refused = dict(GIVEN), 0, 0, 0
        with Box(staging.path, LIMITS) as box:
            for tool, arguments in calls:
                if tool == "turn":
                    box.next_turn()
                    continue
                was_finished = box.finished
                answer = box.call(tool, json.dumps(arguments))
                asked += 1
                if answer.startswith("error: "):
                    refused += 1
                    event(f"refused: {box.done[-1].refused}")
                else:
                    event(f"answered: {tool}")
                    assert asked <= LIMITS.calls or tool == "finish"
                    assert not was_finished or tool == "finish"
                    told(files, tool, arguments)
                    if tool in ("write", "replace"):
                        written += len(files[arguments["path"]].encode())
                assert "secret" not in answer.partition("error: ")[0]

            found = staging.files()
            assert found.files == files
            assert set(found.refused) == {"trap", "trap.md"}
            assert box.files == len(files) <= len(GIVEN) + LIMITS.files
            assert box.bytes_written == written <= LIMITS.bytes_total
            assert sum(box.calls.values()) == asked
            assert set(box.calls) <= {*TOOLS, "unknown"}
            assert len(box.done) == min(asked, LIMITS.calls)
            assert sum(done.bytes for done in box.done if done.tool in ("write", "replace")) == (
                written
            )

        assert on_disk(home / "outside") == {"secret.md": b"secret"}
        assert sorted(os.listdir(home)) == ["outside", "staging"]
        assert {path: text for path, text in files.items() if is_input(path)} == {
            path: text for path, text in GIVEN.items() if is_input(path)
        }
        told_alike = [tuple(map(folded, path.split("/"))) for path in files]
        assert len(set(told_alike)) == len(told_alike)
        assert all(len(text.encode()) <= LIMITS.bytes_file for text in files.values())
        assert all(names_of(path) for path in files)


@settings(max_examples=400)
@given(
    st.one_of(
        ANY,
        st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=3).map("/".join),
        st.from_regex(r"(con|aux|com[0-9]|lpt1|\.git|git~1|[a-c]:)[ .]?(\.md)?", fullmatch=True),
    )
)
def test_what_is_a_path_by_its_text_is_a_file_of_the_folder_on_the_disk(path):
    try:
        names_of(path)
    except BadName:
        event("refused")
        return
    assume(path != "rollout_summaries")  # A folder that is always there.

    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder), "v1", "global", git=git)
        workspace.prepare()
        workspace.write(path, "x", flushed=False)
        found = workspace.scan()
        gone = workspace.remove(path)

    event("taken")
    assert (found.files, found.others) == ({path: b"x"}, {})
    assert gone
