"""Edits: what a person did to a root's published files since they were rendered.

An edit is recorded before anything replaces it. It is an input of the next publication: the offline
consolidator carries it, and an agent is shown it. Until that publication is rendered, the person's
file is still in the folder; what was taken in is then no edit any more.
"""

import re
from collections.abc import Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ..domain.carried import Carried, edited, read
from ..domain.events import (
    ArtifactsPublished,
    FolderEdited,
    Phase2Succeeded,
    RootRendered,
    consolidation_stream,
)
from ..domain.proposal import leaves_no_room
from ..domain.redaction import redact
from .ports import View
from .roots import Root, split

_LINE_END = re.compile(r"\r\n?")


class Edit(Struct, frozen=True, kw_only=True):
    """`after` None: the file was removed. `copy`: where it is as it was, if a secret was in it."""

    path: str
    before: str
    after: str | None
    copy: str | None = None

    @property
    def told(self) -> str:
        if self.copy is not None:
            return self.copy
        return self.path if self.after is not None else f"{self.path} (deleted)"


class ByHand(Struct, frozen=True, kw_only=True):
    """What a person did to the published files. `digests` tells whether they went on since."""

    edits: tuple[Edit, ...] = ()
    digests: Mapping[str, str] = {}

    def without(self, paths: Collection[str]) -> "ByHand":
        return replace(self, edits=tuple(each for each in self.edits if each.path not in paths))


class Recorded(Struct, frozen=True, kw_only=True):
    """Path -> text of the edits since the last render; None where the file was removed. What was
    `taken` in is part of what was published since."""

    waiting: Mapping[str, str | None]
    taken: Mapping[str, str | None]

    def was_removed(self, path: str) -> bool:
        return path in self.taken and self.taken[path] is None

    def was_taken(self, path: str, content: bytes) -> bool:
        kept = self.taken.get(path)
        return kept is not None and redact(text_of(content)) == kept


def text_of(content: bytes) -> str:
    """A file's text as our own files are written. A mark in front and another system's line ends
    are an editor's, and say nothing."""
    return _LINE_END.sub("\n", content.decode("utf-8-sig", "replace"))


def since_rendered(view: View, root: Root) -> Recorded:
    waiting: dict[str, str | None] = {}
    taken: dict[str, str | None] = {}
    for recorded in view.events(stream=consolidation_stream(root.memory_version, root.scope)):
        match recorded.event:
            case FolderEdited(body_ref=ref, deleted=deleted):
                kept = view.body(ref)
                if kept is not None:
                    path, text = split(kept)
                    waiting[path] = None if deleted else text
            case ArtifactsPublished() | Phase2Succeeded():  # Or it changed nothing.
                taken |= waiting
                waiting = {}
            case RootRendered():
                waiting, taken = {}, {}
    return Recorded(waiting=waiting, taken=taken)


def carried(view: View, root: Root, *, salt: str) -> Carried:
    """What a person did to what was published last. `salt` is for the first who does."""
    found: str | None = None
    for recorded in view.events(stream=consolidation_stream(root.memory_version, root.scope)):
        if isinstance(recorded.event, ArtifactsPublished):
            found = recorded.event.carried_ref
    kept = view.body(found) if found else None
    return read(kept) if kept is not None else Carried(salt=salt)


def with_edits(kept: Carried, found: ByHand) -> Carried:
    for edit in found.edits:
        if edit.after is not None:
            kept = edited(kept, edit.path, edit.before, edit.after)
    return kept


def with_room(
    kept: Carried, found: ByHand, published: Mapping[str, str]
) -> tuple[Carried, dict[str, str]]:
    """What of it an agent can keep, and the files in which it is left no room for anything else."""
    full = {path for path, each in kept.files.items() if leaves_no_room(path, each)}
    return let_go(kept, found, published, full)


def let_go(
    kept: Carried, found: ByHand, published: Mapping[str, str], paths: Collection[str]
) -> tuple[Carried, dict[str, str]]:
    """Without what was done to these files, and how they were, for them to be laid aside."""
    now = {**published, **{edit.path: edit.after for edit in found.edits}}
    return (
        replace(kept, files={path: kept.files[path] for path in kept.files if path not in paths}),
        {path: text for path in sorted(paths) if (text := now.get(path))},
    )
