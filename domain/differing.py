"""Differing: where two texts differ, line by line, within a time that their length bounds.

Few lines are compared with each other, as the standard library does. Of many that are alike, as
empty ones are, that would take minutes; there the lines that stand once in each part the texts, and
what lies between two of them is compared by itself, or is another as a whole.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

# Changes of more lines are taken as a whole.
_COMPARED_LINES_MAX = 5_000
_PAIRS_MAX = 50_000


def changes(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """From where to where the two differ."""
    yield from differing(old, new, 0, 0)


def differing(
    old: Sequence[str], new: Sequence[str], i: int, j: int
) -> Iterator[tuple[int, int, int, int]]:
    """`i` and `j` are where the two begin in what they are parts of."""
    start, end = 0, 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    left, right = old[start : len(old) - end], new[start : len(new) - end]
    i, j = i + start, j + start
    if not left and not right:
        return
    if len(left) + len(right) > _COMPARED_LINES_MAX:
        yield i, i + len(left), j, j + len(right)
    elif pairs(left, right) <= _PAIRS_MAX:
        for tag, low, high, low_new, high_new in SequenceMatcher(
            None, left, right, False
        ).get_opcodes():
            if tag != "equal":
                yield i + low, i + high, j + low_new, j + high_new
    elif not (fixed := anchors(left, right)):
        yield i, i + len(left), j, j + len(right)
    else:
        at, at_new = 0, 0
        for same, same_new in (*fixed, (len(left), len(right))):
            yield from differing(left[at:same], right[at_new:same_new], i + at, j + at_new)
            at, at_new = same + 1, same_new + 1


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
