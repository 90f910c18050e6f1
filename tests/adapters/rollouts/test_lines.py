"""R1 to R7: where a line ends, what is an error, and what is only padding."""

from pathlib import Path

import pytest
from threadbook.adapters.rollouts import NotASession, Unreadable, survey
from threadbook.adapters.rollouts.lines import BAD_LINES_LISTED_MAX, Lines
from threadbook.adapters.rollouts.stamps import to_ms

from .support import NOW_MS, as_bytes, message, meta

FIRST = as_bytes(meta())
WORD = as_bytes(message("word"))


def read(folder, content, **settings):
    path = folder / "session.jsonl"
    path.write_bytes(content)
    return survey(path, now_ms=NOW_MS, **settings)


@pytest.mark.parametrize(
    "content",
    [
        FIRST + WORD,
        FIRST + WORD.rstrip(b"\n"),
        (FIRST + WORD).replace(b"\n", b"\r\n"),
        b"\n\n" + FIRST + b"\r\n  \t\n" + WORD + b"\n",
        b"\xef\xbb\xbf" + FIRST + WORD,
        FIRST + b"\x00" * 5000 + WORD,
        FIRST + WORD + b"\x00" * 5000,
        FIRST + b"\x00\n\x00\x00\n" + WORD,
        FIRST.rstrip(b"\n") + WORD,
        FIRST.rstrip(b"\n") + b" \x00 " + WORD,
    ],
    ids=[
        "plain",
        "no end",
        "crlf",
        "blank",
        "bom",
        "nul",
        "nul end",
        "nul lines",
        "one line",
        "gap",
    ],
)
def test_what_stands_around_the_objects_changes_nothing(tmp_path, content):
    result = read(tmp_path, content)

    assert (result.records, result.bad_lines, result.unfinished_tail) == (2, (), False)
    assert result.human_messages == ("word",)


@pytest.mark.parametrize(
    ("line", "within"),
    [
        (b"{broken", 0),
        (b"[1, 2]", 0),
        (b'"text"', 0),
        (b"17", 0),
        (b"\xff\xfe", 0),
        (b"[" * 100_000, 0),
        (WORD.rstrip(b"\n") + b"{broken", len(WORD) - 1),
    ],
)
def test_a_line_that_does_not_parse_is_counted_with_its_place_and_nothing_else_is_lost(
    tmp_path, line, within
):
    result = read(tmp_path, FIRST + line + b"\n" + WORD)

    [bad] = result.bad_lines
    assert (bad.line, bad.offset) == (2, len(FIRST) + within)
    assert bad.reason
    assert result.human_messages[-1] == "word"
    assert not result.unfinished_tail


@pytest.mark.parametrize("tail", [b'{"type": "resp', b"17", b"\xff", b'{"a": "\xf0\x9f'])
def test_an_unended_line_that_does_not_parse_is_a_tail_and_no_error(tmp_path, tail):
    result = read(tmp_path, FIRST + WORD + tail)

    assert (result.bad_lines, result.unfinished_tail) == ((), True)
    assert result.resume_offset == len(FIRST + WORD)


def test_whole_objects_before_a_tail_on_its_line_count_once(tmp_path):
    result = read(tmp_path, FIRST + WORD.rstrip(b"\n") + b'{"type": ')

    assert (result.records, result.unfinished_tail) == (2, True)
    assert result.resume_offset == len(FIRST + WORD) - 1


def test_bytes_that_are_not_utf8_and_nul_inside_text_cost_only_themselves(tmp_path):
    line = as_bytes(message("before@after")).replace(b"@", b"\xff\\u0000\x00")

    result = read(tmp_path, FIRST + line)

    assert result.human_messages == ("before\ufffdafter",)
    assert result.bad_lines == ()


def test_a_line_separator_of_unicode_ends_no_line(tmp_path):
    result = read(tmp_path, FIRST + as_bytes(message("one\u2028two\x85three")))

    assert (result.records, result.human_messages) == (2, ("one\u2028two\x85three",))


def test_an_endless_line_is_neither_held_nor_called_corrupt(tmp_path):
    result = read(tmp_path, FIRST + WORD + b"x" * 3_000_000, line_limit=1_000_000)

    assert (result.bad_lines, result.skipped, result.unfinished_tail) == ((), {}, True)
    assert result.resume_offset == len(FIRST + WORD)


def test_very_many_bad_lines_are_counted_and_not_all_listed(tmp_path):
    result = read(tmp_path, FIRST + b"x\n" * (BAD_LINES_LISTED_MAX + 7) + WORD)

    assert len(result.bad_lines) == BAD_LINES_LISTED_MAX
    assert result.skipped == {"bad lines not listed": 7}
    assert result.human_messages == ("word",)


@pytest.mark.parametrize("size", [1, 255, 262_143, 262_144, 262_145, 600_000])
def test_offsets_are_bytes_wherever_a_piece_of_the_file_ends(tmp_path, size):
    path = tmp_path / "session.jsonl"
    long = as_bytes(message("é" * size))
    path.write_bytes(FIRST + long + WORD)

    with Lines(path) as lines:
        found = list(lines)

    assert [(one.line, one.offset) for one in found] == [
        (1, 0),
        (2, len(FIRST)),
        (3, len(FIRST + long)),
    ]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"x\ny\n", "no line of JSON"),
        (b'{"a":1}\n', "holds no session"),
    ],
)
def test_a_file_that_is_no_session_says_why(tmp_path, content, why):
    with pytest.raises(NotASession, match=why):
        read(tmp_path, content)


@pytest.mark.parametrize(
    ("stamp", "ms"),
    [
        ("1970-01-01T00:00:01Z", 1_000),
        ("2026-03-03T18:00:07.123456789+09:00", 1_772_528_407_123),
        ("2026-03-03t09:00:07.1z", 1_772_528_407_100),
        ("2026-03-03 09:00:07", 1_772_528_407_000),
        ("2026-03-03T09-00-07", 1_772_528_407_000),
        ("2026-03-03T04:00:07-05:00", 1_772_528_407_000),
        ("2026-06-30T23:59:60Z", 1_782_863_999_000),
        (1_772_528_407_123, 1_772_528_407_123),
        (1_772_528_407, 1_772_528_407_000),
        (1_772_528_407.25, 1_772_528_407_250),
        ("2026-02-29T12:00:00Z", None),
        ("2026-03-03T25:00:00Z", None),
        ("0000-01-01T00:00:00Z", None),
        ("not a date", None),
        ("", None),
        (None, None),
        (True, None),
        (0, None),
        (-5, None),
        (float("nan"), None),
        (float("inf"), None),
        (10**30, None),
        ({}, None),
    ],
)
def test_a_stamp_is_a_time_or_nothing(stamp, ms):
    assert to_ms(stamp) == ms


def test_the_first_and_last_year_with_a_shifted_zone_are_times_too():
    assert to_ms("9999-12-31T23:59:59-14:00") == 253_402_351_199_000
    assert to_ms("0001-01-01T00:00:00+14:00") == -62_135_647_200_000


@pytest.mark.parametrize("path", [Path("/"), Path()])
def test_a_folder_without_a_name_is_no_session(path):
    with pytest.raises(Unreadable, match="not a regular file"):
        Lines(path)
