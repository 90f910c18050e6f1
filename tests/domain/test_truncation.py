import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadbook.domain.truncation import cut_middle, cut_middle_bytes, size, tokens_of


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


def test_a_budget_in_bytes_counts_the_missing_characters():
    assert cut_middle_bytes("é" * 5, bytes_max=4) == "é…3 chars truncated…é"
    assert cut_middle_bytes("x" + "é" * 5, bytes_max=5) == "x…4 chars truncated…é"


@given(st.text(alphabet="aé€😀\n", max_size=80), st.integers(0, 40))
def test_whatever_is_cut_in_bytes_is_counted(text, bytes_max):
    cut = cut_middle_bytes(text, bytes_max=bytes_max)

    if size(text) <= bytes_max:
        assert cut == text
    else:
        head, mark, tail = cut.split("…")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert size(head + tail) <= bytes_max
        assert mark == f"{len(text) - len(head) - len(tail)} chars truncated"
