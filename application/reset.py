"""Reset: what a memory version has learned goes at once, and the sessions stay known.

One transaction empties every row of the version and erases every text that its outputs and folders
were made of, so that nothing is half gone. Folders follow: each is emptied when it is next touched,
here at once, on another machine by its next run. Notes are a person's own words and stay unless
they are named. What is still enabled and not too old is read again by the next run; that is said
before anybody agrees.
"""

from collections.abc import Collection, Iterable

from msgspec import Struct, field

from ..domain.events import (
    STORE_STREAM,
    ArtifactsPublished,
    BodiesErased,
    FolderEdited,
    NoteRemoved,
    RootRendered,
    Stage1Succeeded,
    StoreReset,
)
from ..projections import jobs, notes, stage1_outputs, threads
from .forget import every_root
from .ports import Failure, Recorded, View
from .reading import last_change
from .render import last_reset
from .retention import refs_of
from .surroundings import Surroundings


class ResetReport(Struct, kw_only=True):
    """What goes, or would go. `read_again`: sessions that a later run may read once more."""

    version: str
    outputs: int
    jobs: int
    notes: int
    read_again: int
    folders: list[str] = field(default_factory=list)
    bodies_erased: int = 0
    pending: str | None = None


class NotEmptied(Failure):
    """The log has been reset, and a folder could not be emptied."""


def plan(around: Surroundings, *, keep_notes: bool = True) -> ResetReport:
    with around.store.reading() as view:
        return planned(around, view, keep_notes=keep_notes)


def planned(around: Surroundings, view: View, *, keep_notes: bool) -> ResetReport:
    version = around.policy.memory_version
    return ResetReport(
        version=version,
        outputs=len(view.find(stage1_outputs, stage1_outputs.OF_VERSION, memory_version=version)),
        jobs=sum(row.memory_version == version for row in view.rows(jobs, ())),
        notes=0 if keep_notes else len(view.rows(notes, ())),
        read_again=sum(
            row.mode == "enabled" and not row.forgotten
            for row in view.find(threads, threads.NEWEST_FIRST)
        ),
        folders=[str(around.workspace(version, name).path) for name in around.folders(version)],
    )


def reset(around: Surroundings, *, keep_notes: bool = True, actor: str) -> ResetReport:
    """Empty the version in force. Raises `NotEmptied` where a folder could not follow yet."""
    version = around.policy.memory_version
    with around.store.reading() as view:  # Most of the log is read before anybody has to wait.
        disown(around, view)  # Or it would pass for one that has followed.
        refs = texts_of_version(view.events(), version)
        read_to = view.position
    with around.store.writing(actor=actor) as tx:
        now = around.now()
        report = planned(around, tx, keep_notes=keep_notes)
        refs |= texts_of_version(tx.events(after=read_to), version)
        tx.append(
            STORE_STREAM,
            StoreReset(
                at=now,
                memory_version=version,
                keep_notes=keep_notes,
                outputs_removed=report.outputs,
                jobs_removed=report.jobs,
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


def texts_of_version(events: Iterable[Recorded], version: str) -> dict[str, str]:
    """Ref -> stream of every text that the version's outputs and folders have ever had."""
    found: dict[str, str] = {}
    for recorded in events:
        match recorded.event:
            case Stage1Succeeded(memory_version=of) as event if of == version:
                refs: Collection[str] = refs_of(event)
            case ArtifactsPublished(memory_version=of) as event if of == version:
                refs = [*event.files, *([event.removed_ref] if event.removed_ref else [])]
            case RootRendered(memory_version=of, manifest_ref=ref) if of == version:
                refs = [ref]
            case FolderEdited(memory_version=of, body_ref=ref) if of == version:
                refs = [ref]
            case _:
                continue
        found |= dict.fromkeys(refs, recorded.stream)
    return found


def finish(around: Surroundings) -> list[str]:
    """Empty every folder that has not followed a reset; their paths.

    A folder that cannot be emptied keeps none of the others from it, and is told at the end.
    """
    version = around.policy.memory_version
    with around.store.reading() as view:
        reset_at = last_reset(view, version)
    emptied: list[str] = []
    failure: Failure | None = None
    for name in around.folders(version) if reset_at else ():
        workspace = around.workspace(version, name)
        try:
            with workspace.lock(holder=around.worker_id):
                if (workspace.rendered_at() or 0) >= reset_at:
                    continue
                workspace.clear()
                workspace.note_rendered(reset_at)
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
    version = around.policy.memory_version
    first = view.position if after is None else after
    workspaces = [around.workspace(version, name) for name in around.folders(version)]
    ahead = [each for each in workspaces if (each.rendered_at() or 0) > first]
    if not ahead:
        return
    reset_at = last_reset(view, version)
    changed = {
        around.workspace(version, root.scope).path: last_change(view, root) or 0
        for root in every_root(view)
        if root.memory_version == version
    }
    for workspace in ahead:
        with workspace.lock(holder=around.worker_id):
            workspace.note_rendered(max(changed.get(workspace.path, 0) - 1, reset_at))
