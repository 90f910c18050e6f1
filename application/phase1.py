"""Phase 1: sessions are claimed, read and recorded, as many at once as the extractor can read.

The claim and the record are a transaction each; the reading between them holds no lock. Whoever
loses the lease meanwhile records nothing. What the model sees and what it says are both redacted.
A session is claimed when somebody is free to read it, so that no lease waits for a slow reply, and
whoever is stopped gives back few leases, with what their calls have cost.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, suppress
from contextvars import copy_context
from typing import Any

from ..domain.events import NO_TOKENS, Tokens
from ..domain.evidence import Evidence, render
from ..domain.redaction import redact_header, redact_item
from ..domain.refusals import LeaseLost
from ..domain.session import AnyItem, Header
from ..projections import threads
from .claims import Claimed, claim_or_count, startup_cap, unread
from .ingest import Sighting
from .kept import cleared
from .outcomes import Outcome, fail, give_back, is_for_want_of_a_budget, pay, record
from .ports import Extracted, ExtractionFailed, Failure, Material, Progress
from .purse import Purse, purse, spent_today
from .reports import Stage1Report
from .requests import root_of
from .surroundings import Surroundings


def material(around: Surroundings, claimed: Claimed, *, budget: Purse) -> Material:
    lease, source = claimed.lease, claimed.source
    now_ms = int(around.clock() * 1000)

    def items() -> Iterator[AnyItem]:
        return map(redact_item, around.rollouts.items(source, now_ms=now_ms))

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


class Watched:
    """One reading as whoever watches sees it. Several of them overlap, each in a context of its
    own, so that none is taken for a part of another."""

    def __init__(self, around: Surroundings, asked: Mapping[str, Any]) -> None:
        self.context, self.stack = copy_context(), ExitStack()
        self.tell = self.context.run(self.stack.enter_context, around.watch("extract", asked))

    def end(self, outcome: Outcome) -> None:
        self.context.run(self.tell, outcome)
        self.context.run(self.stack.close)


class Extractions:
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
        self.take_in_hand(lease.thread_id)
        try:
            given = material(self.around, claimed, budget=self.budget)
            answer = self.around.extractor.extract(given)
        except (ExtractionFailed, Failure) as error:
            self.end(claimed, watched, error)
            return
        if isinstance(answer, Future):
            self.futures[answer] = claimed, watched
            self.take_in_hand("")  # It waits for an answer, and can end nobody meanwhile.
        else:
            self.end(claimed, watched, answer)

    def take_in_hand(self, thread_id: str) -> None:
        self.around.take_in_hand(self.around.worker_id, thread_id)

    def end_some(self) -> None:
        """Wait for a reply, if any is waited for, and record every one that is there."""
        if not self.futures:
            return
        ended, _ = wait(self.futures, return_when=FIRST_COMPLETED)
        for future in ended:
            claimed, watched = self.futures[future]
            error = future.exception()
            if error is not None and not isinstance(error, ExtractionFailed | Failure):
                raise error
            self.end(claimed, watched, error or future.result())
            del self.futures[future]  # Now: whoever is stopped before has still to give it back.

    def end(
        self,
        claimed: Claimed,
        watched: Watched,
        answer: Extracted | ExtractionFailed | Failure | None,
    ) -> None:
        self.take_in_hand(claimed.lease.thread_id)
        outcome = self.recorded(claimed, answer)
        self.take_in_hand("")
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
        except LeaseLost:  # Forgotten or taken over meanwhile.
            if answer is not None:
                with around.store.writing(actor="pipeline", run_id=self.run_id) as tx:
                    pay(around, tx, lease, answer.tokens)
            return "failed"
        return "succeeded" if kept else "no_output"

    def give_back(self) -> None:
        """End every call, and give the leases back with what the calls have cost."""
        self.around.extractor.stop()
        for future, (claimed, watched) in self.futures.items():
            with suppress(Failure):  # What cannot be recorded runs out by itself.
                give_back(self.around, claimed.lease, spent_on(future), run_id=self.run_id)
            watched.end("failed")


def spent_on(future: Future[Extracted | None]) -> Tokens:
    if not future.done() or future.cancelled():
        return NO_TOKENS
    error = future.exception()
    if error is not None:
        return error.tokens if isinstance(error, ExtractionFailed) else NO_TOKENS
    answer = future.result()
    return NO_TOKENS if answer is None else answer.tokens


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
    extractions = Extractions(
        around, run_id=run_id, backfill=backfill is not None, budget=budget or purse(around)
    )
    with around.store.reading() as view:
        rows = deque(unread(around, view, backfill=backfill, again=again))
    many = len(rows)
    try:
        while rows or extractions.futures:
            while rows and extractions.is_free:
                if why := extractions.stopped or startup_cap(
                    around, extractions.report, backfill=backfill
                ):
                    waiting[why] = waiting.get(why, 0) + len(rows)
                    extractions.report.waiting += len(rows)
                    rows.clear()
                    break
                row = rows.popleft()
                if progress:
                    progress("extracting", many - len(rows), many)
                with around.store.writing(actor="pipeline", run_id=run_id) as tx:
                    extractions.budget.of_today(spent_today(around, tx))
                    claimed = claim_or_count(
                        around,
                        tx,
                        row,
                        backfill=backfill,
                        again=again,
                        sighted=sighted,
                        report=extractions.report,
                        waiting=waiting,
                    )
                if claimed is not None:
                    extractions.begin(claimed)
            extractions.end_some()
    except BaseException:
        extractions.give_back()
        raise
    if extractions.unpaid:
        waiting["budget"] = waiting.get("budget", 0) + extractions.unpaid
    return extractions.report
