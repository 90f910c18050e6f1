"""Outcomes: how a reading ended, recorded in one transaction, by whoever still has the lease.

An output, nothing worth keeping, a failure, or the lease given back; each with what it has cost.
"""

from typing import Literal, TypedDict

from ..domain import extraction
from ..domain.events import (
    Stage1LeaseClaimed,
    Stage1Paid,
    Stage1Succeeded,
    Stage1SucceededNoOutput,
    Tokens,
    extraction_stream,
    thread_stream,
)
from ..domain.refusals import LeaseLost
from . import state
from .kept import kept
from .ports import Extracted, ExtractionFailed, Writing
from .requests import request, root_of
from .surroundings import Surroundings

Outcome = Literal["succeeded", "no_output", "failed"]
NOTHING = Extracted(raw_memory="", rollout_summary="", rollout_slug=None)


class Refs(TypedDict):
    raw_memory_ref: str
    rollout_summary_ref: str
    rollout_slug_ref: str | None
    evidence_ref: str | None


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
    extraction.require_lease(job, claimed.ownership_token)
    thread = state.thread(tx, thread_id)
    found = found or NOTHING
    output = kept(found, version)
    done: Stage1Succeeded | Stage1SucceededNoOutput
    if output is None:
        done = extraction.succeed_without_output(
            job,
            ownership_token=claimed.ownership_token,
            extractor=around.extractor.name,
            prompt_digest=found.prompt_digest,
            omitted=found.omitted,
            omitted_bytes=found.omitted_bytes,
            tokens=found.tokens,
            now=now,
        )
        is_changed = done.output_removed
    else:
        done = extraction.succeed(
            job,
            ownership_token=claimed.ownership_token,
            **refs(tx, thread_stream(thread_id), output),
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
        is_changed = True
    tx.append(extraction_stream(version, thread_id), done)
    scope = root_of(thread.scope, around.policy)
    if is_changed and scope is not None:
        request(
            tx,
            version,
            scope,
            cause="no_output" if output is None else "output",
            thread_id=thread_id,
            watermark=claimed.input_watermark,
            now=now,
        )
    return output is not None


def refs(tx: Writing, owner: str, output: Extracted) -> Refs:
    """Its texts, kept as bodies that the thread owns."""
    slug = (output.rollout_slug or "").strip()
    return Refs(
        raw_memory_ref=tx.put(owner, output.raw_memory),
        rollout_summary_ref=tx.put(owner, output.rollout_summary),
        rollout_slug_ref=tx.put(owner, slug) if slug else None,
        evidence_ref=tx.put(owner, output.evidence) if output.evidence else None,
    )


def fail(
    around: Surroundings, lease: Stage1LeaseClaimed, error: ExtractionFailed, *, run_id: str
) -> None:
    """Record that a reading came to nothing. One that was not begun for want of a budget is given
    back: it has failed at nothing."""
    if is_for_want_of_a_budget(error):
        give_back(around, lease, error.tokens, run_id=run_id, reason="budget")
        return
    stream = extraction_stream(lease.memory_version, lease.thread_id)
    with around.store.writing(actor="pipeline", run_id=run_id) as tx:
        try:
            failed = extraction.fail(
                state.extraction(tx, lease.memory_version, lease.thread_id),
                ownership_token=lease.ownership_token,
                kind=error.kind,
                reason=error.reason,
                retry_after_s=error.retry_after_s,
                prompt_digest=(
                    around.extractor.digest(lease.memory_version) if error.tokens.calls else None
                ),
                tokens=error.tokens,
                now=around.now(),
            )
        except LeaseLost:
            pay(around, tx, lease, error.tokens)
        else:
            tx.append(stream, failed)


def pay(around: Surroundings, tx: Writing, lease: Stage1LeaseClaimed, tokens: Tokens) -> None:
    """Of a session that was forgotten or taken over meanwhile only the price is ours to record."""
    if tokens.calls:
        paid = Stage1Paid(
            at=around.now(),
            thread_id=lease.thread_id,
            memory_version=lease.memory_version,
            ownership_token=lease.ownership_token,
            tokens=tokens,
        )
        tx.append(extraction_stream(lease.memory_version, lease.thread_id), paid)


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
        try:
            released = extraction.release(
                state.extraction(tx, lease.memory_version, lease.thread_id),
                ownership_token=lease.ownership_token,
                reason=reason,
                tokens=tokens,
                now=around.now(),
            )
        except LeaseLost:
            pay(around, tx, lease, tokens)
        else:
            tx.append(extraction_stream(lease.memory_version, lease.thread_id), released)
