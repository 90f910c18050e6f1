import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadbook.domain.truncation import cut_middle, tokens_of


@pytest.mark.parametrize("size", [0, 1, 39_999, 40_000])
def test_what_fits_is_not_touched(size):
    text = "x" * size

    assert cut_middle(text, tokens=10_000) == text


def test_one_byte_too_many_costs_a_mark_of_one_token():
    text = "a" * 20_000 + "b" * 20_001

    cut = cut_middle(text, tokens=10_000)

    assert cut == "a" * 20_000 + "…1 tokens truncated…" + "b" * 20_000


def test_a_cut_inside_a_character_leaves_that_character_out_on_both_sides():
    text = "é" * 10

    assert cut_middle(text, tokens=1) == "é…4 tokens truncated…é"
    assert cut_middle("x" + text, tokens=1) == "x…5 tokens truncated…é"


def test_a_budget_of_nothing_leaves_only_the_mark():
    assert cut_middle("abcdefgh", tokens=0) == "…2 tokens truncated…"


@given(st.text(alphabet="aé€😀\n", max_size=80), st.integers(0, 12))
def test_the_beginning_and_the_end_stay_whole_characters_within_the_budget(text, tokens):
    cut = cut_middle(text, tokens=tokens)

    head, mark, tail = cut.partition("…") if cut != text else (text, "", "")
    rest = tail.partition("…")[2]
    assert text.startswith(head)
    assert text.endswith(rest)
    assert len((head + rest).encode()) <= max(tokens * 4, 0) or not mark
    assert (mark == "") == (tokens_of(text) <= tokens)
