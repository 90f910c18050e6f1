"""Phase 1: a session is claimed, read, and recorded; as many at once as the extractor can read.

The claim and the record are a transaction each; the reading between them holds no lock. Whoever
loses the lease meanwhile records nothing. What the model sees and what it says are both redacted.
A session is claimed when somebody is free to read it, so that no lease waits for a slow reply, and
whoever is stopped gives back few leases, with what their calls have cost.
"""

import os
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, suppress
from contextvars import copy_context
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ..domain import eligibility, extraction
from ..domain.events import (
    NO_TOKENS,
    Stage1LeaseClaimed,
    Stage1Succeeded,
    Stage1SucceededNoOutput,
    Tokens,
    extraction_stream,
    thread_stream,
)
from ..domain.evidence import Evidence, render
from ..domain.redaction import redact, redact_header, redact_item
from ..domain.refusals import LeaseLost, Refused
from ..domain.session import AnyItem, Header, Human
from ..projections import jobs, threads
from . import state
from .ingest import Sighting
from .kept import kept
from .ports import (
    Extracted,
    ExtractionFailed,
    Failure,
    Material,
    Progress,
    View,
    Writing,
)
from .purse import Purse, purse, spent_today
from .quotes import checked
from .reports import Stage1Report
from .requests import request, root_of
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


def is_read(around: Surroundings, view: View, row: threads.Row, *, again: bool = False) -> bool:
    """Whether a session was read as it is now, by a reader as good. `again` asks for the one we
    are: what this model has read with this prompt would come out the same, and cost as much."""
    version, extractor = around.policy.memory_version, around.extractor
    digest = extractor.digest(version) if again else None
    if digest is not None and read_by(view, version, row.thread_id) == (extractor.name, digest):
        again = False
    return state.is_read(view, version, state.thread_of(row), extractor=extractor.name, again=again)


def read_by(view: View, memory_version: str, thread_id: str) -> tuple[str, str | None] | None:
    """The model and the prompt that a session was read with last."""
    found = None
    for recorded in view.events(stream=extraction_stream(memory_version, thread_id)):
        if isinstance(recorded.event, Stage1Succeeded | Stage1SucceededNoOutput):
            found = recorded.event.extractor, recorded.event.prompt_digest
    return found


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


class Claimed(Struct, frozen=True, kw_only=True):
    """A session that is ours to read. `shrink` is how often in a row it was too long before."""

    lease: Stage1LeaseClaimed
    thread: threads.Row
    source: Path
    shrink: int = 0


def material(around: Surroundings, claimed: Claimed, *, budget: Purse) -> Material:
    lease, source = claimed.lease, claimed.source
    now_ms = int(around.clock() * 1000)

    def items() -> Iterator[AnyItem]:
        return redacted(around.rollouts.items(source, now_ms=now_ms))

    def evidence(tokens: int, aligned: bool) -> Evidence:
        shown = around.rollouts.evidence(source, now_ms=now_ms)
        return render(shown, version=lease.memory_version, tokens=tokens, aligned=aligned)

    return Material(
        header=redact_header(header_of(claimed.thread)),
        memory_version=lease.memory_version,
        items=items,
        evidence=evidence,
        may_spend=budget.may_spend(lease.thread_id),
        shrink=claimed.shrink,
    )


def cleared(around: Surroundings, found: Extracted, source: Path) -> Extracted:
    """What an extractor said without the secrets in it; a model's quotes are looked up first.

    Of what the session says only a person's words are kept, so that only those are redacted.
    """
    found = msgspec.structs.replace(
        found,
        raw_memory=redact(found.raw_memory),
        rollout_summary=redact(found.rollout_summary),
        rollout_slug=redact(found.rollout_slug) if found.rollout_slug else None,
    )
    if found.prompt_digest is not None:
        items = around.rollouts.items(source, now_ms=int(around.clock() * 1000))
        found = checked(
            found, (redact_item(item) if isinstance(item, Human) else item for item in items)
        )
    return msgspec.structs.replace(
        found, evidence=redact_evidence(found.evidence) if found.evidence else None
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


Outcome = Literal["succeeded", "no_output", "failed"]


class Watched:
    """One reading as whoever watches sees it. Several of them overlap, each in a context of its
    own, so that none is taken for a part of another."""

    def __init__(self, around: Surroundings, asked: Mapping[str, Any]) -> None:
        self.context, self.stack = copy_context(), ExitStack()
        self.tell = self.context.run(self.stack.enter_context, around.watch("extract", asked))

    def end(self, outcome: Outcome) -> None:
        self.context.run(self.tell, outcome)
        self.context.run(self.stack.close)


class Reading:
    """What is being read just now, and what has come of it. Used by one thread."""

    def __init__(self, around: Surroundings, *, run_id: str, backfill: bool, budget: Purse) -> None:
        self.around, self.run_id, self.backfill, self.budget = around, run_id, backfill, budget
        self.report = Stage1Report()
        self.stopped: str | None = None  # Why no more are begun.
        self.unpaid = 0  # Claimed, and given back because nothing was left to pay for them.
        self.futures: dict[Future[Extracted | None], tuple[Claimed, Watched]] = {}

    @property
    def is_free(self) -> bool:
        return len(self.futures) < self.around.extractor.slots

    def begin(self, claimed: Claimed) -> None:
        lease = claimed.lease
        asked = {
            "thread_id": lease.thread_id,
            "memory_version": lease.memory_version,
            "scope": root_of(claimed.thread.scope, self.around.policy),
        }
        watched = Watched(self.around, asked)
        try:
            given = material(self.around, claimed, budget=self.budget)
            answer = self.around.extractor.extract(given)
        except (ExtractionFailed, Failure) as error:
            self.end(claimed, watched, error)
            return
        if isinstance(answer, Future):
            self.futures[answer] = claimed, watched
        else:
            self.end(claimed, watched, answer)

    def end_some(self) -> None:
        """Wait for a reply, if any is waited for, and record every one that is there."""
        if not self.futures:
            return
        ended, _ = wait(self.futures, return_when=FIRST_COMPLETED)
        for future in ended:
            claimed, watched = self.futures.pop(future)
            error = future.exception()
            if error is not None and not isinstance(error, ExtractionFailed | Failure):
                raise error
            self.end(claimed, watched, error or future.result())

    def end(
        self,
        claimed: Claimed,
        watched: Watched,
        answer: Extracted | ExtractionFailed | Failure | None,
    ) -> None:
        outcome = self.recorded(claimed, answer)
        watched.end(outcome)
        if is_for_want_of_a_budget(answer):
            self.report.claimed -= 1
            self.report.waiting += 1
            self.unpaid += 1
            return
        match outcome:
            case "succeeded":
                self.report.succeeded += 1
            case "no_output":
                self.report.no_output += 1
            case "failed":
                self.report.failed += 1

    def recorded(
        self, claimed: Claimed, answer: Extracted | ExtractionFailed | Failure | None
    ) -> Outcome:
        around, lease = self.around, claimed.lease
        if isinstance(answer, Extracted):
            self.budget.settle(lease.thread_id, answer.tokens)
            try:
                answer = cleared(around, answer, claimed.source)
            except Failure as error:  # The file went between the reading and the quotes.
                answer = ExtractionFailed.of_source(error, tokens=answer.tokens)
        elif answer is not None:
            if isinstance(answer, Failure):
                answer = ExtractionFailed.of_source(answer)
            self.budget.settle(lease.thread_id, answer.tokens)
            if answer.stops:
                self.stopped = answer.reason
        left, provider = around.extractor.remaining_percent, around.policy.provider
        if left is not None and provider and left < provider.min_rate_limit_remaining_percent:
            self.stopped = self.stopped or "rate_limit"
        if isinstance(answer, ExtractionFailed):
            if not is_for_want_of_a_budget(answer):
                told = self.report.failures
                told[answer.reason] = told.get(answer.reason, 0) + 1
            fail(around, lease, answer, run_id=self.run_id)
            return "failed"
        try:
            with around.store.writing(
                actor=f"model:{around.extractor.name}", run_id=self.run_id
            ) as tx:
                kept = record(around, tx, lease, answer, backfill=self.backfill)
        except LeaseLost:
            return "failed"
        return "succeeded" if kept else "no_output"

    def give_back(self) -> None:
        """End every call, and give the leases back with what the calls have cost."""
        self.around.extractor.stop()
        for future, (claimed, watched) in self.futures.items():
            error = future.exception() if future.done() and not future.cancelled() else None
            tokens = error.tokens if isinstance(error, ExtractionFailed) else NO_TOKENS
            if future.done() and error is None and not future.cancelled():
                answer = future.result()
                tokens = answer.tokens if answer is not None else NO_TOKENS
            with suppress(Failure, LeaseLost):  # What cannot be recorded runs out by itself.
                give_back(self.around, claimed.lease, tokens, run_id=self.run_id)
            watched.end("failed")


def is_for_want_of_a_budget(answer: object) -> bool:
    return isinstance(answer, ExtractionFailed) and answer.reason == "budget"


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


def startup_cap(around: Surroundings, report: Stage1Report, *, backfill: int | None) -> str | None:
    """Why no more sessions may be claimed in this run: with a provider only so many at a start."""
    if around.policy.provider is None or backfill is not None:
        return None
    most = around.policy.limits.max_rollouts_per_startup
    return "startup_cap" if report.claimed >= most else None


def run(
    around: Surroundings,
    *,
    run_id: str,
    backfill: int | None,
    again: bool = False,
    sighted: Mapping[str, Sighting],
    waiting: dict[str, int],
    budget: Purse | None = None,
    progress: Progress | None = None,
) -> Stage1Report:
    """Claim and read sessions, newest first, until none is left or no more may be read."""
    budget = budget or purse(around)
    reading = Reading(around, run_id=run_id, backfill=backfill is not None, budget=budget)
    with around.store.reading() as view:
        rows = deque(
            row
            for row in candidates(around, view, backfill=backfill)
            if not is_read(around, view, row, again=again)
        )
    many = len(rows)
    try:
        while rows or reading.futures:
            while rows and reading.is_free:
                if why := reading.stopped or startup_cap(around, reading.report, backfill=backfill):
                    waiting[why] = waiting.get(why, 0) + len(rows)
                    reading.report.waiting += len(rows)
                    rows.clear()
                    break
                row = rows.popleft()
                if progress:
                    progress("extracting", many - len(rows), many)
                with around.store.writing(actor="pipeline", run_id=run_id) as tx:
                    budget.of_today(spent_today(around, tx))
                    claimed = claim_or_count(
                        around,
                        tx,
                        row,
                        backfill=backfill,
                        again=again,
                        sighted=sighted,
                        report=reading.report,
                        waiting=waiting,
                    )
                if claimed is not None:
                    reading.begin(claimed)
            reading.end_some()
    except BaseException:
        reading.give_back()
        raise
    if reading.unpaid:
        waiting["budget"] = waiting.get("budget", 0) + reading.unpaid
    return reading.report


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
