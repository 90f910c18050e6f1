"""The pieces that can be found and shown on their own."""

from hypothesis import given
from hypothesis import strategies as st
from threadbook.domain.passages import CHARACTERS_MAX, LINES_MAX, passages
from threadbook.domain.search import lines_of
from threadbook.domain.withholding import WITHHELD


def of(text):
    return [(each.start, each.end, each.headings) for each in passages("a.md", text)]


def test_a_bullet_with_what_continues_it_and_a_paragraph_are_pieces():
    text = "one\ntwo\n\n- a\n  more of a\n- b\n1. c\nlast\n"

    assert of(text) == [(1, 2, ""), (4, 5, ""), (6, 6, ""), (7, 8, "")]


def test_a_piece_knows_the_headings_it_stands_under_and_no_others():
    text = "# A\n## B\nx\n### C\n- y\n## D\nz\n# E\nw\n"

    assert of(text) == [(3, 3, "A / B"), (5, 5, "A / B / C"), (7, 7, "A / D"), (9, 9, "E")]


def test_a_line_with_a_colon_over_a_list_is_its_heading_until_the_list_ends():
    text = "# A\n\nPreferences:\n- x\n- y\n\nnothing more\n\nlast: word\n"

    assert of(text) == [
        (4, 4, "A / Preferences"),
        (5, 5, "A / Preferences"),
        (7, 7, "A"),
        (9, 9, "A"),
    ]


def test_headings_are_what_a_text_says_that_has_nothing_else():
    assert of("# Use uv\n\n## Never pip\n") == [(1, 1, ""), (3, 3, "Use uv")]
    assert of("# Use uv\n\n## Never pip\nx") == [(4, 4, "Use uv / Never pip")]


def test_a_fence_is_one_piece_whatever_is_in_it():
    text = "before\n\n```sh\n- no bullet\n\n# no heading\n```\n\nafter\n"

    assert of(text) == [(1, 1, ""), (3, 7, ""), (9, 9, "")]


def test_a_withheld_statement_is_no_piece_and_belongs_to_none():
    text = f"- a\n{WITHHELD}\n- b\n{WITHHELD}\n{WITHHELD}\nx\n"

    assert of(text) == [(1, 1, ""), (3, 3, ""), (6, 6, "")]


def test_what_is_long_is_cut_into_pieces():
    assert of("x\n" * (LINES_MAX + 1)) == [(1, LINES_MAX, ""), (LINES_MAX + 1, LINES_MAX + 1, "")]
    half = "x" * (CHARACTERS_MAX // 2)
    assert of(f"{half}\n{half}\n{half}") == [(1, 2, ""), (3, 3, "")]


@given(
    st.lists(
        st.sampled_from(
            ["", " ", "# a", "### b", "- x", "  y", "z:", "```", "1. n", "#no", "w" * 900]
        )
    ).map("\n".join)
)
def test_every_line_that_is_no_heading_is_in_one_piece(text):
    lines = lines_of(text)
    found = passages("a.md", text)

    numbers = [number for each in found for number in range(each.start, each.end + 1)]
    assert numbers == sorted(set(numbers))
    assert [each.text for each in found] == [
        "\n".join(lines[each.start - 1 : each.end]) for each in found
    ]
    left = {lines[n - 1].strip() for n in range(1, len(lines) + 1) if n not in set(numbers)}
    assert left <= {"", "# a", "### b", "z:"}
