"""What a person did to a published file is in the next one, whatever else is."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadbook.domain.artifact import unmarked
from threadbook.domain.carried import (
    Carried,
    applied,
    edited,
    forgetting,
    read,
    written,
)

PATH = "MEMORY.md"
FIRST = """\
# Task Group: fern
scope: work

## Task 1: build, success

### keywords
- make, check

## User preferences
- the user wrote "always run make check" [Task 1]
- the user wrote "never use tabs" [Task 1][Task 2]

## Reusable knowledge
- `make` passed [Task 2]
"""
# A session more has come: the tasks have other numbers.
SECOND = FIRST.replace("Task 1", "Task 7").replace("Task 2", "Task 8") + "- `ls` passed [Task 9]\n"
NONE = Carried(salt="s")


def done(after, before=FIRST, carried=NONE):
    return edited(carried, PATH, before, after)


def test_what_nobody_touched_is_as_it_was_made():
    assert applied(done(FIRST), PATH, SECOND) == SECOND


def test_an_added_line_stands_behind_the_line_it_was_put_behind():
    mine = FIRST.replace("[Task 1][Task 2]\n", "[Task 1][Task 2]\n- mine\n")

    again = applied(done(mine), PATH, SECOND)

    assert again == SECOND.replace("[Task 7][Task 8]\n", "[Task 7][Task 8]\n- mine\n")


@pytest.mark.parametrize("line", ["- mine", "mine", "## Mine", "  - mine"])
def test_an_added_line_stays_when_its_place_goes_and_then_when_its_heading_does(line):
    mine = FIRST.replace("[Task 1][Task 2]\n", f"[Task 1][Task 2]\n{line}\n")
    without = SECOND.replace('- the user wrote "never use tabs" [Task 7][Task 8]\n', "")

    kept = applied(done(mine), PATH, without)
    alone = applied(done(mine), PATH, "# Task Group: none yet\n")

    assert kept.index(f"\n{line}\n") < kept.index("## Reusable knowledge")
    assert alone == f"# Task Group: none yet\n{line}\n"


def test_an_added_line_goes_when_it_is_removed_by_hand():
    mine = FIRST + "- mine\n"
    carried = done(mine)

    carried = done(FIRST, mine, carried)

    assert applied(carried, PATH, SECOND) == SECOND


def test_a_removed_line_stays_out_whatever_its_tasks_are_called():
    carried = done(FIRST.replace('- the user wrote "never use tabs" [Task 1][Task 2]\n', ""))

    assert "tabs" not in applied(carried, PATH, SECOND)
    assert "make check" in applied(carried, PATH, SECOND)


def test_a_removed_line_may_be_written_again():
    without = FIRST.replace('- the user wrote "never use tabs" [Task 1][Task 2]\n', "")
    carried = done(without)

    carried = done(without + '- the user wrote "never use tabs"\n', without, carried)

    assert applied(carried, PATH, SECOND).count("tabs") == 1
    assert "tabs" in applied(carried, PATH, "# Task Group: none yet\n")


def test_a_block_that_is_removed_takes_no_heading_of_another():
    two = FIRST.replace(
        "## User preferences",
        "## Task 2: lint, success\n\n### keywords\n- lint\n\n## User preferences",
    )
    carried = done(two.replace("## Task 2: lint, success\n\n### keywords\n- lint\n\n", ""), two)

    again = applied(carried, PATH, two)

    assert "lint" not in again
    assert again.count("### keywords") == 1


def test_a_line_that_was_only_moved_is_neither_added_nor_removed():
    line = "- `make` passed [Task 2]\n"
    moved = FIRST.replace(line, "").replace("## User preferences\n", f"## User preferences\n{line}")

    assert applied(done(moved), PATH, SECOND) == SECOND


def test_a_changed_line_is_the_persons_and_has_no_task_any_more():
    mine = FIRST.replace("never use tabs", "never use tabs, ever")

    again = applied(done(mine), PATH, SECOND)

    assert '- the user wrote "never use tabs, ever"\n' in again
    assert '"never use tabs"' not in again


def test_a_file_that_was_written_anew_ends_as_it_did_and_takes_in_what_is_new():
    carried = done("mine\n")

    assert applied(carried, PATH, FIRST) == "mine\n"
    assert applied(carried, PATH, SECOND) == "mine\n- `ls` passed [Task 9]\n"


def test_line_ends_of_another_system_are_no_edit():
    assert applied(done(FIRST.replace("\n", "\r\n")), PATH, SECOND) == SECOND


def test_the_same_edit_seen_twice_is_one():
    mine = FIRST + "- mine\n"

    carried = done(mine, carried=done(mine))

    assert applied(carried, PATH, SECOND).count("- mine") == 1


def test_a_line_that_a_day_and_a_count_were_written_behind_stays_out():
    line = '- in fern the user wrote "x y z" (2026-11-20) [Task 3]\n'
    carried = done(FIRST, FIRST + line)

    later = '- in fern the user wrote "x y z" (2026-11-21, in 4 sessions) [Tasks 3-6]\n'
    assert applied(carried, PATH, FIRST + later) == FIRST


def test_a_v2_line_stays_out_whichever_sessions_it_names():
    carried = done(FIRST, FIRST + "- uses uv; thread_id=a\n")

    assert applied(carried, PATH, FIRST + "- uses uv; thread_id=a, b\n") == FIRST


def test_a_forgetting_takes_the_lines_that_say_what_the_session_said():
    mine = FIRST + "- tabs are never to be used, I say\n- buy milk on fridays\n"
    told = ['- the user wrote "tabs are never to be used by anybody"', "- `make` passed"]

    carried = forgetting(done(mine), told, {PATH: "# Task Group: none yet\n"}, salt="t")

    assert applied(carried, PATH, SECOND).count("tabs are") == 0
    assert "buy milk" in applied(carried, PATH, SECOND)


def test_after_a_forgetting_nothing_but_a_persons_own_lines_is_readable_or_can_be_tried():
    without = FIRST.replace('- the user wrote "always run make check" [Task 1]\n', "- mine only\n")
    before = done(without)

    carried = forgetting(before, [], {PATH: "# Task Group: none yet\n"}, salt="t")

    assert "make check" not in written(before)
    (added,) = carried.files[PATH].added
    assert (added.lines, added.after, added.under) == (("- mine only",), None, None)
    assert carried.files[PATH].removed == ()
    assert read(written(carried)) == carried


LINES = st.sampled_from(
    [
        "# Task Group: a",
        "## Task 1: b, fail",
        "### keywords",
        "- a [Task 1]",
        "- b [Task 2]",
        "",
        "c",
    ]
)
MINE = st.sampled_from(["- mine", "- other mine", "my own words", "## Mine", "  - below"])


@given(made=st.lists(LINES, max_size=12), then=st.lists(LINES, max_size=12), data=st.data())
def test_no_added_line_is_lost_and_no_removed_statement_comes_back(made, then, data):
    before = "\n".join(made)
    keep = [line for line in made if data.draw(st.booleans(), label=f"keep {line}")]
    mine = data.draw(st.lists(st.tuples(st.integers(0, 12), MINE), max_size=3))
    for at, line in mine:
        keep.insert(at, line)

    carried = edited(NONE, PATH, before, "\n".join(keep))
    again = applied(carried, PATH, "\n".join(then))

    for _, line in mine:
        assert line in again.split("\n")
    gone = {line for line in made if line.startswith("- ")} - set(keep)
    assert not gone & set(again.split("\n"))
    twice = edited(carried, PATH, again, again)
    assert applied(twice, PATH, "\n".join(then)) == again


@pytest.mark.parametrize("line", ["- mine", "my own words", "## My own heading"])
def test_a_line_of_any_form_that_a_person_wrote_goes_when_they_remove_it(line):
    with_mine = FIRST.replace("## Reusable", f"{line}\n\n## Reusable")
    first = done(with_mine)
    second = applied(first, PATH, SECOND)

    last = done(second.replace(f"{line}\n", ""), second, first)

    assert line in second.split("\n")
    assert line not in applied(last, PATH, FIRST).split("\n")
    assert last.lines(PATH) == set()


def test_what_a_person_left_in_another_place_is_not_out():
    twice = FIRST.replace(
        "- make, check\n", "- make, check\n\n## Task 2: test, success\n- make, check\n"
    )
    once = twice.replace("- make, check\n", "", 1)

    carried = done(once, twice)

    assert applied(carried, PATH, once) == once


SUMMARY = """\
v1

## User Profile

## User preferences
- always run make check [Task 1]

## General Tips

## What's in Memory
"""


@pytest.mark.parametrize(
    "after",
    [
        SUMMARY.removeprefix("v1\n"),
        SUMMARY.replace("## General Tips\n\n", ""),
        f"{SUMMARY}\n## User Profile\n- mine\n",
        f"{SUMMARY}v1\n",
        "I wrote this all myself\n- mine\n",
        "",
    ],
    ids=["first line gone", "heading gone", "heading twice", "first line twice", "anew", "emptied"],
)
def test_a_summary_has_its_first_line_and_its_headings_once_whatever_is_done_to_it(after):
    carried = edited(NONE, "memory_summary.md", SUMMARY, after)

    made = applied(carried, "memory_summary.md", SUMMARY)

    forms = [line for line in made.split("\n") if line == "v1" or line.startswith("## ")]
    assert forms == [line for line in SUMMARY.split("\n") if line == "v1" or line[:3] == "## "]
    assert made.startswith("v1\n")
    assert ("- mine" in made) is ("- mine" in after)


def test_a_line_of_forty_thousand_marks_is_read_at_once():
    began = time.monotonic()

    found = unmarked("- use uv" + "[Task 1]" * 40_000), unmarked("- x" + "[Task 1]" * 40_000 + "x")

    assert found == ("- use uv", "- x" + "[Task 1]" * 40_000 + "x")
    assert time.monotonic() - began < 5
