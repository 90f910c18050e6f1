"""Search: which lines of a text a query finds, and what is shown around them.

Plain substrings, line by line: no pattern, no rank, no guess. Lines end at LF, and one CR before it
is no part of them. The same texts and queries give the same answer in the same order. What is shown
of a finding is at most `EXCERPT_BYTES_MAX`, of which at least half is kept for the finding itself,
so neither a line of a megabyte nor a thousand lines of context fills a reader's window.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, zip_longest
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from .truncation import character_at, size

EXCERPT_BYTES_MAX = 16_000
_SIGNS = re.compile(r"[\W_]+")


class AnyOf(Struct, frozen=True, tag="any", forbid_unknown_fields=True):
    """A line that has at least one of the queries."""


class AllOnSameLine(Struct, frozen=True, tag="all_on_same_line", forbid_unknown_fields=True):
    """A line that has all of them."""


class AllWithinLines(Struct, frozen=True, tag="all_within_lines", forbid_unknown_fields=True):
    """The fewest lines in a row, at most `line_count`, that have all of them."""

    line_count: Annotated[int, Meta(ge=0)]


MatchMode = AnyOf | AllOnSameLine | AllWithinLines


class Hit(NamedTuple):
    """The first and the last line, counted from 0, and which queries they have, as asked."""

    start: int
    end: int
    matched: tuple[str, ...]


class Excerpt(NamedTuple):
    start: int
    content: str
    truncated: bool


class Query(Struct, frozen=True, kw_only=True):
    """What is searched for. No text may be blank, nor blank once `folded`."""

    texts: tuple[str, ...]
    mode: MatchMode = AnyOf()
    case_sensitive: bool = True
    normalized: bool = False

    def folded(self, text: str) -> str:
        """A text as it is compared. `normalized` leaves only letters and digits."""
        if not self.case_sensitive:
            text = text.lower()
        return _SIGNS.sub("", text) if self.normalized else text

    def hits(self, lines: Sequence[str]) -> list[Hit]:
        """Every finding, by its first line."""
        needles = [self.folded(text) for text in self.texts]
        # Most texts have none of it, and one look at the whole tells that quickest.
        whole = self.folded("\n".join(lines))
        there = [needle in whole for needle in needles]
        if not (any if isinstance(self.mode, AnyOf) else all)(there):
            return []
        found = [
            (at, having)
            for at, line in enumerate(lines)
            if (having := self._having(self.folded(line), needles))
        ]
        match self.mode:
            case AnyOf():
                return [Hit(at, at, self._named(having)) for at, having in found]
            case AllOnSameLine():
                every = len(self.texts)
                return [Hit(at, at, self.texts) for at, having in found if len(having) == every]
            case AllWithinLines(line_count=most):
                return [
                    Hit(start, end, self.texts)
                    for start, end in _smallest(found, len(self.texts), most)
                ]

    def _having(self, line: str, needles: Sequence[str]) -> list[int]:
        return [number for number, needle in enumerate(needles) if needle in line]

    def _named(self, having: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.texts[number] for number in having)

    def excerpt(self, lines: Sequence[str], hit: Hit, *, context_lines: int) -> Excerpt:
        """The finding with so many lines before and behind it, as far as there is room."""
        reach = min(max(context_lines, 0), EXCERPT_BYTES_MAX)  # An empty line takes a byte, too.
        first = max(hit.start - reach, 0)
        last = min(hit.end + reach, len(lines) - 1)
        around = first, last
        wanted = sum(map(_line_size, lines[first : last + 1])) - 1
        if wanted <= EXCERPT_BYTES_MAX:
            return Excerpt(first, "\n".join(lines[first : last + 1]), False)
        itself = "\n".join(lines[hit.start : hit.end + 1])
        others = wanted - size(itself)
        room = max(EXCERPT_BYTES_MAX // 2, EXCERPT_BYTES_MAX - others)
        shown = self._cut(itself, lines[hit.start], room)
        left = EXCERPT_BYTES_MAX - size(shown)
        first, last = _nearest(lines, hit, around, left)
        content = [*lines[first : hit.start], shown, *lines[hit.end + 1 : last + 1]]
        return Excerpt(first, "\n".join(content), True)

    def _cut(self, text: str, line: str, room: int) -> str:
        """At most so many bytes of the text, and what was found in its first line among them."""
        content = text.encode("utf-8", "surrogatepass")
        if len(content) <= room:
            return text
        found = size(line[: self._place(line)])
        start = character_at(content, max(0, min(found - room // 4, len(content) - room)), up=True)
        end = character_at(content, start + room)
        return content[start:end].decode("utf-8", "surrogatepass")

    def _place(self, line: str) -> int:
        """Where in a line the first of the queries begins."""
        # A letter may become two or none when it is folded, so each is followed to its origin.
        pieces = [self.folded(character) for character in line]
        whole = "".join(pieces)
        places = [place for text in self.texts if (place := whole.find(self.folded(text))) >= 0]
        before = min(places, default=0)
        for at, piece in enumerate(pieces):
            if before < len(piece):
                return at
            before -= len(piece)
        return 0


def lines_of(text: str) -> list[str]:
    r"""
    >>> lines_of("a\r\nb\x0cc\n"), lines_of("a\n\n"), lines_of("")
    (['a', 'b\x0cc'], ['a', ''], [])
    """
    lines = text.split("\n")
    if not lines[-1]:
        del lines[-1]
    return [line.removesuffix("\r") for line in lines]


def _smallest(
    found: Sequence[tuple[int, Sequence[int]]], count: int, most: int
) -> Iterator[tuple[int, int]]:
    """Every window of at most so many lines that has all queries and has no smaller one in it."""
    windows: list[tuple[int, int]] = []
    nearest: dict[int, int] = {}
    for at, having in reversed(found):
        nearest.update(dict.fromkeys(having, at))
        if len(nearest) == count:
            end = max(nearest.values())
            # Ends never go down as starts go up, so only a window with the same end is inside.
            if end - at < most and not (windows and windows[-1][1] == end):
                windows.append((at, end))
    return reversed(windows)


def _nearest(lines: Sequence[str], hit: Hit, around: tuple[int, int], room: int) -> tuple[int, int]:
    """How far the whole lines around a finding reach that have room, nearest first by turns."""
    first, last = hit.start, hit.end
    before = range(hit.start - 1, around[0] - 1, -1)
    behind = range(hit.end + 1, around[1] + 1)
    full = set()
    for at in chain.from_iterable(zip_longest(before, behind)):
        if at is None:
            continue
        side = at < hit.start
        if side in full:
            continue
        if _line_size(lines[at]) > room:
            full.add(side)
            continue
        room -= _line_size(lines[at])
        if side:
            first = at
        else:
            last = at
    return first, last


def _line_size(line: str) -> int:
    """With its break."""
    return size(line) + 1
