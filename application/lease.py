"""The lease of a root: taken where there is work and nobody is at it, and given back.

Looking costs nothing and leaves no event: a root that is as its last success left it is not
claimed. Whoever finds another at work waits for the end of that, and looks again.
"""

from collections.abc import Mapping

from msgspec import Struct

from ..domain import consolidation
from ..domain.events import (
    NO_TOKENS,
    Input,
    Phase2InputsSelected,
    Phase2LeaseClaimed,
    Phase2Paid,
    Tokens,
    consolidation_stream,
)
from ..domain.refusals import BackingOff, CoolingDown, LeaseHeld
from ..domain.selection import cutoff_at
from ..projections import jobs
from . import state
from .folder import is_current
from .ports import PhaseTwoOutput, View, Writing
from .roots import (
    Root,
    chosen,
    chosen_inputs,
    is_reworded,
    is_unchanged,
    published,
    snapshot,
    texts,
)
from .staging import aged
from .surroundings import GLOBAL, Surroundings, Workspace

POLL_S = 0.05


class Claimed(Struct, frozen=True, kw_only=True):
    lease: Phase2LeaseClaimed
    inputs: tuple[Input, ...]
    outputs: tuple[PhaseTwoOutput, ...]
    published: Mapping[str, str]


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


def pay(tx: Writing, root: Root, token: str, *, tokens: Tokens, now: int) -> None:
    """Whoever has lost the lease records what its calls have cost, and nothing else."""
    if not tokens.calls:
        return
    paid = Phase2Paid(
        at=now,
        memory_version=root.memory_version,
        scope=root.scope,
        ownership_token=token,
        tokens=tokens,
    )
    tx.append(consolidation_stream(root.memory_version, root.scope), paid)
