"""Forgetting a thread: one transaction, no model, no wait.

What goes: the thread's own words, and every text of every memory root that was stored since the
root first read it, because any of them may repeat it. What the root's other threads said is written
again from their outputs, in the same transaction. The folder and its git objects follow at once,
and so does the write-ahead log. What stays: that there was such a thread, when, and its paths.
"""

from ..domain import consolidation, thread
from ..domain.events import (
    STORE_STREAM,
    ArtifactsPublished,
    BodiesErased,
    FolderEdited,
    Phase2InputsSelected,
    RootRendered,
    consolidation_stream,
    thread_stream,
)
from ..domain.refusals import Refused
from ..projections import jobs
from ..projections.artifacts import FORGET
from . import state
from .phase2 import publication
from .ports import View, Writing
from .render import render
from .reports import ForgetReport
from .requests import request
from .roots import Root, live, published, texts
from .surroundings import Surroundings


class OnlyAPerson(Refused):
    code = "only_a_person"

    def __init__(self, act: str) -> None:
        super().__init__(f"only a person can {act}: run this at a terminal, outside an agent")


def forget(around: Surroundings, thread_id: str, *, reason: str, actor: str) -> ForgetReport:
    """Terminal for the id, also for one never seen. Idempotent."""
    with around.store.writing(actor=actor) as tx:
        now = around.now()
        forgotten = thread.forget(state.thread(tx, thread_id), reason=reason, now=now)
        if forgotten is None:
            report = ForgetReport(thread_id=thread_id, already=True)
        else:
            report = ForgetReport(thread_id=thread_id, already=False)
            touched = [root for root in every_root(tx) if selected_since(tx, root, thread_id)]
            refs = {ref: root for root in touched for ref in stored_since(tx, root, thread_id)}
            tx.append(thread_stream(thread_id), forgotten)
            for root in touched:
                publish_without(around, tx, root, thread_id, now=now)
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
    with around.store.reading() as view:
        unrendered = [root for root in every_root(view) if is_unrendered(view, root)]
    for root in unrendered:
        workspace = around.workspace(root.memory_version, root.scope)
        with workspace.lock(holder=around.worker_id):
            render(around, root, workspace, run_id=None, actor=actor, keep_edits=False)
        report.roots.append(str(workspace.path))
    return report


def every_root(view: View) -> list[Root]:
    return [
        Root(memory_version=job.memory_version, scope=job.job_key)
        for job in view.rows(jobs, (jobs.PHASE2,))
    ]


def is_unrendered(view: View, root: Root) -> bool:
    """Whether the last thing published was a forgetting's, and the folder has not followed yet."""
    last: object = None
    for recorded in view.events(stream=consolidation_stream(root.memory_version, root.scope)):
        if isinstance(recorded.event, ArtifactsPublished | RootRendered):
            last = recorded.event
    return isinstance(last, ArtifactsPublished) and last.consolidator == FORGET


def selected_since(view: View, root: Root, thread_id: str) -> bool:
    return first_selected(view, root, thread_id) is not None


def first_selected(view: View, root: Root, thread_id: str) -> int | None:
    """The position from which on the root's texts may repeat the thread."""
    for recorded in view.events(stream=consolidation_stream(root.memory_version, root.scope)):
        match recorded.event:
            case Phase2InputsSelected(selected=selected):
                if any(each.thread_id == thread_id for each in selected):
                    return recorded.position
    return None


def stored_since(view: View, root: Root, thread_id: str) -> list[str]:
    """The root's texts since it first read the thread: artifacts, edits and manifests."""
    first = first_selected(view, root, thread_id)
    if first is None:
        return []
    refs: list[str] = []
    stream = consolidation_stream(root.memory_version, root.scope)
    for recorded in view.events(stream=stream, after=first):
        match recorded.event:
            case ArtifactsPublished(files=files, removed_ref=removed):
                refs += [*files, *([removed] if removed else [])]
            case RootRendered(manifest_ref=ref) | FolderEdited(body_ref=ref):
                refs.append(ref)
    return refs


def publish_without(
    around: Surroundings, tx: Writing, root: Root, thread_id: str, *, now: int
) -> None:
    """Write the root's artifacts from what is left, end a run at work, and ask for a new one."""
    stream = consolidation_stream(root.memory_version, root.scope)
    job = state.consolidation(tx, root.memory_version, root.scope)
    if job.status == "running" and job.ownership_token is not None:
        released = consolidation.release(
            job, ownership_token=job.ownership_token, reason="forgotten", now=now
        )
        tx.append(stream, released)
    if published(tx, root):
        files = around.consolidator.consolidate(
            scope=root.scope, outputs=texts(tx, live(tx, root)), published={}
        )
        tx.append(
            stream,
            publication(around, tx, root, files, run_id=None, now=now, consolidator=FORGET),
        )
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
