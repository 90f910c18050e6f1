"""Startup: one whole run. Ingest, prune, phase 1, phase 2, in this order, every step an event."""

from collections.abc import Callable, Sequence
from pathlib import Path

from ..domain import eligibility, extraction
from ..domain.events import extraction_stream
from ..domain.selection import cutoff_at
from ..projections import stage1_outputs, threads
from . import ingest, phase1, phase2, retention, state
from .ports import View
from .reports import RunReport
from .surroundings import Surroundings

Progress = Callable[[str, int, int], None] | None


class DryRun(Exception):
    """Ends the one transaction of a dry run, so that nothing of it is kept."""


def run(
    around: Surroundings,
    sources: Sequence[Path],
    *,
    backfill: int | None = None,
    dry_run: bool = False,
    progress: Progress = None,
) -> RunReport:
    """Bring everything up to date. `backfill`: -1 reads every older session, N the newest N."""
    report = RunReport(run_id=around.new_id(), dry_run=dry_run)
    sightings, found = ingest.survey(around, sources, progress=progress)
    report.sessions, report.skipped_lines = found.sessions, found.skipped_lines
    report.unreadable = found.unreadable
    unfinished = ingest.unfinished(sightings)
    if dry_run:
        rehearse(around, sightings, report, backfill=backfill)
        return report

    report.ingested = ingest.record(around, sightings, actor="pipeline", run_id=report.run_id)
    report.pruned = prune(around, run_id=report.run_id)
    retention.expire(around, run_id=report.run_id)
    report.stage1 = phase1.run(
        around,
        run_id=report.run_id,
        backfill=backfill,
        unfinished=unfinished,
        waiting=report.waiting,
        progress=progress,
    )
    with around.store.reading() as view:
        count_waiting(around, view, report, backfill=backfill)
    report.phase2 = phase2.run(around, run_id=report.run_id, waiting=report.waiting)
    return report


def rehearse(
    around: Surroundings,
    sightings: Sequence[ingest.Sighting],
    report: RunReport,
    *,
    backfill: int | None,
) -> None:
    """Do the first steps in one transaction, count, and take it all back."""
    try:
        with around.store.writing(actor="pipeline", run_id=report.run_id) as tx:
            report.ingested = sum(ingest.record_one(around, tx, each) for each in sightings)
            rows = phase1.candidates(around, tx, backfill=backfill)
            report.stage1.claimed = sum(not phase1.is_read(around, tx, row) for row in rows)
            count_waiting(around, tx, report, backfill=backfill)
            raise DryRun
    except DryRun:
        return


def prune(around: Surroundings, *, run_id: str) -> int:
    """Withdraw what has aged out of every selection, a batch a run. The words go later."""
    policy, now = around.policy, around.now()
    with around.store.writing(actor="pipeline", run_id=run_id) as tx:
        rows = tx.find(
            stage1_outputs,
            stage1_outputs.PRUNABLE,
            memory_version=policy.memory_version,
            cutoff=cutoff_at(now, max_unused_days=policy.limits.max_unused_days),
            most=policy.limits.prune_batch,
        )
        for row in rows:
            job = state.extraction(tx, row.memory_version, row.thread_id)
            tx.append(
                extraction_stream(row.memory_version, row.thread_id),
                extraction.withdraw(job, now=now),
            )
    return len(rows)


def count_waiting(
    around: Surroundings, view: View, report: RunReport, *, backfill: int | None
) -> None:
    """Sessions that are only kept back by their age or by not resting yet."""
    now, limits = around.clock(), around.policy.limits
    for row in view.find(threads, threads.NEWEST_FIRST):
        if phase1.is_read(around, view, row):
            continue
        answers = eligibility.gates(
            state.thread_of(row),
            None,
            now=now,
            limits=limits,
            backfill=backfill is not None and backfill < 0,
        )
        shut = eligibility.failed(answers)
        if shut is not None and shut.name in ("age", "idle"):
            report.waiting[shut.name] = report.waiting.get(shut.name, 0) + 1
