"""Render: a root's folder becomes what the log says, and the log learns what the folder holds.

The log is right about what was published, the folder about what a person did since. So a file
that is neither as it was rendered last nor as it ever was is a person's: it is recorded, copied
beside the root, and only then replaced. Rendering again changes nothing, and a render that was
killed is finished by the next one.

Several machines may share a log, each with a folder of its own. The last manifest is then perhaps
another machine's: what this folder held when it was last rendered here is its baseline. A file that
is as the baseline has it is old and no edit, and only what stood there can have been deleted.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct, field

from ..domain.events import (
    STORE_STREAM,
    ArtifactsPublished,
    BodiesErased,
    FolderEdited,
    RootRendered,
    StoreReset,
    consolidation_stream,
)
from ..domain.redaction import redact
from ..projections import artifacts
from ..projections.artifacts import FORGET
from ..projections.folder import digest
from .edits import since_rendered
from .ports import View, Writing
from .roots import (
    Root,
    body,
    is_artifact,
    manifest,
    manifest_body,
    manifest_of,
    split,
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


def render(
    around: Surroundings,
    root: Root,
    workspace: Workspace,
    *,
    run_id: str | None,
    actor: str = "pipeline",
) -> Rendered:
    """Write the folder. The caller holds the workspace's lock."""
    while True:
        try:
            return attempt(around, root, workspace, run_id=run_id, actor=actor)
        except Overtaken:
            continue  # What they have left is rendered next, and replaces what we wrote.


class Overtaken(Exception):
    """A forgetting or a reset came meanwhile: what this render has read may hold what had to go."""


def attempt(
    around: Surroundings,
    root: Root,
    workspace: Workspace,
    *,
    run_id: str | None,
    actor: str,
) -> Rendered:
    """One render of what the log said at the beginning.

    The manifest is recorded last: until then a render that was killed counts as not done, and
    whatever it left, git objects and copies of edits included, is written over by the next one.
    """
    with around.store.reading() as view:
        files = wanted(view, root)
        previous = manifest(view, root)
        last = None if previous is not None else forgetting(view, root)
        withdrawn = last.removed_ref if last else None
        left_over = withdrawn_paths(view, last)
        keep_edits = last is None and not forgotten_since(view, root, workspace.rendered_at())
        behind = rendered_here(view, root, workspace.rendered_at())
        recorded = since_rendered(view, root)
        emptied = last_reset(view, root.memory_version, after=workspace.rendered_at() or 0) > 0
        record = Recorder(
            around, root, read_at=view.position, withdrawn_ref=withdrawn, run_id=run_id
        )
    if emptied:
        workspace.clear()
    earlier = Earlier(around, root)
    moved = workspace.make_way({*files, *(previous or {}), *left_over})
    workspace.prepare()
    here = Here(workspace)
    stale = here.unchanged if behind is None else here.unchanged & behind
    before = dict.fromkeys([*stale, *left_over], "") | (previous or {})
    rendered = Rendered(edits=[str(path) for path in moved] if keep_edits else [])

    def on_edit(path: str, content: bytes) -> None:
        if not keep_edits or path in here.unchanged or recorded.was_taken(path, content):
            return
        if not earlier.was(path, content):
            rendered.edits.append(str(keep(record, workspace, path, content)))

    if keep_edits:
        for path in sorted((previous or {}).keys() & files.keys()):
            is_gone = is_artifact(path) and here.was_deleted(path)
            if is_gone and not recorded.was_removed(path):
                record.edit(body(path, ""), deleted=True)
                rendered.edits.append(f"{path} (deleted)")
    digests = workspace.render(files, previous=before, on_edit=on_edit)
    for change in workspace.diff():
        {"A": rendered.added, "M": rendered.modified, "D": rendered.deleted}[change.status].append(
            change.path
        )
    if not keep_edits:
        workspace.remove_edits()
    workspace.reset_baseline(around.clock())
    position = record.read_at
    if digests != previous:
        position = record.manifest(digests, actor=actor)
    workspace.note_rendered(position)
    return rendered


class Here:
    """What has become, in this home, of what was last rendered in it."""

    def __init__(self, workspace: Workspace) -> None:
        self.there = workspace.scan().files.keys()
        self.has_baseline = workspace.has_baseline()
        changes = workspace.diff()
        self.changes = {change.path: change.status for change in changes}
        self.before = {change.path: change.before for change in changes if change.status != "A"}
        self.unchanged = {
            path
            for path in self.there
            if self.has_baseline and path not in self.changes and is_artifact(path)
        }

    def was_deleted(self, path: str) -> bool:
        """Without a baseline everything that is missing counts, except in a new folder."""
        if self.has_baseline:
            return self.changes.get(path) == "D"
        return bool(self.there) and path not in self.there


class Earlier:
    """The digests of everything that was rendered or published before.

    They are read from the log when they are first asked for."""

    def __init__(self, around: Surroundings, root: Root) -> None:
        self.around = around
        self.stream = consolidation_stream(root.memory_version, root.scope)
        self.digests: dict[str, set[str]] | None = None

    def was(self, path: str, content: bytes) -> bool:
        return digest(content) in self.load().get(path, ())

    def load(self) -> dict[str, set[str]]:
        if self.digests is None:
            self.digests = {}
            with self.around.store.reading() as view:
                for recorded in view.events(stream=self.stream):
                    match recorded.event:
                        case RootRendered(manifest_ref=ref):
                            kept = view.body(ref)
                            for path, known in (manifest_of(kept) if kept else {}).items():
                                self.digests.setdefault(path, set()).add(known)
                        case ArtifactsPublished(files=refs):
                            # A render that was killed wrote some of them, and no manifest.
                            for path, text in map(split, filter(None, map(view.body, refs))):
                                known = digest(text.encode("utf-8", "surrogatepass"))
                                self.digests.setdefault(path, set()).add(known)
        return self.digests


class Recorder:
    """What a render tells the log, as long as no forgetting and no reset has overtaken it.

    Others publish under the workspace's lock, which the render holds; those two wait for
    nobody. A text of a person's that was read before it may repeat what it has erased.
    """

    def __init__(
        self,
        around: Surroundings,
        root: Root,
        *,
        read_at: int,
        withdrawn_ref: str | None,
        run_id: str | None,
    ) -> None:
        self.around = around
        self.root = root
        self.read_at = read_at
        self.withdrawn_ref = withdrawn_ref
        self.run_id = run_id
        self.stream = consolidation_stream(root.memory_version, root.scope)

    @contextmanager
    def writing(self, actor: str) -> Iterator[Writing]:
        with self.around.store.writing(actor=actor, run_id=self.run_id) as tx:
            for recorded in tx.events(stream=self.stream, after=self.read_at):
                if isinstance(recorded.event, ArtifactsPublished):
                    raise Overtaken
            if last_reset(tx, self.root.memory_version, after=self.read_at):
                raise Overtaken
            yield tx

    def edit(self, kept: str, *, deleted: bool) -> None:
        with self.writing("file-edit") as tx:
            edited = FolderEdited(
                at=self.around.now(),
                memory_version=self.root.memory_version,
                scope=self.root.scope,
                body_ref=tx.put(self.stream, kept),
                deleted=deleted,
            )
            tx.append(self.stream, edited)

    def manifest(self, digests: dict[str, str], *, actor: str) -> int:
        """The folder is rendered; the position that says so.

        Names that a forgetting kept for that moment go with it."""
        with self.writing(actor) as tx:
            rendered = RootRendered(
                at=self.around.now(),
                memory_version=self.root.memory_version,
                scope=self.root.scope,
                renderer=RENDERER,
                manifest_ref=tx.put(self.stream, manifest_body(digests)),
            )
            position = tx.append(self.stream, rendered)
            if self.withdrawn_ref is not None:
                erased = BodiesErased(
                    at=self.around.now(),
                    owners=(self.stream,),
                    count=tx.erase(refs=[self.withdrawn_ref]),
                    reason="forgotten",
                )
                tx.append(STORE_STREAM, erased)
            return position


def keep(record: Recorder, workspace: Workspace, path: str, content: bytes) -> Path:
    """Record what a person left and copy it beside the root; where the copy is."""
    copied = workspace.set_aside(path, content)
    try:
        text = redact(content.decode("utf-8"))
    except UnicodeDecodeError:
        text = ""  # The copy has the bytes; a body is text.
    record.edit(body(path, text), deleted=False)
    return copied


def is_unrendered(view: View, root: Root) -> bool:
    """Whether something was published that the folder has not followed yet, as after a forgetting
    that was killed."""
    kinds = {row.kind for row in view.rows(artifacts, (root.memory_version, root.scope))}
    return "file" in kinds and "manifest" not in kinds


def forgetting(view: View, root: Root) -> ArtifactsPublished | None:
    """The last forgetting's publication, until the folder has followed."""
    found: ArtifactsPublished | None = None
    for recorded in view.events(stream=consolidation_stream(root.memory_version, root.scope)):
        match recorded.event:
            case ArtifactsPublished() as published if published.consolidator == FORGET:
                found = published
            case RootRendered():
                found = None
    return found


def forgotten_since(view: View, root: Root, position: int | None) -> bool:
    """Whether a forgetting published after this folder was rendered: another machine's folder has
    followed, and what lies in this one may still be what had to go."""
    if position is None:
        return False
    stream = consolidation_stream(root.memory_version, root.scope)
    return any(
        isinstance(recorded.event, ArtifactsPublished) and recorded.event.consolidator == FORGET
        for recorded in view.events(stream=stream, after=position)
    )


def rendered_here(view: View, root: Root, position: int | None) -> set[str] | None:
    """The paths that this folder was last rendered with, if others rendered the root since: what
    they have taken back may still lie here. Nothing where nobody did: then the last manifest is
    this folder's own, and whatever else lies in it is a person's. None: nobody knows any more."""
    here: str | None = None
    others_did = False
    for recorded in view.events(stream=consolidation_stream(root.memory_version, root.scope)):
        match recorded.event:
            case RootRendered(manifest_ref=ref) if recorded.position <= (position or 0):
                here = ref
            case RootRendered():
                others_did = True
    if not others_did:
        return set()
    kept = view.body(here) if here else None
    return set(manifest_of(kept)) if kept else None


def last_reset(view: View, memory_version: str, *, after: int = 0) -> int:
    """The position of the version's newest reset behind a position; 0: there is none."""
    position = 0
    for recorded in view.events(stream=STORE_STREAM, after=after):
        match recorded.event:
            case StoreReset(memory_version=of) if of == memory_version:
                position = recorded.position
    return position


def withdrawn_paths(view: View, last: ArtifactsPublished | None) -> list[str]:
    """The files that a forgetting took out of the root and that may still lie in the folder."""
    kept = view.body(last.removed_ref) if last and last.removed_ref else None
    return kept.split("\n") if kept else []
