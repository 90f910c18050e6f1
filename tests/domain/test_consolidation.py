"""Phase 2, by example: the order of the guards, and every boundary on both sides of it."""

from functools import reduce

import pytest
from threadbook.domain.consolidation import (
    COOLDOWN_S,
    Consolidation,
    claim,
    completed_watermark,
    evolve,
    fail,
    release,
    renew,
    request,
    succeed,
)
from threadbook.domain.events import (
    ArtifactsPublished,
    FolderEdited,
    Input,
    Phase2InputsSelected,
    RootRendered,
    StoreReset,
)
from threadbook.domain.refusals import BackingOff, CoolingDown, LeaseHeld, LeaseLost

from tests.support import HOUR_S, NOON

ROOT = {"memory_version": "v1", "scope": "global"}
NEW = Consolidation(**ROOT)


def after(job, *events):
    return reduce(evolve, events, job)


def asked(job=NEW, watermark=7):
    event = request(job, cause="stage1_succeeded", thread_id="t1", watermark=watermark, now=NOON)
    return after(job, event)


def claimed(job=NEW, *, token="a", now=NOON, **terms):
    return claim(job, worker_id=f"worker of {token}", ownership_token=token, now=now, **terms)


def running(job=NEW, **terms):
    return after(job, claimed(job, **terms))


def succeeded(job=NEW, *, completed=7, now=NOON):
    held = running(job, now=now)
    event = succeed(held, ownership_token="a", completed_watermark=completed, selected=(), now=now)
    return after(held, event)


def failed(job=NEW, *, now=NOON, delay_s=3600):
    held = running(job, now=now)
    event = fail(held, ownership_token="a", reason="failed_agent", delay_s=delay_s, now=now)
    return after(held, event)


# Requests.


def test_every_request_steps_past_the_last():
    first = asked(watermark=500)

    older, newer = asked(first, watermark=400), asked(first, watermark=502)

    assert (older.input_watermark, newer.input_watermark) == (501, 502)
    assert older.status == "pending"


def test_a_request_lifts_the_wait_of_a_failure_and_brings_the_tries_back():
    job = failed()

    event = request(job, cause="polluted", thread_id="t1", watermark=9, now=NOON)

    assert (event.backoff_cleared, event.retry_remaining) == (True, 3)
    assert claimed(after(job, event))


def test_a_request_does_not_lift_the_rest_of_a_success():
    job = asked(succeeded())

    with pytest.raises(CoolingDown):
        claimed(job)


def test_a_request_during_a_run_leaves_the_run_alone():
    held = running()

    job = asked(held, watermark=9)

    assert (job.status, job.lease_until) == ("running", held.lease_until)
    done = after(
        job, succeed(job, ownership_token="a", completed_watermark=0, selected=(), now=NOON)
    )
    assert done.input_watermark > done.last_success_watermark


# Claims.


def test_a_root_that_nobody_asked_for_can_be_claimed():
    assert claimed().input_watermark == 0


def test_a_root_that_nobody_asked_for_has_one_runner_and_rests_as_any_other():
    held = running()

    with pytest.raises(LeaseHeld):
        claimed(held, token="b")
    with pytest.raises(CoolingDown):
        claimed(succeeded(), token="b")


def test_an_older_request_after_a_success_is_still_news():
    job = succeeded(asked(watermark=500), completed=500)

    event = claimed(asked(job, watermark=400), now=NOON + COOLDOWN_S)

    assert event.input_watermark > 500


def test_who_took_over_finishes_and_who_was_late_does_not():
    held = running(asked(watermark=300), token="a")
    taken = after(held, claimed(held, token="b", now=NOON + HOUR_S + 1))
    done = {"completed_watermark": 300, "selected": (), "now": NOON + HOUR_S + 2}

    with pytest.raises(LeaseLost):
        succeed(taken, ownership_token="a", **done)
    assert succeed(taken, ownership_token="b", **done).last_success_watermark == 300


def test_a_running_job_always_has_a_token():
    assert running().ownership_token == "a"
    with pytest.raises(LeaseLost):
        fail(asked(), ownership_token="a", reason="failed_agent", now=NOON)


def test_a_claim_carries_the_newest_watermark_asked_for():
    assert claimed(asked(asked(watermark=100), watermark=101)).input_watermark == 101


def test_a_failure_waits_to_the_second():
    job = failed()

    with pytest.raises(BackingOff, match="failed_agent"):
        claimed(job, now=NOON + HOUR_S - 1)
    assert claimed(job, now=NOON + HOUR_S)


def test_a_held_lease_refuses_a_second_worker_and_says_when_to_return():
    job = running()

    with pytest.raises(LeaseHeld, match="held by worker of a; try again after 2026-01-01 13:00"):
        claimed(job, token="b", now=NOON + HOUR_S - 1)


def test_a_lease_is_free_from_the_moment_it_expires():
    job = running()

    event = claimed(job, token="b", now=NOON + HOUR_S)

    assert (event.taken_over_from, event.lease_until) == ("a", NOON + 2 * HOUR_S)


def test_a_success_rests_six_hours_to_the_second():
    job = succeeded()

    with pytest.raises(CoolingDown, match="2026-01-01 18:00:00Z"):
        claimed(job, now=NOON + COOLDOWN_S - 1)
    assert claimed(job, now=NOON + COOLDOWN_S)


@pytest.mark.parametrize("by", ["offline", "person", "waited"])
def test_the_rest_can_be_waived_and_the_claim_says_by_whom(by):
    assert claimed(succeeded(), cooldown_waived=by).cooldown_waived == by


def test_waiving_the_rest_waives_no_lease_and_no_wait():
    with pytest.raises(LeaseHeld):
        claimed(running(), token="b", cooldown_waived="person")
    with pytest.raises(BackingOff):
        claimed(failed(), cooldown_waived="person")


def test_a_failure_does_not_rest_as_a_success_does():
    job = failed(delay_s=0)

    assert claimed(job)


def test_a_root_without_tries_can_still_be_claimed():
    job = reduce(lambda job, _: failed(job, delay_s=0), range(4), NEW)

    assert job.retry_remaining == 0
    assert claimed(job).retry_remaining == 0


# Holding the lease and giving it up.


def test_a_lease_that_ran_out_is_renewed_if_nobody_took_it():
    job = running()

    event = renew(job, ownership_token="a", now=NOON + 5 * HOUR_S)

    assert after(job, event).lease_until == NOON + 6 * HOUR_S


@pytest.mark.parametrize(
    "act",
    [
        lambda job, token: renew(job, ownership_token=token, now=NOON),
        lambda job, token: release(job, ownership_token=token, reason="stopped", now=NOON),
        lambda job, token: fail(job, ownership_token=token, reason="failed_agent", now=NOON),
        lambda job, token: succeed(
            job, ownership_token=token, completed_watermark=1, selected=(), now=NOON
        ),
    ],
)
def test_only_the_holder_of_a_running_job_acts(act):
    with pytest.raises(LeaseLost):
        act(running(), "b")
    with pytest.raises(LeaseLost):
        act(running(running(), token="b", now=NOON + HOUR_S), "a")
    with pytest.raises(LeaseLost):
        act(succeeded(), "a")


def test_a_lease_that_was_given_back_can_be_claimed_at_once():
    held = running(asked())

    job = after(held, release(held, ownership_token="a", reason="inputs_changed", now=NOON))

    assert (job.status, job.lease_until, job.retry_remaining) == ("pending", None, 3)
    assert claimed(job, token="b").taken_over_from is None


def test_the_last_success_never_moves_back():
    job = succeeded(completed=500)

    assert succeeded(job, completed=400, now=NOON + COOLDOWN_S).last_success_watermark == 500


def test_a_success_reaches_as_far_as_what_it_read():
    inputs = [Input(thread_id="a", source_updated_at=90), Input(thread_id="b", source_updated_at=9)]

    assert completed_watermark(50, inputs) == 90
    assert completed_watermark(500, inputs) == 500
    assert completed_watermark(50, ()) == 50


def test_what_is_the_folders_changes_nothing_in_the_job():
    job = running()
    token = {"ownership_token": "a"}

    same = after(
        job,
        Phase2InputsSelected(at=NOON, **ROOT, **token, limit=1, cutoff=0, position=1, selected=()),
        ArtifactsPublished(at=NOON, **ROOT, run_id=None, consolidator="offline", files=()),
        RootRendered(at=NOON, **ROOT, renderer="v1", manifest_ref="m"),
        FolderEdited(at=NOON, **ROOT, body_ref="b"),
    )

    assert same == job


def test_a_reset_ends_the_lease_and_the_rest_of_its_version_only():
    job = succeeded()

    assert after(job, StoreReset(at=NOON, memory_version="v1")) == NEW
    assert after(job, StoreReset(at=NOON, memory_version="v2")) == job
