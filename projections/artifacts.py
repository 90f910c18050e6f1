"""artifacts: which texts a memory root's folder is made of, and which a person left in it.

Three kinds of row. `file` is a published artifact; a publication replaces all of them. `manifest`
is the folder as it was last rendered, path -> digest, one a root. `edit` is what a person changed,
kept through later publications, because their text was overwritten and this row is the way back to
it. A forgetting that publishes leaves its own files and nothing else: an older text of the root may
hold what had to go.
"""

from collections.abc import Sequence
from typing import Literal, assert_never

from msgspec import Struct

from ..domain.events import ArtifactsPublished, FolderEdited, RootRendered, StoreReset

ArtifactEvent = ArtifactsPublished | RootRendered | FolderEdited | StoreReset

FORGET = "forget"  # The consolidator that speaks for a forgetting.

NAME = "artifacts"
KEY = ("memory_version", "scope", "kind", "body_ref")
FOLLOWS = ArtifactEvent

SCHEMA = (
    """
CREATE TABLE artifacts (
    memory_version TEXT NOT NULL,
    scope          TEXT NOT NULL,
    kind           TEXT NOT NULL,
    body_ref       TEXT NOT NULL,
    at             INTEGER NOT NULL,
    made_by        TEXT NOT NULL,
    deleted        INTEGER NOT NULL,
    PRIMARY KEY (memory_version, scope, kind, body_ref)
) STRICT
""",
)


class Row(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """`made_by`: the consolidator of a file, the renderer of a manifest, `file-edit`."""

    memory_version: str
    scope: str
    kind: Literal["edit", "file", "manifest"]
    body_ref: str
    at: int
    made_by: str
    deleted: int = 0  # 1 where the edit was that a person deleted the file.


def place(event: ArtifactEvent) -> tuple[str, ...]:
    match event:
        case ArtifactsPublished():
            return event.memory_version, event.scope
        case RootRendered():
            return event.memory_version, event.scope, "manifest"
        case FolderEdited():
            return event.memory_version, event.scope, "edit", event.body_ref
        case StoreReset():
            return (event.memory_version,)
        case _:
            assert_never(event)


def evolve(rows: Sequence[Row], event: ArtifactEvent) -> Sequence[Row]:
    match event:
        case ArtifactsPublished():
            kept = [] if event.consolidator == FORGET else [r for r in rows if r.kind != "file"]
            return kept + [
                Row(
                    memory_version=event.memory_version,
                    scope=event.scope,
                    kind="file",
                    body_ref=body_ref,
                    at=event.at,
                    made_by=event.consolidator,
                )
                for body_ref in dict.fromkeys(event.files)
            ]
        case RootRendered():
            return [
                Row(
                    memory_version=event.memory_version,
                    scope=event.scope,
                    kind="manifest",
                    body_ref=event.manifest_ref,
                    at=event.at,
                    made_by=event.renderer,
                )
            ]
        case FolderEdited():
            return [
                Row(
                    memory_version=event.memory_version,
                    scope=event.scope,
                    kind="edit",
                    body_ref=event.body_ref,
                    at=event.at,
                    made_by="file-edit",
                    deleted=int(event.deleted),
                )
            ]
        case StoreReset():
            return []
        case _:
            assert_never(event)
