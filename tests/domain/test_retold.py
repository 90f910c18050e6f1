"""Which lines say again what another text says."""

import time

from hypothesis import given
from hypothesis import strategies as st
from threadbook.domain.retold import letters, retold

TOLD = (
    "## Task 1: water the fern, success",
    '- they said "water at dawn, please" [Task 1]',
    "- fern",
)


def again(*lines, told=TOLD, out=(0, 1, 2)):
    return retold(lines, told, out)


def test_a_statement_is_known_without_its_marks_its_frame_and_its_line_ends():
    assert again("## Task 9: water the fern, success\r") == {0}
    assert again('   * they said "water at dawn,', '     please"', "another") == {0, 1}
    assert again("water at dawn, please: so it is") == {0}


def test_a_word_alone_is_known_only_where_it_stands_alone():
    assert again("- fern, moss", "* Fern") == {1}


def test_what_others_say_as_well_stays():
    told = (*TOLD, "- water at dawn, please [Task 2]", "- fern")

    assert again("water at dawn, please", "- fern", told=told) == set()


@given(st.lists(st.text(max_size=30), max_size=8), st.sets(st.integers(0, 7)))
def test_a_text_tells_again_all_that_it_says_and_without_anything_out_nothing(lines, out):
    out &= set(range(len(lines)))

    found = retold(lines, lines, out)

    kept = "".join(letters(line) for at, line in enumerate(lines) if at not in out)
    assert found >= {at for at in out if (own := letters(lines[at])) and own not in kept}
    assert retold([], lines, out) == set()
    assert retold(lines, lines, ()) == set()


def test_a_line_of_forty_thousand_marks_is_read_at_once():
    began = time.monotonic()

    found = letters("- use uv" + "[Task 1]" * 40_000 + "x")

    assert found.startswith("useuvtask1")
    assert time.monotonic() - began < 5
