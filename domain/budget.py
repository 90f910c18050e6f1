"""The budget: what of a memory a session is given when not all of it fits.

Whole lines go, never a part of one, the least valuable first: lines that only say that one is
withheld, details of the index, its topics, sections nobody knows, tips, notes, wishes, what is
known of the user. Within one kind the oldest goes first where a line says its day, else the last.
So the newest thing that the user asked for is among the last to go. What went is counted where it
is missing, and the count is in the budget.
"""

import re
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from .artifact import SUMMARY_HEADINGS
from .truncation import character_at, size
from .withholding import WITHHELD

PROFILE, PREFERENCES, TIPS, INDEX = SUMMARY_HEADINGS
NOTES = "## Notes somebody asked to keep, newest first"

_WITHHELD, _DETAIL, _TOPIC, _OTHER, _TIP, _NOTE, _WISH, _PROFILE = range(8)
_OF_SECTION = {INDEX: _TOPIC, TIPS: _TIP, NOTES: _NOTE, PREFERENCES: _WISH, PROFILE: _PROFILE}
_HEADING = re.compile(r"(#{1,6}) ")
_DAY = re.compile(r"\((\d{4}-\d\d-\d\d)[,)]")
_NEWEST = "9999-99-99"


class Fitted(Struct, frozen=True, kw_only=True):
    """`lines` and `statements` are what is missing."""

    text: str
    lines: int = 0
    statements: int = 0


class Unit(Struct, kw_only=True):
    """Lines that stay or go together: a bullet and what continues it."""

    lines: list[int]
    worth: int
    day: str
    headings: tuple[int, ...]
    is_statement: bool


def fit(summary: str, notes: Sequence[tuple[str, str]], *, bytes_max: int) -> Fitted:
    """The summary and the notes (day and text, newest first) within so many bytes of UTF-8.

    What fits is left as it is. Of what is cut the empty lines go, but for one before a section.
    """
    text = "\n\n".join(filter(None, (summary, written(notes))))
    if size(text) <= bytes_max:
        return Fitted(text=text)
    lines = [line for line in text.split("\n") if line.strip()]
    costs = [size(line) + 1 + (at > 0 and is_section(line)) for at, line in enumerate(lines)]
    units, headings = parsed(lines)
    below = Counter(heading for unit in units for heading in unit.headings)
    kept = set(range(len(lines))) - {each for each in headings if not below[each]}
    left = sum(costs[at] for at in kept)
    missing = Fitted(text="")
    for unit in sorted(units, key=lambda each: (each.worth, each.day, -each.lines[0])):
        if left + size(told(missing)) + 1 <= bytes_max:
            break
        below.subtract(unit.headings)
        gone = [*unit.lines, *(each for each in unit.headings if not below[each])]
        kept.difference_update(gone)
        left -= sum(costs[at] for at in gone)
        missing = Fitted(
            text="",
            lines=missing.lines + len(gone),
            statements=missing.statements + unit.is_statement,
        )
    body = "".join(
        ("\n" if at > 0 and is_section(lines[at]) else "") + f"{lines[at]}\n" for at in sorted(kept)
    )
    return replace(missing, text=f"{body}\n{told(missing)}")


def is_section(line: str) -> bool:
    return line.startswith(("# ", "## "))


def told(missing: Fitted) -> str:
    """The line that stands for what went."""
    lines = f"{missing.lines} line{'s' * (missing.lines != 1)}"
    statements = f"{missing.statements} statement{'s' * (missing.statements != 1)}"
    return (
        f"({lines} with {statements} left out for length: read memory_summary.md, or search"
        " for a word of your task)"
    )


def written(notes: Sequence[tuple[str, str]]) -> str:
    if not notes:
        return ""
    bullets = []
    for day, text in notes:
        first, *more = text.strip().split("\n")
        bullets.append("\n".join([f"- ({day}) {first}", *(f"  {line}" for line in more)]))
    return "\n".join([NOTES, *bullets])


def parsed(lines: Sequence[str]) -> tuple[list[Unit], list[int]]:
    """The units, and the headings that go with the last line below them. What every summary has,
    its first line and its four headings, stays."""
    units: list[Unit] = []
    headings: list[int] = []
    above: list[tuple[int, int]] = []  # Level and line of the headings that a line stands under.
    worth, day = _OTHER, _NEWEST
    seen: set[str] = set()
    for at, line in enumerate(lines):
        if at == 0 and line.strip() == "v1":
            continue
        if heading := _HEADING.match(line):
            level = len(heading[1])
            above = [each for each in above if each[0] < level]
            name = line.strip().replace("\u2019", "'")
            if level <= 2:
                worth, day = _OF_SECTION.get(name, _OTHER), _NEWEST
            if name not in SUMMARY_HEADINGS or name in seen:
                above.append((level, at))
                headings.append(at)
            seen.add(name)
        elif is_continued(line, units, worth):
            units[-1].lines.append(at)
        else:
            own = _DETAIL if worth == _TOPIC and line[:1].isspace() else worth
            if found := _DAY.findall(line):
                day = found[-1]
            units.append(
                Unit(
                    lines=[at],
                    worth=_WITHHELD if line == WITHHELD else own,
                    day=day if worth in (_WISH, _NOTE) else "",
                    headings=tuple(each for _, each in above),
                    is_statement=line.lstrip().startswith(("- ", "* ")),
                )
            )
    return units, headings


def is_continued(line: str, units: Sequence[Unit], worth: int) -> bool:
    """An indented line goes with the line above; in the index a detail may go alone."""
    if not line[:1].isspace() or not units or not units[-1].is_statement:
        return False
    return worth != _TOPIC or not line.lstrip().startswith(("- ", "* "))


def pieces(text: str, *, bytes_max: int) -> list[str]:
    """The text in consecutive pieces of so many bytes of UTF-8, on whole characters.

    >>> pieces("aé", bytes_max=2), pieces("", bytes_max=2)
    (['a', 'é'], [])
    """
    found: list[str] = []
    content = text.encode("utf-8", "surrogatepass")
    start = 0
    while start < len(content):
        end = character_at(content, min(start + bytes_max, len(content)))
        assert end > start, "a piece holds at least one character"
        found.append(content[start:end].decode("utf-8", "surrogatepass"))
        start = end
    return found
