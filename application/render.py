"""Render: a root's folder becomes what the log says, and the log learns what the folder holds.

The log is right about what was published, the folder about what a person did since. So a file
that is neither as it was rendered last nor as it ever was is a person's: it is recorded, copied
beside the root, and only then replaced. Rendering again changes nothing, and a render that was
killed is finished by the next one.
"""

from pathlib import Path

from msgspec import Struct, field

from ..domain.events import FolderEdited, RootRendered, consolidation_stream
from ..domain.redaction import redact
from .ports import View
from .roots import (
    Root,
    body,
    digest,
    manifest,
    manifest_body,
    manifest_of,
    wanted,
)
from .surroundings import Surroundings, Workspace

RENDERER = "threadbook/1"


class Rendered(Struct, kw_only=True):
    """Paths of the whole folder, against what was published before."""

    added: list[str] = field(default_factory=list)
    modified: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    edits: list[str] = field(default_factory=list)


def is_current(view: View, root: Root, workspace: Workspace) -> bool:
    """Whether the folder is as it was rendered last, with nothing new beside it."""
    last = manifest(view, root)
    if last is None or not workspace.path.is_dir() or not workspace.has_baseline():
        return False
    found = workspace.scan()
    digests = {path: digest(content) for path, content in found.files.items()}
    if any(digests.get(path) != known for path, known in last.items()):
        return False
    if digests.keys() == last.keys() and not found.others:
        return True
    return not workspace.diff()  # Something of a person's own lies there: new, or known?


def render(
    around: Surroundings,
    root: Root,
    workspace: Workspace,
    *,
    run_id: str | None,
    actor: str = "pipeline",
    keep_edits: bool = True,
) -> Rendered:
    """Write the folder. The caller holds the workspace's lock."""
    with around.store.reading() as view:
        files = wanted(view, root)
        previous = manifest(view, root)
    earlier = Earlier(around, root)
    # A forgetting takes the manifest away: what lies in the folder may be what had to go.
    keep_edits = keep_edits and not (previous is None and earlier.exists())
    workspace.prepare()
    rendered = Rendered()

    def on_edit(path: str, content: bytes) -> None:
        if keep_edits and not earlier.was(path, content):
            rendered.edits.append(str(keep(around, root, workspace, path, content, run_id=run_id)))

    if keep_edits:
        for path in sorted((previous or {}).keys() & files.keys()):
            if is_artifact(path) and not (workspace.path / path).exists():
                record_deletion(around, root, path, run_id=run_id)
                rendered.edits.append(f"{path} (deleted)")
    digests = workspace.render(files, previous=previous or {}, on_edit=on_edit)
    for change in workspace.diff():
        {"A": rendered.added, "M": rendered.modified, "D": rendered.deleted}[change.status].append(
            change.path
        )
    if not keep_edits:
        workspace.remove_edits()
    if digests != previous:
        record_manifest(around, root, digests, run_id=run_id, actor=actor)
    workspace.reset_baseline(around.clock())
    return rendered


class Earlier:
    """The digests of every earlier render, read from the log when they are first asked for."""

    def __init__(self, around: Surroundings, root: Root) -> None:
        self.around = around
        self.stream = consolidation_stream(root.memory_version, root.scope)
        self.digests: dict[str, set[str]] | None = None
        self.renders = 0

    def exists(self) -> bool:
        self.load()
        return self.renders > 0

    def was(self, path: str, content: bytes) -> bool:
        return digest(content) in self.load().get(path, ())

    def load(self) -> dict[str, set[str]]:
        if self.digests is None:
            self.digests = {}
            with self.around.store.reading() as view:
                for recorded in view.events(stream=self.stream):
                    if isinstance(recorded.event, RootRendered):
                        self.renders += 1
                        kept = view.body(recorded.event.manifest_ref)
                        for path, known in (manifest_of(kept) if kept else {}).items():
                            self.digests.setdefault(path, set()).add(known)
        return self.digests


def keep(
    around: Surroundings,
    root: Root,
    workspace: Workspace,
    path: str,
    content: bytes,
    *,
    run_id: str | None,
) -> Path:
    """Record what a person left and copy it beside the root; where the copy is."""
    copied = workspace.set_aside(path, content)
    try:
        text = redact(content.decode("utf-8"))
    except UnicodeDecodeError:
        text = ""  # The copy has the bytes; a body is text.
    record_edit(around, root, body(path, text), deleted=False, run_id=run_id)
    return copied


def record_deletion(around: Surroundings, root: Root, path: str, *, run_id: str | None) -> None:
    record_edit(around, root, body(path, ""), deleted=True, run_id=run_id)


def record_edit(
    around: Surroundings, root: Root, kept: str, *, deleted: bool, run_id: str | None
) -> None:
    stream = consolidation_stream(root.memory_version, root.scope)
    with around.store.writing(actor="file-edit", run_id=run_id) as tx:
        edited = FolderEdited(
            at=around.now(),
            memory_version=root.memory_version,
            scope=root.scope,
            body_ref=tx.put(stream, kept),
            deleted=deleted,
        )
        tx.append(stream, edited)


def record_manifest(
    around: Surroundings,
    root: Root,
    digests: dict[str, str],
    *,
    run_id: str | None,
    actor: str,
) -> None:
    stream = consolidation_stream(root.memory_version, root.scope)
    with around.store.writing(actor=actor, run_id=run_id) as tx:
        rendered = RootRendered(
            at=around.now(),
            memory_version=root.memory_version,
            scope=root.scope,
            renderer=RENDERER,
            manifest_ref=tx.put(stream, manifest_body(digests)),
        )
        tx.append(stream, rendered)


def is_artifact(path: str) -> bool:
    return path != "raw_memories.md" and not path.startswith("rollout_summaries/")
