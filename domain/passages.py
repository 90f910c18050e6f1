"""Passages: the pieces of a Markdown text that can be found and shown on their own.

A bullet with what continues it, a paragraph, a fence: each with its lines, and with the headings it
stands under (a short line with a colon over a list is one, too). Headings are no passages, because
each says only what its passages are about; but where a text has nothing else they are what it says.
A statement that is withheld is none either.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from .search import lines_of
from .withholding import WITHHELD

LINES_MAX = 40
CHARACTERS_MAX = 4_000

_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*")
_BULLET = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s")
_LABEL = re.compile(r"\s*(\S.{0,78}):")
_LABEL_LEVEL = 7  # Below every heading.
_FENCE = re.compile(r"\s*(```|~~~)")


class Passage(Struct, frozen=True, kw_only=True, gc=False):
    """Lines count from 1, and `end` is the last. `headings` go from the outermost in."""

    path: str
    start: int
    end: int
    text: str
    headings: str


def passages(path: str, text: str) -> list[Passage]:
    lines = lines_of(text)
    found: list[Passage] = []
    bare: list[Passage] = []
    trail: dict[int, str] = {}
    for start, end in pieces(lines):
        if lines[start] == WITHHELD:
            continue
        level, named = heading(lines, start, end)
        above = level or (_LABEL_LEVEL if not _BULLET.match(lines[start]) else _LABEL_LEVEL + 1)
        trail = {depth: each for depth, each in trail.items() if depth < above}
        here = Passage(
            path=path,
            start=start + 1,
            end=end,
            text="\n".join(lines[start:end]),
            headings=" / ".join(trail.values()),
        )
        if level:
            trail[level] = named
            bare.append(here)
        else:
            found.append(here)
    return found or bare


def heading(lines: Sequence[str], start: int, end: int) -> tuple[int, str]:
    """The level and the words of a piece that is a heading; level 0 where it is none."""
    if end - start > 1:
        return 0, ""
    if found := _HEADING.fullmatch(lines[start]):
        return len(found[1]), found[2]
    over_a_list = end < len(lines) and _BULLET.match(lines[end]) and not _BULLET.match(lines[start])
    label = _LABEL.fullmatch(lines[start]) if over_a_list else None
    return (_LABEL_LEVEL, label[1]) if label else (0, "")


def pieces(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The first line of each piece and the line behind its last, from 0."""
    start = size = 0
    fence = ""
    for at, line in enumerate(lines):
        blank = not line.strip() and not fence
        begins = not fence and (
            _BULLET.match(line) or is_alone(line) or (at > 0 and is_alone(lines[at - 1]))
        )
        full = at - start >= LINES_MAX or size + len(line) > CHARACTERS_MAX
        if start < at and (blank or begins or full):
            yield start, at
            start, size = at, 0
        if blank:
            start = at + 1
        elif mark := _FENCE.match(line):
            fence = "" if fence == mark[1] else fence or mark[1]
        size += len(line)
    if start < len(lines):
        yield start, len(lines)


def is_alone(line: str) -> bool:
    return line == WITHHELD or _HEADING.fullmatch(line) is not None
