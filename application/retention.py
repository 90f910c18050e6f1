"""Retention: words that no row points to any longer go after `history_days`, and the log says so.

What was replaced, pruned or withdrawn stays readable in the past for a while, so that a change can
be explained and undone. Forgetting does not wait for this: it erases at once.
"""

from ..domain import extraction
from ..domain.events import (
    STORE_STREAM,
    ArtifactsPublished,
    BodiesErased,
    FolderEdited,
    MemoryModeSet,
    OutputWithdrawn,
    Phase2Failed,
    RootRendered,
    Stage1Succeeded,
    Stage1SucceededNoOutput,
    ThreadChanged,
    ThreadPolluted,
    ThreadRegistered,
    extraction_stream,
)
from ..projections import artifacts, stage1_outputs, threads
from . import state
from .ports import Recorded, View
from .surroundings import Surroundings

DAY_MS = 86_400_000
HISTORY_DAYS = "history_days"


def expire(around: Surroundings, *, run_id: str) -> int:
    """Erase what nothing has pointed to for `history_days`; how many texts."""
    oldest_ms = int(around.clock() * 1000) - around.policy.history_days * DAY_MS
    with around.store.reading() as view:
        first = next(iter(view.events()), None)
        if first is None or first.recorded_at_ms > oldest_ms:
            return 0  # The log is younger than that: nothing can have aged.
        aged = superseded(view, before_ms=oldest_ms)
        if not aged and not polluted(view, before_s=oldest_ms // 1000):
            return 0
    with around.store.writing(actor="pipeline", run_id=run_id) as tx:
        # An output without its words says nothing; were it enabled again, it would be in and empty.
        for row in polluted(tx, before_s=oldest_ms // 1000):
            job = state.extraction(tx, row.memory_version, row.thread_id)
            if not job.selected:  # The folder of a root that failed since may still be made of it.
                stream = extraction_stream(row.memory_version, row.thread_id)
                aged |= dict.fromkeys(refs_of(row), stream)
                tx.append(stream, extraction.withdraw(job, reason=HISTORY_DAYS, now=around.now()))
        gone = {ref: owner for ref, owner in aged.items() if not is_in_use(tx, owner, ref)}
        count = tx.erase(refs=gone)
        if count:
            erased = BodiesErased(
                at=around.now(),
                owners=tuple(sorted(set(gone.values()))),
                count=count,
                reason=HISTORY_DAYS,
            )
            tx.append(STORE_STREAM, erased)
    return count


def superseded(view: View, *, before_ms: int) -> dict[str, str]:
    """Ref -> stream of the texts that something later took the place of, before that time.

    A text's end is the event after which no row points to it. It is found going forward: whatever
    a stream's newer event of the same kind replaces has ended there.
    """
    current: dict[tuple[str, str], set[str]] = {}
    ended: dict[str, str] = {}
    outputs: dict[str, set[str]] = {}  # Thread id -> the streams of its outputs, one a version.
    for recorded in view.events():
        if recorded.recorded_at_ms > before_ms:
            break
        match recorded.event:
            case Stage1Succeeded(thread_id=thread_id):
                outputs.setdefault(thread_id, set()).add(recorded.stream)
            case ThreadPolluted(thread_id=thread_id):
                # Its days begin here, whatever takes the output away later.
                for stream in outputs.get(thread_id, ()):
                    ended |= dict.fromkeys(current.get((stream, "output"), ()), stream)
            case MemoryModeSet(thread_id=thread_id):
                for stream in outputs.get(thread_id, ()):
                    for ref in current.get((stream, "output"), ()):
                        ended.pop(ref, None)
        for kind, refs in texts_of(recorded):
            place = recorded.stream, kind
            for ref in current.get(place, set()) - refs:
                ended[ref] = recorded.stream
            current[place] = refs
    return {ref: stream for ref, stream in ended.items() if view.body(ref) is not None}


def polluted(view: View, *, before_s: int) -> list[stage1_outputs.Row]:
    """The outputs whose thread has been polluted for so long."""
    found = []
    for row in view.find(stage1_outputs, stage1_outputs.POLLUTED):
        thread = view.rows(threads, (row.thread_id,))
        if thread and (thread[0].mode_changed_at or thread[0].created_at_ms // 1000) <= before_s:
            found.append(row)
    return found


def refs_of(row: stage1_outputs.Row | Stage1Succeeded) -> set[str]:
    refs = (row.raw_memory_ref, row.rollout_summary_ref, row.rollout_slug_ref, row.evidence_ref)
    return {ref for ref in refs if ref is not None}


def refs_published(made: ArtifactsPublished) -> list[str]:
    others = (made.removed_ref, made.carried_ref, made.tool_uses_ref)
    return [*made.files, *(ref for ref in others if ref is not None)]


def texts_of(recorded: Recorded) -> list[tuple[str, set[str]]]:
    match recorded.event:
        case ThreadRegistered(preview_ref=str(ref)) | ThreadChanged(preview_ref=str(ref)):
            return [("preview", {ref})]
        case Stage1Succeeded(output_replaced=True) as event:
            return [("output", refs_of(event))]
        case OutputWithdrawn() | Stage1SucceededNoOutput(output_removed=True):
            return [("output", set())]
        case ArtifactsPublished(files=files, carried_ref=carried, tool_uses_ref=uses):
            return [
                ("file", set(files)),
                ("carried", {carried} if carried else set()),
                ("uses", {uses} if uses else set()),
            ]
        case Phase2Failed(tool_uses_ref=str(ref)):
            return [("uses", {ref})]
        case RootRendered(manifest_ref=ref):
            return [("manifest", {ref})]
        case FolderEdited(body_ref=ref):
            return [("edit", {ref})]
        case _:
            return []


def is_in_use(view: View, stream: str, ref: str) -> bool:
    kind, _, rest = stream.partition(":")
    if kind == "thread":
        return any(row.preview_ref == ref for row in view.rows(threads, (rest,)))
    version, _, key = rest.partition(":")
    if kind == "consolidation":
        rows = view.rows(artifacts, (version, key))
        return any(row.body_ref == ref for row in rows if row.kind != "edit")
    return any(ref in refs_of(row) for row in view.rows(stage1_outputs, (key, version)))
