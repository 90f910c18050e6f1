"""Phase 2: each memory root is consolidated, published, and rendered; one worker a root.

The claim, the publication and the render are a transaction each. Who works on a root and who waits
is decided in `lease`, what may be published in `publication`.
"""

from collections.abc import Sequence
from contextlib import suppress
from math import inf

import msgspec

from ..domain import consolidation
from ..domain.artifact import problems
from ..domain.carried import Carried
from ..domain.events import consolidation_stream
from ..domain.refusals import LeaseLost
from . import state
from .asking import Asking
from .edits import ByHand, carried, let_go, with_edits, with_room
from .folder import differing, is_behind
from .lease import Claimed, claim_when_free, give_back, needs_work, pay
from .notes import adopt
from .ports import ConsolidationFailed, Failure, Task
from .publication import Made, kept_uses, publish, set_aside, with_carried
from .purse import Purse
from .render import Rendered, render
from .reports import RootReport
from .roots import Root, chosen, chosen_inputs, published, roots, snapshot
from .staging import Staged, mode, prune_resources, seen, stage, take_in
from .surroundings import FolderUnusable, Surroundings, Workspace

TRIES = 8  # Inputs that keep changing under a run are left to the next one.
# Nothing was published, and what the root is made from may have changed: look again.
CLAIMED_AGAIN = ("inputs_changed", "lease_lost", "folder_edited")
ROOTS_PER_RUN = "max_roots_per_run"


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
        try:
            if why is not None:
                if needs_work(around, root, around.workspace(root.memory_version, root.scope)):
                    waiting[why] = waiting.get(why, 0) + 1
                continue
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
        made, found = what_is_made(around, root, workspace, claimed, asking)
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
        with around.store.writing(actor="pipeline", run_id=run_id) as tx:
            token, now = claimed.lease.ownership_token, around.now()
            pay(tx, root, token, tokens=asking.tokens, now=now)
    except BaseException:
        with suppress(Failure), around.store.writing(actor="pipeline", run_id=run_id) as tx:
            token, now = claimed.lease.ownership_token, around.now()
            give_back(tx, root, token, reason="stopped", tokens=asking.tokens, now=now)
        raise
    return report


def what_is_made(
    around: Surroundings, root: Root, workspace: Workspace, claimed: Claimed, asking: Asking
) -> tuple[Made, ByHand]:
    """What the root is to hold, and what a person had done to it when that was begun."""
    with workspace.lock(holder=around.worker_id):
        prune_resources(workspace, now=around.now())
        found = take_in(around, root, workspace, run_id=asking.run_id)
        with around.store.reading() as view:
            kept = with_edits(carried(view, root, salt=around.new_id()), found)
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
    if around.consolidator.kind == "offline":
        return proposed(around, root, claimed, kept, found), found
    made = answered(root, claimed, asking, staging, kept)
    return msgspec.structs.replace(made, left_out={**made.left_out, **left_out}), found


def published_as(
    around: Surroundings,
    root: Root,
    workspace: Workspace,
    claimed: Claimed,
    made: Made,
    found: ByHand,
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


def proposed(
    around: Surroundings, root: Root, claimed: Claimed, kept: Carried, found: ByHand
) -> Made:
    """What is written without a model, with what a person did to it. It writes no skill: of one
    that a person has changed, what they left is laid aside."""
    task = Task(
        memory_version=root.memory_version,
        scope=root.scope,
        outputs=claimed.outputs,
        published=claimed.published,
    )
    files = around.consolidator.propose(task).files
    if problems(files, version=root.memory_version):
        raise ConsolidationFailed("failed_invalid_artifacts")
    gone = kept.files.keys() - files.keys()
    kept, left_out = let_go(kept, found, claimed.published, gone)
    made = with_carried(
        files, kept, memory_version=root.memory_version, consolidator=around.consolidator.name
    )
    return msgspec.structs.replace(made, left_out={**made.left_out, **left_out})


def answered(root: Root, claimed: Claimed, asking: Asking, staging: Staged, kept: Carried) -> Made:
    """What an agent makes of it. Where nothing has changed, nobody is asked."""
    name = asking.around.consolidator.name
    if not staging.changes:  # What was published was looked through then.
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
                prompt_digest=error.prompt_digest,
                tokens=error.tokens,
                tool_uses_ref=kept_uses(tx, root, error.tool_uses),
                now=around.now(),
            )
        except LeaseLost:
            # Somebody else has the job now; how ours ended is nothing to them.
            pay(tx, root, claimed.lease.ownership_token, tokens=error.tokens, now=around.now())
            return
        tx.append(consolidation_stream(root.memory_version, root.scope), failed)


def fill(report: RootReport, rendered: Rendered) -> None:
    report.added, report.modified = rendered.added, rendered.modified
    report.deleted, report.edits = rendered.deleted, rendered.edits
