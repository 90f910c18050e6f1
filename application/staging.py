"""Staging: what a consolidation is made from, and what of it an agent is given to work on.

Everything is read at one position, under the workspace's lock: the selected outputs, what was
published and what a person has done to it since, notes and resources. An agent's folder is made of
texts and holds nothing else of the machine; the folder that sessions read is not touched.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

from msgspec import Struct

from ..domain.artifact import MEMORY, SUMMARY
from ..domain.path import BadName, names_of
from ..domain.redaction import redact
from ..projections.folder import WORKSPACE_DIFF, digest, inputs
from ..projections.workspace_diff import Change, workspace_diff
from .edits import ByHand, Edit, since_rendered, text_of
from .ports import PhaseTwoOutput, View
from .render import Earlier, Here, Overtaken, Recorder, forgetting, forgotten_since, last_reset
from .roots import NOTES, Root, body, is_artifact, manifest, notes_of, published
from .surroundings import Surroundings, Workspace

RESOURCE_DAYS = 14
_STAMP = "%Y-%m-%dT%H-%M-%S"
_FILE = 0o100644
INSTRUCTIONS = "extensions/ad_hoc/instructions.md"


class Staged(Struct, frozen=True, kw_only=True):
    """`own`: what of the folder is a person's and no file of ours. `changes` since the last
    publication; none, and nobody has to be asked."""

    files: Mapping[str, str]
    own: frozenset[str]
    changes: tuple[Change, ...]
    edited: tuple[str, ...]

    @property
    def task_files(self) -> dict[str, str]:
        return {**self.files, WORKSPACE_DIFF: workspace_diff(self.changes)}


def stage(
    around: Surroundings,
    view: View,
    root: Root,
    workspace: Workspace,
    *,
    outputs: Sequence[PhaseTwoOutput],
    found: ByHand,
) -> Staged:
    """The caller holds the workspace's lock."""
    last = manifest(view, root) or {}
    artifacts = published(view, root)
    notes = {path: note.text for path, note in notes_of(view, root).items()}
    there = workspace.scan().files if workspace.path.is_dir() else {}
    always = (SUMMARY,) if root.memory_version == "v2" else (MEMORY, SUMMARY)
    own = {
        path: shown(content).decode()
        for path, content in there.items()
        if path not in last
        and path not in notes
        # Ours whoever was there first, with a file or a folder; theirs is laid aside.
        and not is_in_the_way(path, {*artifacts, *always})
        and is_artifact(path)
        and not path.startswith(f"{NOTES}/")
    }
    made_from = inputs(outputs, memory_version=root.memory_version)
    files = {**own, **notes, **made_from, **artifacts}
    for edit in found.edits:
        if edit.after is None:
            files.pop(edit.path, None)
        else:
            files[edit.path] = edit.after
    before = rendered(workspace, last, artifacts, there=there)
    after = {path: text.encode("utf-8", "surrogatepass") for path, text in files.items()}
    if any(path.startswith(f"{NOTES}/") for path in notes):
        files.setdefault(INSTRUCTIONS, around.note_instructions())
    return Staged(
        files=files,
        own=frozenset(own),
        changes=tuple(changed(before, after)),
        edited=tuple(edit.path for edit in found.edits),
    )


def is_in_the_way(path: str, files: Collection[str]) -> bool:
    """Whether what lies there keeps one of these files from its place."""
    return any(
        path == other or path.startswith(f"{other}/") or other.startswith(f"{path}/")
        for other in files
    )


def rendered(
    workspace: Workspace,
    last: Mapping[str, str],
    artifacts: Mapping[str, str],
    *,
    there: Mapping[str, bytes],
) -> dict[str, bytes]:
    """The tree of the last render: what the log says was in it, in the bytes that are left of it.

    A text that is nowhere any more counts as empty. Beside it stands what else the baseline has:
    that is a person's, and known.
    """
    found: dict[str, bytes] = {}
    changes = {}
    if workspace.path.is_dir() and workspace.has_baseline():
        changes = {change.path: change for change in workspace.diff()}
        found = {path: content for path, content in there.items() if path not in changes}
        found |= {path: each.before for path, each in changes.items() if each.status != "A"}
    tree = {path: shown(content) for path, content in found.items() if path not in last}
    for path, known in last.items():
        texts = (
            found.get(path),
            artifacts[path].encode("utf-8", "surrogatepass") if path in artifacts else None,
            there.get(path),
        )
        tree[path] = next(
            (text for text in texts if text is not None and digest(text) == known), b""
        )
    return tree


def shown(content: bytes) -> bytes:
    """A person's own file as it may be given to an agent, whatever its bytes are."""
    return redact(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def changed(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[Change]:
    return [
        Change(
            path=path,
            mode_before=_FILE if path in before else None,
            mode_after=_FILE if path in after else None,
            before=before.get(path, b""),
            after=after.get(path, b""),
        )
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    ]


def mode(files: Mapping[str, str], memory_version: str) -> Literal["init", "incremental"]:
    """`init` where there is nothing yet to bring up to date."""
    wanted = [SUMMARY] if memory_version == "v2" else [MEMORY, SUMMARY]
    return "incremental" if all(files.get(path, "").strip() for path in wanted) else "init"


def aged(workspace: Workspace, *, now: int) -> list[str]:
    """The resources of extensions that are named by a time too long ago. What has no time in its
    name stays, and so does what lies beside no instructions, or has no name of ours."""
    if not (workspace.path / "extensions").is_dir():
        return []
    found = workspace.scan().files
    until = datetime.fromtimestamp(now, UTC) - timedelta(days=RESOURCE_DAYS)
    old = []
    for path in found:
        try:
            names = names_of(path)
        except BadName:
            continue
        if len(names) != 4 or names[0] != "extensions" or names[2] != "resources":
            continue
        if f"extensions/{names[1]}/instructions.md" not in found or not names[3].endswith(".md"):
            continue
        try:
            made = datetime.strptime(names[3][:19], _STAMP).replace(tzinfo=UTC)
        except ValueError:
            continue
        if made <= until:
            old.append(path)
    return sorted(old)


def prune_resources(workspace: Workspace, *, now: int) -> list[str]:
    """Remove them; which. The caller holds the workspace's lock."""
    old = aged(workspace, now=now)
    for path in old:
        workspace.remove(path)
    return old


def take_in(
    around: Surroundings,
    root: Root,
    workspace: Workspace,
    *,
    run_id: str | None,
    keeps_copies: bool = True,
) -> ByHand:
    """Record what a person left, and lay a copy of a file with a secret in it aside. The caller
    holds the workspace's lock."""
    if not workspace.path.is_dir():
        return ByHand()
    with around.store.reading() as view:
        last = manifest(view, root) or {}
        files = published(view, root)
        at = workspace.rendered_at()
        is_old = (
            forgetting(view, root) is not None
            or forgotten_since(view, root, at)
            or last_reset(view, root.memory_version, after=at or 0) > 0
        )
        recorded = since_rendered(view, root)
        record = Recorder(around, root, read_at=view.position, withdrawn_ref=None, run_id=run_id)
    as_rendered = {path: known for path, known in last.items() if path in files}
    digests = seen(workspace, as_rendered)
    if is_old or digests == as_rendered:  # What is old may still be what had to go.
        return ByHand(digests=digests)
    workspace.prepare()
    here, earlier = Here(workspace), Earlier(around, root)
    found = workspace.scan()
    edits = []
    for path in sorted(files.keys() & last.keys()):
        content = found.files.get(path)
        if content is None:
            is_gone = here.was_deleted(path) and path not in found.others
            if is_gone and not recorded.was_removed(path):
                edits.append(Edit(path=path, before=files[path], after=None))
        elif not (
            digest(content) in (last[path], digest(files[path].encode("utf-8", "surrogatepass")))
            or path in here.unchanged
            or earlier.was(path, content)
        ):
            said = text_of(content)
            text = redact(said)
            if not recorded.was_taken(path, content):
                rendered = here.before.get(path)
                before = files[path] if rendered is None else rendered.decode("utf-8", "replace")
                is_copied = keeps_copies and text != said
                copy = str(workspace.set_aside(path, content)) if is_copied else None
                edits.append(Edit(path=path, before=before, after=text, copy=copy))
    try:
        for edit in edits:
            is_waiting = edit.path in recorded.waiting
            if not is_waiting or recorded.waiting[edit.path] != edit.after:
                record.edit(body(edit.path, edit.after or ""), deleted=edit.after is None)
    except Overtaken:
        return ByHand(digests=digests)
    return ByHand(edits=tuple(edits), digests=digests)


def seen(workspace: Workspace, paths: Iterable[str]) -> dict[str, str]:
    """Path -> digest of the files as they lie in the folder; nothing for one that is gone."""
    return {
        path: digest(content) if (content := workspace.read(path)) is not None else ""
        for path in paths
    }
