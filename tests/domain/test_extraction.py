"""Phase 1, by example: every boundary that the spec states, on both sides of it."""

from functools import reduce

import pytest
from threadbook.domain.events import ForgettingLifted, StoreReset, ThreadForgotten
from threadbook.domain.extraction import (
    Extraction,
    cite,
    claim,
    evolve,
    fail,
    is_held,
    release,
    succeed,
    succeed_without_output,
    watermark_of,
    withdraw,
)
from threadbook.domain.refusals import (
    BackingOff,
    CapReached,
    Forgotten,
    LeaseHeld,
    LeaseLost,
    NoOutput,
    Refused,
    RetryExhausted,
    StillSelected,
    UpToDate,
)

from tests.support import HOUR_S, NOON, Conflict, Stream

NEW = Extraction(thread_id="t1", memory_version="v1")
WRITTEN = {
    "raw_memory_ref": "raw",
    "rollout_summary_ref": "summary",
    "rollout_slug_ref": None,
    "memory_mode": "enabled",
    "scope": "global",
    "extractor": "offline",
}


def after(job, *events):
    return reduce(evolve, events, job)


def claimed(job=NEW, *, token="a", watermark=100, now=NOON, **more):
    terms = {
        "extractor": "offline",
        "worker_id": f"worker of {token}",
        "running_elsewhere": 0,
        "running_cap": 2,
    }
    given = terms | more
    return claim(job, watermark=watermark, ownership_token=token, now=now, **given)


def running(job=NEW, **terms):
    return after(job, claimed(job, **terms))


def read(job=NEW, *, watermark=100, **terms):
    """The job after a success at the watermark."""
    held = running(job, watermark=watermark, **terms)
    written = WRITTEN | {"extractor": terms.get("extractor", "offline")}
    return after(held, succeed(held, ownership_token="a", **written, now=NOON))


def failed(job=NEW, *, kind="bad_reply", retry_after_s=None, now=NOON, **terms):
    held = running(job, now=now, **terms)
    event = fail(
        held,
        ownership_token="a",
        kind=kind,
        reason="schema.raw_memory",
        retry_after_s=retry_after_s,
        now=now,
    )
    return after(held, event)


def times(count, job=NEW, **terms):
    return reduce(lambda job, _: failed(job, **terms), range(count), job)


# Up to date.


def test_a_reading_is_up_to_date_until_the_session_goes_on():
    job = read(watermark=100)

    with pytest.raises(UpToDate):
        claimed(job, watermark=100)
    assert claimed(job, watermark=101).input_watermark == 101


def test_a_session_that_teaches_nothing_counts_as_read():
    held = running(watermark=100)
    event = succeed_without_output(held, ownership_token="a", extractor="offline", now=NOON)

    job = after(held, event)

    assert not event.output_removed
    with pytest.raises(UpToDate):
        claimed(job, watermark=100)


def test_a_pruned_output_is_not_read_again():
    job = after(read(), withdraw(read(), now=NOON))

    with pytest.raises(UpToDate):
        claimed(job)


def test_what_offline_read_is_stale_for_a_model_but_not_the_other_way_round():
    by_offline, by_model = read(extractor="offline"), read(extractor="gpt-6-luna")

    assert claimed(by_offline, extractor="gpt-6-luna")
    for extractor in ("offline", "gpt-7"):
        with pytest.raises(UpToDate):
            claimed(by_model, extractor=extractor)


def test_a_person_may_have_it_read_again():
    assert claimed(read(), again=True).input_watermark == 100


@pytest.mark.parametrize("terms", [{"again": True}, {"extractor": "gpt-6-luna"}])
def test_an_older_reading_is_never_asked_for_again(terms):
    with pytest.raises(UpToDate):
        claimed(read(watermark=100), watermark=99, **terms)


# The lease.


def test_a_fresh_lease_refuses_a_second_worker_until_the_second_it_ends():
    job = running(token="a")

    with pytest.raises(LeaseHeld, match="held by worker of a; try again after 2026-01-01 13:00"):
        claimed(job, token="b", now=NOON + HOUR_S - 1)
    assert claimed(job, token="b", now=NOON + HOUR_S).taken_over_from == "a"


def test_a_lease_of_no_length_can_be_taken_over_at_once():
    assert claimed(running(lease_s=-5), token="b")


def test_taking_over_at_the_same_watermark_spends_a_try():
    later = NOON + HOUR_S

    once = running(running(), token="b", now=later)
    twice = running(once, token="c", now=later + HOUR_S)
    thrice = running(twice, token="d", now=later + 2 * HOUR_S)

    assert [job.retry_remaining for job in (once, twice, thrice)] == [2, 1, 0]
    with pytest.raises(RetryExhausted, match="did not come back"):
        claimed(thrice, token="e", now=later + 3 * HOUR_S)


def test_taking_over_for_a_newer_reading_brings_all_tries_back():
    job = running(running(), token="b", now=NOON + HOUR_S)

    event = claimed(job, token="c", watermark=101, now=NOON + 2 * HOUR_S)

    assert event.retry_remaining == 3


def test_a_lease_that_ran_out_is_still_good_until_somebody_takes_it_over():
    job = running()
    late = {"ownership_token": "a", **WRITTEN, "now": NOON + 9 * HOUR_S}

    assert succeed(job, **late)
    with pytest.raises(LeaseLost):
        succeed(running(job, token="b", now=NOON + HOUR_S), **late)


@pytest.mark.parametrize(
    "finish",
    [
        lambda job, token: release(job, ownership_token=token, now=NOON),
        lambda job, token: succeed(job, ownership_token=token, **WRITTEN, now=NOON),
        lambda job, token: succeed_without_output(
            job, ownership_token=token, extractor="offline", now=NOON
        ),
        lambda job, token: fail(
            job, ownership_token=token, kind="bad_reply", reason="json", now=NOON
        ),
    ],
)
def test_only_the_holder_finishes_and_only_once(finish):
    job = running(token="a")

    with pytest.raises(LeaseLost):
        finish(job, "b")
    with pytest.raises(LeaseLost):
        finish(after(job, finish(job, "a")), "a")


def test_a_lease_that_was_given_back_can_be_claimed_at_once_and_costs_no_try():
    job = running()

    back = after(job, release(job, ownership_token="a", now=NOON))

    assert (back.status, back.lease_until) == ("pending", None)
    assert claimed(back, token="b", now=NOON).retry_remaining == 3
    assert claimed(back, token="b", now=NOON).taken_over_from is None


# The cap.


def test_the_cap_counts_the_others():
    with pytest.raises(CapReached, match="2 sessions are being read and 2 may be"):
        claimed(running_elsewhere=2, running_cap=2)
    assert claimed(running_elsewhere=1, running_cap=2)


def test_what_is_in_the_way_of_this_job_is_said_before_the_cap():
    full = {"running_elsewhere": 9, "running_cap": 2}

    with pytest.raises(RetryExhausted):
        claimed(times(3, retry_after_s=0), **full)
    with pytest.raises(BackingOff):
        claimed(failed(), **full)
    with pytest.raises(LeaseHeld):
        claimed(running(), token="b", **full)


# Failures.


def test_a_bad_reply_waits_an_hour_and_spends_a_try():
    job = failed()

    assert (job.retry_remaining, job.retry_at) == (2, NOON + HOUR_S)
    with pytest.raises(BackingOff, match=r"schema\.raw_memory"):
        claimed(job, now=NOON + HOUR_S - 1)
    assert claimed(job, now=NOON + HOUR_S).retry_remaining == 2


def test_a_newer_reading_does_not_wait():
    assert claimed(failed(), watermark=101).retry_remaining == 3


def test_three_bad_replies_close_the_job_until_the_session_goes_on():
    job = times(3, retry_after_s=0)

    with pytest.raises(RetryExhausted):
        claimed(job)
    reopened = claimed(job, watermark=101)
    assert (reopened.retry_remaining, reopened.input_watermark) == (3, 101)


def test_three_transient_failures_leave_all_tries():
    job = times(3, kind="transient", retry_after_s=0)

    assert claimed(job).retry_remaining == 3


def test_transient_failures_wait_twice_as_long_each_time_up_to_an_hour():
    job, waits, now = NEW, [], NOON
    for _ in range(8):
        job = failed(job, kind="transient", now=now)
        waits.append(job.retry_at - now)
        now = job.retry_at

    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_a_stated_wait_is_kept():
    job = failed(kind="transient", retry_after_s=7200)

    assert job.retry_at == NOON + 7200


@pytest.mark.parametrize("between", ["bad_reply", "success"])
def test_only_transient_failures_in_a_row_wait_longer(between):
    job = times(2, kind="transient", retry_after_s=0)

    job = failed(job, retry_after_s=0) if between == "bad_reply" else read(job)

    again = failed(job, kind="transient", watermark=101)
    assert again.retry_at == NOON + 60


@pytest.mark.parametrize("kind", ["refused", "source"])
def test_what_waiting_does_not_cure_closes_the_job_until_the_session_goes_on(kind):
    job = failed(kind=kind, retry_after_s=5)

    assert job.retry_at is None
    with pytest.raises(RetryExhausted):
        claimed(job, now=NOON + 999 * HOUR_S)
    assert claimed(job, watermark=101)


def test_a_person_may_reopen_a_closed_job():
    job = failed(kind="refused")

    assert claimed(job, again=True).retry_remaining == 3


def test_a_claim_clears_the_last_failure_and_success_keeps_the_tries():
    job = failed(retry_after_s=0)

    done = read(job)

    assert (running(job).last_error, running(job).retry_at) == (None, None)
    assert (done.retry_remaining, done.last_success_watermark) == (2, 100)


# The output.


def test_an_equal_or_newer_reading_replaces_the_output():
    held = running(read(watermark=100), watermark=101)

    for read_at, replaced in ((99, False), (100, True), (101, True)):
        event = succeed(held, ownership_token="a", **WRITTEN, source_updated_at=read_at, now=NOON)
        assert event.output_replaced is replaced
        assert after(held, event).output_source_updated_at == max(100, read_at)


def test_an_output_counts_from_its_reading_unless_a_backfill_says_otherwise():
    held = running(watermark=100)

    usual = succeed(held, ownership_token="a", **WRITTEN, now=NOON)
    backfilled = succeed(held, ownership_token="a", **WRITTEN, counts_from=NOON, now=NOON)

    assert (usual.source_updated_at, usual.counts_from) == (100, 100)
    assert (backfilled.source_updated_at, backfilled.counts_from) == (100, NOON)


def test_a_session_that_teaches_nothing_any_more_takes_its_output_away():
    held = running(read(watermark=100), watermark=101)

    event = succeed_without_output(held, ownership_token="a", extractor="offline", now=NOON)

    assert event.output_removed
    assert after(held, event).output_source_updated_at is None


def test_a_selected_output_does_not_age_out():
    chosen = evolve(read(), cite(read(), citation_id="s:1", now=NOON))

    with pytest.raises(StillSelected):
        withdraw(Extraction(**fields(chosen) | {"selected": True}), now=NOON)
    with pytest.raises(NoOutput):
        withdraw(NEW, now=NOON)
    assert withdraw(chosen, now=NOON).reason == "pruned"


def fields(job):
    return {field: getattr(job, field) for field in job.__struct_fields__}


def test_uses_are_counted_and_outlive_a_newer_reading():
    job = read()
    job = after(job, cite(job, citation_id="s:1", now=NOON))

    job = after(job, cite(job, citation_id="s:2", now=NOON + 5))

    newer = read(job, watermark=101)
    assert (newer.usage_count, newer.last_usage) == (2, NOON + 5)


def test_a_citation_counts_once_and_only_for_a_live_output():
    assert cite(read(), citation_id="s:1", counted_before=True, now=NOON) is None
    assert cite(NEW, citation_id="s:1", now=NOON) is None


# The end.


def test_a_forgotten_thread_cannot_be_claimed_and_whoever_reads_it_has_lost_the_lease():
    gone = ThreadForgotten(at=NOON, thread_id="t1", reason="person")

    job = after(running(read(), watermark=101), gone)

    with pytest.raises(Forgotten):
        claimed(job, watermark=999)
    with pytest.raises(LeaseLost):
        succeed(job, ownership_token="a", **WRITTEN, now=NOON)
    lifted = after(job, ForgettingLifted(at=NOON, thread_id="t1"))
    assert claimed(lifted, watermark=100)


def test_a_reset_ends_the_leases_and_watermarks_of_its_version_only():
    held = running(read(), watermark=101)

    emptied = after(held, StoreReset(at=NOON, memory_version="v1"))
    spared = after(held, StoreReset(at=NOON, memory_version="v2"))

    with pytest.raises(LeaseLost):
        succeed(emptied, ownership_token="a", **WRITTEN, now=NOON)
    assert claimed(emptied, watermark=100)
    assert spared == held


def test_a_reset_lifts_no_forgetting():
    gone = ThreadForgotten(at=NOON, thread_id="t1", reason="person")

    job = after(NEW, gone, StoreReset(at=NOON, memory_version="v1"))

    with pytest.raises(Forgotten):
        claimed(job)


def test_a_watermark_is_the_second_that_the_last_update_fell_in():
    assert watermark_of(1_999) == 1


# Several workers, several threads.


def test_of_two_claims_on_one_reading_one_wins_and_the_other_is_told():
    stream = Stream(NEW, evolve)
    first, second = stream.read(), stream.read()

    stream.append(claimed(first.state, token="a"), expected_version=first.version)

    with pytest.raises(Conflict):
        stream.append(claimed(second.state, token="b"), expected_version=second.version)
    with pytest.raises(LeaseHeld):
        claimed(stream.read().state, token="b")


def start_up(jobs, *, cap, batch):
    """Claims as a run makes them: in order, until the batch is full."""
    claims = []
    for thread_id, job in jobs.items():
        held = sum(is_held(other, now=NOON) for other in jobs.values())
        try:
            event = claimed(
                job, token=f"token of {thread_id}", running_elsewhere=held, running_cap=cap
            )
        except Refused:
            continue
        jobs[thread_id] = evolve(job, event)
        claims.append(event)
        if len(claims) == batch:
            break
    return claims


def candidates(count):
    return {
        f"t{number:03}": Extraction(thread_id=f"t{number:03}", memory_version="v1")
        for number in range(count)
    }


def test_of_two_threads_and_one_slot_one_waits():
    jobs = candidates(2)

    assert len(start_up(jobs, cap=1, batch=2)) == 1


def test_a_run_fills_the_slots_that_are_left_and_the_next_one_finds_none():
    jobs = candidates(80)
    start_up(jobs, cap=64, batch=10)

    assert len(start_up(jobs, cap=64, batch=64)) == 54
    assert start_up(jobs, cap=64, batch=64) == []


def test_a_second_run_takes_the_next_full_batch_once_the_first_is_done():
    jobs = candidates(200)
    first = start_up(jobs, cap=64, batch=64)
    for event in first:
        job = jobs[event.thread_id]
        done = succeed(job, ownership_token=event.ownership_token, **WRITTEN, now=NOON)
        jobs[event.thread_id] = evolve(job, done)

    second = start_up(jobs, cap=64, batch=64)

    assert (len(first), len(second)) == (64, 64)
    assert not {event.thread_id for event in first} & {event.thread_id for event in second}


def test_the_batch_is_apart_from_the_cap():
    assert len(start_up(candidates(9), cap=8, batch=2)) == 2


def test_each_version_reads_the_same_session_for_itself():
    in_v2 = Extraction(thread_id="t1", memory_version="v2")

    assert read().last_success_watermark == 100
    assert claimed(in_v2, watermark=100).memory_version == "v2"
