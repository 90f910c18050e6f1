"""What is cut of a memory: whole lines, the least valuable first, counted, within the budget."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadbook.domain.budget import NOTES, fit, pieces
from threadbook.domain.withholding import WITHHELD

MAX = 10_000
OMITTED = re.compile(r"\((\d+) lines? with (\d+) statements? left out for length: .*\)$")


def summary(*, profile=(), wishes=(), tips=(), index=(), more=()):
    return "\n".join(
        [
            "v1",
            "",
            "## User Profile",
            *profile,
            "",
            "## User preferences",
            *wishes,
            "",
            "## General Tips",
            *tips,
            "",
            "## What's in Memory",
            *index,
            *more,
        ]
    )


def size(text):
    return len(text.encode())


@pytest.mark.parametrize("letter", ["a", "é", "€", "𝄞"])
def test_a_summary_of_the_budget_is_left_alone_and_of_one_byte_more_is_cut(letter):
    head = summary(wishes=["- first wish"], index=["- "])
    missing = MAX - size(head)
    line = letter * (missing // size(letter)) + "x" * (missing % size(letter))
    exact = head + line

    assert size(exact) == MAX
    assert fit(exact, [], bytes_max=MAX).text == exact
    cut = fit(f"{exact}x", [], bytes_max=MAX)
    assert size(cut.text) <= MAX
    assert letter * 9 not in cut.text
    assert "- first wish" in cut.text
    assert (cut.lines, cut.statements) == (1, 1)
    assert cut.text.endswith(
        "(1 line with 1 statement left out for length: read memory_summary.md, or search"
        " for a word of your task)"
    )


def test_the_least_valuable_goes_first_and_the_newest_wish_nearly_last():
    pad = "x" * 200  # Longer than the count of what is missing: each step takes one away.
    text = summary(
        profile=[f"- a gardener {pad}"],
        wishes=[f"- old wish {pad} (2026-01-01) [Task 1]", f"- new wish {pad} (2026-03-01, in 9)"],
        tips=[f"- a tip {pad}"],
        index=["### fern", f"- topic one {pad}", f"  - detail one {pad}", f"- topic two {pad}"],
        more=["## Projects", f"- a section nobody knows {pad}"],
    )
    notes = [("2026-03-02", f"new note {pad}"), ("2026-02-01", f"old note {pad}")]
    order = [
        "detail one", "topic two", "topic one", "nobody knows", "a tip", "old note", "new note",
        "old wish", "new wish", "gardener",
    ]  # fmt: skip

    gone = []
    for bytes_max in range(size(text) + 600, 197, -1):
        out = fit(text, notes, bytes_max=bytes_max).text
        assert size(out) <= bytes_max
        missing = [each for each in order if each not in out]
        assert len(missing) <= len(gone) + 1
        gone += [each for each in missing if each not in gone]

    assert gone == order


def test_of_two_wishes_of_a_day_the_later_line_goes_first_and_prose_is_no_statement():
    wishes = ["- one (2026-01-01)", "- two (2026-01-01)"]
    text = summary(wishes=wishes, tips=["prose " * 30])
    without = summary(wishes=wishes, tips=[])

    prose = fit(text, [], bytes_max=size(text) - 1)

    assert "prose" not in prose.text
    assert (prose.lines, prose.statements) == (1, 0)
    for bytes_max in range(size(without) - 1, 150, -1):
        out = fit(without, [], bytes_max=bytes_max)
        assert "- one" in out.text or "- two" not in out.text


def test_a_line_that_only_says_that_one_is_withheld_makes_room_first():
    text = summary(wishes=[WITHHELD] * 20, index=["- topic", "  - detail"])

    out = fit(text, [], bytes_max=size(text) - 1)

    assert 0 < out.text.count(WITHHELD) < 20
    assert "detail" in out.text


def test_a_heading_goes_with_the_last_line_below_it_and_the_four_stay():
    text = summary(wishes=["- wish"], index=["### fern", "#### today", f"- {'x' * 400}"])

    out = fit(text, [], bytes_max=300)

    assert "fern" not in out.text
    assert "today" not in out.text
    assert (out.lines, out.statements) == (3, 1)
    for heading in ("## User Profile", "## User preferences", "## General Tips"):
        assert f"\n{heading}\n" in out.text
    assert "- wish" in out.text


def test_a_line_longer_than_the_budget_goes_as_a_whole_and_keeps_no_other_from_staying():
    text = summary(wishes=[f"- {'x' * MAX} (2026-01-02)", "- short (2026-01-01)"])

    out = fit(text, [], bytes_max=MAX)

    assert "xxx" not in out.text
    assert out.statements == 2  # The older wish went first, and then the one that was in the way.


def test_a_note_of_several_lines_is_one_statement():
    out = fit("v1", [("2026-03-02", "use uv\nnot pip")], bytes_max=MAX)

    assert out.text == f"v1\n\n{NOTES}\n- (2026-03-02) use uv\n  not pip"
    assert fit("", [("2026-03-02", "x" * MAX)], bytes_max=400).statements == 1


def test_a_page_of_empty_lines_and_headings_still_fits():
    out = fit("v1\n" + "\n\n" * MAX + "## User Profile\n" * 2_000, [], bytes_max=400)

    assert size(out.text) <= 400


line = st.one_of(
    st.sampled_from(
        ["", "v1", "## User Profile", "## User preferences", "## General Tips", "### x", "# y",
         "## What's in Memory", "## What\u2019s in Memory", "## other", "- é (2026-01-01)"]
    ),
    st.text(max_size=60).map(lambda text: f"- {text}"),
    st.text(max_size=60).map(lambda text: f"  - {text}"),
    st.text(max_size=60),
)  # fmt: skip


@given(
    st.lists(line, max_size=40).map("\n".join),
    st.lists(st.tuples(st.just("2026-01-01"), st.text(max_size=80)), max_size=4),
    st.integers(400, 2_000),
)
def test_any_memory_fits_in_whole_lines_in_order_and_the_count_is_right(text, notes, bytes_max):
    whole = fit(text, notes, bytes_max=10**9)
    assert (whole.lines, whole.statements) == (0, 0)

    out = fit(text, notes, bytes_max=bytes_max)

    assert size(out.text) <= bytes_max
    if size(whole.text) <= bytes_max:
        assert out == whole
        return
    body, _, told = out.text.rpartition("\n")
    found = OMITTED.match(told)
    assert found
    assert (int(found[1]), int(found[2])) == (out.lines, out.statements)
    there = [each for each in whole.text.split("\n") if each.strip()]
    shown = [each for each in body.split("\n") if each.strip()]
    rest = iter(there)
    assert all(each in rest for each in shown)
    headings = {each for each in there if re.match("#{1,6} ", each)}
    gone = len(there) - len(shown)
    assert gone >= out.lines >= gone - len([each for each in there if each in headings])


@pytest.mark.parametrize("letter", ["a", "é", "€", "𝄞"])
def test_a_prompt_is_given_in_whole_characters_of_at_most_so_many_bytes(letter):
    text = letter * 9_000

    found = pieces(text, bytes_max=8_900)

    assert "".join(found) == text
    assert all(size(each) <= 8_900 for each in found)
    assert all(size(each) > 8_900 - 4 for each in found[:-1])


@given(st.text(max_size=200), st.integers(4, 40))
def test_pieces_are_the_text(text, bytes_max):
    assert "".join(pieces(text, bytes_max=bytes_max)) == text
