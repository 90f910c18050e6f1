"""Startup: one whole run. Ingest, then for each memory version that is written: prune, phase 1,
phase 2. In this order, every step an event.

Where a provider is paid, a run is begun only with a person's consent, and while the account has
enough left; what waits for that is counted.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from ..domain import eligibility, extraction, guard
from ..domain.events import NO_TOKENS, Tokens, extraction_stream
from ..domain.evidence import token_limit
from ..domain.selection import cutoff_at
from ..domain.truncation import BYTES_A_TOKEN
from ..projections import jobs, spend, stage1_outputs, threads
from . import claims, consent, forget, ingest, lease, phase1, phase2, reset, retention, state
from .ports import Failure, Progress, View, Writing
from .purse import purse
from .reading import record_left
from .reports import RunReport, Stage1Report
from .roots import Root, by_version
from .surroundings import FolderUnusable, Surroundings


class DryRun(Exception):
    """Ends the one transaction of a dry run, so that nothing of it is kept."""


def run(
    around: Surroundings,
    sources: Sequence[Path],
    *,
    backfill: int | None = None,
    again: bool = False,
    consolidate: bool = False,
    consented: bool = False,
    actor: str = "application",
    dry_run: bool = False,
    progress: Progress | None = None,
) -> RunReport:
    """Bring everything up to date. `backfill`: -1 reads every older session, N the newest N.
    `again` reads once more what another model or prompt has read, and tries anew what failed.
    `consolidate` does not let a folder rest. `consented`: a person (`actor`) has said that sessions
    may be sent to the provider; without that, and no earlier word of it, `NotConsented`."""
    report = RunReport(run_id=around.new_id(), dry_run=dry_run)
    if not dry_run:
        consent.require(around, consented=consented, actor=actor)
    unusable: list[Failure] = []
    if not dry_run:  # Before anything else is read: what was forgotten is in nobody's way.
        forget.again(around)
        try:
            record_left(around)
        except Failure as error:
            unusable.append(error)
        try:
            with around.store.reading() as view:
                reset.disown(around, view)
            reset.finish(around)
            forget.finish(around, actor="pipeline", run_id=report.run_id)
        except FolderUnusable as error:
            unusable.append(error)  # Told at the end: the other projects have their sessions, too.
    with around.watch("survey", {}) as tell:
        sightings, found = ingest.survey(around, sources, progress=progress)
        tell(found)
    report.sessions, report.skipped_lines = found.sessions, found.skipped_lines
    report.unreadable = found.unreadable
    sighted = ingest.by_thread(sightings)
    if dry_run:
        rehearse(around, sightings, report, backfill=backfill, again=again, sighted=sighted)
        return report

    report.ingested = ingest.record(around, sightings, actor="pipeline", run_id=report.run_id)
    try:
        work(
            around,
            report,
            backfill=backfill,
            again=again,
            consolidate=consolidate,
            sighted=sighted,
            progress=progress,
            unusable=unusable,
        )
        if unusable:
            raise unusable[0]
    except BaseException:
        # Stopped by a person, or by what went wrong: nobody should wait an hour for our leases.
        with suppress(Failure):  # What cannot be recorded runs out by itself.
            give_back(around, run_id=report.run_id)
        raise
    finally:
        around.extractor.stop()  # It may hold a connection open.
    return report


def work(
    around: Surroundings,
    report: RunReport,
    *,
    backfill: int | None,
    again: bool,
    consolidate: bool,
    sighted: Mapping[str, ingest.Sighting],
    progress: Progress | None,
    unusable: list[Failure],
) -> None:
    with around.store.reading() as view:
        began_at = view.position
    budget = purse(around)
    for one in each_version(around):
        with one.store.writing(actor="pipeline", run_id=report.run_id) as tx:
            report.pruned += prune(one, tx)
        if is_spent(one, sighted):
            with one.store.reading() as view:
                waiting = len(claims.unread(one, view, backfill=backfill, again=again))
            report.waiting["rate_limit"] = report.waiting.get("rate_limit", 0) + waiting
            continue
        read = phase1.run(
            one,
            run_id=report.run_id,
            backfill=backfill,
            again=again,
            sighted=sighted,
            waiting=report.waiting,
            budget=budget,
            progress=progress,
        )
        report.stage1.add(read)
        # What has an output only now may have been cited before: in the version that is read.
        if read.succeeded and one.policy.memory_version == around.policy.memory_version:
            ingest.count_uses(one, sighted.values(), actor="pipeline", run_id=report.run_id)
        report.phase2 += phase2.run(
            one,
            run_id=report.run_id,
            waiting=report.waiting,
            unusable=unusable,
            budget=budget,
            asked_for=consolidate,
        )
        give_back_for_the_gone(one, run_id=report.run_id)
    with around.store.reading() as view:
        count_waiting(around, view, report, backfill=backfill)
    report.tokens = spent(around, run_id=report.run_id, after=began_at)
    # Last, so that with a history of 0 days what this run replaced goes at once.
    retention.expire(around, run_id=report.run_id)
    with suppress(Failure):  # Of a disk without room, or while others write; the next run tries.
        around.store.tidy()


def each_version(around: Surroundings) -> list[Surroundings]:
    """The memory versions that are written, each with a pipeline of its own."""
    return [
        replace(around, policy=replace(around.policy, memory_version=version))
        for version in around.policy.versions
    ]


def is_spent(around: Surroundings, sighted: Mapping[str, ingest.Sighting]) -> bool:
    """Whether the account that Codex uses has less left than a run may take from, by the newest
    that was said of it."""
    provider = around.policy.provider
    if provider is None:
        return False
    told = [each.limits for each in sighted.values() if each.limits is not None]
    return not guard.allows(
        [limits for _, limits in sorted(told, key=lambda each: each[0], reverse=True)],
        min_remaining_percent=provider.min_rate_limit_remaining_percent,
        now=around.clock(),
    )


def spent(around: Surroundings, *, run_id: str, after: int) -> Tokens:
    """What the run's calls cost, those that failed included, as its events have it."""
    total = NO_TOKENS
    with around.store.reading() as view:
        for recorded in view.events(after=after):
            if recorded.run_id == run_id and isinstance(recorded.event, spend.SpendEvent):
                total += recorded.event.tokens
    return total


def give_back(around: Surroundings, *, run_id: str) -> None:
    """Every lease that this worker still holds, of either phase."""
    with around.store.writing(actor="pipeline", run_id=run_id) as tx:
        for one in each_version(around):
            for job in running(one, tx):
                if job.worker_id == one.worker_id:
                    release(one, tx, job, reason="stopped")


def give_back_for_the_gone(around: Surroundings, *, run_id: str) -> None:
    """Every lease whose worker was killed or never came back, and that nobody had a reason to
    claim: the session was polluted meanwhile, the root needs nothing any more."""

    def gone(view: View) -> list[jobs.Row]:
        now = around.now()
        return [
            job
            for job in running(around, view)
            if job.worker_id is not None
            and job.worker_id != around.worker_id
            and ((job.lease_until or 0) <= now or not around.is_alive(job.worker_id))
        ]

    with around.store.reading() as view:
        if not gone(view):
            return
    with around.store.writing(actor="pipeline", run_id=run_id) as tx:
        for job in gone(tx):
            assert job.worker_id is not None
            reason = claims.why_released(around, job.worker_id, job.job_key)
            release(around, tx, job, reason=reason)


def running(around: Surroundings, view: View) -> list[jobs.Row]:
    return [
        job
        for one in by_version(around.policy)
        for kind in (jobs.STAGE1, jobs.PHASE2)
        for job in view.find(jobs, jobs.RUNNING, kind=kind, memory_version=one.memory_version)
    ]


def release(
    around: Surroundings,
    tx: Writing,
    job: jobs.Row,
    *,
    reason: Literal["stopped", "worker_gone"],
) -> None:
    version, now, token = job.memory_version, around.now(), job.ownership_token
    if job.kind == jobs.PHASE2:
        # Phase 2 tries for ever, so that a worker that went costs its root nothing.
        root = Root(memory_version=version, scope=job.job_key)
        lease.give_back(tx, root, token, reason="stopped", now=now)
        return
    assert token is not None
    held = state.extraction(tx, version, job.job_key)
    released = extraction.release(held, ownership_token=token, reason=reason, now=now)
    tx.append(extraction_stream(version, job.job_key), released)


def rehearse(
    around: Surroundings,
    sightings: Sequence[ingest.Sighting],
    report: RunReport,
    *,
    backfill: int | None,
    again: bool,
    sighted: Mapping[str, ingest.Sighting],
) -> None:
    """Do the first steps in one transaction, claims included, count, and take it all back."""
    try:
        with around.store.writing(actor="pipeline", run_id=report.run_id) as tx:
            report.ingested = sum(ingest.record_one(around, tx, each) for each in sightings)
            for one in each_version(around):
                report.pruned += prune(one, tx)
                claimed = Stage1Report()
                for row in claims.unread(one, tx, backfill=backfill, again=again):
                    if why := claims.startup_cap(one, claimed, backfill=backfill):
                        claimed.waiting += 1
                        report.waiting[why] = report.waiting.get(why, 0) + 1
                        continue
                    claims.claim_or_count(
                        one,
                        tx,
                        row,
                        backfill=backfill,
                        again=again,
                        sighted=sighted,
                        report=claimed,
                        waiting=report.waiting,
                    )
                report.stage1.add(claimed)
            count_waiting(around, tx, report, backfill=backfill)
            raise DryRun
    except DryRun:
        return


def prune(around: Surroundings, tx: Writing) -> int:
    """Withdraw what has aged out of every selection, a batch a run. The words go later."""
    policy, now = around.policy, around.now()
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
    """Sessions that are kept back by their age or by not resting yet, and those that are left out
    for what they are, by the gate; and about what a provider would be paid to read those that it
    may."""
    now, limits = around.clock(), around.policy.limits
    for row in view.find(threads, threads.NEWEST_FIRST):
        if claims.is_read(around, view, row):
            continue
        answers = eligibility.gates(
            state.thread_of(row),
            None,
            now=now,
            limits=limits,
            backfill=backfill is not None and backfill < 0,
        )
        shut = eligibility.failed(answers)
        if shut is None or shut.name == "age":
            report.waiting_tokens += tokens_to_read(around, row)
        if shut is not None and shut.name in ("age", "idle"):
            report.waiting[shut.name] = report.waiting.get(shut.name, 0) + 1
            report.stage1.waiting += shut.name == "idle"  # The others wait for a backfill.
        elif shut is not None:
            report.left_out[shut.name] = report.left_out.get(shut.name, 0) + 1


def tokens_to_read(around: Surroundings, row: threads.Row) -> int:
    """About what a session costs to read, by its file alone: much of that is never shown, and the
    instructions and what must be asked twice come to it."""
    provider = around.policy.provider
    if provider is None:
        return 0
    try:
        size = os.path.getsize(row.rollout_path)
    except OSError:
        return 0  # It is not there; whoever reads it says so.
    shown = min(-(-size // BYTES_A_TOKEN), token_limit(provider.context_window))
    return shown + provider.max_output_tokens
