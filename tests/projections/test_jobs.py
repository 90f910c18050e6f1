"""jobs: leases, watermarks and tries follow the log column by column, in both phases."""

from collections import defaultdict

import pytest
from hypothesis import given
from msgspec.structs import replace
from threadbook.domain.events import (
    ConsolidationRequested,
    Phase2Failed,
    Phase2LeaseClaimed,
    Phase2LeaseReleased,
    Phase2LeaseRenewed,
    Phase2Succeeded,
    Stage1Failed,
    Stage1LeaseClaimed,
    Stage1LeaseReleased,
    Stage1Succeeded,
    Stage1SucceededNoOutput,
    StoreReset,
    ThreadForgotten,
    ThreadRegistered,
    ThreadRescoped,
)
from threadbook.projections import jobs
from threadbook.projections.fold import fold

from tests.projections.histories import logs, unhurried
from tests.projections.specimens import find, plain, tables, value

CLAIMS = Stage1LeaseClaimed | Phase2LeaseClaimed
ENDS = (
    Stage1LeaseReleased
    | Phase2LeaseReleased
    | Stage1Succeeded
    | Stage1SucceededNoOutput
    | Phase2Succeeded
    | Stage1Failed
    | Phase2Failed
)


def by_job(log):
    """Each job's own events since it last went away, by who they are about."""
    told = defaultdict(list)
    for event in log:
        match event:
            case StoreReset():
                told = defaultdict(
                    list, {key: es for key, es in told.items() if key[2] != event.memory_version}
                )
            case ThreadForgotten():
                for version in ("v1", "v2"):
                    told.pop((jobs.STAGE1, event.thread_id, version), None)
            case (
                Stage1LeaseClaimed()
                | Stage1LeaseReleased()
                | Stage1Succeeded()
                | Stage1SucceededNoOutput()
                | Stage1Failed()
            ):
                told[jobs.STAGE1, event.thread_id, event.memory_version].append(event)
            case (
                ConsolidationRequested()
                | Phase2LeaseClaimed()
                | Phase2LeaseRenewed()
                | Phase2LeaseReleased()
                | Phase2Succeeded()
                | Phase2Failed()
            ):
                told[jobs.PHASE2, event.scope, event.memory_version].append(event)
    begun = {}
    for key, events in told.items():
        for at, event in enumerate(events):
            if isinstance(event, CLAIMS | ConsolidationRequested):
                begun[key] = events[at:]  # Before a claim or a request there is no job.
                break
    return begun


def last(events, kinds):
    return next((event for event in reversed(events) if isinstance(event, kinds)), None)


def by_key(log):
    return {(row.kind, row.job_key, row.memory_version): row for row in fold(jobs, log)}


@unhurried
@given(log=logs)
def test_a_job_is_there_from_its_first_claim_or_request_until_it_is_removed(log):
    assert by_key(log).keys() == by_job(log).keys()


@unhurried
@given(log=logs)
def test_a_job_is_running_from_a_claim_to_the_next_end_and_only_then_has_a_lease(log):
    told, rows = by_job(log), by_key(log)

    for key, events in told.items():
        turn = last(events, CLAIMS | ENDS)
        running = isinstance(turn, CLAIMS)

        assert (rows[key].status == "running") == running
        if running:
            extended = last(events, CLAIMS | Phase2LeaseRenewed)
            assert rows[key].lease_until == extended.lease_until
            assert rows[key].ownership_token == turn.ownership_token
            assert (rows[key].started_at, rows[key].worker_id) == (turn.at, turn.worker_id)
            assert rows[key].finished_at is rows[key].last_error is None
        elif not isinstance(last(events, CLAIMS | ENDS | Phase2LeaseRenewed), Phase2LeaseRenewed):
            assert rows[key].lease_until is None


@unhurried
@given(log=logs)
def test_watermarks_and_tries_are_those_that_were_recorded_last(log):
    told, rows = by_job(log), by_key(log)

    for key, events in told.items():
        row = rows[key]
        asked = last(events, CLAIMS | ConsolidationRequested)
        tries = CLAIMS | ConsolidationRequested | Stage1Failed | Phase2Failed | Stage1LeaseReleased
        tried = last([e for e in events if getattr(e, "retry_remaining", None) is not None], tries)
        stage1 = last(events, Stage1Succeeded | Stage1SucceededNoOutput)
        phase2 = last(events, Phase2Succeeded)

        assert row.input_watermark == asked.input_watermark
        assert row.retry_remaining == tried.retry_remaining
        if key[0] == jobs.STAGE1:
            assert row.last_success_watermark == (stage1 and stage1.input_watermark)
            assert row.extractor == (stage1 and stage1.extractor)
        else:
            assert row.last_success_watermark == (phase2.last_success_watermark if phase2 else 0)
            assert row.completed_watermark == (phase2 and phase2.completed_watermark)


@unhurried
@given(log=logs)
def test_transient_failures_are_counted_in_a_row(log):
    told, rows = by_job(log), by_key(log)

    for key, events in told.items():
        ended = [
            e
            for e in events
            if isinstance(e, Stage1Failed | Stage1Succeeded | Stage1SucceededNoOutput)
        ]
        expected = 0
        for event in reversed(ended):
            if not (isinstance(event, Stage1Failed) and event.kind == "transient"):
                break
            expected += 1

        assert rows[key].transient_failures == expected


def only(log):
    [row] = fold(jobs, log)
    return row


def test_a_first_claim_makes_the_job_as_codex_does():
    row = only([plain(Stage1LeaseClaimed, at=50, lease_until=3650)])

    assert row == jobs.Row(
        kind="memory_stage1",
        job_key="t1",
        memory_version="v1",
        status="running",
        worker_id="ann",
        ownership_token="token",
        started_at=50,
        lease_until=3650,
        retry_remaining=3,
        input_watermark=100,
    )


def test_a_first_request_makes_a_pending_consolidation_that_never_succeeded():
    row = only([plain(ConsolidationRequested, thread_id=None, input_watermark=7)])

    assert row == jobs.Row(
        kind="memory_consolidate_global",
        job_key="project:a",
        memory_version="v1",
        status="pending",
        retry_remaining=3,
        input_watermark=7,
        last_success_watermark=0,
    )


def test_a_consolidation_claimed_before_any_request_has_both_watermarks_at_zero():
    row = only([plain(Phase2LeaseClaimed, input_watermark=0)])

    assert (row.input_watermark, row.last_success_watermark) == (0, 0)


def test_a_success_ends_the_lease_and_keeps_the_token_and_the_tries():
    row = only([plain(Stage1LeaseClaimed, retry_remaining=2), plain(Stage1Succeeded, at=60)])

    assert (row.status, row.finished_at, row.lease_until) == ("done", 60, None)
    assert (row.ownership_token, row.retry_remaining) == ("token", 2)
    assert (row.last_success_watermark, row.extractor, row.outcome) == (100, "offline", "output")


def test_a_reading_without_output_is_a_success_too():
    row = only([plain(Stage1LeaseClaimed), plain(Stage1SucceededNoOutput, output_removed=False)])

    assert (row.status, row.last_success_watermark, row.outcome) == ("done", 100, "no_output")


def test_a_failure_shows_its_kind_and_reason_until_it_is_over():
    failed = [
        plain(Stage1LeaseClaimed),
        plain(Stage1Failed, at=60, kind="transient", retry_at=120, retry_remaining=3),
    ]
    again = [*failed, plain(Stage1LeaseClaimed, at=120)]

    row, running, done = only(failed), only(again), only([*again, plain(Stage1Succeeded)])

    assert (row.status, row.finished_at, row.lease_until, row.retry_at) == ("error", 60, None, 120)
    assert (row.failure, row.last_error, row.transient_failures) == ("transient", "because", 1)
    assert (running.failure, running.last_error, running.retry_at) == ("transient", None, None)
    assert (done.failure, done.transient_failures) == (None, 0)


def test_transient_failures_add_up_over_the_claims_between_them_until_another_kind():
    def attempt(kind):
        return [plain(Stage1LeaseClaimed), plain(Stage1Failed, kind=kind, retry_at=120)]

    twice = [*attempt("transient"), *attempt("transient")]

    assert only(twice).transient_failures == 2
    assert only([*twice, *attempt("bad_reply")]).transient_failures == 0


def test_a_failure_keeps_what_an_earlier_success_has_read():
    row = only(
        [
            plain(Stage1LeaseClaimed),
            plain(Stage1Succeeded, extractor="model:luna"),
            plain(Stage1LeaseClaimed, input_watermark=200),
            plain(Stage1Failed, kind="refused", retry_at=None),
        ]
    )

    assert (row.status, row.last_success_watermark) == ("error", 100)
    assert (row.extractor, row.outcome) == ("model:luna", "output")


@pytest.mark.parametrize(
    ("claim", "release"),
    [(Stage1LeaseClaimed, Stage1LeaseReleased), (Phase2LeaseClaimed, Phase2LeaseReleased)],
)
def test_a_lease_given_back_leaves_a_job_that_can_be_claimed_at_once(claim, release):
    row = only([plain(claim), plain(release)])

    assert (row.status, row.lease_until, row.retry_at, row.finished_at) == (
        "pending",
        None,
        None,
        None,
    )


def test_a_request_during_a_run_raises_the_watermark_and_leaves_the_lease():
    row = only(
        [
            plain(Phase2LeaseClaimed, input_watermark=5),
            plain(ConsolidationRequested, thread_id="t1", input_watermark=6, backoff_cleared=False),
        ]
    )

    assert (row.status, row.input_watermark, row.lease_until) == ("running", 6, 3601)


def test_a_request_after_a_failure_clears_the_back_off_and_keeps_the_reason():
    failed = [plain(Phase2LeaseClaimed), plain(Phase2Failed, retry_at=99, retry_remaining=2)]

    kept = only([*failed, plain(ConsolidationRequested, thread_id=None, backoff_cleared=False)])
    cleared = only([*failed, plain(ConsolidationRequested, thread_id=None)])

    assert (kept.status, kept.retry_at) == ("pending", 99)
    assert (cleared.status, cleared.retry_at, cleared.last_error) == ("pending", None, "because")


def test_a_request_after_a_success_keeps_the_time_that_the_cooldown_counts_from():
    done = [plain(Phase2LeaseClaimed), plain(Phase2Succeeded, at=60)]

    row = only([*done, plain(ConsolidationRequested, thread_id=None)])

    assert (row.status, row.finished_at, row.last_error) == ("pending", 60, None)


def test_renewing_moves_only_the_end_of_the_lease():
    claimed = [plain(Phase2LeaseClaimed)]

    renewed = only([*claimed, plain(Phase2LeaseRenewed, lease_until=9999)])

    assert renewed == replace(only(claimed), lease_until=9999)


def test_forgetting_removes_a_threads_jobs_of_every_version_and_no_consolidation():
    log = [
        plain(Stage1LeaseClaimed, memory_version="v1"),
        plain(Stage1LeaseClaimed, memory_version="v2"),
        plain(Phase2LeaseClaimed, scope="t1"),
        plain(ThreadForgotten),
    ]

    assert only(log).kind == jobs.PHASE2


def test_a_reset_removes_the_jobs_of_its_version_alone():
    log = [
        plain(claim, memory_version=version)
        for claim in (Stage1LeaseClaimed, Phase2LeaseClaimed)
        for version in ("v1", "v2")
    ]

    left = fold(jobs, [*log, plain(StoreReset, memory_version="v1")])

    assert [(row.kind, row.memory_version) for row in left] == [
        (jobs.PHASE2, "v2"),
        (jobs.STAGE1, "v2"),
    ]


def running(db, now, thread_id=None, version="v1"):
    return value(db, jobs.OTHERS_RUNNING, memory_version=version, now=now, thread_id=thread_id)


def test_a_lease_counts_against_the_cap_until_the_second_it_ends():
    db = tables([plain(Stage1LeaseClaimed, lease_until=100)])

    assert running(db, now=99) == 1
    assert running(db, now=100) == 0


def test_the_cap_counts_other_threads_running_stage1_jobs_of_the_same_version():
    db = tables(
        [
            plain(Stage1LeaseClaimed, thread_id="t1"),
            plain(Stage1LeaseClaimed, thread_id="t2"),
            plain(Stage1LeaseClaimed, thread_id="t3"),
            plain(Stage1Succeeded, thread_id="t3"),
            plain(Stage1LeaseClaimed, thread_id="t4", memory_version="v2"),
            plain(Phase2LeaseClaimed),
        ]
    )

    assert running(db, now=10) == 2
    assert running(db, now=10, thread_id="t1") == 1
    assert running(db, now=10, thread_id="t4", version="v2") == 0


def test_a_root_is_held_by_the_fresh_leases_of_the_threads_in_its_scope():
    seen = [
        plain(ThreadRegistered, thread_id="t1", scope="project:a"),
        plain(ThreadRegistered, thread_id="t2", scope="project:b"),
        plain(Stage1LeaseClaimed, thread_id="t1", lease_until=100),
        plain(Stage1LeaseClaimed, thread_id="t2", lease_until=200),
    ]

    def holding(log, scope, now):
        rest = jobs.FRESH_LEASES_OF_SCOPE
        found = find(tables(log), jobs, rest, memory_version="v1", scope=scope, now=now)
        return [row.job_key for row in found]

    moved = [*seen, plain(ThreadRescoped, thread_id="t1", scope="project:b")]
    assert holding(seen, "project:a", now=99) == ["t1"]
    assert holding(seen, "project:a", now=100) == []
    assert holding(moved, "project:b", now=99) == ["t2", "t1"]
    every = find(tables(seen), jobs, jobs.FRESH_LEASES, memory_version="v1", now=99)
    assert [row.job_key for row in every] == ["t2", "t1"]
