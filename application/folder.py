"""Folder: whether a root's folder is still as it was rendered last.

A run asks before it claims, so that nothing is done where nothing differs; `replay --verify` asks
to tell which files do.
"""

from collections.abc import Mapping

from ..domain.events import ArtifactsPublished, RootRendered, consolidation_stream
from ..projections.folder import digest
from .ports import View
from .roots import (
    NOTES,
    Root,
    imports_are_as_rendered,
    is_artifact,
    left_by_hand,
    manifest,
    notes_of,
    wanted,
)
from .surroundings import Workspace


def differing(view: View, root: Root, workspace: Workspace) -> list[str] | None:
    """The files of the last render that are not as it left them; None where there was none.

    Only looks. A file that the last render did not write is nobody's difference.
    """
    last = manifest(view, root)
    if last is None:
        return None
    found = workspace.scan().files if workspace.path.is_dir() else {}
    return [
        path for path, known in last.items() if path not in found or digest(found[path]) != known
    ]


def is_current(view: View, root: Root, workspace: Workspace) -> bool:
    """Whether the folder is as it was rendered last, with nothing new beside it.

    The caller holds the workspace's lock. What nobody writes by hand is mended without a word:
    inputs that were touched, and links, which nobody may follow. The rest is for a run to tell.
    """
    last = manifest(view, root)
    if last is None or not workspace.path.is_dir() or not workspace.has_baseline():
        return False
    kept = notes_of(view, root)
    if left_by_hand(kept).keys() != {path for path in last if path.startswith(f"{NOTES}/")}:
        return False  # Left or taken back on another machine, or while somebody held the folder.
    if not imports_are_as_rendered(kept, last):
        return False
    if holds_only(last, workspace):
        return True
    if workspace.in_the_way(last):
        return False
    workspace.prepare()
    files = wanted(view, root)
    for path in differing(view, root, workspace) or []:
        if is_artifact(path) or digest(files.get(path, "").encode()) != last[path]:
            return False
        workspace.write(path, files[path], flushed=False)
    workspace.prune_summaries(last.keys())
    # What is left is something of a person's own: new, or known?
    return holds_only(last, workspace) or not workspace.diff()


def is_behind(view: View, root: Root, workspace: Workspace) -> bool:
    """Whether the root was published or rendered elsewhere since this folder was, and nobody has
    touched it since: then rendering is all that it needs. The caller holds the workspace's lock."""
    stream = consolidation_stream(root.memory_version, root.scope)
    if not any(
        isinstance(recorded.event, ArtifactsPublished | RootRendered)
        for recorded in view.events(stream=stream, after=workspace.rendered_at() or 0)
    ):
        return False
    if not workspace.path.is_dir() or not workspace.scan().files:
        return True
    return workspace.has_baseline() and not workspace.diff()


def holds_only(last: Mapping[str, str], workspace: Workspace) -> bool:
    found = workspace.scan()
    return not found.others and last == {
        path: digest(content) for path, content in found.files.items()
    }
