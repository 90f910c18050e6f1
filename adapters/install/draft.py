"""A draft: a text that is being added to, and which stretches of it are ours.

Nothing of the text is written anew: what is put in stands between what was there, so that cutting
it out again gives back every byte. `exact` says whether that holds for the whole of the draft, or
whether something of ours stood in the text before and was only brought up to date.
"""

from msgspec import Struct


class Splice(Struct, frozen=True):
    """A stretch of ours: where it begins in the finished text, and what it says."""

    at: int
    text: str


class CannotEdit(Exception):
    """The text is not such that something could be put in or taken out; the message says why."""


class Draft:
    def __init__(self, text: str, ours: tuple[Splice, ...] = (), *, exact: bool = True) -> None:
        self.text = text
        self.ours = list(ours)
        self.exact = exact

    def insert(self, at: int, text: str) -> None:
        self._replace(at, at, text)

    def replace(self, start: int, end: int, text: str) -> None:
        """Write something of ours anew. It stays ours, and where it was not known to be ours the
        draft cannot be undone by cutting."""
        self._replace(start, end, text)

    def _replace(self, start: int, end: int, text: str) -> None:
        self.text = self.text[:start] + text + self.text[end:]
        grown = len(text) - (end - start)
        moved: list[Splice] = []
        inside = False
        for splice in self.ours:
            until = splice.at + len(splice.text)
            within = (
                splice.at < start < until if start == end else splice.at <= start and end <= until
            )
            if within:
                inside = True
                moved.append(Splice(splice.at, self.text[splice.at : until + grown]))
            elif splice.at >= end:
                moved.append(Splice(splice.at + grown, splice.text))
            else:
                moved.append(splice)
        if not inside and start == end:
            moved.append(Splice(start, text))
        elif not inside:
            self.exact = False
        self.ours = sorted(moved, key=lambda splice: splice.at)


def without(text: str, ours: tuple[Splice, ...] | list[Splice]) -> str | None:
    """The text with every stretch of ours cut out, or None where they do not stand there."""
    for splice in sorted(ours, key=lambda splice: -splice.at):
        end = splice.at + len(splice.text)
        if text[splice.at : end] != splice.text:
            return None
        text = text[: splice.at] + text[end:]
    return text


def wherever(text: str, ours: tuple[Splice, ...] | list[Splice]) -> str | None:
    """The same in a text that was edited since: each stretch must stand there once, as it was."""
    for splice in ours:
        if text.count(splice.text) != 1:
            return None
        text = text.replace(splice.text, "")
    return text


def newline_of(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
