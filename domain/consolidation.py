"""Consolidation: the phase-2 job of one memory root, which folds the selected outputs into it.

Two promises are kept here and nowhere else: the lease never has two holders, and neither
watermark ever moves back. A command is a function from the state to the event to record, or it
raises a `Refused`. Only `evolve` changes the state. Time is an argument.
"""

from collections.abc import Iterable
from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from .events import (
    NO_TOKENS,
    ArtifactsPublished,
    ConsolidationEvent,
    ConsolidationRequested,
    FolderEdited,
    Input,
    Phase2Failed,
    Phase2InputsSelected,
    Phase2LeaseClaimed,
    Phase2LeaseReleased,
    Phase2LeaseRenewed,
    Phase2Paid,
    Phase2Succeeded,
    RootRendered,
    Selected,
    StoreReset,
    Tokens,
)
from .refusals import BackingOff, CoolingDown, LeaseHeld, LeaseLost

COOLDOWN_S = 6 * 3600
LEASE_S = 3600
RETRIES = 3
RETRY_DELAY_S = 3600

Status = Literal["none", "pending", "running", "done", "error"]
ReleaseReason = Literal["stopped", "inputs_changed", "folder_edited", "forgotten"]
Waived = Literal["offline", "person", "waited"]
Folded = ConsolidationEvent | StoreReset


class Consolidation(Struct, frozen=True, kw_only=True):
    """The job row of one root. A root that was never asked for is `none`, and can be claimed."""

    memory_version: str
    scope: str
    status: Status = "none"
    worker_id: str | None = None
    ownership_token: str | None = None
    finished_at: int | None = None
    lease_until: int | None = None
    retry_at: int | None = None
    retry_remaining: int = RETRIES
    last_error: str | None = None
    input_watermark: int = 0
    last_success_watermark: int = 0


def request(
    job: Consolidation, *, cause: str, thread_id: str | None, watermark: int, now: int
) -> ConsolidationRequested:
    """Say that the root's inputs changed. That lifts a failure's wait, not a success's rest."""
    # A deletion brings no newer source, yet phase 2 must hear of it: always step past the last.
    return ConsolidationRequested(
        at=now,
        memory_version=job.memory_version,
        scope=job.scope,
        cause=cause,
        thread_id=thread_id,
        input_watermark=max(watermark, job.input_watermark + 1),
        backoff_cleared=job.status != "running" and job.retry_at is not None,
        retry_remaining=max(job.retry_remaining, RETRIES),
    )


def claim(
    job: Consolidation,
    *,
    worker_id: str,
    ownership_token: str,
    lease_s: int = LEASE_S,
    cooldown_waived: Waived | None = None,
    now: int,
) -> Phase2LeaseClaimed:
    """Take the job. The rest after a success limits cost; who may waive it is the caller's rule.

    Tries are counted and never stop a claim: a request comes with each new output anyway.
    """
    if job.retry_at is not None and job.retry_at > now:
        raise BackingOff(name(job), job.last_error, until=job.retry_at)
    if is_held(job, now=now):
        assert job.worker_id is not None
        assert job.lease_until is not None
        raise LeaseHeld(name(job), job.worker_id, until=job.lease_until)
    rests_until = rest_ends(job)
    if rests_until is not None and rests_until > now and cooldown_waived is None:
        raise CoolingDown(until=rests_until)
    return Phase2LeaseClaimed(
        at=now,
        memory_version=job.memory_version,
        scope=job.scope,
        ownership_token=ownership_token,
        worker_id=worker_id,
        input_watermark=job.input_watermark,
        lease_until=now + max(lease_s, 0),
        taken_over_from=job.ownership_token if job.status == "running" else None,
        retry_remaining=job.retry_remaining,
        cooldown_waived=cooldown_waived,
    )


def renew(
    job: Consolidation, *, ownership_token: str, lease_s: int = LEASE_S, now: int
) -> Phase2LeaseRenewed:
    """Keep the lease, even one that has run out, as long as nobody has taken it over."""
    require_lease(job, ownership_token)
    return Phase2LeaseRenewed(
        at=now,
        memory_version=job.memory_version,
        scope=job.scope,
        ownership_token=ownership_token,
        lease_until=now + max(lease_s, 0),
    )


def release(
    job: Consolidation,
    *,
    ownership_token: str,
    reason: ReleaseReason,
    tokens: Tokens = NO_TOKENS,
    now: int,
) -> Phase2LeaseReleased:
    """Give the job back unfinished. No try is spent, and it can be claimed at once."""
    require_lease(job, ownership_token)
    return Phase2LeaseReleased(
        at=now,
        memory_version=job.memory_version,
        scope=job.scope,
        ownership_token=ownership_token,
        reason=reason,
        tokens=tokens,
    )


def succeed(
    job: Consolidation,
    *,
    ownership_token: str,
    completed_watermark: int,
    selected: tuple[Selected, ...],
    no_changes: bool = False,
    now: int,
) -> Phase2Succeeded:
    require_lease(job, ownership_token)
    return Phase2Succeeded(
        at=now,
        memory_version=job.memory_version,
        scope=job.scope,
        ownership_token=ownership_token,
        completed_watermark=completed_watermark,
        last_success_watermark=max(completed_watermark, job.last_success_watermark),
        selected=selected,
        no_changes=no_changes,
    )


def fail(
    job: Consolidation,
    *,
    ownership_token: str,
    reason: str,
    delay_s: int = RETRY_DELAY_S,
    prompt_digest: str | None = None,
    tokens: Tokens = NO_TOKENS,
    tool_uses_ref: str | None = None,
    now: int,
) -> Phase2Failed:
    require_lease(job, ownership_token)
    return Phase2Failed(
        at=now,
        memory_version=job.memory_version,
        scope=job.scope,
        ownership_token=ownership_token,
        reason=reason,
        retry_at=now + max(delay_s, 0),
        retry_remaining=max(job.retry_remaining - 1, 0),
        prompt_digest=prompt_digest,
        tokens=tokens,
        tool_uses_ref=tool_uses_ref,
    )


def completed_watermark(claimed: int, inputs: Iterable[Input]) -> int:
    """How far a success reaches: what was asked for at the claim, and everything that was read."""
    return max([claimed, *(read.source_updated_at for read in inputs)])


def is_held(job: Consolidation, *, now: int) -> bool:
    return job.status == "running" and job.lease_until is not None and job.lease_until > now


def rest_ends(job: Consolidation) -> int | None:
    """When the rest after a success ends. A failure and a request leave no or the same rest."""
    if job.finished_at is None or job.last_error is not None:
        return None
    return job.finished_at + COOLDOWN_S


def require_lease(job: Consolidation, ownership_token: str) -> None:
    if job.status != "running" or job.ownership_token != ownership_token:
        raise LeaseLost(ownership_token)


def name(job: Consolidation) -> str:
    return f"phase 2 of {job.scope} ({job.memory_version})"


def evolve(job: Consolidation, event: Folded) -> Consolidation:
    match event:
        case ConsolidationRequested():
            running = job.status == "running"
            return replace(
                job,
                status="running" if running else "pending",
                retry_at=job.retry_at if running else None,
                retry_remaining=event.retry_remaining,
                input_watermark=event.input_watermark,
            )
        case Phase2LeaseClaimed():
            return replace(
                job,
                status="running",
                worker_id=event.worker_id,
                ownership_token=event.ownership_token,
                finished_at=None,
                lease_until=event.lease_until,
                retry_at=None,
                retry_remaining=event.retry_remaining,
                last_error=None,
            )
        case Phase2LeaseRenewed(lease_until=until):
            return replace(job, lease_until=until)
        case Phase2LeaseReleased():
            return replace(job, status="pending", lease_until=None)
        case Phase2Succeeded(at=at, last_success_watermark=watermark):
            return replace(
                job,
                status="done",
                finished_at=at,
                lease_until=None,
                last_error=None,
                last_success_watermark=watermark,
            )
        case Phase2Failed():
            return replace(
                job,
                status="error",
                finished_at=event.at,
                lease_until=None,
                retry_at=event.retry_at,
                retry_remaining=event.retry_remaining,
                last_error=event.reason,
            )
        case Phase2InputsSelected() | ArtifactsPublished() | RootRendered() | FolderEdited():
            return job  # What was read, published and edited is the root's, not the job's.
        case Phase2Paid():
            return job
        case StoreReset(memory_version=emptied):
            if emptied != job.memory_version:
                return job
            return Consolidation(memory_version=job.memory_version, scope=job.scope)
        case _:
            assert_never(event)
