"""Which lines a query finds, and what is shown around them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadbook.domain.search import (
    EXCERPT_BYTES_MAX,
    AllOnSameLine,
    AllWithinLines,
    AnyOf,
    Hit,
    Query,
    lines_of,
)


def found(text, *texts, mode=None, **more):
    return Query(texts=texts, mode=mode or AnyOf(), **more).hits(lines_of(text))


def shown(text, *texts, mode=None, context_lines=0, at=0, **more):
    query = Query(texts=texts, mode=mode or AnyOf(), **more)
    lines = lines_of(text)
    return query.excerpt(lines, query.hits(lines)[at], context_lines=context_lines)


def test_a_line_is_found_once_with_the_queries_it_has_in_the_order_they_were_asked():
    assert found("alpha only\nneedle and alpha\nnone", "needle", "alpha") == [
        Hit(0, 0, ("alpha",)),
        Hit(1, 1, ("needle", "alpha")),
    ]


def test_all_on_the_same_line_wants_every_query_there():
    assert found("a b\na\nb\nb a", "a", "b", mode=AllOnSameLine()) == [
        Hit(0, 0, ("a", "b")),
        Hit(3, 3, ("a", "b")),
    ]


def test_a_window_is_found_by_its_first_line():
    text = "start\nneedle\nmiddle\nalpha\nend"

    assert found(text, "alpha", "needle", mode=AllWithinLines(3)) == [
        Hit(1, 3, ("alpha", "needle"))
    ]
    assert found(text, "alpha", "needle", mode=AllWithinLines(2)) == []


def test_of_windows_inside_one_another_the_smallest_stands_and_others_may_overlap():
    text = "a\na\nb\na\nb b"

    windows = found(text, "a", "b", mode=AllWithinLines(5))

    assert [(hit.start, hit.end) for hit in windows] == [(1, 2), (2, 3), (3, 4)]


def test_case_counts_until_it_is_told_not_to():
    text = "MAKE Lint\nÄRGER"

    assert found(text, "make lint") == []
    assert [hit.start for hit in found(text, "make lint", case_sensitive=False)] == [0]
    assert [hit.start for hit in found(text, "ärger", case_sensitive=False)] == [1]


def test_normalized_compares_letters_and_digits_only():
    text = "run `make-lint_2` first\nmake lint\nmak"

    assert [hit.start for hit in found(text, "make/lint 2", normalized=True)] == [0]
    assert [hit.start for hit in found(text, "make-lint", normalized=True)] == [0, 1]
    assert found(text, "Make-Lint", normalized=True) == []
    assert len(found(text, "Make-Lint", normalized=True, case_sensitive=False)) == 2


def test_normalizing_joins_no_two_lines():
    assert found("make\nlint", "makelint", normalized=True) == []


def test_a_query_is_no_pattern():
    assert found("aXb\na.b\n100%\n", "a.b", "%") == [Hit(1, 1, ("a.b",)), Hit(2, 2, ("%",))]


def test_only_a_line_feed_ends_a_line():
    assert lines_of("a\x0cb\u2028c\r\nd\r\r\n") == ["a\x0cb\u2028c", "d\r"]


def test_context_ends_where_the_file_does_and_the_last_line_has_no_break():
    assert shown("a\nneedle\nb\nc\n", "needle", context_lines=2) == (0, "a\nneedle\nb\nc", False)
    assert shown("a\nb\nneedle\n", "needle", context_lines=1) == (1, "b\nneedle", False)


def test_a_huge_line_shows_the_part_that_was_found():
    line = "x" * 500_000 + "nEEdle" + "y" * 500_000

    excerpt = shown(f"before\n{line}\nbehind", "needle", case_sensitive=False, context_lines=1)

    assert excerpt.truncated
    assert "nEEdle" in excerpt.content
    assert excerpt.content.startswith("before\n")
    assert excerpt.content.endswith("\nbehind")
    assert EXCERPT_BYTES_MAX - 20 < len(excerpt.content.encode()) <= EXCERPT_BYTES_MAX


def test_half_of_an_excerpt_is_the_findings_own_however_much_is_around_it():
    text = "\n".join(["c" * 99] * 500 + ["needle" + "n" * 20_000] + ["c" * 99] * 500)

    excerpt = shown(text, "needle", context_lines=10**9)

    own = max(excerpt.content.split("\n"), key=len)
    assert len(own) == EXCERPT_BYTES_MAX // 2
    assert own.startswith("needle")
    assert len(excerpt.content) <= EXCERPT_BYTES_MAX
    assert excerpt.start == 460
    assert excerpt.content.count("c" * 99) == 80


def test_what_is_too_much_context_is_left_out_by_whole_lines_and_nearest_stay():
    def of(size):
        text = "far\n" + "w" * 9_000 + "\nneedle\n" + "v" * size + "\n" + "u" * 9_000
        return shown(text, "needle", context_lines=9)

    assert of(6_992) == (1, "w" * 9_000 + "\nneedle\n" + "v" * 6_992, True)
    assert len(of(6_992).content) == EXCERPT_BYTES_MAX
    assert of(6_993) == (0, "far\n" + "w" * 9_000 + "\nneedle", True)


LINES = st.lists(st.text(alphabet="aAbB -", max_size=6), max_size=14)
MODES = st.one_of(st.just(AnyOf()), st.just(AllOnSameLine()), st.integers(1, 6).map(AllWithinLines))


def by_definition(query, lines):
    """As the rule is told: extend from every matching line, then drop what holds a smaller one."""
    has = [
        [text for text in query.texts if query.folded(text) in query.folded(line)] for line in lines
    ]
    match query.mode:
        case AnyOf():
            return [(at, at, tuple(some)) for at, some in enumerate(has) if some]
        case AllOnSameLine():
            return [(at, at, query.texts) for at, some in enumerate(has) if some == [*query.texts]]
    windows = []
    for start, some in enumerate(has):
        seen = set()
        for end in range(start, min(start + query.mode.line_count, len(lines))) if some else ():
            seen |= set(has[end])
            if seen == set(query.texts):
                windows.append((start, end, query.texts))
                break
    return [
        one
        for one in windows
        if not any(one[0] <= other[0] and other[1] <= one[1] and other != one for other in windows)
    ]


@given(
    LINES,
    st.lists(st.sampled_from(["a", "A", "b", "ab", "a b"]), min_size=1, max_size=3, unique=True),
    MODES,
    st.booleans(),
    st.booleans(),
)
def test_the_findings_are_those_of_the_rule(lines, texts, mode, case_sensitive, normalized):
    query = Query(
        texts=tuple(texts), mode=mode, case_sensitive=case_sensitive, normalized=normalized
    )

    assert query.hits(lines) == by_definition(query, lines)


@given(
    st.lists(
        st.builds(
            lambda size, end: "é" * size + end,
            st.sampled_from([0, 1, 900, 9_000]),
            LINES.map("".join),
        ),
        min_size=1,
        max_size=12,
    ),
    st.integers(0, 30),
    MODES,
)
def test_an_excerpt_keeps_its_bound_and_is_lines_of_the_text(lines, context_lines, mode):
    query = Query(texts=("a", "b"), mode=mode)
    for hit in query.hits(lines):
        excerpt = query.excerpt(lines, hit, context_lines=context_lines)

        size = len(excerpt.content.encode())
        assert size <= EXCERPT_BYTES_MAX
        assert excerpt.start <= hit.start
        whole = lines[max(hit.start - context_lines, 0) : hit.end + context_lines + 1]
        assert excerpt.truncated == (excerpt.content != "\n".join(whole))
        assert excerpt.truncated == (len("\n".join(whole).encode()) > EXCERPT_BYTES_MAX)
        if hit.start == hit.end:
            assert any(text in excerpt.content for text in hit.matched)


@pytest.mark.parametrize("mode", [AnyOf(), AllOnSameLine(), AllWithinLines(9)])
def test_nothing_is_found_in_nothing(mode):
    assert found("", "a", mode=mode) == []
