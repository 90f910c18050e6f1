"""Outcomes: how a reading ended, recorded in one transaction, by whoever still has the lease.

An output, nothing worth keeping, a failure, or the lease given back; each with what it has cost.
"""

from contextlib import suppress
from typing import Literal

from ..domain import extraction
from ..domain.events import NO_TOKENS, Stage1LeaseClaimed, Tokens, extraction_stream, thread_stream
from ..domain.refusals import LeaseLost
from . import state
from .kept import kept
from .ports import Extracted, ExtractionFailed, Writing
from .requests import request, root_of
from .surroundings import Surroundings

Outcome = Literal["succeeded", "no_output", "failed"]


def record(
    around: Surroundings,
    tx: Writing,
    claimed: Stage1LeaseClaimed,
    found: Extracted | None,
    *,
    backfill: bool,
) -> bool:
    """Record what a reading found, and ask phase 2 for the root. True: there is an output."""
    now, version, thread_id = around.now(), claimed.memory_version, claimed.thread_id
    job = state.extraction(tx, version, thread_id)
    token = claimed.ownership_token
    stream = extraction_stream(version, thread_id)
    thread = state.thread(tx, thread_id)
    scope = root_of(thread.scope, around.policy)
    output = None if found is None else kept(found, version)
    if found is None or output is None:
        nothing = extraction.succeed_without_output(
            job,
            ownership_token=token,
            extractor=around.extractor.name,
            prompt_digest=found.prompt_digest if found else None,
            omitted=found.omitted if found else 0,
            omitted_bytes=found.omitted_bytes if found else 0,
            tokens=found.tokens if found else NO_TOKENS,
            now=now,
        )
        tx.append(stream, nothing)
        if nothing.output_removed and scope is not None:
            request(
                tx,
                version,
                scope,
                cause="no_output",
                thread_id=thread_id,
                watermark=claimed.input_watermark,
                now=now,
            )
        return False
    extraction.require_lease(job, token)
    owner = thread_stream(thread_id)
    slug = (found.rollout_slug or "").strip()
    done = extraction.succeed(
        job,
        ownership_token=token,
        raw_memory_ref=tx.put(owner, output.raw_memory),
        rollout_summary_ref=tx.put(owner, output.rollout_summary),
        rollout_slug_ref=tx.put(owner, slug) if slug else None,
        evidence_ref=tx.put(owner, found.evidence) if found.evidence else None,
        memory_mode=thread.mode,
        scope=thread.scope,
        extractor=around.extractor.name,
        counts_from=now if backfill else None,
        prompt_digest=found.prompt_digest,
        suppressed=found.suppressed,
        omitted=found.omitted,
        omitted_bytes=found.omitted_bytes,
        tokens=found.tokens,
        now=now,
    )
    tx.append(stream, done)
    if scope is not None:
        request(
            tx,
            version,
            scope,
            cause="output",
            thread_id=thread_id,
            watermark=done.source_updated_at,
            now=now,
        )
    return True


def fail(
    around: Surroundings, lease: Stage1LeaseClaimed, error: ExtractionFailed, *, run_id: str
) -> None:
    """Record that a reading came to nothing. One that was not begun for want of a budget is given
    back: it has failed at nothing."""
    if is_for_want_of_a_budget(error):
        give_back(around, lease, error.tokens, run_id=run_id, reason="budget")
        return
    stream = extraction_stream(lease.memory_version, lease.thread_id)
    with suppress(LeaseLost), around.store.writing(actor="pipeline", run_id=run_id) as tx:
        # Where it was forgotten or taken over meanwhile there is nothing of ours to record.
        failed = extraction.fail(
            state.extraction(tx, lease.memory_version, lease.thread_id),
            ownership_token=lease.ownership_token,
            kind=error.kind,
            reason=error.reason,
            retry_after_s=error.retry_after_s,
            tokens=error.tokens,
            now=around.now(),
        )
        tx.append(stream, failed)


def is_for_want_of_a_budget(answer: object) -> bool:
    return isinstance(answer, ExtractionFailed) and answer.reason == "budget"


def give_back(
    around: Surroundings,
    lease: Stage1LeaseClaimed,
    tokens: Tokens,
    *,
    run_id: str,
    reason: extraction.ReleaseReason = "stopped",
) -> None:
    with around.store.writing(actor="pipeline", run_id=run_id) as tx:
        released = extraction.release(
            state.extraction(tx, lease.memory_version, lease.thread_id),
            ownership_token=lease.ownership_token,
            reason=reason,
            tokens=tokens,
            now=around.now(),
        )
        tx.append(extraction_stream(lease.memory_version, lease.thread_id), released)
