"""Phase 2: each memory root is consolidated, published, and rendered; one worker a root.

The claim, the publication and the render are a transaction each. What is published is decided in
one transaction that looks once more at everything it rests on: the lease, and that every selected
thread is still alive, enabled and of this root. Where it is not, nothing is published, the lease is
given back, and the root is claimed again with what is there now.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ..domain import consolidation, selection
from ..domain.artifact import problems
from ..domain.events import (
    ArtifactsPublished,
    Input,
    Phase2InputsSelected,
    Phase2LeaseClaimed,
    consolidation_stream,
)
from ..domain.redaction import redact
from ..domain.refusals import BackingOff, CoolingDown, LeaseHeld, LeaseLost
from ..domain.selection import cutoff_at
from ..projections import jobs, stage1_outputs
from . import state
from .folder import is_behind, is_current
from .notes import adopt
from .ports import ConsolidationFailed, Failure, PhaseTwoOutput, Task, View, Writing
from .render import Rendered, render
from .reports import RootReport
from .roots import (
    Root,
    body,
    chosen,
    chosen_inputs,
    is_reworded,
    is_unchanged,
    may_be_read,
    published,
    roots,
    snapshot,
    texts,
)
from .surroundings import GLOBAL, FolderUnusable, Surroundings, Workspace

POLL_S = 0.05
TRIES = 8  # Inputs that keep changing under a run are left to the next one.
# Nothing was published, and what the root is made from may have changed: look again.
CLAIMED_AGAIN = ("inputs_changed", "lease_lost")


class Claimed(Struct, frozen=True, kw_only=True):
    lease: Phase2LeaseClaimed
    inputs: tuple[Input, ...]
    outputs: tuple[PhaseTwoOutput, ...]
    published: Mapping[str, str]


def run(
    around: Surroundings, *, run_id: str, waiting: dict[str, int], unusable: list[Failure]
) -> list[RootReport]:
    """Bring every root up to date. A folder that cannot be used keeps none of the others from it,
    and is added to `unusable`."""
    with around.store.reading() as view:
        found = roots(view, around.policy)
    reports = []
    for root in found:
        try:
            with around.watch("consolidate", root) as tell:
                report = one_root(around, root, run_id=run_id, waiting=waiting)
                tell(report)
        except FolderUnusable as error:
            unusable.append(error)
            continue
        if report is not None:
            reports.append(report)
    return reports


def one_root(
    around: Surroundings, root: Root, *, run_id: str, waiting: dict[str, int]
) -> RootReport | None:
    """Bring one root up to date, waiting for whoever is at it. None: there is nothing to do."""
    workspace = around.workspace(root.memory_version, root.scope)
    if workspace.path.is_dir():
        with workspace.lock(holder=around.worker_id):
            adopt(around, root, workspace, run_id=run_id)
    caught_up = catch_up(around, root, workspace, run_id=run_id)
    for _ in range(TRIES):
        claimed = claim_when_free(around, root, workspace, run_id=run_id, waiting=waiting)
        if claimed is None:
            return caught_up
        report = consolidate(around, root, workspace, claimed, run_id=run_id)
        if report.status not in CLAIMED_AGAIN:
            return report
    waiting[report.status] = waiting.get(report.status, 0) + 1
    return None


def catch_up(
    around: Surroundings, root: Root, workspace: Workspace, *, run_id: str
) -> RootReport | None:
    """Render what another machine that shares the memory has published: no claim, no model."""
    with workspace.lock(holder=around.worker_id):
        with around.store.reading() as view:
            if not published(view, root) or not is_behind(view, root, workspace):
                return None
        report = RootReport(
            version=root.memory_version,
            scope=root.scope,
            status="rendered",
            path=str(workspace.path),
        )
        fill(report, render(around, root, workspace, run_id=run_id))
        return report


def claim_when_free(
    around: Surroundings,
    root: Root,
    workspace: Workspace,
    *,
    run_id: str,
    waiting: dict[str, int],
) -> Claimed | None:
    while True:
        with around.store.reading() as view:
            seen = state.consolidation(view, root.memory_version, root.scope)
        if not needs_work(around, root, workspace):
            return None
        with around.store.reading() as view:
            if is_being_read(around, view, root):
                # Whoever reads a session of this root consolidates it when the last one is done.
                waiting["phase1_running"] = waiting.get("phase1_running", 0) + 1
                return None
        free_a_dead_workers_lease(around, root, run_id=run_id)
        try:
            with around.store.writing(actor="pipeline", run_id=run_id) as tx:
                held = state.consolidation(tx, root.memory_version, root.scope)
                if (held.ownership_token, held.status) == (seen.ownership_token, seen.status):
                    return claim(around, tx, root)
            # Somebody has had the root since we looked, and may have done what we saw: look again.
        except LeaseHeld:
            around.sleep(POLL_S)
        except (BackingOff, CoolingDown) as refused:
            waiting[refused.code] = waiting.get(refused.code, 0) + 1
            return None


def needs_work(around: Surroundings, root: Root, workspace: Workspace) -> bool:
    """No diff, no work: the same readings, and a folder as it was rendered."""
    with around.store.reading() as view:
        asked = is_asked_for(around, view, root)
    if asked is not None:
        return asked
    # What the log says is read under the lock: whoever publishes holds it until it has rendered.
    with workspace.lock(holder=around.worker_id), around.store.reading() as view:
        # The same readings may have been extracted anew: then somebody has asked, and words differ.
        if is_requested(view, root):
            rows = chosen(view, root, around.policy, now=around.now())
            if is_reworded(view, root, texts(view, rows)):
                return True
        return not is_current(view, root, workspace)


def is_asked_for(around: Surroundings, view: View, root: Root) -> bool | None:
    """Whether the readings are others than the last success's; None: the folder has to tell."""
    selected = chosen_inputs(chosen(view, root, around.policy, now=around.now()))
    before = snapshot(view, root)
    files = published(view, root)
    if not selected and not before and not files:
        return False  # Nothing to say, and nothing was ever said.
    return True if not files or not is_unchanged(selected, before) else None


def is_requested(view: View, root: Root) -> bool:
    """Whether phase 2 was asked for since the last success claimed its job."""
    for job in view.rows(jobs, (jobs.PHASE2, root.scope, root.memory_version)):
        return (job.input_watermark or 0) > (job.completed_watermark or 0)
    return False


def is_being_read(around: Surroundings, view: View, root: Root) -> bool:
    """Whether another worker that is alive holds a phase-1 lease in this root."""
    asked = {"memory_version": root.memory_version, "now": around.now()}
    if root.scope == GLOBAL:
        held = view.find(jobs, jobs.FRESH_LEASES, **asked)
    else:
        held = view.find(jobs, jobs.FRESH_LEASES_OF_SCOPE, scope=root.scope, **asked)
    return any(job.worker_id != around.worker_id and around.is_alive(job.worker_id) for job in held)


def free_a_dead_workers_lease(around: Surroundings, root: Root, *, run_id: str) -> None:
    """A run that was killed on this machine gives its lease back through whoever comes next."""
    with around.store.reading() as view:
        seen = state.consolidation(view, root.memory_version, root.scope)
    if not consolidation.is_held(seen, now=around.now()):
        return
    assert seen.worker_id is not None
    if around.is_alive(seen.worker_id):
        return
    with around.store.writing(actor="pipeline", run_id=run_id) as tx:
        give_back(tx, root, seen.ownership_token, reason="stopped", now=around.now())


def claim(around: Surroundings, tx: Writing, root: Root) -> Claimed:
    now, policy = around.now(), around.policy
    offline = around.consolidator.kind == "offline"
    lease = consolidation.claim(
        state.consolidation(tx, root.memory_version, root.scope),
        worker_id=around.worker_id,
        ownership_token=around.new_id(),
        cooldown_waived="offline" if offline else None,
        now=now,
    )
    rows = chosen(tx, root, policy, now=now)
    inputs = chosen_inputs(rows)
    selected = Phase2InputsSelected(
        at=now,
        memory_version=root.memory_version,
        scope=root.scope,
        ownership_token=lease.ownership_token,
        limit=policy.limits.max_raw_memories_for_consolidation,
        cutoff=cutoff_at(now, max_unused_days=policy.limits.max_unused_days),
        position=tx.position,
        selected=inputs,
    )
    tx.append(consolidation_stream(root.memory_version, root.scope), lease, selected)
    return Claimed(
        lease=lease,
        inputs=inputs,
        outputs=tuple(texts(tx, rows)),
        published=published(tx, root),
    )


def consolidate(
    around: Surroundings, root: Root, workspace: Workspace, claimed: Claimed, *, run_id: str
) -> RootReport:
    report = RootReport(
        version=root.memory_version, scope=root.scope, status="", path=str(workspace.path)
    )
    try:
        files = proposed(around, root, claimed)
        with workspace.lock(holder=around.worker_id):
            with around.store.writing(actor="pipeline", run_id=run_id) as tx:
                report.status = publish(around, tx, root, claimed, files, run_id=run_id)
            if report.status != "inputs_changed":
                fill(report, render(around, root, workspace, run_id=run_id))
                if report.added or report.modified or report.deleted:
                    report.status = "succeeded"  # The log's words are the same, the folder's not.
    except ConsolidationFailed as error:
        report.status = "failed"
        report.reason = error.reason
        fail(around, root, claimed, error, run_id=run_id)
    except LeaseLost as lost:
        report.status = "lease_lost"
        report.reason = str(lost)
    return report


def proposed(around: Surroundings, root: Root, claimed: Claimed) -> dict[str, str]:
    task = Task(
        memory_version=root.memory_version,
        scope=root.scope,
        outputs=claimed.outputs,
        published=claimed.published,
    )
    files = dict(around.consolidator.propose(task).files)
    if around.consolidator.kind != "offline":  # Ours has said nothing that was not hidden before.
        files = {path: redact(text) for path, text in files.items()}
    if problems(files, version=root.memory_version):
        raise ConsolidationFailed("failed_invalid_artifacts")
    return files


def rebuilt(
    around: Surroundings, root: Root, outputs: Sequence[PhaseTwoOutput]
) -> Mapping[str, str]:
    """The artifacts as they are written without a model, whoever wrote them last: at once, and out
    of nothing but these outputs."""
    writer = around.offline or around.consolidator
    task = Task(memory_version=root.memory_version, scope=root.scope, outputs=outputs)
    return writer.propose(task).files


def publish(
    around: Surroundings,
    tx: Writing,
    root: Root,
    claimed: Claimed,
    files: Mapping[str, str],
    *,
    run_id: str | None,
) -> str:
    """Record what the root holds from now on: the status, `inputs_changed` if it must not."""
    now, token = around.now(), claimed.lease.ownership_token
    stream = consolidation_stream(root.memory_version, root.scope)
    job = state.consolidation(tx, root.memory_version, root.scope)
    consolidation.require_lease(job, token)
    held = still_held(tx, root, claimed.inputs)
    if held.keys() != {each.thread_id for each in claimed.inputs}:
        give_back(tx, root, token, reason="inputs_changed", now=now)
        return "inputs_changed"
    # This worker's clock may lag behind that of whoever read the sessions. A success that looked
    # older than what it was made from would count as made from something else.
    now = max([now, *(row.since for row in held.values())])
    selected = selection.snapshot(
        claimed.inputs, held={each: row.source_updated_at for each, row in held.items()}
    )
    changed = dict(files) != dict(claimed.published)
    if changed:
        tx.append(stream, publication(around, tx, root, files, run_id=run_id, now=now))
    no_changes = not changed and not is_reworded(tx, root, claimed.outputs)
    done = consolidation.succeed(
        job,
        ownership_token=token,
        completed_watermark=consolidation.completed_watermark(
            claimed.lease.input_watermark, claimed.inputs
        ),
        selected=selected,
        no_changes=no_changes,
        now=now,
    )
    tx.append(stream, done)
    return "succeeded_no_workspace_changes" if no_changes else "succeeded"


def publication(
    around: Surroundings,
    tx: Writing,
    root: Root,
    files: Mapping[str, str],
    *,
    run_id: str | None,
    now: int,
    consolidator: str | None = None,
) -> ArtifactsPublished:
    owner = consolidation_stream(root.memory_version, root.scope)
    return ArtifactsPublished(
        at=now,
        memory_version=root.memory_version,
        scope=root.scope,
        run_id=run_id,
        consolidator=consolidator or around.consolidator.name,
        files=tuple(tx.put(owner, body(path, text)) for path, text in sorted(files.items())),
    )


def still_held(view: View, root: Root, inputs: Sequence[Input]) -> dict[str, stage1_outputs.Row]:
    """By thread id, the outputs of the inputs that are still live, enabled and of this root."""
    return {
        each.thread_id: row
        for each in inputs
        for row in view.rows(stage1_outputs, (each.thread_id, root.memory_version))
        if may_be_read(row, root)
    }


def fail(
    around: Surroundings,
    root: Root,
    claimed: Claimed,
    error: ConsolidationFailed,
    *,
    run_id: str,
) -> None:
    with around.store.writing(actor="pipeline", run_id=run_id) as tx:
        job = state.consolidation(tx, root.memory_version, root.scope)
        try:
            failed = consolidation.fail(
                job,
                ownership_token=claimed.lease.ownership_token,
                reason=error.reason,
                tokens=error.tokens,
                now=around.now(),
            )
        except LeaseLost:
            return  # Somebody else has the job now; how ours ended is nothing to them.
        tx.append(consolidation_stream(root.memory_version, root.scope), failed)


def give_back(
    tx: Writing,
    root: Root,
    token: str | None,
    *,
    reason: consolidation.ReleaseReason,
    now: int,
) -> None:
    job = state.consolidation(tx, root.memory_version, root.scope)
    if token is None or job.status != "running" or job.ownership_token != token:
        return
    released = consolidation.release(job, ownership_token=token, reason=reason, now=now)
    tx.append(consolidation_stream(root.memory_version, root.scope), released)


def fill(report: RootReport, rendered: Rendered) -> None:
    report.added, report.modified = rendered.added, rendered.modified
    report.deleted, report.edits = rendered.deleted, rendered.edits
