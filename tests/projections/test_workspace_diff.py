"""The page of changes, against pages that Codex 0.171.0 wrote and against git itself."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from threadbook.application.ports import PhaseTwoOutput
from threadbook.projections import folder, workspace_diff
from threadbook.projections.workspace_diff import Change

from tests.projections.test_folder import FIXTURES, fixture_outputs

FILE, LINK, PROGRAM = 0o100644, 0o120000, 0o100755


def added(path: str, after: bytes, mode: int = FILE) -> Change:
    return Change(path=path, mode_before=None, mode_after=mode, after=after)


def deleted(path: str, before: bytes) -> Change:
    return Change(path=path, mode_before=FILE, mode_after=None, before=before)


def modified(path: str, before: bytes, after: bytes) -> Change:
    return Change(path=path, mode_before=FILE, mode_after=FILE, before=before, after=after)


def between(
    before: list[PhaseTwoOutput], after: list[PhaseTwoOutput], version: str
) -> list[Change]:
    old, new = (
        {path: text.encode() for path, text in folder.inputs(each, memory_version=version).items()}
        for each in (before, after)
    )
    return [
        Change(
            path=path,
            mode_before=FILE if path in old else None,
            mode_after=FILE if path in new else None,
            before=old.get(path, b""),
            after=new.get(path, b""),
        )
        for path in sorted(old | new)
        if old.get(path) != new.get(path)
    ]


def diff_of(changes: list[Change]) -> str:
    page = workspace_diff.workspace_diff(changes)
    found = re.search(r"^(`{3,})diff\n(.*)^\1\n\Z", page, re.MULTILINE | re.DOTALL)
    assert found
    return found[2]


def as_in_the_scenario(output: PhaseTwoOutput, scenario: str, said: str) -> PhaseTwoOutput:
    """The base scenario's output, with the other scenario's paths and the digest its page shows."""
    base = f"base-{scenario[-2:]}"
    return replace(
        output,
        rollout_path=output.rollout_path.replace(base, scenario),
        raw_memory=re.sub(r"(?<=mock memory )[0-9a-f]{12}", said, output.raw_memory),
        rollout_summary=re.sub(r"(?<=mock summary )[0-9a-f]{12}", said, output.rollout_summary),
    )


def expected_page(name: str) -> str:
    return (FIXTURES / "diffs" / name).read_text("utf-8")


def with_the_fixtures_notice(page: str) -> str:
    head, _, rest = page.split("\n\n", 2)
    return f"{head}\n\n[one notice line, our own wording]\n\n{rest}"


@pytest.mark.parametrize(
    ("name", "scenario", "thread", "said"),
    [
        ("one-session-deleted-v1.md", "change-v1", "-8488-22fe8bd11976", "bda5f31f518b"),
        ("one-session-polluted-v1.md", "pollute-v1", "-8580-f6b5a08b8fbd", "a1367cb730f0"),
        ("one-session-deleted-v2.md", "change-v2", "-8488-22fe8bd11976", "8b4c9416e07b"),
        ("one-session-polluted-v2.md", "pollute-v2", "-8580-f6b5a08b8fbd", "0f1b8b72f305"),
    ],
)
def test_an_output_that_left_gives_the_page_of_codex(
    name: str, scenario: str, thread: str, said: str
) -> None:
    version = scenario[-2:]
    before = [as_in_the_scenario(output, scenario, said) for output in fixture_outputs(version)]

    page = workspace_diff.workspace_diff(
        between(before, [each for each in before if not each.thread_id.endswith(thread)], version)
    )

    assert with_the_fixtures_notice(page) == expected_page(name)


@pytest.mark.parametrize(
    ("version", "said", "updated_at", "said_again", "updated_again"),
    [
        ("v1", "fa02a2e6393c", 1_795_843_438, "e9297172c1f2", 1_795_924_197),
        ("v2", "166380cfb913", 1_795_843_438, "ed543a088997", 1_795_924_251),
    ],
)
def test_an_output_made_again_gives_the_page_of_codex(
    version: str, said: str, updated_at: int, said_again: str, updated_again: int
) -> None:
    scenario = f"change-{version}"
    before = [as_in_the_scenario(output, scenario, said) for output in fixture_outputs(version)]
    number = next(n for n, each in enumerate(before) if each.thread_id.endswith("26f49b22be9f"))
    before[number] = replace(before[number], updated_at=updated_at)
    again = as_in_the_scenario(before[number], scenario, said_again)
    again = replace(again, updated_at=updated_again)

    page = workspace_diff.workspace_diff(
        between(before, [*before[:number], again, *before[number + 1 :]], version)
    )

    assert with_the_fixtures_notice(page) == expected_page(f"one-session-updated-{version}.md")


def test_no_change_is_said_and_nothing_more() -> None:
    page = workspace_diff.workspace_diff([])

    assert page.endswith("\n\n## Status\n- none\n")
    assert "## Diff" not in page


def test_a_diff_of_more_than_four_mib_is_cut_between_characters() -> None:
    change = added("big.md", "€".encode() * 2_000_000)

    page = workspace_diff.workspace_diff([change, added("c.md", b"later\n")])

    body = diff_of([change])
    note = f"[cut here: the diff has more than {workspace_diff.DIFF_BYTES_MAX} bytes]\n"
    assert "- A big.md\n- A c.md\n" in page
    assert body.endswith(f"€\n{note}")
    assert "\ufffd" not in body
    assert 0 <= workspace_diff.DIFF_BYTES_MAX - len(body.removesuffix(f"\n{note}").encode()) < 3


def test_a_memory_cannot_end_the_fence() -> None:
    before = b"one\n```\ntwo\n````\n"

    page = workspace_diff.workspace_diff([modified("a.md", before, before + b"## Status\n")])

    assert "\n`````diff\n" in page
    assert page.endswith("\n`````\n")


def test_bytes_that_are_no_text_are_read_lossily_and_a_change_among_them_is_said() -> None:
    lossy = diff_of([modified("a", b"x\n", b"\xff\n")])
    hidden = diff_of([modified("a", b"\xfe\n", b"\xff\n")])

    assert lossy.endswith("-x\n+\ufffd\n")
    assert hidden.endswith("Binary files a/a and b/a differ\n")


def test_a_name_cannot_forge_a_line() -> None:
    page = workspace_diff.workspace_diff([added("a\n- D MEMORY.md\u2028\udcff", b"x\n")])

    assert '- A "a\\n- D MEMORY.md\\342\\200\\250\\377"\n' in page
    assert "\n- D" not in page


def test_twenty_thousand_lines_of_few_kinds_are_compared_at_once() -> None:
    before = [f"- fact {number % 50}\n" for number in range(20_000)]
    after = [*before[5_000:], *before[:5_000], "end\n"]

    began = time.monotonic()
    diff = diff_of([modified("a", "".join(before).encode(), "".join(after).encode())])

    assert diff.count("@@ -") >= 1
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(("between", "hunks"), [(6, 1), (7, 2)])
def test_changes_share_a_hunk_when_their_context_meets(between: int, hunks: int) -> None:
    middle = "".join(f"{number}\n" for number in range(between))

    diff = diff_of([modified("a", f"x\n{middle}y\n".encode(), f"X\n{middle}Y\n".encode())])

    assert diff.count("@@ -") == hunks


def test_a_name_with_blanks_ends_in_a_tab() -> None:
    diff = diff_of([modified("a b", b"x\n", b"y\n")])

    assert diff.startswith("diff --git a/a b b/a b\n--- a/a b\t\n+++ b/a b\t\n@@ -1 +1 @@\n")


def write(root: Path, path: str, content: bytes, mode: int) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if mode == LINK:
        target.symlink_to(os.fsdecode(content))
    else:
        target.write_bytes(content)
        target.chmod(mode & 0o777)


def applied(root: Path, changes: list[Change]) -> dict[str, tuple[int, bytes]]:
    """The folder after `git apply` of the page's diff over the files as they were before."""
    root.mkdir()
    for change in changes:
        if change.mode_before is not None:
            write(root, change.path, change.before, change.mode_before)
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=root,
        input=diff_of(changes).encode(),
        capture_output=True,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(root.parent), "HOME": str(root)},
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode() + diff_of(changes)
    found = {}
    for path in root.rglob("*"):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = (LINK, os.fsencode(path.readlink()))
        elif path.is_file():
            found[name] = (PROGRAM if path.stat().st_mode & 0o100 else FILE, path.read_bytes())
    return found


def wanted(changes: list[Change]) -> dict[str, tuple[int, bytes]]:
    return {each.path: (each.mode_after, each.after) for each in changes if each.mode_after}


def test_the_diff_applies_with_git_whatever_the_names_modes_and_ends(tmp_path: Path) -> None:
    changes = [
        added("a folder/ünïcode 日本.md", b"x\n"),
        added("empty", b""),
        added('quo"te\\ta\tb', b"no newline"),
        added("tools/run", b"#!/bin/sh\n", PROGRAM),
        deleted("gone and empty", b""),
        deleted("gone", b"one\ntwo"),
        modified("ends", b"one\ntwo", b"one\ntwo\n"),
        modified("ends less", b"one\ntwo\n", b"one\ntwo"),
        modified("returns", b"one\r\ntwo\r\n", b"one\r\n2\r\n"),
        modified("turned", b"1\n2\n3\n4\n5\n6\n7\n8\n", b"4\n5\n1\n9\n8\n2\n3\n7\n6\n"),
        modified("to nothing", b"one\n", b""),
        modified("from nothing", b"", b"one\n"),
        replace(modified("mode", b"same\n", b"same\n"), mode_after=PROGRAM),
        replace(modified("mode and text", b"a\n", b"b\n"), mode_before=PROGRAM),
        replace(modified("now a link", b"text\n", b"ends"), mode_after=LINK),
        modified("odd\u2028\x0c\x85lines", "a\u2028\n\x0c\x85b\n".encode(), b"a\n"),
    ]

    found = applied(tmp_path / "root", changes)

    assert found == wanted(changes)


# Few kinds of line for repetition, and as many again for lines that a side has once.
LINES = st.lists(
    st.sampled_from(["a", "b", "", "---", "- x", "```", *"cdefghij"]).map("{}\n".format),
    max_size=24,
)
TEXTS = st.tuples(LINES, st.sampled_from(["", "end"])).map(
    lambda drawn: "".join([*drawn[0], drawn[1]]).encode()
)


@settings(max_examples=60, deadline=None)
@given(pairs=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6))
def test_the_diff_of_any_texts_applies_with_git(
    pairs: list[tuple[bytes, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    changes = [
        modified(f"{number}.md", before, after)
        for number, (before, after) in enumerate(pairs)
        if before != after
    ]
    if not changes:
        return

    found = applied(tmp_path_factory.mktemp("apply") / "root", changes)

    assert found == wanted(changes)
