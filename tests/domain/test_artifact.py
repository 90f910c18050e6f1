"""What makes artifacts fit to be published, for every writer and for ours."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from threadbook.domain.artifact import (
    SUMMARY_HEADINGS,
    cited_tasks,
    pointed_threads,
    problems,
    task_marks,
    thread_marks,
)

MEMORY = """\
# Task Group: ferns
scope: work in /srv/ferns
applies_to: cwd=/srv/ferns; reuse_rule=this project only

## Task 1: add a test, success

### rollout_summary_files
- rollout_summaries/a.md (cwd=/srv/ferns, rollout_path=/r, updated_at=2026-11-20T08:09:00+00:00)

### keywords
- uploader

## User preferences
- the user wrote "use uv" [Task 1]
"""
SUMMARY = """\
v1

## User Profile

## User preferences
- in ferns the user wrote "use uv" (2026-11-20) [Task 1]

## General Tips

## What's in Memory
### ferns
"""
GOOD = {"MEMORY.md": MEMORY, "memory_summary.md": SUMMARY}


def changed(name, old, new):
    assert old in GOOD[name]
    return {**GOOD, name: GOOD[name].replace(old, new)}


def test_good_artifacts_have_no_problem():
    assert problems(GOOD) == []


def test_codex_s_own_artifacts_pass_its_own_check():
    base = Path(__file__).parents[1] / "fixtures/memory-base-v1"
    files = {name: (base / name).read_text("utf-8") for name in GOOD}

    assert problems(files, grammar=False) == []
    assert problems(files) != []


HEADINGS = "\n\n".join(SUMMARY_HEADINGS)
TURNED = "\n\n".join(SUMMARY_HEADINGS[::-1])


def sized(size):
    """A v2 summary of exactly so many bytes."""
    begin = f"v1\n\n{HEADINGS}\n"
    return begin + "x" * (size - len(begin))


# As the real Codex 0.171.0 took them on 29 Nov 2026: the summary, whether MEMORY.md is there, and
# whether v1 and v2 accept that.
VARIANTS = {
    "all there": (f"v1\n\n{HEADINGS}\n", True, True, True),
    "no MEMORY.md": (f"v1\n\n{HEADINGS}\n", False, False, True),
    "no summary": (None, True, False, False),
    "nothing": (None, False, False, False),
    "an empty summary": ("", True, False, False),
    "the first line alone": ("v1", True, True, False),
    "the first line and its end": ("v1\n", True, True, False),
    "the first line and anything": ("v1\nanything", True, True, False),
    "lines that end as on Windows": (f"v1\n\n{HEADINGS}\n".replace("\n", "\r\n"), True, True, True),
    "a space behind the first line": (f"v1 \n\n{HEADINGS}\n", True, False, False),
    "a blank line first": (f"\nv1\n\n{HEADINGS}\n", True, False, False),
    "a byte order mark": (f"\ufeffv1\n\n{HEADINGS}\n", True, False, False),
    "a capital V": (f"V1\n\n{HEADINGS}\n", True, False, False),
    "another version": (f"v2\n\n{HEADINGS}\n", True, False, False),
    "a longer number": (f"v10\n\n{HEADINGS}\n", True, False, False),
    "the headings turned round": (f"v1\n\n{TURNED}\n", False, False, True),
    "another heading among them": (f"v1\n\n## Own\n\n{HEADINGS}\n", False, False, True),
    "a heading missing": (
        f"v1\n\n{HEADINGS}\n".replace("## General Tips\n", ""),
        True,
        True,
        False,
    ),
    "a heading of another level": (f"v1\n\n#{HEADINGS}\n", True, True, False),
    "one byte under the limit": (sized(9_999), True, True, True),
    "at the limit": (sized(10_000), True, True, False),
}


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_version_takes_what_codex_takes(variant, version):
    summary, memory, *taken = VARIANTS[variant]
    files = {"MEMORY.md": ""} if memory else {}
    if summary is not None:
        files["memory_summary.md"] = summary

    found = problems(files, version=version, grammar=False)

    assert (found == []) == taken[version == "v2"], found
    assert len(VARIANTS) == 21


def test_the_size_counts_bytes():
    summary = sized(9_990) + "ü" * 5

    assert problems({"memory_summary.md": summary}, version="v2", grammar=False) != []


def test_v2_accepts_a_summary_alone_and_checks_its_format_and_size():
    files = {"memory_summary.md": sized(9_999)}

    assert problems(files, version="v2", grammar=False) == []
    assert problems(files, version="v1", grammar=False) == ["MEMORY.md is missing"]
    header = {"memory_summary.md": "v2" + sized(9_999)[2:]}
    assert problems(header, version="v2", grammar=False) == [
        "memory_summary.md must begin with the line v1"
    ]
    oversize = {"memory_summary.md": sized(10_000)}
    assert problems(oversize, version="v2", grammar=False) == [
        "memory_summary.md must be under 10,000 bytes"
    ]


POINTED = """\
v1

## User Profile

## User preferences
- in ferns the user wrote "use uv" (2026-11-20); thread_id=a, b

## General Tips

## What's in Memory
### ferns
#### 2026-11-20
- rollout_summaries/a.md — mend it; thread_id=a
  - failures: `x` failed
"""


def test_our_own_v2_summary_has_no_problem():
    assert problems({"memory_summary.md": POINTED}, version="v2") == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("; thread_id=a, b", "", "6: a statement names no session"),
        ("mend it; thread_id=a\n", "mend it\n", "14: a statement names no session, nor"),
        ("- rollout_summaries/a.md — mend it; thread_id=a\n", "", "names no session, nor"),
        ("## General Tips\n", "## General Tips\n\n## General Tips\n", "once and in order"),
    ],
)
def test_each_broken_promise_of_our_v2_summary_is_named(old, new, problem):
    assert old in POINTED

    found = problems({"memory_summary.md": POINTED.replace(old, new)}, version="v2")

    assert [each for each in found if problem in each], found


ids = st.from_regex(r"\A[^\s,]{1,12}\Z")


@example("say; thread_id=live,", ["gone"])
@example("say; thread_id=live, ", ["gone"])
@given(st.text(), st.lists(ids, min_size=1, max_size=4))
def test_the_sessions_of_a_statement_are_read_back_whatever_it_says(text, ids):
    line = "- " + text.replace("\n", " ") + thread_marks(ids)

    assert pointed_threads(line) == ids


@pytest.mark.parametrize("name", sorted(GOOD))
def test_a_missing_file_is_a_problem(name):
    assert problems({k: v for k, v in GOOD.items() if k != name}) == [f"{name} is missing"]


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("MEMORY.md", ' "use uv" [Task 1]', ' "use uv"', "names no task"),
        ("MEMORY.md", ' "use uv" [Task 1]', ' "use uv" [Task 2]', "there is no task 2"),
        ("MEMORY.md", "scope: ", "range: ", "needs a scope"),
        ("MEMORY.md", "; reuse_rule=this project only", "", "needs a scope and an applies_to"),
        ("MEMORY.md", "### rollout_summary_files\n", "", "needs its rollout_summary_files"),
        ("MEMORY.md", ", rollout_path=/r", "", "needs cwd, rollout_path"),
        ("MEMORY.md", "- uploader\n", "", "task 1 has 0 bullets under ### keywords"),
        ("MEMORY.md", "- uploader\n", "- uploader\n- b\n", "task 1 has 2 bullets"),
        ("MEMORY.md", "## User preferences", "## Opinions", "unknown heading"),
        ("MEMORY.md", "- uploader\n", "- uploader\nchatter\n", "neither heading nor bullet"),
        ("MEMORY.md", "# Task Group: ferns\n", "", "has no task group"),
        (
            "MEMORY.md",
            "## User preferences",
            "## Task 1: again, fail\n\n### rollout_summary_files\n- a.md (cwd=a, rollout_path=b,"
            " updated_at=c)\n\n### keywords\n- b\n\n## User preferences",
            "task 1 is numbered twice",
        ),
        ("memory_summary.md", "## General Tips\n", "", "four headings"),
        ("memory_summary.md", " [Task 1]", "", "names no task"),
        ("memory_summary.md", "[Task 1]", "[Task 3]", "there is no task 3"),
        ("memory_summary.md", "### ferns", "x" * 10_000, "over 2500 tokens"),
    ],
)
def test_each_broken_promise_is_named(name, old, new, problem):
    found = problems(changed(name, old, new))

    assert [p for p in found if problem in p], found


@pytest.mark.parametrize(
    ("line", "tasks"),
    [
        ("- use uv [Task 2][Task 7]", [2, 7]),
        ("- use uv [Task 2] [Task 7]", [7]),
        ("- see [Task 2] there", []),
        ("- use uv[Task 2]", []),
        ("- use uv", []),
        ("- use uv [Tasks 1-40, 42]", [*range(1, 41), 42]),
        ("- use uv [Tasks 5]", [5]),
        ("- use uv [Tasks 4-2]", []),
        ("- use uv [Tasks 2-2]", []),
        ("- use uv [Tasks 1-4, 3]", []),
        ("- use uv [Tasks 1-4,6]", []),
        ("- use uv [Tasks 1-]", []),
        ("- use uv [Tasks 1-4] there", []),
        ("- use uv [Tasks 1-99999]", []),
    ],
)
def test_a_bullet_cites_what_it_ends_with(line, tasks):
    assert cited_tasks(line) == tasks


def test_a_task_number_of_thousands_of_digits_is_no_task():
    number = "9" * 5_000

    found = problems({**GOOD, "MEMORY.md": MEMORY.replace("Task 1]", f"Task {number}]")})

    assert found == ["MEMORY.md:14: a statement names no task"]


@given(st.sets(st.one_of(st.integers(1, 30), st.integers(1, 300), st.integers(9_990, 10_010))))
def test_every_task_of_a_statement_is_read_back(numbers):
    marks = task_marks(numbers)

    assert cited_tasks(f"- use uv {marks}") == sorted(numbers)


def test_a_run_that_names_a_missing_task_is_a_problem():
    memory = MEMORY.replace('"use uv" [Task 1]', '"use uv" [Tasks 1-3]')

    found = problems({**GOOD, "MEMORY.md": memory})

    assert found == [f"MEMORY.md:14: there is no task {n}" for n in (2, 3)]


def test_runs_cannot_name_tasks_without_end():
    line = "- use uv [Tasks " + ", ".join(["1-9999"] * 10_000) + "]"

    assert cited_tasks(line) == []
