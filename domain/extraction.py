"""Extraction: the phase-1 job of one thread in one memory version, its output, and its usage.

What is promised: one worker reads a session at a time, no more sessions are being read than the
cap allows, a reading never replaces a newer one, and a session that was read is not read again
until it goes on. A claim costs nothing, with one exception: taking over a lease that ran out
spends a try, so that a session which kills its worker is not read for ever.

Guards, their order and the watermark's arithmetic are Codex's. How long a transient failure waits
follows from `transient_failures`, which counts those in a row: it survives the claims between
them, and ends with a success or a failure of another kind.
"""

from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from .events import (
    NO_TOKENS,
    Cited,
    ExtractionEvent,
    ForgettingLifted,
    Mode,
    OutputWithdrawn,
    Stage1Failed,
    Stage1LeaseClaimed,
    Stage1LeaseReleased,
    Stage1Paid,
    Stage1Succeeded,
    Stage1SucceededNoOutput,
    StoreReset,
    ThreadForgotten,
    Tokens,
)
from .refusals import (
    BackingOff,
    CapReached,
    Forgotten,
    LeaseHeld,
    LeaseLost,
    NoOutput,
    RetryExhausted,
    StillSelected,
    UpToDate,
)

LEASE_S = 3600
RETRIES = 3
RETRY_DELAY_S = 3600
TRANSIENT_DELAY_S = 60
OFFLINE = "offline"

Status = Literal["none", "pending", "running", "done", "error"]
FailureKind = Literal["bad_reply", "refused", "too_long", "transient", "source"]
ReleaseReason = Literal["stopped", "worker_gone", "budget"]
Folded = ExtractionEvent | ThreadForgotten | ForgettingLifted | StoreReset


class Extraction(Struct, frozen=True, kw_only=True):
    """The job row, the output row, and what two other rows say: `forgotten` is the thread's,
    `selected` is whether the root's last success holds the output (a matched snapshot)."""

    thread_id: str
    memory_version: str
    status: Status = "none"
    worker_id: str | None = None
    ownership_token: str | None = None
    lease_until: int | None = None
    retry_at: int | None = None
    retry_remaining: int = RETRIES
    transient_failures: int = 0
    last_error: str | None = None
    input_watermark: int | None = None
    last_success_watermark: int | None = None
    extractor: str | None = None
    output_source_updated_at: int | None = None
    usage_count: int = 0
    last_usage: int | None = None
    selected: bool = False
    forgotten: bool = False


def watermark_of(updated_at_ms: int) -> int:
    """The second that a reading of the session is known by."""
    return updated_at_ms // 1000


def is_up_to_date(job: Extraction, *, watermark: int, extractor: str, again: bool = False) -> bool:
    """Read as it is now, and by a reader as good: what `offline` read is stale for a model.

    A session that went back in time stays up to date whoever asks: nothing newer is replaced.
    """
    newest = max(
        -1 if known is None else known
        for known in (job.output_source_updated_at, job.last_success_watermark)
    )
    stale = again or (job.extractor == OFFLINE and extractor != OFFLINE)
    return newest > watermark or (newest == watermark and not stale)


def claim(
    job: Extraction,
    *,
    watermark: int,
    extractor: str,
    worker_id: str,
    ownership_token: str,
    lease_s: int = LEASE_S,
    running_elsewhere: int,
    running_cap: int,
    again: bool = False,
    now: int,
) -> Stage1LeaseClaimed:
    """Take the job. `running_elsewhere` counts the version's other jobs under a fresh lease.

    `again` is a person's word: what is up to date is read again, and what failed is tried anew.
    """
    if job.forgotten:
        raise Forgotten(job.thread_id)
    if is_up_to_date(job, watermark=watermark, extractor=extractor, again=again):
        raise UpToDate(name(job), watermark=watermark)

    advanced = again or watermark > (-1 if job.input_watermark is None else job.input_watermark)
    if job.retry_remaining <= 0 and not advanced:
        raise RetryExhausted(name(job), job.last_error)
    if job.retry_at is not None and job.retry_at > now and not advanced:
        raise BackingOff(name(job), job.last_error, until=job.retry_at)
    if is_held(job, now=now):
        assert job.worker_id is not None
        assert job.lease_until is not None
        raise LeaseHeld(name(job), job.worker_id, until=job.lease_until)
    if running_elsewhere >= running_cap:
        raise CapReached(name(job), running=running_elsewhere, cap=running_cap)

    ran_out = job.status == "running"
    left = RETRIES if advanced else job.retry_remaining - ran_out
    return Stage1LeaseClaimed(
        at=now,
        thread_id=job.thread_id,
        memory_version=job.memory_version,
        ownership_token=ownership_token,
        worker_id=worker_id,
        input_watermark=watermark,
        lease_until=now + max(lease_s, 0),
        retry_remaining=left,
        taken_over_from=job.ownership_token if ran_out else None,
    )


def release(
    job: Extraction,
    *,
    ownership_token: str,
    reason: ReleaseReason = "stopped",
    tokens: Tokens = NO_TOKENS,
    now: int,
) -> Stage1LeaseReleased:
    """Give the job back unfinished. For a worker that was killed that spends a try, as taking over
    a lease that ran out does: a session that kills its worker is not read for ever."""
    require_lease(job, ownership_token)
    return Stage1LeaseReleased(
        at=now,
        thread_id=job.thread_id,
        memory_version=job.memory_version,
        ownership_token=ownership_token,
        reason=reason,
        tokens=tokens,
        retry_remaining=max(job.retry_remaining - 1, 0) if reason == "worker_gone" else None,
    )


def succeed(
    job: Extraction,
    *,
    ownership_token: str,
    raw_memory_ref: str,
    rollout_summary_ref: str,
    rollout_slug_ref: str | None,
    memory_mode: Mode,
    scope: str,
    extractor: str,
    source_updated_at: int | None = None,
    counts_from: int | None = None,
    evidence_ref: str | None = None,
    prompt_digest: str | None = None,
    suppressed: int = 0,
    omitted: int = 0,
    omitted_bytes: int = 0,
    tokens: Tokens = NO_TOKENS,
    now: int,
) -> Stage1Succeeded:
    """Record a reading. One older than the output we hold finishes the job and replaces nothing.

    The reading is the one that was claimed, unless `source_updated_at` says otherwise. A backfill
    gives `counts_from`: its sessions would be too old on the day they are first read.
    """
    read = claimed_watermark(job, ownership_token)
    read_at = read if source_updated_at is None else source_updated_at
    held = job.output_source_updated_at
    return Stage1Succeeded(
        at=now,
        thread_id=job.thread_id,
        memory_version=job.memory_version,
        ownership_token=ownership_token,
        input_watermark=read,
        source_updated_at=read_at,
        raw_memory_ref=raw_memory_ref,
        rollout_summary_ref=rollout_summary_ref,
        rollout_slug_ref=rollout_slug_ref,
        memory_mode=memory_mode,
        scope=scope,
        output_replaced=held is None or read_at >= held,
        counts_from=read_at if counts_from is None else counts_from,
        evidence_ref=evidence_ref,
        extractor=extractor,
        prompt_digest=prompt_digest,
        suppressed=suppressed,
        omitted=omitted,
        omitted_bytes=omitted_bytes,
        tokens=tokens,
    )


def succeed_without_output(
    job: Extraction,
    *,
    ownership_token: str,
    extractor: str,
    prompt_digest: str | None = None,
    omitted: int = 0,
    omitted_bytes: int = 0,
    tokens: Tokens = NO_TOKENS,
    now: int,
) -> Stage1SucceededNoOutput:
    """The session teaches nothing. That counts as read, and takes an earlier output away."""
    return Stage1SucceededNoOutput(
        at=now,
        thread_id=job.thread_id,
        memory_version=job.memory_version,
        ownership_token=ownership_token,
        input_watermark=claimed_watermark(job, ownership_token),
        output_removed=job.output_source_updated_at is not None,
        extractor=extractor,
        prompt_digest=prompt_digest,
        omitted=omitted,
        omitted_bytes=omitted_bytes,
        tokens=tokens,
    )


def fail(
    job: Extraction,
    *,
    ownership_token: str,
    kind: FailureKind,
    reason: str,
    retry_after_s: int | None = None,
    prompt_digest: str | None = None,
    tokens: Tokens = NO_TOKENS,
    now: int,
) -> Stage1Failed:
    """A bad or too long reply spends a try and waits. A transient failure spends none, and waits
    as long as it was told to, else twice as long as the last time. A refusal and an unreadable
    source will not get better by waiting: they close the job until the session goes on."""
    require_lease(job, ownership_token)
    left = job.retry_remaining
    delay_s: int | None
    match kind:
        case "transient":
            delay_s = min(TRANSIENT_DELAY_S << min(job.transient_failures, 6), RETRY_DELAY_S)
        case "bad_reply" | "too_long":
            delay_s, left = RETRY_DELAY_S, max(left - 1, 0)
        case "refused" | "source":
            delay_s, left = None, 0
        case _:
            assert_never(kind)
    if delay_s is not None and retry_after_s is not None:
        delay_s = max(retry_after_s, 0)
    return Stage1Failed(
        at=now,
        thread_id=job.thread_id,
        memory_version=job.memory_version,
        ownership_token=ownership_token,
        reason=reason,
        kind=kind,
        retry_at=None if delay_s is None else now + delay_s,
        retry_remaining=left,
        prompt_digest=prompt_digest,
        tokens=tokens,
    )


def withdraw(job: Extraction, *, reason: str = "pruned", now: int) -> OutputWithdrawn:
    """Take an aged output away. That it was read stays known, so it is not read again."""
    if job.output_source_updated_at is None:
        raise NoOutput(job.thread_id)
    if job.selected:
        raise StillSelected(job.thread_id)
    return OutputWithdrawn(
        at=now, thread_id=job.thread_id, memory_version=job.memory_version, reason=reason
    )


def cite(
    job: Extraction,
    *,
    citation_id: str,
    counted_before: bool = False,
    used_at: int | None = None,
    now: int,
) -> Cited | None:
    """Count a use. None without a live output, and for a citation that was counted before. One
    that is found late was in use when it was cited (`used_at`), and not later than now."""
    if job.output_source_updated_at is None or counted_before:
        return None
    return Cited(
        at=now,
        thread_id=job.thread_id,
        memory_version=job.memory_version,
        citation_id=citation_id,
        usage_count=job.usage_count + 1,
        used_at=None if used_at is None or used_at >= now else used_at,
    )


def is_held(job: Extraction, *, now: int) -> bool:
    return job.status == "running" and job.lease_until is not None and job.lease_until > now


def require_lease(job: Extraction, ownership_token: str) -> None:
    """A lease that ran out is still the holder's until somebody takes it over."""
    if job.status != "running" or job.ownership_token != ownership_token:
        raise LeaseLost(ownership_token)


def claimed_watermark(job: Extraction, ownership_token: str) -> int:
    require_lease(job, ownership_token)
    assert job.input_watermark is not None, "a claim always names the reading it wants"
    return job.input_watermark


def name(job: Extraction) -> str:
    return f"thread {job.thread_id} ({job.memory_version})"


def evolve(job: Extraction, event: Folded) -> Extraction:
    match event:
        case Stage1LeaseClaimed():
            return replace(
                job,
                status="running",
                worker_id=event.worker_id,
                ownership_token=event.ownership_token,
                lease_until=event.lease_until,
                retry_at=None,
                retry_remaining=event.retry_remaining,
                last_error=None,
                input_watermark=event.input_watermark,
            )
        case Stage1LeaseReleased(retry_remaining=left):
            kept = job.retry_remaining if left is None else left
            return replace(job, status="pending", lease_until=None, retry_remaining=kept)
        case Stage1Succeeded():
            read = done(job, watermark=event.input_watermark, extractor=event.extractor)
            if not event.output_replaced:
                return read
            return replace(read, output_source_updated_at=event.source_updated_at)
        case Stage1SucceededNoOutput():
            read = done(job, watermark=event.input_watermark, extractor=event.extractor)
            return without_output(read)
        case Stage1Failed():
            transient = event.kind == "transient"
            return replace(
                job,
                status="error",
                lease_until=None,
                retry_at=event.retry_at,
                retry_remaining=event.retry_remaining,
                transient_failures=job.transient_failures + 1 if transient else 0,
                last_error=event.reason,
            )
        case Stage1Paid():
            return job
        case OutputWithdrawn():
            return without_output(job)
        case Cited(usage_count=count):
            return replace(job, usage_count=count, last_usage=last_used(job.last_usage, event))
        case ThreadForgotten():  # The job goes too: whoever reads the session has lost its lease.
            return blank(job, forgotten=True)
        case ForgettingLifted():
            return replace(job, forgotten=False)
        case StoreReset(memory_version=emptied):
            return blank(job, forgotten=job.forgotten) if emptied == job.memory_version else job
        case _:
            assert_never(event)


def last_used(before: int | None, event: Cited) -> int:
    """A use that was found late is not the last one where a later one was known."""
    return event.at if event.used_at is None else max(before or 0, event.used_at)


def done(job: Extraction, *, watermark: int, extractor: str) -> Extraction:
    return replace(
        job,
        status="done",
        lease_until=None,
        transient_failures=0,
        last_error=None,
        last_success_watermark=watermark,
        extractor=extractor,
    )


def without_output(job: Extraction) -> Extraction:
    return replace(
        job, output_source_updated_at=None, usage_count=0, last_usage=None, selected=False
    )


def blank(job: Extraction, *, forgotten: bool) -> Extraction:
    return Extraction(
        thread_id=job.thread_id, memory_version=job.memory_version, forgotten=forgotten
    )
