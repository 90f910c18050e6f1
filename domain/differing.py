"""Differing: where two texts differ, line by line, within a time that their length bounds.

Few lines are compared with each other, as the standard library does. Of many that are alike, as
empty ones are, that would take minutes; there the lines that stand once in each part the texts, and
what lies between two of them is compared by itself, or is another as a whole.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

# More lines than these are compared between anchors only.
_COMPARED_LINES_MAX = 5_000
_PAIRS_MAX = 50_000


def changes(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """From where to where the two differ, in order; between two of these they are alike."""
    gaps = [(0, len(old), 0, len(new))]
    while gaps:
        i, i_end, j, j_end = gaps.pop()
        while i < i_end and j < j_end and old[i] == new[j]:
            i, j = i + 1, j + 1
        while i < i_end and j < j_end and old[i_end - 1] == new[j_end - 1]:
            i_end, j_end = i_end - 1, j_end - 1
        if i == i_end and j == j_end:
            continue
        left, right = old[i:i_end], new[j:j_end]
        if len(left) + len(right) <= _COMPARED_LINES_MAX and pairs(left, right) <= _PAIRS_MAX:
            for tag, low, high, low_new, high_new in SequenceMatcher(
                None, left, right, False
            ).get_opcodes():
                if tag != "equal":
                    yield i + low, i + high, j + low_new, j + high_new
        elif fixed := anchors(left, right):
            ends = [*((i + at, j + at_new) for at, at_new in fixed), (i_end, j_end)]
            begins = [(i, j), *((at + 1, at_new + 1) for at, at_new in ends[:-1])]
            gaps += [
                (at, end, at_new, end_new)
                for (at, at_new), (end, end_new) in zip(begins[::-1], ends[::-1], strict=True)
            ]
        else:
            yield i, i_end, j, j_end


def pairs(left: Sequence[str], right: Sequence[str]) -> int:
    """How many lines of the one could be which of the other: what comparing them costs, again for
    each piece that it finds. Empty lines, which are all alike, made it minutes."""
    there = Counter(right)
    return sum(count * there[key] for key, count in Counter(left).items())


def anchors(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int]]:
    """Lines that stand once in each, as many as are in the same order in both."""
    once, there = Counter(left), Counter(right)
    where = {key: at for at, key in enumerate(right) if there[key] == 1}
    found = [(at, where[key]) for at, key in enumerate(left) if once[key] == 1 and key in where]
    ends: list[int] = []  # Of the rising runs of each length so far, the lowest end.
    run_to: list[int] = []
    for _, place in found:
        length = bisect_left(ends, place)
        ends[length : length + 1] = [place]
        run_to.append(length)
    kept: list[tuple[int, int]] = []
    length = len(ends) - 1
    for number in range(len(found) - 1, -1, -1):
        if run_to[number] == length and (not kept or found[number][1] < kept[-1][1]):
            kept.append(found[number])
            length -= 1
    return kept[::-1]
