"""workspace_diff: what changed in a memory folder since its baseline, and the page that says so.

The page, `phase2_workspace_diff.md`, has Codex's layout under a notice of our own. Its diff applies
with `git apply`; it does not promise git's choice of hunks.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ..domain.differing import changes

DIFF_BYTES_MAX = 4 * 1024 * 1024

_NOTICE = (
    "Threadbook made this page. It lists every change since memory was last published; start here,"
    " and leave the page as it is."
)
_CONTEXT_LINES = 3
_NO_NEWLINE = "\\ No newline at end of file\n"
_FENCE_LIKE = re.compile(r"^ {0,3}(`{3,})", re.MULTILINE)
_TO_QUOTE = re.compile('[\x00-\x1f"\\\\\x7f-\x9f\u2028\u2029\ud800-\udfff]')
_ESCAPES = {"\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r"}


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
    edits = list(changes(left, right))
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
