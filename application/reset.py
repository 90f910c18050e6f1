"""Reset: what the memory has learned goes at once, and the sessions stay known.

One transaction empties every row of every memory version, or of those that are named, and erases
every text that its outputs and folders were made of, so that nothing is half gone. A version that
is not written any more goes too: whoever empties a memory means all of it. Folders follow: each is
emptied when it is next touched, here at once, on another machine by its next run. Notes are a
person's own words and stay unless they are named. What is still enabled and not too old is read
again by the next run; that is said before anybody agrees.
"""

from collections.abc import Collection, Iterable

from msgspec import Struct, field

from ..domain.events import (
    STORE_STREAM,
    ArtifactsPublished,
    BodiesErased,
    FolderEdited,
    NoteRemoved,
    Phase2Failed,
    RootRendered,
    Stage1Succeeded,
    StoreReset,
)
from ..projections import jobs, notes, stage1_outputs, threads
from .forget import every_root
from .ports import Failure, Recorded, View
from .reading import last_change
from .render import last_reset
from .retention import refs_of, refs_published
from .roots import by_version
from .surroundings import VERSIONS, Surroundings


class ResetReport(Struct, kw_only=True):
    """What goes, or would go, of these versions. `read_again`: sessions that a later run may read
    once more."""

    versions: tuple[str, ...]
    outputs: int
    jobs: int
    notes: int
    read_again: int
    folders: list[str] = field(default_factory=list)
    bodies_erased: int = 0
    pending: str | None = None


class NotEmptied(Failure):
    """The log has been reset, and a folder could not be emptied."""


def plan(
    around: Surroundings, *, versions: Collection[str] = VERSIONS, keep_notes: bool = True
) -> ResetReport:
    with around.store.reading() as view:
        return planned(around, view, versions, keep_notes=keep_notes)


def planned(
    around: Surroundings, view: View, versions: Collection[str], *, keep_notes: bool
) -> ResetReport:
    known = {one.memory_version for one in by_version(around.policy)}
    known |= {row.memory_version for row in view.rows(jobs, ())}
    versions = [each for each in VERSIONS if each in versions]
    versions = [each for each in versions if each in known or around.folders(each)]
    return ResetReport(
        versions=tuple(versions),
        outputs=sum(row.memory_version in versions for row in view.rows(stage1_outputs, ())),
        jobs=sum(row.memory_version in versions for row in view.rows(jobs, ())),
        notes=0 if keep_notes else len(view.rows(notes, ())),
        read_again=sum(
            row.mode == "enabled" and not row.forgotten
            for row in view.find(threads, threads.NEWEST_FIRST)
        ),
        folders=[
            str(around.workspace(version, name).path)
            for version in versions
            for name in around.folders(version)
        ],
    )


def reset(
    around: Surroundings,
    *,
    versions: Collection[str] = VERSIONS,
    keep_notes: bool = True,
    actor: str,
) -> ResetReport:
    """Empty these versions. Raises `NotEmptied` where a folder could not follow yet."""
    with around.store.reading() as view:  # Most of the log is read before anybody has to wait.
        disown(around, view)  # Or it would pass for one that has followed.
        refs = texts_of_versions(view.events(), versions)
        read_to = view.position
    with around.store.writing(actor=actor) as tx:
        now = around.now()
        report = planned(around, tx, versions, keep_notes=keep_notes)
        refs |= texts_of_versions(tx.events(after=read_to), versions)
        for version in report.versions:
            of_version = planned(around, tx, [version], keep_notes=keep_notes)
            tx.append(
                STORE_STREAM,
                StoreReset(
                    at=now,
                    memory_version=version,
                    keep_notes=keep_notes,
                    outputs_removed=of_version.outputs,
                    jobs_removed=of_version.jobs,
                ),
            )
        if not keep_notes:
            for note in tx.rows(notes, ()):
                refs[note.body_ref] = STORE_STREAM
                tx.append(STORE_STREAM, NoteRemoved(at=now, body_ref=note.body_ref, reason="reset"))
        report.bodies_erased = tx.erase(refs=refs)
        if report.bodies_erased:
            tx.append(
                STORE_STREAM,
                BodiesErased(
                    at=now,
                    owners=tuple(sorted(set(refs.values()))),
                    count=report.bodies_erased,
                    reason="reset",
                ),
            )
    try:
        finish(around)
    except Failure as error:
        raise NotEmptied(
            f"the memory was reset, but words of it may still lie in a folder: {error};"
            " the next `threadbook run` finishes it"
        ) from error
    return report


def texts_of_versions(events: Iterable[Recorded], versions: Collection[str]) -> dict[str, str]:
    """Ref -> stream of every text that the versions' outputs and folders have ever had."""
    found: dict[str, str] = {}
    for recorded in events:
        match recorded.event:
            case Stage1Succeeded(memory_version=of) as event if of in versions:
                refs: Collection[str] = refs_of(event)
            case ArtifactsPublished(memory_version=of) as event if of in versions:
                refs = refs_published(event)
            case Phase2Failed(memory_version=of, tool_uses_ref=str(ref)) if of in versions:
                refs = [ref]
            case RootRendered(memory_version=of, manifest_ref=ref) if of in versions:
                refs = [ref]
            case FolderEdited(memory_version=of, body_ref=ref) if of in versions:
                refs = [ref]
            case _:
                continue
        found |= dict.fromkeys(refs, recorded.stream)
    return found


def finish(around: Surroundings) -> list[str]:
    """Empty every folder that has not followed a reset; their paths.

    A folder that cannot be emptied keeps none of the others from it, and is told at the end.
    """
    there = {version: around.folders(version) for version in VERSIONS}
    with around.store.reading() as view:
        reset_at = {each: last_reset(view, each) for each, names in there.items() if names}
    emptied: list[str] = []
    failure: Failure | None = None
    for version, position in reset_at.items():
        for name in there[version] if position else ():
            workspace = around.workspace(version, name)
            try:
                with workspace.lock(holder=around.worker_id):
                    if (workspace.rendered_at() or 0) >= position:
                        continue
                    workspace.clear()
                    workspace.note_rendered(position)
            except Failure as error:
                failure = failure or error
            else:
                emptied.append(str(workspace.path))
    if failure:
        raise failure
    return emptied


def disown(around: Surroundings, view: View, *, after: int | None = None) -> None:
    """Take every folder that was rendered behind this view, or behind `after`, for an older one:
    the log that it was rendered from is another one. It is older than what was last published,
    which is rendered again, and not older than the last reset, which would empty it of a person's
    own files."""
    first = view.position if after is None else after
    for version in VERSIONS:
        workspaces = [around.workspace(version, name) for name in around.folders(version)]
        ahead = [each for each in workspaces if (each.rendered_at() or 0) > first]
        if not ahead:
            continue
        reset_at = last_reset(view, version)
        changed = {
            around.workspace(version, root.scope).path: last_change(view, root) or 0
            for root in every_root(view)
            if root.memory_version == version
        }
        for workspace in ahead:
            with workspace.lock(holder=around.worker_id):
                workspace.note_rendered(max(changed.get(workspace.path, 0) - 1, reset_at))
