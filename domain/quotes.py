"""Quotes: whether a person typed what a line says that they did.

A quote is looked up in what was typed and nowhere else: a transcript holds everything somewhere.
In this order: the words as they are, the letters and digits alone, the pieces round an ellipsis or
a hidden secret, and last something near, in which every number and every `not` must agree. Case,
spaces, markdown, the form of quotation marks and dashes, and invisible characters make no
difference; half a word is no quote. Near is said to be near: one other word in a long sentence is
near, too.

The index grows with what was typed, and a quote costs a few searches in it.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Literal

from msgspec import Struct

from .redaction import MARKER

Found = Literal["exact", "near", "missing"]

NEAR_MIN = 0.92
NEAR_CHARS_MIN = 20
PIECES_WITHIN_CHARS = 4_000
PIECE_CHARS_MIN = 2
_PLACES_MAX = 64  # Where the same words stand so often, more of them prove nothing.
_RAREST_WORDS = 8
_POSTINGS_MAX = 4_000
_ALIGNMENTS_MAX = 6

_BORDER = "\x1e"  # Between two messages; no quote reaches over it.
_HIDDEN = "\x1a"  # A hidden secret: any text may have stood there.
_UNSEEN = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u300c\u300d\u300e\u300f", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        "\u2026": "...",
    }
)
_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af]|[^\W_\u2e80-\u9fff\uac00-\ud7af]+")
_SPOKEN_WORD = re.compile(rf"{_WORD.pattern}(?:'[a-z]+)?")
_CUT = re.compile(r"\[\s*\.{3,}\s*\]|\.{3,}|\x1a|\s[/+]\s")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NEGATOR = re.compile(
    r"\b(?:not?|never|none|nothing|without|cannot|neither|nor|nicht|nie|niemals|kein\w{0,2}|ohne"
    r"|ne|pas|jamais|sans|nunca|jam[aá]s|sin|n[aã]o|sem|mai|senza|niet|geen|nooit"
    r"|(?:do|does|did|is|are|was|were|wo|would|should|could|ca|must|has|have|had)n'?t|can't)\b"
    r"|不|没|別|别|ない|ません|しないで|않|안\s|못|لا\s",
)


class Typed(Struct, frozen=True, kw_only=True):
    """A message of a person's, redacted, and its place."""

    text: str
    line: int
    at_ms: int | None = None


class Verdict(Struct, frozen=True, kw_only=True):
    """How a quote was found, and in which message: the first that has it."""

    found: Found
    typed: Typed | None = None


MISSING = Verdict(found="missing")


def plain(text: str) -> str:
    """The text in the form in which quotes are compared."""
    text = text.replace(MARKER, _HIDDEN)
    if not text.isascii():
        text = _UNSEEN.sub("", unicodedata.normalize("NFKC", text.translate(_SIGNS)))
    return _SPACE.sub(" ", text.casefold().replace(_BORDER, " ")).strip()


def tight(text: str) -> str:
    """Letters and digits alone, of a plain text."""
    return "".join(_WORD.findall(text))


def numbers(text: str) -> Counter[str]:
    return Counter(_NUMBER.findall(text))


def negators(text: str) -> int:
    return len(_NEGATOR.findall(text))


class Spoken:
    """Everything that was typed in a session, ready to be looked up."""

    def __init__(self, typed: Iterable[Typed]) -> None:
        self._typed = list(typed)
        self._plain = [plain(each.text) for each in self._typed]
        self._whole, self._starts = _joined(self._plain)
        letters: list[str] = []
        # Where a word begins or ends among the letters, so that half a word is told from a word.
        self._borders = bytearray()
        for text in self._plain:
            words = _WORD.findall(text)
            letters.append("".join(words))
            borders = bytearray(len(letters[-1]) + 1)
            for at in accumulate(map(len, words), initial=0):
                borders[at] = 1
            self._borders += borders
        self._tight, self._tight_starts = _joined(letters)
        self._near: _Near | None = None

    def find(self, quote: str) -> Verdict:
        """Whether somebody typed it."""
        asked = plain(quote).strip(" .,;:!?-*_`'\"")
        words = tight(asked)
        if not words:
            return MISSING
        at = self._exactly(asked)
        if at is None:
            at = self._tightly(words)
        if at is None:
            at = self._in_pieces(asked)
        if at is not None:
            return Verdict(found="exact", typed=self._typed[at])
        if len(asked) < NEAR_CHARS_MIN:
            return MISSING
        if self._near is None:
            self._near = _Near(self._plain)
        at = self._near.find(asked)
        return MISSING if at is None else Verdict(found="near", typed=self._typed[at])

    def _exactly(self, asked: str) -> int | None:
        for at in _places(self._whole, asked):
            if _stands_alone(self._whole, at, at + len(asked)):
                return _message(self._starts, at)
        return None

    def _tightly(self, words: str) -> int | None:
        for at in self._whole_words(words, 0, len(self._tight)):
            return _message(self._tight_starts, at)
        return None

    def _in_pieces(self, asked: str) -> int | None:
        if not _CUT.search(asked):
            return None
        first, *rest = [
            each for each in map(tight, _CUT.split(asked)) if len(each) >= PIECE_CHARS_MIN
        ] or [""]
        for start in self._whole_words(first, 0, len(self._tight)) if first else ():
            end = self._tight.find(_BORDER, start)
            limit = min(end if end >= 0 else len(self._tight), start + PIECES_WITHIN_CHARS)
            at = start + len(first)
            for piece in rest:
                there = next(self._whole_words(piece, at, limit), None)
                if there is None:
                    break
                at = there + len(piece)
            else:
                return _message(self._tight_starts, start)
        return None

    def _whole_words(self, letters: str, start: int, end: int) -> Iterator[int]:
        for at in _places(self._tight, letters, start, end):
            if self._is_border(at) and self._is_border(at + len(letters)):
                yield at

    def _is_border(self, at: int) -> bool:
        return bool(self._borders[at])


class _Near:
    """Where the words of a quote stand in about its order."""

    def __init__(self, messages: Sequence[str]) -> None:
        self._words: list[str] = []
        self._starts: list[int] = []
        self._postings: dict[str, list[int]] = {}
        known: dict[str, str] = {}
        for message in messages:
            self._starts.append(len(self._words))
            for word in _SPOKEN_WORD.findall(message):
                word = known.setdefault(word, word)
                self._postings.setdefault(word, []).append(len(self._words))
                self._words.append(word)
        self._starts.append(len(self._words))

    def find(self, asked: str) -> int | None:
        words = _SPOKEN_WORD.findall(asked)
        rows = [
            (len(there), at, there)
            for at, word in enumerate(words)
            if (there := self._postings.get(word)) and len(there) <= _POSTINGS_MAX
        ]
        rows.sort(key=lambda row: row[:2])
        votes: Counter[int] = Counter()
        for _, at, there in rows[:_RAREST_WORDS]:
            votes.update(place - at for place in there)
        quote, best, found = " ".join(words), 0.0, None
        for offset, _ in votes.most_common(_ALIGNMENTS_MAX):
            number = bisect_right(self._starts, max(offset, 0)) - 1
            number = min(number, len(self._starts) - 2)
            stretches = list(self._stretches(offset, len(words), number))
            # A word that is left out at an end must not be the one that turns the meaning round.
            if not (stretches and _agree(quote, stretches[0])):
                continue
            for stretch in stretches:
                score = similarity(quote, stretch)
                if score >= NEAR_MIN and score > best and _agree(quote, stretch):
                    best, found = score, number
        return found

    def _stretches(self, offset: int, length: int, number: int) -> Iterator[str]:
        """As many words as the quote has from there on, and one fewer or more at each end."""
        low, high = self._starts[number], self._starts[number + 1]
        for first in (offset, offset - 1, offset + 1):
            for last in (offset + length, offset + length - 1, offset + length + 1):
                stretch = self._words[max(low, first) : min(high, last)]
                if stretch:
                    yield " ".join(stretch)


def _agree(quote: str, stretch: str) -> bool:
    return numbers(quote) == numbers(stretch) and negators(quote) == negators(stretch)


def similarity(left: str, right: str) -> float:
    """Twice the letters that both have in one order, as a share of all: what rapidfuzz calls
    `ratio`. The longest common subsequence by bits of a number, a step a letter."""
    if not left or not right:
        return 0.0
    places: dict[str, int] = {}
    for at, letter in enumerate(left):
        places[letter] = places.get(letter, 0) | 1 << at
    every = (1 << len(left)) - 1
    free = every
    for letter in right:
        here = free & places.get(letter, 0)
        free = ((free + here) | (free - here)) & every
    common = len(left) - free.bit_count()
    return 2 * common / (len(left) + len(right))


def _joined(texts: Sequence[str]) -> tuple[str, list[int]]:
    """One text, and where each begins in it."""
    starts, at = [], 0
    for text in texts:
        starts.append(at)
        at += len(text) + 1
    return _BORDER.join(texts), starts


def _message(starts: Sequence[int], at: int) -> int:
    return bisect_right(starts, at) - 1


def _places(text: str, part: str, start: int = 0, end: int | None = None) -> Iterator[int]:
    at = text.find(part, start, end)
    for _ in range(_PLACES_MAX):
        if at < 0:
            return
        yield at
        at = text.find(part, at + 1, end)


def _stands_alone(text: str, start: int, end: int) -> bool:
    return not (
        (start > 0 and _one_word(text[start - 1], text[start]))
        or (end < len(text) and _one_word(text[end - 1], text[end]))
    )


def _one_word(left: str, right: str) -> bool:
    """Scripts without spaces between words have a border everywhere."""
    return left.isalnum() and right.isalnum() and max(left, right) < "\u2e80"
