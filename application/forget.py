"""Forgetting a thread: one transaction, no model, no wait but for a folder that is being written.

What goes: the thread's own words, and every text of every memory root that was stored since the
root first read it, because any of them may repeat it. What the root's other threads said is written
again from their outputs, in the same transaction. The folder and its git objects follow at once,
and so does the write-ahead log. What stays: that there was such a thread, when, and its paths.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct

from ..domain import consolidation, thread
from ..domain.carried import Carried
from ..domain.carried import forgetting as forgetting_carried
from ..domain.events import (
    STORE_STREAM,
    AnyEvent,
    ArtifactsPublished,
    BodiesErased,
    FolderEdited,
    NoteAdded,
    Phase2Failed,
    Phase2InputsSelected,
    RootRendered,
    consolidation_stream,
    extraction_stream,
    thread_stream,
)
from ..domain.refusals import Refused
from ..projections import artifacts, jobs
from ..projections.artifacts import FORGET
from . import state
from .edits import ByHand, carried, with_edits
from .imported import Imported, made_from
from .notes import withdraw
from .ports import Failure, View, Writing
from .publication import publication, rebuilt, with_carried
from .render import forgetting, is_unrendered, render, withdrawn_paths
from .reports import ForgetReport
from .requests import request
from .retention import refs_published
from .roots import Root, is_artifact, live, manifest, published, texts
from .staging import take_in
from .surroundings import GLOBAL, Surroundings

Witness = Callable[[str, str, str], None]  # Of a ref, the kind of its text, and the text.


class OnlyAPerson(Refused):
    code = "only_a_person"

    def __init__(self, act: str) -> None:
        super().__init__(f"only a person can {act}: run this at a terminal, outside an agent")


def forget(around: Surroundings, thread_id: str, *, reason: str, actor: str) -> ForgetReport:
    """Terminal for the id, also for one never seen. Idempotent."""
    report = erase(around, thread_id, reason=reason, actor=actor)
    follow(around, report, actor=actor)
    return report


def erase(
    around: Surroundings,
    thread_id: str,
    *,
    reason: str,
    actor: str,
    witness: Witness | None = None,
) -> ForgetReport:
    """The transaction. `witness` is told each text before it goes: nobody can afterwards."""
    heard = hear(around, thread_id)
    with around.store.writing(actor=actor) as tx:
        now = around.now()
        known = state.thread(tx, thread_id)
        forgotten = thread.forget(known, reason=reason, now=now)
        report = ForgetReport(thread_id=thread_id, known=known.exists, already=forgotten is None)
        if forgotten is not None:
            found = {root: first_selected(tx, root, thread_id) for root in every_root(tx)}
            touched = {root: first for root, first in found.items() if first is not None}
            handbooks = made_from(tx, thread_id)
            for root, first in read_handbooks(tx, handbooks).items():
                touched[root] = min(first, touched.get(root, first))
            refs = [ref for root, first in touched.items() for ref in stored_since(tx, root, first)]
            if witness is not None:
                testify(tx, thread_id, touched, refs, witness)
                for each in handbooks:
                    witness(each.note.body_ref, "note", each.text)
            told = lines_of(tx, thread_id)
            told += [line for each in handbooks for line in each.text.split("\n")]
            for each in handbooks:
                withdraw(around, tx, each.note, reason="forgotten")
            tx.append(thread_stream(thread_id), forgotten)
            for root in touched:
                publish_without(around, tx, root, thread_id, heard=heard, told=told, now=now)
            owner = thread_stream(thread_id)
            report.bodies_erased = tx.erase(owners=[owner], refs=refs)
            erased = BodiesErased(
                at=now,
                owners=(
                    owner,
                    *(consolidation_stream(r.memory_version, r.scope) for r in touched),
                ),
                count=report.bodies_erased,
                reason="forgotten",
            )
            tx.append(STORE_STREAM, erased)
    return report


class Heard(Struct, frozen=True, kw_only=True):
    """What a person has done to a folder that no publication has in it, as of a position."""

    seen: ByHand
    at: int


def hear(around: Surroundings, thread_id: str) -> dict[Root, Heard]:
    """What a person has written since they were rendered into the folders that the thread is in:
    only what says its words is to go with it. No copy is made, in which these could stay."""
    with around.store.reading() as view:
        at = view.position
        if state.thread(view, thread_id).forgotten:
            return {}
        known = {r for r in every_root(view) if first_selected(view, r, thread_id) is not None}
        known |= read_handbooks(view, made_from(view, thread_id)).keys()
    found = {}
    for root in known:
        workspace = around.workspace(root.memory_version, root.scope)
        # A folder that cannot be read keeps nobody from forgetting; `follow` tells of it.
        with suppress(Failure), workspace.lock(holder=around.worker_id):
            seen = take_in(around, root, workspace, run_id=None, keeps_copies=False)
            found[root] = Heard(seen=seen, at=at)
    return found


def what_a_person_did(view: View, root: Root, heard: Heard | None, *, salt: str) -> Carried:
    """What was published since has taken in what was heard before."""
    kept = carried(view, root, salt=salt)
    if heard is None:
        return kept
    stream = consolidation_stream(root.memory_version, root.scope)
    since = view.events(stream=stream, after=heard.at)
    is_overtaken = any(isinstance(each.event, ArtifactsPublished) for each in since)
    return kept if is_overtaken else with_edits(kept, heard.seen)


def follow(around: Surroundings, report: ForgetReport, *, actor: str) -> None:
    """The folders, of which the report then tells."""
    try:
        report.roots = finish(around, actor=actor)
    except Failure as error:
        raise StillInTheFolder(
            f"{report.thread_id} is forgotten, but its words may still lie in a folder: {error};"
            " the next `threadbook run` finishes it"
        ) from error


class StillInTheFolder(Failure):
    """The log has forgotten, and a folder could not be written."""


def finish(around: Surroundings, *, actor: str, run_id: str | None = None) -> list[str]:
    """Write every folder that has not followed what was published; their paths.

    A folder that cannot be written keeps none of the others from it, and is told at the end.
    """
    with around.store.reading() as view:
        behind = [root for root in every_root(view) if is_unrendered(view, root)]
    written: list[str] = []
    failure: Failure | None = None
    for root in behind:
        workspace = around.workspace(root.memory_version, root.scope)
        try:
            with workspace.lock(holder=around.worker_id):
                with around.store.reading() as view:
                    if not is_unrendered(view, root):
                        continue  # Whoever held the lock has done it.
                render(around, root, workspace, run_id=run_id, actor=actor)
        except Failure as error:
            failure = failure or error
        else:
            written.append(str(workspace.path))
    if failure:
        raise failure
    return written


def again(around: Surroundings) -> list[str]:
    """Forget what was asked for and is not in the log: a kill came before the commit, or the log
    was restored from before it. Which threads those are."""
    with around.store.reading() as view:
        asked = [
            thread_id
            for thread_id in around.store.forgotten()
            if not state.thread(view, thread_id).forgotten
        ]
    for thread_id in asked:
        with suppress(StillInTheFolder):  # `finish` tries again, and tells it.
            forget(around, thread_id, reason="asked_before", actor="pipeline")
    return asked


def every_root(view: View) -> list[Root]:
    return [
        Root(memory_version=job.memory_version, scope=job.job_key)
        for job in view.rows(jobs, (jobs.PHASE2,))
    ]


def first_selected(view: View, root: Root, thread_id: str) -> int | None:
    """The position from which on the root's texts may repeat the thread."""
    for recorded in view.events(stream=consolidation_stream(root.memory_version, root.scope)):
        match recorded.event:
            case Phase2InputsSelected(selected=selected):
                if any(each.thread_id == thread_id for each in selected):
                    return recorded.position
    return None


def read_handbooks(view: View, handbooks: Collection[Imported]) -> dict[Root, int]:
    """The roots that could read these files, and since when."""
    kept = {each.note.body_ref: each.scope for each in handbooks}
    since: dict[Root, int] = {}
    for recorded in view.events(stream=STORE_STREAM) if kept else ():
        match recorded.event:
            case NoteAdded(body_ref=ref) if ref in kept:
                for root in every_root(view):
                    if root.scope in (GLOBAL, kept[ref]):
                        since.setdefault(root, recorded.position)
    return since


def stored_since(view: View, root: Root, first: int) -> list[str]:
    """The root's texts since it first read the thread: artifacts, edits and manifests."""
    refs: list[str] = []
    stream = consolidation_stream(root.memory_version, root.scope)
    for recorded in view.events(stream=stream, after=first):
        match recorded.event:
            case ArtifactsPublished() as made:
                refs += refs_published(made)
            case Phase2Failed(tool_uses_ref=str(ref)):
                refs.append(ref)
            case RootRendered(manifest_ref=ref) | FolderEdited(body_ref=ref):
                refs.append(ref)
    return refs


def testify(
    view: View,
    thread_id: str,
    roots: Iterable[Root],
    refs: Collection[str],
    witness: Witness,
) -> None:
    """Tell the texts of the thread, and those of the roots that are among these refs."""
    for stream in streams_of(view, thread_id):
        for recorded in view.events(stream=stream):
            for kind, ref in refs_in(recorded.event):
                if (text := view.body(ref)) is not None:
                    witness(ref, kind, text)
    wanted = set(refs)
    for root in roots:
        stream = consolidation_stream(root.memory_version, root.scope)
        for recorded in view.events(stream=stream):
            for kind, ref in refs_in(recorded.event):
                if ref in wanted and (text := view.body(ref)) is not None:
                    witness(ref, kind, text)


def lines_of(view: View, thread_id: str) -> list[str]:
    """What the thread said to any root, as far as its words are still there."""
    found = []
    for stream in streams_of(view, thread_id):
        for recorded in view.events(stream=stream):
            for kind, ref in refs_in(recorded.event):
                if kind in ("raw_memory", "rollout_summary"):
                    found += (view.body(ref) or "").split("\n")
    return [line for line in found if line.strip()]


def streams_of(view: View, thread_id: str) -> list[str]:
    """The thread's own stream, and that of its extraction in each version."""
    versions = {job.memory_version for job in view.rows(jobs, (jobs.STAGE1, thread_id))}
    versions |= {root.memory_version for root in every_root(view)}
    extractions = [extraction_stream(version, thread_id) for version in sorted(versions)]
    return [thread_stream(thread_id), *extractions]


def refs_in(event: AnyEvent | None) -> Iterator[tuple[str, str]]:
    """What an event points to, by the kind of text. By the names of the fields: texts of events
    that come later must not be passed over."""
    if event is None:
        return
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if name == "files":
            yield from (("artifact", ref) for ref in value)
        elif name.endswith("_ref") and isinstance(value, str):
            yield name.removesuffix("_ref"), value


def rendered(view: View, root: Root) -> set[str]:
    """The artifacts that lie in the folder as far as the log knows."""
    listed = withdrawn_paths(view, forgetting(view, root))
    return {path for path in [*(manifest(view, root) or {}), *listed] if is_artifact(path)}


def publish_without(
    around: Surroundings,
    tx: Writing,
    root: Root,
    thread_id: str,
    *,
    heard: Mapping[Root, Heard],
    told: Sequence[str],
    now: int,
) -> None:
    """Write the root's artifacts from what is left, end a run at work, and ask for a new one. What
    a person wrote into them stays, unless it says what is `told`."""
    stream = consolidation_stream(root.memory_version, root.scope)
    job = state.consolidation(tx, root.memory_version, root.scope)
    if job.status == "running" and job.ownership_token is not None:
        released = consolidation.release(
            job, ownership_token=job.ownership_token, reason="forgotten", now=now
        )
        tx.append(stream, released)
    before = published(tx, root)
    # Not whether its texts can be read: on a server that was restored they no longer can, and the
    # folder has them all the same.
    if tx.rows(artifacts, (root.memory_version, root.scope, "file")):
        files = rebuilt(around, root, texts(tx, live(tx, root)))
        salt = around.new_id()
        theirs = what_a_person_did(tx, root, heard.get(root), salt=salt)
        kept = forgetting_carried(theirs, told, files, salt=salt)
        made = with_carried(files, kept, memory_version=root.memory_version, consolidator=FORGET)
        gone = (before.keys() | rendered(tx, root)) - made.files.keys()
        without = publication(around, tx, root, made, run_id=None, now=now)
        if gone:
            # The names may tell as much as the texts: they go when the folder has followed.
            ref = tx.put(stream, "\n".join(sorted(gone)))
            without = msgspec.structs.replace(without, removed_ref=ref)
        tx.append(stream, without)
    request(
        tx,
        root.memory_version,
        root.scope,
        cause="forgotten",
        thread_id=thread_id,
        watermark=now,
        now=now,
    )


def lift(around: Surroundings, thread_id: str, *, actor: str) -> None:
    """Let a forgotten session be read again. Its words stay gone; only a person may."""
    if not actor.startswith("human:"):
        raise OnlyAPerson("lift a forgetting")
    with around.store.writing(actor=actor) as tx:
        lifted = thread.lift(state.thread(tx, thread_id), now=around.now())
        tx.append(thread_stream(thread_id), lifted)
