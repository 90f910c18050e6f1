"""What consolidation is shown as right is right: its examples, its form, the smallest files."""

import re

import pytest
from threadbook.domain.artifact import (
    MEMORY,
    SINGLE_MARKS_MAX,
    SUMMARY,
    SUMMARY_BYTES_MAX,
    SUMMARY_HEADINGS,
    V2_SUMMARY_BYTES,
    cited_tasks,
    pointed_threads,
    problems,
    task_marks,
)
from threadbook.domain.redaction import redact
from threadbook.prompts import prompt

from tests.prompts.texts import blocks, words

THREAD = "01aa0000-0000-7000-8000-0000000000a1"
NOTE = "extensions/ad_hoc/notes/2026-11-21T10-00-00-glaze-report.md"


def v1_examples():
    """MEMORY.md and memory_summary.md with something in them, then with nothing."""
    return blocks("consolidation_v1", "markdown")


def v2_example():
    (text,) = blocks("consolidation_v2", "markdown")
    return text


def bullets(text):
    return [line for line in text.split("\n") if line.lstrip().startswith("- ")]


@pytest.mark.parametrize("at", [0, 2], ids=["the example", "the smallest files"])
def test_the_files_that_v1_shows_may_be_published(at):
    files = {MEMORY: v1_examples()[at], SUMMARY: v1_examples()[at + 1]}

    assert len(v1_examples()) == 4
    assert problems(files) == []
    assert all(redact(text) == text for text in files.values())


def test_the_file_that_v2_shows_may_be_published():
    files = {SUMMARY: v2_example()}

    assert problems(files, version="v2") == []
    assert redact(v2_example()) == v2_example()


@pytest.mark.parametrize(("at", "count"), [(0, 3), (1, 7)])
def test_a_mark_that_is_missing_from_an_example_of_v1_is_found(at, count):
    files = {MEMORY: v1_examples()[0], SUMMARY: v1_examples()[1]}
    name = (MEMORY, SUMMARY)[at]
    marked = [line for line in files[name].split("\n") if cited_tasks(line)]

    found = [
        problems(files | {name: files[name].replace(line, re.sub(r" \[Task \d\]$", "", line))})
        for line in marked
    ]

    assert len(marked) == count
    assert all("names no task" in each for (each,) in found)


def test_the_form_of_memory_is_a_file_that_may_be_published_once_it_is_filled_in():
    section = prompt("consolidation_v1").partition("## MEMORY.md\n")[2]
    form = "\n".join(line[4:] for line in re.findall(r"^(?: {4}.*)?$", section, re.MULTILINE))
    form = form[: form.rindex("[Task <n>]") + len("[Task <n>]")].strip()

    filled_in = form.replace("<success | partial | fail | uncertain>", "success")
    filled_in = re.sub(r"<[^<>]*>", "1", filled_in)

    assert "<" not in filled_in
    assert problems({MEMORY: filled_in, SUMMARY: v1_examples()[3]}) == []


def test_the_examples_are_about_the_session_that_stage_one_shows():
    quote = "from now on keep dates in UTC here"

    assert quote in prompt("stage_one_v1")
    assert f'the user wrote "{quote}"' in v1_examples()[0]
    assert f'the user wrote "{quote}"' in v1_examples()[1]
    assert f'the user wrote "{quote}"' in v2_example()


def test_what_a_note_says_is_tagged_and_names_the_note():
    told = [line for text in [*v1_examples(), v2_example()] for line in bullets(text)]
    tagged = [line for line in told if "[ad-hoc note]" in line]
    in_v1 = [line for line in tagged if cited_tasks(line)]
    in_v2 = [line for line in tagged if pointed_threads(line)]

    assert len(tagged) == len(in_v1) + len(in_v2) == 3
    assert {task for line in in_v1 for task in cited_tasks(line)} == {5}
    assert v1_examples()[0].split("## Task 5: ")[1].count(NOTE) == 1
    assert [pointed_threads(line) for line in in_v2] == [[NOTE]]


def test_what_a_summary_says_stands_in_memory_under_the_same_task():
    memory, summary = v1_examples()[:2]
    known = {task for line in bullets(memory) for task in cited_tasks(line)}

    named = {task for line in bullets(summary) for task in cited_tasks(line)}

    assert named == known == {4, 5}


def test_a_session_is_named_whole():
    assert f"thread_id={THREAD})" in v1_examples()[0]
    assert {i for line in bullets(v2_example()) for i in pointed_threads(line)} == {THREAD, NOTE}


@pytest.mark.parametrize("name", ["consolidation_v1", "consolidation_v2"])
def test_the_headings_are_listed_as_they_are_checked(name):
    listed = re.findall(r"^\d\. `(## [^`]+)`", prompt(name), re.MULTILINE)

    assert tuple(listed) == SUMMARY_HEADINGS


@pytest.mark.parametrize(
    ("name", "limit"),
    [("consolidation_v1", SUMMARY_BYTES_MAX), ("consolidation_v2", V2_SUMMARY_BYTES)],
)
def test_the_size_that_is_asked_for_is_within_the_one_that_is_checked(name, limit):
    asked, told = re.findall(r"At most ([\d,]+) bytes: \D*([\d,]+)", prompt(name))[0]

    assert int(told.replace(",", "")) == limit
    assert int(asked.replace(",", "")) < limit


def test_the_marks_that_are_shown_are_the_ones_that_are_read():
    shown = re.findall(r"`((?:\[Tasks? [\d, -]+\])+)`", words(prompt("consolidation_v1")))

    assert [cited_tasks(f"- x {each}") for each in shown] == [[2, 7], [1, 2, 3, 4, 9]]
    assert shown == [task_marks([2, 7]), task_marks([1, 2, 3, 4, 9])]
    assert SINGLE_MARKS_MAX == 3
    assert "for more than three `[Tasks" in prompt("consolidation_v1")
