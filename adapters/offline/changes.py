"""Which files a session left changed, as far as its tool calls say.

Counted are calls that change a named file and did not fail. Edits that cancel each other out leave
no change: a file whose lines were put back is not told as changed. Where a call does not show its
lines, nothing can cancel it, and it counts.
"""

import json
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from msgspec import Struct

from ...domain.session import Call, Change

Lines = tuple[tuple[bytes, int], ...]

_LINES_MAX = 2_000


class Edit(Struct, frozen=True, kw_only=True, gc=False):
    """One call's change to one file. `lines` is digest -> lines added less lines taken away,
    or None where the call does not say. `restored` is a version-control command that threw the
    changes away."""

    path: str
    lines: Lines | None
    restored: bool = False


def edits(call: Call) -> list[Edit]:
    shown = _shown_lines(call) if call.changes else {}
    return [Edit(path=c.path, lines=_lines_of(shown, c, len(call.changes))) for c in call.changes]


def restored(steps: Iterable[tuple[str, ...]]) -> list[Edit]:
    """What `git checkout -- file` or `git restore file` puts back."""
    found = []
    for step in steps:
        if step[:2] == ("git", "restore") and "--staged" not in step:
            paths = step[2:]
        elif step[:2] == ("git", "checkout"):
            paths = step[step.index("--") + 1 :] if "--" in step else step[2:]
        else:
            continue
        found += [Edit(path=p, lines=None, restored=True) for p in paths if not p.startswith("-")]
    return found


def left_changed(all_edits: Iterable[Edit]) -> list[str]:
    """Paths in the order of their first edit that still counts."""
    net: dict[str, Counter[bytes] | None] = {}
    for edit in all_edits:
        if edit.restored:
            net.pop(edit.path, None)
            continue
        before = net.get(edit.path, Counter())
        if before is None or edit.lines is None:
            net[edit.path] = None
            continue
        after = Counter(before)
        for line, count in edit.lines:
            after[line] += count
            if not after[line]:
                del after[line]
        if after or edit.path not in net:
            net[edit.path] = after
        else:
            del net[edit.path]
    return list(net)


def _lines_of(shown: dict[str, Lines | None], change: Change, changes: int) -> Lines | None:
    if change.path in shown:
        return shown[change.path]
    # A reader may have made the path absolute, or the only one, whatever the patch calls it.
    ends = [p for p in shown if p and change.path.replace("\\", "/").endswith("/" + p)]
    if len(ends) == 1:
        return shown[ends[0]]
    return shown.get("") if changes == 1 else None


def _shown_lines(call: Call) -> dict[str, Lines | None]:
    text = call.command if call.command and "*** Begin Patch" in call.command else call.arguments
    fields: Any = None
    if text.lstrip().startswith("{"):
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            return {}  # No JSON, or nested beyond reason: the call counts, its lines stay unknown.
    if isinstance(fields, dict):
        patches = [v for v in fields.values() if isinstance(v, str) and "*** Begin Patch" in v]
        if not patches:
            return _replaced(fields)
        text = patches[0]
    return _patched(text) if "*** Begin Patch" in text else {}


def _replaced(fields: dict[str, Any]) -> dict[str, Lines | None]:
    """Edit tools that name what is replaced by what."""
    old, new = fields.get("old_string"), fields.get("new_string")
    if not isinstance(old, str) or not isinstance(new, str) or fields.get("replace_all"):
        return {}
    return {"": _digested([(o, -1) for o in old.splitlines()] + [(n, 1) for n in new.splitlines()])}


def _patched(patch: str) -> dict[str, Lines | None]:
    found: dict[str, list[tuple[str, int]]] = {}
    unknown = set()
    path = None
    for line in patch.splitlines():
        if line.startswith("*** "):
            head, _, name = line[4:].partition(": ")
            if head in ("Add File", "Update File", "Delete File"):
                path = name.strip()
                found.setdefault(path, [])
            if head == "Delete File" and path:
                unknown.add(path)
            if head == "Move to" and path:
                unknown.add(path)
        elif path and line[:1] in ("+", "-"):
            found[path].append((line[1:], 1 if line[0] == "+" else -1))
    return {p: None if p in unknown else _digested(lines) for p, lines in found.items()}


def _digested(lines: list[tuple[str, int]]) -> Lines | None:
    if len(lines) > _LINES_MAX:
        return None
    net: Counter[bytes] = Counter()
    for line, count in lines:
        net[blake2b(line.encode("utf-8", "replace"), digest_size=8).digest()] += count
    return tuple((line, count) for line, count in net.items() if count)
