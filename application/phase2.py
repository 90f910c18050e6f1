"""Phase 2: each memory root is consolidated, published, and rendered; one worker a root.

The claim, the publication and the render are a transaction each. What is published is decided in
one transaction that looks once more at everything it rests on: the lease, and that every selected
thread is still alive, enabled and of this root. Where it is not, nothing is published, the lease is
given back, and the root is claimed again with what is there now.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import inf

import msgspec
from msgspec import Struct

from ..domain import consolidation, selection
from ..domain.artifact import problems
from ..domain.carried import Carried, applied, written
from ..domain.events import (
    NO_TOKENS,
    ArtifactsPublished,
    Input,
    Phase2InputsSelected,
    Phase2LeaseClaimed,
    Tokens,
    consolidation_stream,
)
from ..domain.refusals import BackingOff, CoolingDown, LeaseHeld, LeaseLost
from ..domain.selection import cutoff_at
from ..projections import jobs, stage1_outputs
from . import state
from .asking import Asking
from .edits import Seen, carried, with_edits, with_room
from .folder import differing, is_behind, is_current
from .notes import adopt
from .ports import ConsolidationFailed, Failure, PhaseTwoOutput, Task, ToolUse, View, Writing
from .purse import Purse
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
from .staging import Staging, aged, mode, prune_resources, seen, stage, take_in
from .surroundings import GLOBAL, FolderUnusable, Surroundings, Workspace

POLL_S = 0.05
TRIES = 8  # Inputs that keep changing under a run are left to the next one.
# Nothing was published, and what the root is made from may have changed: look again.
CLAIMED_AGAIN = ("inputs_changed", "lease_lost", "folder_edited")
ROOTS_PER_RUN = "max_roots_per_run"


class Claimed(Struct, frozen=True, kw_only=True):
    lease: Phase2LeaseClaimed
    inputs: tuple[Input, ...]
    outputs: tuple[PhaseTwoOutput, ...]
    published: Mapping[str, str]


def run(
    around: Surroundings,
    *,
    run_id: str,
    waiting: dict[str, int],
    unusable: list[Failure],
    budget: Purse | None = None,
    asked_for: bool = False,
) -> list[RootReport]:
    """Bring every root up to date. A folder that cannot be used keeps none of the others from it,
    and is added to `unusable`. `asked_for`: a person waives the rest after a success."""
    with around.store.reading() as view:
        found = roots(view, around.policy)
    reports: list[RootReport] = []
    consolidated = 0
    for root in in_turn(around, found, unusable=unusable):
        why = ROOTS_PER_RUN if consolidated >= most_roots(around) else None
        if budget is not None and budget.is_empty and around.consolidator.kind != "offline":
            why = "budget"
        if why is not None:
            if has_work(around, root):
                waiting[why] = waiting.get(why, 0) + 1
            continue
        try:
            with around.watch("consolidate", root) as tell:
                report = one_root(
                    around,
                    root,
                    run_id=run_id,
                    waiting=waiting,
                    budget=budget,
                    asked_for=asked_for,
                )
                tell(report)
        except FolderUnusable as error:
            unusable.append(error)
            continue
        except NoMoreCalls as stopped:
            reports.append(stopped.report)
            break
        if report is not None:
            reports.append(report)
            consolidated += report.status != "rendered"
    return reports


def most_roots(around: Surroundings) -> int | float:
    """How many roots a run may have consolidated: what costs nothing has no limit."""
    return inf if around.policy.provider is None else around.policy.max_roots_per_run


def in_turn(
    around: Surroundings, found: Sequence[Root], *, unusable: list[Failure]
) -> Sequence[Root]:
    """Where not all may have their turn, those of which the most has changed come first."""
    if len(found) <= most_roots(around):
        return found
    sizes: dict[Root, int] = {}
    for root in found:
        try:
            sizes[root] = difference(around, root)
        except FolderUnusable as error:
            unusable.append(error)
    return sorted(sizes, key=lambda root: -sizes[root])


def difference(around: Surroundings, root: Root) -> int:
    """How many sessions and files are others than in the last publication."""
    workspace = around.workspace(root.memory_version, root.scope)
    with around.store.reading() as view:
        now = {
            (each.thread_id, each.source_updated_at)
            for each in chosen_inputs(chosen(view, root, around.policy, now=around.now()))
        }
        before = {(row.thread_id, row.source_updated_at) for row in snapshot(view, root)}
        files = differing(view, root, workspace) or []
    return len(now ^ before) + len(files)


def has_work(around: Surroundings, root: Root) -> bool:
    return needs_work(around, root, around.workspace(root.memory_version, root.scope))


def one_root(
    around: Surroundings,
    root: Root,
    *,
    run_id: str,
    waiting: dict[str, int],
    budget: Purse | None = None,
    asked_for: bool = False,
) -> RootReport | None:
    """Bring one root up to date, waiting for whoever is at it. None: there is nothing to do."""
    workspace = around.workspace(root.memory_version, root.scope)
    if workspace.path.is_dir():
        with workspace.lock(holder=around.worker_id):
            adopt(around, root, workspace, run_id=run_id)
    caught_up = catch_up(around, root, workspace, run_id=run_id)
    for _ in range(TRIES):
        claimed = claim_when_free(
            around, root, workspace, run_id=run_id, waiting=waiting, asked_for=asked_for
        )
        if claimed is None:
            return caught_up
        report = consolidate(around, root, workspace, claimed, run_id=run_id, budget=budget)
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
    asked_for: bool = False,
) -> Claimed | None:
    """The root, once nobody else has it. What was read while another run was at work on it is
    consolidated then, and does not wait for the rest after that one's success."""
    waited = False
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
                    return claim(around, tx, root, asked_for=asked_for, waited=waited)
            # Somebody has had the root since we looked, and may have done what we saw: look again.
        except LeaseHeld:
            waited = True
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
        if aged(workspace, now=around.now()):
            return True
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


def claim(
    around: Surroundings,
    tx: Writing,
    root: Root,
    *,
    asked_for: bool = False,
    waited: bool = False,
) -> Claimed:
    now, policy = around.now(), around.policy
    waived: consolidation.Waived | None = "waited" if waited else None
    if around.consolidator.kind == "offline":
        waived = "offline"
    elif asked_for:
        waived = "person"
    lease = consolidation.claim(
        state.consolidation(tx, root.memory_version, root.scope),
        worker_id=around.worker_id,
        ownership_token=around.new_id(),
        cooldown_waived=waived,
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
    around: Surroundings,
    root: Root,
    workspace: Workspace,
    claimed: Claimed,
    *,
    run_id: str,
    budget: Purse | None = None,
) -> RootReport:
    report = RootReport(
        version=root.memory_version, scope=root.scope, status="", path=str(workspace.path)
    )
    asking = Asking(
        around, root, ownership_token=claimed.lease.ownership_token, run_id=run_id, budget=budget
    )
    try:
        with workspace.lock(holder=around.worker_id):
            prune_resources(workspace, now=around.now())
            found = take_in(around, root, workspace, run_id=run_id)
            with around.store.reading() as view:
                kept = with_edits(carried(view, root, salt=around.new_id()), found)
                staging = None
                left_out: Mapping[str, str] = {}
                if around.consolidator.kind != "offline":
                    kept, left_out = with_room(kept, found, claimed.published)
                    staging = stage(
                        around,
                        view,
                        root,
                        workspace,
                        outputs=claimed.outputs,
                        found=found.without(left_out),
                    )
        if staging is None:
            made = proposed(around, root, claimed, kept)
        else:
            made = answered(root, claimed, asking, staging, kept)
            made = msgspec.structs.replace(made, left_out={**made.left_out, **left_out})
        with workspace.lock(holder=around.worker_id):
            report.status = published_as(
                around, root, workspace, claimed, made, found, run_id=run_id
            )
            if report.status not in CLAIMED_AGAIN:
                fill(report, render(around, root, workspace, run_id=run_id))
                report.edits = [
                    *(edit.told for edit in found.edits),
                    *set_aside(workspace, made.left_out),
                    *report.edits,
                ]
                if report.added or report.modified or report.deleted:
                    report.status = "succeeded"  # The log's words are the same, the folder's not.
    except ConsolidationFailed as error:
        report.status = "failed"
        report.reason = error.reason
        report.advice = str(error.__cause__) if isinstance(error.__cause__, Failure) else None
        fail(around, root, claimed, error, run_id=run_id)
        if error.stops:
            raise NoMoreCalls(report) from error
    except LeaseLost as lost:
        report.status = "lease_lost"
        report.reason = str(lost)
    except BaseException:
        with suppress(Failure), around.store.writing(actor="pipeline", run_id=run_id) as tx:
            token, now = claimed.lease.ownership_token, around.now()
            give_back(tx, root, token, reason="stopped", tokens=asking.tokens, now=now)
        raise
    return report


def published_as(
    around: Surroundings,
    root: Root,
    workspace: Workspace,
    claimed: Claimed,
    made: "Made",
    found: Seen,
    *,
    run_id: str,
) -> str:
    """Publish, unless a person went on in the folder meanwhile: what they did is an input, too.
    The caller holds the workspace's lock until it has rendered."""
    actor = f"model:{made.consolidator}" if made.tokens.calls else "pipeline"
    with around.store.writing(actor=actor, run_id=run_id) as tx:
        job = state.consolidation(tx, root.memory_version, root.scope)
        consolidation.require_lease(job, claimed.lease.ownership_token)
        if seen(workspace, found.digests) == found.digests:
            return publish(around, tx, root, claimed, made, run_id=run_id)
        token, now = claimed.lease.ownership_token, around.now()
        give_back(tx, root, token, reason="folder_edited", tokens=made.tokens, now=now)
        return "folder_edited"


class NoMoreCalls(Exception):
    """A root's consolidation failed so that no other would fare better."""

    def __init__(self, report: RootReport) -> None:
        super().__init__(report.reason)
        self.report = report


class Made(Struct, frozen=True, kw_only=True):
    """What a root is to hold. `left_out`: a person's files that could not be part of it."""

    consolidator: str
    files: Mapping[str, str]
    carried: Carried
    left_out: Mapping[str, str] = {}
    tokens: Tokens = NO_TOKENS
    tool_calls: Mapping[str, int] = {}
    tool_uses: Sequence[ToolUse] = ()
    prompt_digest: str | None = None


def proposed(around: Surroundings, root: Root, claimed: Claimed, kept: Carried) -> Made:
    """What is written without a model, with what a person did to it."""
    task = Task(
        memory_version=root.memory_version,
        scope=root.scope,
        outputs=claimed.outputs,
        published=claimed.published,
    )
    files = around.consolidator.propose(task).files
    if problems(files, version=root.memory_version):
        raise ConsolidationFailed("failed_invalid_artifacts")
    return with_carried(
        files, kept, memory_version=root.memory_version, consolidator=around.consolidator.name
    )


def answered(
    root: Root, claimed: Claimed, asking: Asking, staging: Staging, kept: Carried
) -> Made:
    """What an agent makes of it. Where nothing has changed, nobody is asked."""
    name = asking.around.consolidator.name
    if not staging.changes and staging.is_valid:
        return Made(consolidator=name, files=claimed.published, carried=kept)
    task = Task(
        memory_version=root.memory_version,
        scope=root.scope,
        outputs=claimed.outputs,
        published=claimed.published,
        mode=mode(staging.files, root.memory_version),
        staged=staging.task_files,
        edited=staging.edited,
    )
    answer = asking.answer(task, staging, kept)
    still = {path: each for path, each in kept.files.items() if path in answer.files}
    return Made(
        consolidator=name,
        files=answer.files,
        carried=msgspec.structs.replace(kept, files=still),
        # A skill that went takes what a person did to it along; their words do not go unseen.
        left_out={
            path: staging.files[path]
            for path in kept.files
            if path not in still and path in staging.files
        },
        tokens=answer.tokens,
        tool_calls=answer.tool_calls,
        tool_uses=answer.tool_uses,
        prompt_digest=answer.prompt_digest,
    )


def with_carried(
    files: Mapping[str, str], kept: Carried, *, memory_version: str, consolidator: str
) -> Made:
    """The files with what a person did to them. Where that makes one unfit to be read as a
    memory, it is left out of it, and told."""
    with_all = {path: applied(kept, path, text) for path, text in files.items()}
    left_out: dict[str, str] = {}
    if problems(with_all, version=memory_version, grammar=False):
        for path, text in with_all.items():
            if problems({**files, path: text}, version=memory_version, grammar=False):
                left_out[path] = text
    still = {path: each for path, each in kept.files.items() if path not in left_out}
    return Made(
        consolidator=consolidator,
        files={path: files[path] if path in left_out else text for path, text in with_all.items()},
        carried=msgspec.structs.replace(kept, files=still),
        left_out=left_out,
    )


def set_aside(workspace: Workspace, left_out: Mapping[str, str]) -> list[str]:
    return [
        str(workspace.set_aside(path, text.encode("utf-8", "surrogatepass")))
        for path, text in sorted(left_out.items())
    ]


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
    made: Made,
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
        give_back(tx, root, token, reason="inputs_changed", tokens=made.tokens, now=now)
        return "inputs_changed"
    # This worker's clock may lag behind that of whoever read the sessions. A success that looked
    # older than what it was made from would count as made from something else.
    now = max([now, *(row.since for row in held.values())])
    selected = selection.snapshot(
        claimed.inputs, held={each: row.source_updated_at for each, row in held.items()}
    )
    changed = dict(made.files) != dict(claimed.published)
    before = carried(tx, root, salt=made.carried.salt)
    # What calls have cost is recorded also where they changed nothing.
    if changed or made.carried.files != before.files or made.tokens.calls:
        tx.append(stream, publication(around, tx, root, made, run_id=run_id, now=now))
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
    made: Made,
    *,
    run_id: str | None,
    now: int,
) -> ArtifactsPublished:
    owner = consolidation_stream(root.memory_version, root.scope)
    return ArtifactsPublished(
        at=now,
        memory_version=root.memory_version,
        scope=root.scope,
        run_id=run_id,
        consolidator=made.consolidator,
        prompt_digest=made.prompt_digest,
        files=tuple(tx.put(owner, body(path, text)) for path, text in sorted(made.files.items())),
        carried_ref=tx.put(owner, written(made.carried)) if made.carried.files else None,
        tokens=made.tokens,
        tool_calls=dict(made.tool_calls),
        tool_uses_ref=kept_uses(tx, root, made.tool_uses),
    )


def kept_uses(tx: Writing, root: Root, uses: Sequence[ToolUse]) -> str | None:
    """As a text that can be erased: whoever names a path may put words into it."""
    if not uses:
        return None
    owner = consolidation_stream(root.memory_version, root.scope)
    return tx.put(owner, msgspec.json.encode(uses).decode())


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
                delay_s=(
                    consolidation.RETRY_DELAY_S
                    if error.retry_after_s is None
                    else error.retry_after_s
                ),
                tokens=error.tokens,
                tool_uses_ref=kept_uses(tx, root, error.tool_uses),
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
    tokens: Tokens = NO_TOKENS,
    now: int,
) -> None:
    job = state.consolidation(tx, root.memory_version, root.scope)
    if token is None or job.status != "running" or job.ownership_token != token:
        return
    released = consolidation.release(
        job, ownership_token=token, reason=reason, tokens=tokens, now=now
    )
    tx.append(consolidation_stream(root.memory_version, root.scope), released)


def fill(report: RootReport, rendered: Rendered) -> None:
    report.added, report.modified = rendered.added, rendered.modified
    report.deleted, report.edits = rendered.deleted, rendered.edits
