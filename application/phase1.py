"""Phase 1: one session at a time is claimed, read, and recorded.

The claim and the record are a transaction each; the reading between them holds no lock. Whoever
loses the lease meanwhile records nothing. What the model sees and what it says are both redacted.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..domain import eligibility, extraction
from ..domain.events import (
    NO_TOKENS,
    Stage1LeaseClaimed,
    Tokens,
    extraction_stream,
    thread_stream,
)
from ..domain.redaction import redact, redact_header, redact_item
from ..domain.refusals import LeaseLost, Refused
from ..domain.session import AnyItem, Header
from ..projections import jobs, threads
from . import state
from .ingest import Sighting
from .kept import kept
from .ports import Extracted, Failure, NoLongerASession, Progress, View, Writing
from .reports import Stage1Report
from .requests import request, root_of
from .surroundings import Surroundings


class ExtractionFailed(Exception):
    """A model's reading that came to nothing. `reason` is a code and quotes nothing."""

    def __init__(
        self,
        kind: extraction.FailureKind,
        reason: str,
        *,
        retry_after_s: int | None = None,
        tokens: Tokens = NO_TOKENS,
    ) -> None:
        super().__init__(reason)
        self.kind: extraction.FailureKind = kind
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.tokens = tokens


def candidates(around: Surroundings, view: View, *, backfill: int | None) -> list[threads.Row]:
    """Every session that the gates let through, newest first. `backfill`: -1 all, else so many."""
    now, limits = around.clock(), around.policy.limits
    oldest_ms, newest_ms = eligibility.window_ms(
        now=now, limits=limits, backfill=backfill is not None
    )
    found = view.find(
        threads,
        threads.STARTUP_CANDIDATES,
        current_thread_id=None,
        oldest_ms=oldest_ms,
        newest_ms=newest_ms,
        scan_limit=limits.scan_limit if backfill is None else -1,
    )
    if backfill is not None and backfill >= 0:
        window, _ = eligibility.window_ms(now=now, limits=limits)
        within = [row for row in found if row.updated_at_ms >= window]
        older = [row for row in found if row.updated_at_ms < window]
        found = within + [row for row in older if not is_read(around, view, row)][:backfill]
    return found


def is_read(around: Surroundings, view: View, row: threads.Row, *, again: bool = False) -> bool:
    return state.is_read(
        view,
        around.policy.memory_version,
        state.thread_of(row),
        extractor=around.extractor.name,
        again=again,
    )


def claim(
    around: Surroundings,
    tx: Writing,
    thread_id: str,
    *,
    backfill: bool,
    again: bool = False,
    unfinished_mtime_ms: int | None,
) -> Stage1LeaseClaimed:
    """Claim one session as it is now. Refused where a gate is shut or the job says no."""
    now, policy = around.now(), around.policy
    thread = state.thread(tx, thread_id)
    shut = eligibility.failed(
        eligibility.gates(
            thread,
            None,
            now=around.clock(),
            limits=policy.limits,
            unfinished_mtime_ms=unfinished_mtime_ms,
            backfill=backfill,
        )
    )
    if shut is not None:
        raise Shut(shut)
    job = state.extraction(tx, policy.memory_version, thread_id)
    if extraction.is_held(job, now=now) and job.worker_id and not around.is_alive(job.worker_id):
        # It was killed on this machine, so whoever comes next gives its lease back for it.
        assert job.ownership_token is not None
        released = extraction.release(
            job, ownership_token=job.ownership_token, reason="worker_gone", now=now
        )
        tx.append(extraction_stream(policy.memory_version, thread_id), released)
        job = extraction.evolve(job, released)
    claimed = extraction.claim(
        job,
        watermark=extraction.watermark_of(thread.updated_at_ms),
        extractor=around.extractor.name,
        worker_id=around.worker_id,
        ownership_token=around.new_id(),
        running_elsewhere=tx.value(
            jobs.OTHERS_RUNNING,
            memory_version=policy.memory_version,
            now=now,
            thread_id=thread_id,
        ),
        running_cap=policy.limits.running_cap,
        again=again,
        now=now,
    )
    tx.append(extraction_stream(policy.memory_version, thread_id), claimed)
    return claimed


class Shut(Refused):
    code = "shut"  # Counted under the gate's own name.

    def __init__(self, gate: eligibility.Gate) -> None:
        super().__init__(gate.why)
        self.gate = gate.name


def source_of(around: Surroundings, thread: threads.Row, sighting: Sighting | None) -> Path | None:
    """The session's file on this machine: as this run found it, or else as the log knows it.

    A copy that says less than the log knows is not the session as it is now, and what another
    machine's path leads to here may be anything.
    """
    path = Path(thread.rollout_path)
    if sighting is not None and sighting.header.updated_at_ms >= thread.updated_at_ms:
        path = Path(sighting.header.rollout_path)
    elif thread.machine_id != around.machine_id and (
        # None was recorded before anybody said whose it was.
        thread.machine_id is not None or is_another(around, path, thread.thread_id)
    ):
        return None
    return path if os.path.exists(path) else None


def is_another(around: Surroundings, path: Path, thread_id: str) -> bool:
    """Whether a file is some other session's."""
    try:
        read = around.rollouts.survey(path, now_ms=int(around.clock() * 1000))
    except Failure:
        return False  # Whoever reads it will say what it is.
    return read.header.thread_id != thread_id


def read(around: Surroundings, thread: threads.Row, source: Path) -> Extracted | None:
    """The session's file through redaction, the extractor, and redaction again."""
    items = around.rollouts.items(source, now_ms=int(around.clock() * 1000))
    try:
        found = around.extractor.extract(redact_header(header_of(thread)), redacted(items))
    except NoLongerASession as error:
        raise ExtractionFailed("source", "source_is_no_session") from error
    except Failure as error:
        raise ExtractionFailed("transient", "source_unreadable") from error
    if found is None:
        return None
    return msgspec.structs.replace(
        found,
        raw_memory=redact(found.raw_memory),
        rollout_summary=redact(found.rollout_summary),
        rollout_slug=redact(found.rollout_slug) if found.rollout_slug else None,
        evidence=redact_evidence(found.evidence) if found.evidence else None,
    )


def redact_evidence(evidence: str) -> str:
    """Each quote by itself: a JSON text is no place to look for secrets in."""
    quotes = msgspec.json.decode(evidence, type=list[dict[str, Any]])
    for quote in quotes:
        quote["quote"] = redact(quote["quote"])
    return msgspec.json.encode(quotes).decode()


def header_of(thread: threads.Row) -> Header:
    return Header(
        thread_id=thread.thread_id,
        tool=thread.tool or "codex",
        source=thread.source,
        kind=thread.kind,
        rollout_path=thread.rollout_path,
        cwd=thread.cwd,
        git_branch=thread.git_branch,
        repository_url=thread.repository_url,
        created_at_ms=thread.created_at_ms,
        updated_at_ms=thread.updated_at_ms,
        forked_from=thread.forked_from,
        archived=bool(thread.archived),
    )


def redacted(items: Iterator[AnyItem]) -> Iterator[AnyItem]:
    for item in items:
        yield redact_item(item)


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
        tokens = found.tokens if found else NO_TOKENS
        nothing = extraction.succeed_without_output(
            job, ownership_token=token, extractor=around.extractor.name, tokens=tokens, now=now
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


def run(
    around: Surroundings,
    *,
    run_id: str,
    backfill: int | None,
    again: bool = False,
    sighted: Mapping[str, Sighting],
    waiting: dict[str, int],
    progress: Progress | None = None,
) -> Stage1Report:
    """Claim and read one session after the other."""
    report = Stage1Report()
    with around.store.reading() as view:
        rows = [
            row
            for row in candidates(around, view, backfill=backfill)
            if not is_read(around, view, row, again=again)
        ]
    for done, row in enumerate(rows, start=1):
        if progress:
            progress("extracting", done, len(rows))
        with around.store.writing(actor="pipeline", run_id=run_id) as tx:
            claimed = claim_or_count(
                around,
                tx,
                row,
                backfill=backfill,
                again=again,
                sighted=sighted,
                report=report,
                waiting=waiting,
            )
            thread = tx.rows(threads, (row.thread_id,))[0]
        if claimed is not None:
            lease, source = claimed
            asked = {
                "thread_id": lease.thread_id,
                "memory_version": lease.memory_version,
                "scope": root_of(thread.scope, around.policy),
            }
            with around.watch("extract", asked) as tell:
                outcome = one(
                    around,
                    lease,
                    thread,
                    source=source,
                    run_id=run_id,
                    backfill=backfill is not None,
                )
                tell(outcome)
            match outcome:
                case "succeeded":
                    report.succeeded += 1
                case "no_output":
                    report.no_output += 1
                case "failed":
                    report.failed += 1
    return report


def claim_or_count(
    around: Surroundings,
    tx: Writing,
    row: threads.Row,
    *,
    backfill: int | None,
    again: bool = False,
    sighted: Mapping[str, Sighting],
    report: Stage1Report,
    waiting: dict[str, int],
) -> tuple[Stage1LeaseClaimed, Path] | None:
    """A claim and the file to read, or one more of those that wait, and for what."""
    # A disk that is not there today is no reason to give a session up, nor to say so each time.
    sighting = sighted.get(row.thread_id)
    source = source_of(around, tx.rows(threads, (row.thread_id,))[0], sighting)
    why = "source_missing"
    if source is not None:
        try:
            claimed = claim(
                around,
                tx,
                row.thread_id,
                backfill=backfill is not None,
                again=again,
                unfinished_mtime_ms=sighting.unfinished_mtime_ms if sighting else None,
            )
        except Shut as shut:
            why = shut.gate
        except Refused as refused:
            why = refused.code
        else:
            report.claimed += 1
            return claimed, source
    if why != "up_to_date":
        report.waiting += 1
        waiting[why] = waiting.get(why, 0) + 1
    return None


def one(
    around: Surroundings,
    claimed: Stage1LeaseClaimed,
    thread: threads.Row,
    *,
    source: Path,
    run_id: str,
    backfill: bool,
) -> Literal["succeeded", "no_output", "failed"]:
    """Read a claimed session to its end, whatever that is."""
    stream = extraction_stream(claimed.memory_version, claimed.thread_id)
    try:
        found = read(around, thread, source)
    except ExtractionFailed as error:
        with around.store.writing(actor="pipeline", run_id=run_id) as tx:
            job = state.extraction(tx, claimed.memory_version, claimed.thread_id)
            try:
                failed = extraction.fail(
                    job,
                    ownership_token=claimed.ownership_token,
                    kind=error.kind,
                    reason=error.reason,
                    retry_after_s=error.retry_after_s,
                    tokens=error.tokens,
                    now=around.now(),
                )
            except LeaseLost:
                return "failed"  # Forgotten or taken over meanwhile: nothing of ours to record.
            tx.append(stream, failed)
        return "failed"
    try:
        with around.store.writing(actor=f"model:{around.extractor.name}", run_id=run_id) as tx:
            kept = record(around, tx, claimed, found, backfill=backfill)
    except LeaseLost:
        return "failed"
    return "succeeded" if kept else "no_output"
