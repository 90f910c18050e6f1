"""workspace_diff: what changed in a memory folder since its baseline, and the page that says so.

The page, `phase2_workspace_diff.md`, has Codex's layout under a notice of our own. Its diff applies
with `git apply`; it does not promise git's choice of hunks. Lines are anchored on those that both
sides have once and only small gaps are compared line by line, so that a folder of thousands of
lines takes milliseconds where difflib alone takes minutes.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

DIFF_BYTES_MAX = 4 * 1024 * 1024

_NOTICE = (
    "Threadbook made this page. It lists every change since memory was last published; start here,"
    " and leave the page as it is."
)
_CONTEXT_LINES = 3
_COMPARED_PAIRS_MAX = 250_000  # Gaps of more pairs of lines are replaced whole: valid, and fast.
_NO_NEWLINE = "\\ No newline at end of file\n"
_FENCE_LIKE = re.compile(r"^ {0,3}(`{3,})", re.MULTILINE)
_TO_QUOTE = re.compile('[\x00-\x1f"\\\\\x7f-\x9f\u2028\u2029\ud800-\udfff]')
_ESCAPES = {"\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r"}

Block = tuple[int, int, int]  # Where equal lines begin before and after, and how many they are.


class Change(Struct, frozen=True, kw_only=True):
    """One changed file: its path as `os.fsdecode` gives it, git's modes, None where it is not."""

    path: str
    mode_before: int | None
    mode_after: int | None
    before: bytes = b""
    after: bytes = b""

    @property
    def status(self) -> Literal["A", "M", "D"]:
        if self.mode_before is None:
            return "A"
        return "D" if self.mode_after is None else "M"


def workspace_diff(changes: Sequence[Change]) -> str:
    """The page, for changes in the order in which it should list them."""
    head = f"# Memory Workspace Diff\n\n{_NOTICE}\n\n## Status\n"
    if not changes:
        return f"{head}- none\n"
    status = "".join(f"- {change.status} {_quoted(change.path)}\n" for change in changes)
    body = _capped(changes)
    # A context line is indented by one blank, so three backticks in a memory would end the fence.
    fence = "`" * max([3, *(len(found) + 1 for found in _FENCE_LIKE.findall(body))])
    return f"{head}{status}\n## Diff\n\n{fence}diff\n{body}{fence}\n"


def _capped(changes: Sequence[Change]) -> str:
    parts: list[str] = []
    left = DIFF_BYTES_MAX
    for change in changes:
        for part in _file_diff(change):
            encoded = part.encode()
            if len(encoded) > left:
                # What a cut leaves of a character is dropped with it.
                parts.append(encoded[:left].decode("utf-8", "ignore"))
                whole = "".join(parts)
                ending = "" if whole.endswith("\n") else "\n"
                return f"{whole}{ending}[cut here: the diff has more than {DIFF_BYTES_MAX} bytes]\n"
            parts.append(part)
            left -= len(encoded)
    return "".join(parts)


def _file_diff(change: Change) -> Iterator[str]:
    before, after = change.mode_before, change.mode_after
    if before is not None and after is not None and before >> 12 != after >> 12:
        # A file that became a link, or the other way round: git has no patch for that but two.
        yield from _file_diff(replace(change, mode_after=None, after=b""))
        yield from _file_diff(replace(change, mode_before=None, before=b""))
        return
    old, new = _quoted(f"a/{change.path}"), _quoted(f"b/{change.path}")
    yield f"diff --git {old} {new}\n"
    if before is None:
        yield f"new file mode {after:o}\n"
    elif after is None:
        yield f"deleted file mode {before:o}\n"
    elif before != after:
        yield f"old mode {before:o}\nnew mode {after:o}\n"
    if change.before == change.after:
        return
    left, right = _lines(change.before), _lines(change.after)
    if left == right:
        # They differ in bytes that are no text; the lossy reading of both is the same.
        yield f"Binary files {old} and {new} differ\n"
        return
    # A tab ends a name with blanks, or patch programs would take its first word for the name.
    tab = "\t" if " " in change.path else ""
    yield "--- /dev/null\n" if before is None else f"--- {old}{tab}\n"
    yield "+++ /dev/null\n" if after is None else f"+++ {new}{tab}\n"
    yield from _hunks(left, right)


def _lines(content: bytes) -> list[str]:
    *whole, rest = content.decode("utf-8", "replace").split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def _hunks(left: Sequence[str], right: Sequence[str]) -> Iterator[str]:
    blocks = [(0, 0, 0), *_equal_blocks(left, right), (len(left), len(right), 0)]
    edits = []
    for (i, j, equal), (next_i, next_j, _) in pairwise(blocks):
        if i + equal < next_i or j + equal < next_j:
            edits.append((i + equal, next_i, j + equal, next_j))
    while edits:
        count = 1
        while count < len(edits) and edits[count][0] - edits[count - 1][1] <= 2 * _CONTEXT_LINES:
            count += 1
        yield from _hunk(left, right, edits[:count])
        del edits[:count]


def _hunk(
    left: Sequence[str], right: Sequence[str], edits: Sequence[tuple[int, int, int, int]]
) -> Iterator[str]:
    before = min(_CONTEXT_LINES, edits[0][0])
    behind = min(_CONTEXT_LINES, len(left) - edits[-1][1])
    start, end = edits[0][0] - before, edits[-1][1] + behind
    yield (f"@@ -{_range(start, end)} +{_range(edits[0][2] - before, edits[-1][3] + behind)} @@\n")
    at = start
    for i, next_i, j, next_j in edits:
        yield from (_line(" ", line) for line in left[at:i])
        yield from (_line("-", line) for line in left[i:next_i])
        yield from (_line("+", line) for line in right[j:next_j])
        at = next_i
    yield from (_line(" ", line) for line in left[at:end])


def _range(start: int, end: int) -> str:
    if end - start == 1:
        return f"{start + 1}"
    return f"{start + 1 if end > start else start},{end - start}"


def _line(sign: str, line: str) -> str:
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n{_NO_NEWLINE}"


def _equal_blocks(left: Sequence[str], right: Sequence[str]) -> list[Block]:
    """Maximal runs of equal lines, in order, none touching the next on both sides."""
    found: list[Block] = []
    gaps = [(0, len(left), 0, len(right))]
    while gaps:
        i, i_end, j, j_end = gaps.pop()
        first_i, first_j = i, j
        while i < i_end and j < j_end and left[i] == right[j]:
            i, j = i + 1, j + 1
        found.append((first_i, first_j, i - first_i))
        tail = 0
        while i_end > i and j_end > j and left[i_end - 1] == right[j_end - 1]:
            i_end, j_end, tail = i_end - 1, j_end - 1, tail + 1
        found.append((i_end, j_end, tail))
        if i == i_end or j == j_end:
            continue
        anchors = _anchors(left, right, i, i_end, j, j_end)
        if anchors:
            for next_i, next_j in [*anchors, (i_end, j_end)]:
                gaps.append((i, next_i, j, next_j))
                i, j = next_i, next_j
        elif (i_end - i) * (j_end - j) <= _COMPARED_PAIRS_MAX:
            matcher = SequenceMatcher(None, left[i:i_end], right[j:j_end], autojunk=False)
            found += [(i + a, j + b, size) for a, b, size in matcher.get_matching_blocks()]
    return _joined(sorted(block for block in found if block[2]))


def _anchors(
    left: Sequence[str], right: Sequence[str], i: int, i_end: int, j: int, j_end: int
) -> list[tuple[int, int]]:
    """Lines that each side has exactly once, as many as stand in one order on both."""
    once_left = {line for line, n in Counter(left[i:i_end]).items() if n == 1}
    once_both = {line for line, n in Counter(right[j:j_end]).items() if n == 1} & once_left
    at_right = {right[k]: k for k in range(j, j_end) if right[k] in once_both}
    pairs = [(k, at_right[left[k]]) for k in range(i, i_end) if left[k] in once_both]
    # The longest rising subsequence: the last of each length, and what stood before it.
    lasts: list[int] = []
    ends: list[int] = []
    previous: list[int | None] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(lasts, place)
        previous.append(ends[length - 1] if length else None)
        lasts[length : length + 1] = [place]
        ends[length : length + 1] = [number]
    chosen = []
    at = ends[-1] if ends else None
    while at is not None:
        chosen.append(pairs[at])
        at = previous[at]
    return chosen[::-1]


def _joined(blocks: Sequence[Block]) -> list[Block]:
    joined: list[Block] = []
    for i, j, size in blocks:
        if joined and joined[-1][0] + joined[-1][2] == i and joined[-1][1] + joined[-1][2] == j:
            joined[-1] = (joined[-1][0], joined[-1][1], joined[-1][2] + size)
        else:
            joined.append((i, j, size))
    return joined


def _quoted(path: str) -> str:
    """As git writes names with core.quotePath off: plain, or in quotes with C escapes."""
    if not _TO_QUOTE.search(path):
        return path
    return f'"{_TO_QUOTE.sub(_escaped, path)}"'


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    if character in '"\\':
        return f"\\{character}"
    if character in _ESCAPES:
        return f"\\{_ESCAPES[character]}"
    # What os.fsdecode could not read as UTF-8 is a byte again.
    low = "\udc80" <= character <= "\udcff"
    encoded = character.encode("utf-8", "surrogateescape" if low else "surrogatepass")
    return "".join(f"\\{byte:03o}" for byte in encoded)
