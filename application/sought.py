"""What is looked for after a forgetting: runs of the erased texts that nothing else may have.

A line of a text is taken in every form in which it could lie in a file: as it is, as JSON writes
it, and without accents, as a full-text index keeps it; capitals make no difference. Eight bytes in
a row of any of these are a *mark*, unless a text that stays has the same eight: then they tell
nothing, and are left out. A place is a find where a mark stands in a run of `RUN_BYTES` that a line
has too, or in a whole line that is shorter; in an index, which keeps words and cuts off how they
begin, and in a file's name, a mark within one word is enough.

So a text is found whatever page borders cut through it, as long as one piece of that size is whole.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator

from msgspec import Struct

MARK_BYTES = 8
RUN_BYTES = 24
BLOCK_BYTES = 1 << 20
PLACES_MAX = 32  # Of one mark in the texts: it is one of few, or it is in a pattern of them.
WRITTEN_OTHERWISE = re.compile(r"[^\x20-\x21\x23-\x5b\x5d-\x7e\n]")  # In JSON.
ACCENTS = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")
NO_WORD = re.compile(rb"[^0-9a-z_\x80-\xff]")


class Run(Struct, frozen=True, kw_only=True):
    """Where in a piece, and how many bytes of a line are there in a row."""

    at: int
    size: int


class Sought:
    """Add the texts that went, then strike out what the texts that stay have too, then look."""

    def __init__(self, texts: Iterable[str]) -> None:
        lines = dict.fromkeys(
            form
            for text in texts
            for line in text.splitlines()
            for form in forms(line.strip())
            if len(form) >= MARK_BYTES
        )
        self.short = {line for line in lines if len(line) < RUN_BYTES}
        # No line goes on in the next one: a zero byte is in none of them.
        self.all = b"\0".join(lines)
        self.marks: set[int] = set()
        for line in lines:
            for words in windows(line):
                self.marks.update(words)
        self.marks_of_all = len(self.marks)  # Of which what stays takes some away.
        self._unread: list[str] = []
        self._otherwise: list[str] = []  # Lines that are not the same in every form.
        self._unread_size = 0

    def strike(self, text: str, *, is_json: bool = False) -> None:
        """A text that stays: what it says is no sign of what went. JSON is not written as JSON."""
        self._unread.append(text)
        if not is_json or not text.isascii():
            self._otherwise += filter(WRITTEN_OTHERWISE.search, text.split("\n"))
        self._unread_size += len(text)
        if self._unread_size >= BLOCK_BYTES:
            self.struck()

    def struck(self) -> None:
        """All that was given is struck out; to be called after the last one."""
        as_it_is = "\n".join(self._unread).encode("utf-8", "replace").lower()
        otherwise = forms("\n".join(self._otherwise))
        self._unread, self._otherwise, self._unread_size = [], [], 0
        for form in dict.fromkeys((as_it_is, *otherwise)):
            for words in windows(form):
                self.marks.difference_update(words)

    def runs(self, piece: bytes, *, words: bool = False) -> Iterator[Run]:
        """The runs in a piece, in order, none inside another. `words`: one word is enough."""
        piece = piece.lower()
        end = 0
        for at in self._marked(piece):
            if at + MARK_BYTES <= end:
                continue
            run = self._run_at(piece, at)
            mark = piece[at : at + MARK_BYTES]
            if self._tells(piece[run.at : run.at + run.size]) or (
                words and not NO_WORD.search(mark)
            ):
                end = run.at + run.size
                yield run

    def _marked(self, piece: bytes) -> list[int]:
        found = []
        for shift, words in enumerate(windows(piece)):
            if not self.marks.isdisjoint(words):
                found += [
                    shift + n * MARK_BYTES for n, word in enumerate(words) if word in self.marks
                ]
        return sorted(found)

    def _run_at(self, piece: bytes, at: int) -> Run:
        """The longest run of a line around a mark."""
        mark = piece[at : at + MARK_BYTES]
        best = Run(at=at, size=MARK_BYTES)
        place = self.all.find(mark)
        for _ in range(PLACES_MAX):
            if place < 0:
                break
            first, last = at, at + MARK_BYTES
            here, there = place, place + MARK_BYTES
            while first and here and piece[first - 1] == self.all[here - 1] != 0:
                first, here = first - 1, here - 1
            while (
                last < len(piece) and there < len(self.all) and piece[last] == self.all[there] != 0
            ):
                last, there = last + 1, there + 1
            if last - first > best.size:
                best = Run(at=first, size=last - first)
            if best.size >= RUN_BYTES:
                break
            place = self.all.find(mark, place + 1)
        return best

    def _tells(self, run: bytes) -> bool:
        return len(run) >= RUN_BYTES or any(line in run for line in self.short)


def forms(text: str) -> Iterator[bytes]:
    """How a text may be written down. Capitals of ASCII are small letters in all of them.

    What JSON makes of the end of a line is no matter here: lines are looked for one by one.
    """
    yield text.encode("utf-8", "replace").lower()
    if not text.isascii():
        yield text.lower().encode("utf-8", "replace").lower()
        yield plain(text).encode("utf-8", "replace").lower()
    if WRITTEN_OTHERWISE.search(text):
        for ascii_ in (False, True):
            yield json.dumps(text, ensure_ascii=ascii_)[1:-1].encode("utf-8", "replace").lower()


def plain(text: str) -> str:
    """Small letters without their accents."""
    return ACCENTS.sub("", unicodedata.normalize("NFKD", text.casefold()))


def windows(content: bytes) -> Iterator[memoryview]:
    """Every eight bytes in a row as a number: in eight views, each a byte further than the last."""
    whole = memoryview(content)
    for shift in range(MARK_BYTES):
        end = len(content) - (len(content) - shift) % MARK_BYTES
        yield whole[min(shift, end) : end].cast("Q")
