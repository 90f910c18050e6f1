"""Retold: the lines that say again what another text says, however they are wrapped and dressed.

A person, or an editor, changes a file between two runs: it converts its line ends, wraps its lines,
drops its marks. Then its grammar no longer says whose a statement is, but the words still do.
Compared is what letters and digits there are, across the ends of lines.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate

from .artifact import unmarked

# What has fewer letters is in other words, too, and is told only by a line that says no more.
PART_LETTERS_MIN = 12

# What numbers a task or names the file that a session is in, and not what is said.
_NUMBERS = re.compile(r"^## Task \d+\b|^- rollout_summaries/\S+ — ")
_QUOTED = re.compile(r'"([^"]+)"')


def retold(lines: Sequence[str], told: Sequence[str], out: Collection[int]) -> set[int]:
    """Which lines say what the lines `out` of `told` say and its other lines do not."""
    kept = "".join(letters(line) for at, line in enumerate(told) if at not in out)
    wanted = {each for at in out for each in said(told[at]) if each not in kept}
    if not wanted:
        return set()
    each_line = [letters(line) for line in lines]
    begins = list(accumulate((len(each) for each in each_line), initial=0))
    whole = "".join(each_line)
    found = {at for at, each in enumerate(each_line) if each in wanted}
    for part in wanted:
        if len(part) >= PART_LETTERS_MIN:
            for begin in occurrences(whole, part):
                first = bisect_right(begins, begin) - 1
                last = bisect_right(begins, begin + len(part) - 1) - 1
                found.update(range(first, last + 1))
    return found


def said(line: str) -> Iterator[str]:
    """The line's letters, and those of what it quotes: a quote is told without its frame, too."""
    for each in (line, *_QUOTED.findall(line)):
        if found := letters(each):
            yield found


def letters(line: str) -> str:
    return "".join(filter(str.isalnum, _NUMBERS.sub("", unmarked(line)).casefold()))


def occurrences(whole: str, part: str) -> Iterator[int]:
    at = whole.find(part)
    while at >= 0:
        yield at
        at = whole.find(part, at + len(part))
