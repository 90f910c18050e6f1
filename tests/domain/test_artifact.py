"""What makes artifacts fit to be published, for every writer and for ours."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadbook.domain.artifact import cited_tasks, problems, task_marks

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


@pytest.mark.parametrize("summary", ["v1", "v1\n", "v1\nanything", "v1\r\nanything"])
def test_the_first_line_v1_and_a_memory_are_enough_for_codex(summary):
    assert problems({"MEMORY.md": "", "memory_summary.md": summary}, grammar=False) == []


@pytest.mark.parametrize("summary", ["", "v2\n", " v1\n", "v1 \n", "v10\n", "\nv1\n", "\ufeffv1\n"])
def test_another_first_line_is_a_problem(summary):
    found = problems({"MEMORY.md": "", "memory_summary.md": summary}, grammar=False)

    assert found == ["memory_summary.md must begin with the line v1"]


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
