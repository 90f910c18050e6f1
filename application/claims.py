"""Claims: which sessions are read next, and which of them are ours to read.

A session is claimed where every gate is open and its job says yes, in the transaction that looked.
Whatever stands against it is counted under its own name.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from ..domain import eligibility, extraction
from ..domain.events import Stage1LeaseClaimed, extraction_stream
from ..domain.extraction import Extraction
from ..domain.refusals import Refused
from ..projections import jobs, threads
from . import state
from .ingest import Sighting
from .ports import Failure, View, Writing
from .reports import Stage1Report
from .surroundings import Surroundings


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


def unread(
    around: Surroundings, view: View, *, backfill: int | None, again: bool
) -> list[threads.Row]:
    """The candidates that nobody as good has read."""
    return [
        row
        for row in candidates(around, view, backfill=backfill)
        if not is_read(around, view, row, again=again)
    ]


def is_read(around: Surroundings, view: View, row: threads.Row, *, again: bool = False) -> bool:
    """Whether a session was read as it is now, by a reader as good. `again` asks for the one we
    are: what this model has read with this prompt would come out the same, and cost as much."""
    version, extractor = around.policy.memory_version, around.extractor
    digest = extractor.digest(version) if again else None
    last = None if digest is None else state.last_read(view, version, row.thread_id)
    if last is not None and (last.extractor, last.prompt_digest) == (extractor.name, digest):
        again = False
    return state.is_read(view, version, state.thread_of(row), extractor=extractor.name, again=again)


class Shut(Refused):
    code = "shut"  # Counted under the gate's own name.

    def __init__(self, gate: eligibility.Gate) -> None:
        super().__init__(gate.why)
        self.gate = gate.name


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
    claimed = extraction.claim(
        released_for_the_gone(around, tx, thread_id),
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


def released_for_the_gone(around: Surroundings, tx: Writing, thread_id: str) -> Extraction:
    """The job. Of who was killed on this machine, whoever comes next gives the lease back."""
    version, now = around.policy.memory_version, around.now()
    job = state.extraction(tx, version, thread_id)
    if not (extraction.is_held(job, now=now) and job.worker_id) or around.is_alive(job.worker_id):
        return job
    assert job.ownership_token is not None
    reason = why_released(around, job.worker_id, thread_id)
    released = extraction.release(job, ownership_token=job.ownership_token, reason=reason, now=now)
    tx.append(extraction_stream(version, thread_id), released)
    return extraction.evolve(job, released)


def why_released(
    around: Surroundings, worker_id: str, thread_id: str
) -> Literal["stopped", "worker_gone"]:
    """A worker that went costs a try of the session that it had in hand, which may be what ended
    it, and none of those that only waited for an answer."""
    in_hand = around.had_in_hand(worker_id)
    return "worker_gone" if in_hand in (None, thread_id) else "stopped"


class Claimed(Struct, frozen=True, kw_only=True):
    """A session that is ours to read. `shrink` is how often in a row it was too long before."""

    lease: Stage1LeaseClaimed
    thread: threads.Row
    source: Path
    shrink: int = 0


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
) -> Claimed | None:
    """A claim and the file to read, or one more of those that wait, and for what."""
    # A disk that is not there today is no reason to give a session up, nor to say so each time.
    sighting = sighted.get(row.thread_id)
    thread = tx.rows(threads, (row.thread_id,))[0]
    source = source_of(around, thread, sighting)
    why = "source_missing"
    if source is not None:
        shrink = too_long_before(tx, around.policy.memory_version, row.thread_id)
        try:
            lease = claim(
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
            return Claimed(lease=lease, thread=thread, source=source, shrink=shrink)
    if why != "up_to_date":
        report.waiting += 1
        waiting[why] = waiting.get(why, 0) + 1
    return None


def too_long_before(view: View, memory_version: str, thread_id: str) -> int:
    """How many tries of a session in a row were spent on its length."""
    for job in view.rows(jobs, (jobs.STAGE1, thread_id, memory_version)):
        if job.failure == "too_long":
            return extraction.RETRIES - int(job.retry_remaining)
    return 0


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


def startup_cap(around: Surroundings, report: Stage1Report, *, backfill: int | None) -> str | None:
    """Why no more sessions may be claimed in this run: with a provider only so many at a start."""
    if around.policy.provider is None or backfill is not None:
        return None
    most = around.policy.limits.max_rollouts_per_startup
    return "startup_cap" if report.claimed >= most else None
