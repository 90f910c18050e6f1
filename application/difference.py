"""Difference: what changed between two positions: sessions, outputs, selections, folders.

Both ends are folded from the log, so the answer is the same whenever it is asked, but for texts
that were erased since: those are told as erased, and not as missing.
"""

from collections import Counter
from difflib import unified_diff
from types import ModuleType
from typing import Any

from msgspec.structs import asdict

from ..projections import artifacts, selection, stage1_outputs, threads
from .past import ERASED
from .ports import View
from .roots import Root, all_roots, split, texts_of_inputs
from .surroundings import Policy


def difference(before: View, after: View, policy: Policy) -> dict[str, Any]:
    """JSON-ready. `before` is the earlier position; what the later one has more is `added`."""
    return {
        "from": before.position,
        "to": after.position,
        "events": dict(
            Counter(recorded.type for recorded in after.events(after=before.position)).most_common()
        ),
        "threads": rows_changed(before, after, threads),
        "outputs": rows_changed(before, after, stage1_outputs),
        "selection": selections_changed(before, after),
        "folders": folders_changed(before, after, policy),
    }


def rows_changed(before: View, after: View, projection: ModuleType) -> dict[str, Any]:
    """Keys that came, that went, and of the others the fields that differ, as [before, after].

    A key of several columns is written with a blank between them: a thread's id, then a version.
    """

    def by_key(view: View) -> dict[str, dict[str, Any]]:
        rows = [asdict(row) for row in view.rows(projection, ())]
        return {" ".join(row[column] for column in projection.KEY): row for row in rows}

    old, new = by_key(before), by_key(after)
    changed = {}
    for key in sorted(old.keys() & new.keys()):
        fields = {
            field: [value, new[key][field]]
            for field, value in old[key].items()
            if value != new[key][field]
        }
        if fields:
            changed[key] = fields
    return {
        "added": sorted(new.keys() - old.keys()),
        "removed": sorted(old.keys() - new.keys()),
        "changed": changed,
    }


def selections_changed(before: View, after: View) -> list[dict[str, Any]]:
    """Per root, who entered and who left what its last success was made from."""

    def by_root(view: View) -> dict[tuple[str, str], set[str]]:
        found: dict[tuple[str, str], set[str]] = {}
        for row in view.rows(selection, ()):
            found.setdefault((row.memory_version, row.scope), set()).add(row.thread_id)
        return found

    old, new = by_root(before), by_root(after)
    changed = []
    for key in sorted(old.keys() | new.keys()):
        had, has = old.get(key, set()), new.get(key, set())
        if had != has:
            changed.append(
                {
                    "version": key[0],
                    "scope": key[1],
                    "entered": sorted(has - had),
                    "left": sorted(had - has),
                }
            )
    return changed


def folders_changed(before: View, after: View, policy: Policy) -> list[dict[str, Any]]:
    """Per root, the files that came, went or changed, and how their lines differ."""
    every = {
        (root.scope, root.memory_version): root
        for view in (before, after)
        for root in all_roots(view, policy)
    }
    changed = []
    for (scope, _), root in sorted(every.items()):
        old, new = files_of(before, root), files_of(after, root)
        modified = [path for path in sorted(old.keys() & new.keys()) if old[path] != new[path]]
        if old.keys() == new.keys() and not modified:
            continue
        added, deleted = sorted(new.keys() - old.keys()), sorted(old.keys() - new.keys())
        changed.append(
            {
                "version": root.memory_version,
                "scope": scope,
                "added": added,
                "modified": modified,
                "deleted": deleted,
                "diff": "".join(
                    lines_changed(path, old.get(path, ""), new.get(path, ""))
                    for path in sorted([*added, *modified, *deleted])
                ),
            }
        )
    return changed


def files_of(view: View, root: Root) -> dict[str, str]:
    """Path -> text of everything the folder was to hold. An erased artifact has no path either."""
    files = texts_of_inputs(view, root)
    erased = 0
    for row in view.rows(artifacts, (root.memory_version, root.scope, "file")):
        kept = view.body(row.body_ref)
        if kept is None:
            erased += 1
            files[f"{ERASED} {erased}"] = ERASED
        else:
            path, text = split(kept)
            files[path] = text
    return files


def lines_changed(path: str, old: str, new: str) -> str:
    lines = unified_diff(old.splitlines(), new.splitlines(), f"a/{path}", f"b/{path}", lineterm="")
    return "".join(f"{line}\n" for line in lines)
