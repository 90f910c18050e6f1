"""What two texts have in common is found soon, however many of their lines are alike."""

import time

from hypothesis import example, given
from hypothesis import strategies as st
from threadbook.domain.differing import anchors, changes, pairs

LINES = st.lists(st.sampled_from(["", "a", "b", "c", "d", "e", "f"]), max_size=12)


def made(old, new):
    """The new text, from the old one and what is other in it."""
    lines = list(old)
    for i, i_end, j, j_end in reversed(list(changes(old, new))):
        lines[i:i_end] = new[j:j_end]
    return lines


@given(old=LINES, new=LINES, copies=st.sampled_from([1, 60]), own=st.booleans())
@example(old=["", "a", ""], new=["", "b", "a", ""], copies=60, own=True)
def test_what_is_other_makes_the_one_into_the_other(old, new, copies, own):
    if own:  # Lines that stand once, in both and in the same order.
        old = [f"{line}{at}" if line == "a" else line for at, line in enumerate(old)]
        new = [f"{line}{at}" if line == "a" else line for at, line in enumerate(new)]
    old, new = old * copies, new * copies

    assert made(old, new) == new


def test_lines_that_stand_once_are_found_again_among_many_that_are_alike():
    old = [line for at in range(400) for line in (f"- {at}", "")]
    new = [line for at in range(400) for line in ((f"- {at}", "") if at % 2 else ("", "- mine"))]

    assert pairs(old, new) > 50_000
    taken = {line for i, i_end, *_ in changes(old, new) for line in old[i:i_end] if line}
    assert taken == {f"- {at}" for at in range(0, 400, 2)}


def test_anchors_are_the_most_that_stand_in_the_same_order():
    assert anchors(list("xabcdy"), list("yabcdx")) == [(at, at) for at in range(1, 5)]


def test_thousands_of_lines_that_are_alike_take_no_minutes():
    old, new = ["- a", "", "- a"] * 800, ["", "- a", "- b"] * 800
    began = time.monotonic()

    assert made(old, new) == new
    assert time.monotonic() - began < 5


def test_texts_whose_parts_have_parts_a_thousand_times_are_compared():
    core = ["- a", "- b"] * 3_000
    old, new = [*core, "- c"], ["- d", *core[::-1]]
    for at in range(1_500):
        known = f"- {at + 1}", f"- {at}"
        old, new = [f"old {at}", *known, *old], [f"new {at}", *known, *new]

    assert made(old, new) == new
