"""One long run through both phases, on a real store: a port of upstream compares itself by it.

Where we differ on purpose it is said. A deleted thread is forgotten here, and not claimable again.
Duplicates in one turn count once. There is no list of outputs beside the selection, and no failure
of a job that nobody owns. Upstream says "running" where a cap is reached, and we say why.
"""

from functools import partial

import pytest
from msgspec.structs import replace
from threadbook.application import forget, people
from threadbook.application.claims import Shut
from threadbook.domain.refusals import (
    BackingOff,
    CapReached,
    CoolingDown,
    LeaseHeld,
    LeaseLost,
    RetryExhausted,
    UpToDate,
)
from threadbook.projections import jobs, stage1_outputs

from tests.application.homes import DAY_S, HOUR_S, NOON, Session
from tests.application.steps import Steps, taught

pytestmark = pytest.mark.usefixtures("database")  # On the file and on a server.

A, B, C = (Session(number=each, ended_at=NOON - (5 + each) * HOUR_S) for each in (1, 2, 3))
D = Session(number=4, ended_at=NOON - 100 * DAY_S)
TWIN = Session(number=5, ended_at=NOON - 9 * HOUR_S)  # Of c, whose model is only busy.
WRONG = "a token that nobody was given"
refuses = pytest.raises


def test_one_long_run_on_a_store_ends_as_upstreams_does(home):
    steps, other = Steps(home), Steps(home).another("w2")
    steps.reset()
    steps.meets(A, B, C, D, TWIN)
    assert steps.progress() == 0

    held = claims_take_the_slots_that_are_free(steps, other)
    a, c = readings_end_once(steps, held)
    uses_are_counted_and_choose(steps, a, c)
    claimed = one_runner_at_a_time_holds_the_root(steps, other)
    a_success_is_recorded_once_and_rests(steps, other, claimed, a, c)
    what_aged_is_pruned(steps)
    the_last_words_leave(steps, a, c)

    assert steps.memory.verify().ok
    assert steps.store.replay_verify() == []


def claims_take_the_slots_that_are_free(steps, other):
    held = {A.id: steps.claim(A, cap=2), B.id: steps.claim(B, cap=2)}
    with refuses(LeaseHeld):
        other.claim(A, cap=3)
    with refuses(CapReached):
        other.claim(C, cap=2)
    held[C.id] = steps.claim(C, cap=3)
    assert [each.input_watermark for each in held.values()] == [A.ended_at, B.ended_at, C.ended_at]
    return held


def readings_end_once(steps, held):
    record = partial(steps.record, found=taught("lesson"))

    # a: only the holder records, and once; what is read is up to date until the session goes on.
    with refuses(LeaseLost):
        record(replace(held[A.id], ownership_token=WRONG))
    assert steps.output(A) is None
    assert record(held[A.id])
    with refuses(LeaseLost):
        record(held[A.id])
    with refuses(UpToDate):
        steps.claim(A)
    steps.home.later(1)  # Until a, which goes on, has rested again.
    a = steps.goes_on(A)
    assert record(steps.claim(a))

    # b: a failure is recorded once, and waits an hour.
    steps.fails(replace(held[B.id], ownership_token=WRONG))
    assert steps.job(B).status == "running"
    steps.fails(held[B.id])
    failed = steps.job(B)
    assert (failed.retry_remaining, failed.retry_at) == (2, steps.home.now + HOUR_S)
    steps.fails(held[B.id])
    assert steps.job(B) == failed
    with refuses(BackingOff):
        steps.claim(B)

    # c: three bad replies without a wait close it, until it goes on. A busy model closes nothing.
    steps.fails(held[C.id], retry_after_s=0)
    for _ in range(2):
        steps.fails(steps.claim(C), retry_after_s=0)
    assert steps.job(C).retry_remaining == 0
    with refuses(RetryExhausted):
        steps.claim(C)
    for _ in range(3):
        steps.fails(steps.claim(TWIN), "transient", retry_after_s=0)
    assert steps.job(TWIN).retry_remaining == 3
    c = steps.goes_on(C)
    again = steps.claim(c)
    assert (again.retry_remaining, again.input_watermark) == (3, C.ended_at + 1)
    assert record(again)

    # d: upstream gives a reading's age; here the session is as old, and a backfill reads it.
    with refuses(Shut):
        steps.claim(D)
    steps.reads(D, "long ago", backfill=True)
    return a, c


def uses_are_counted_and_choose(steps, a, c):
    assert steps.cited_ids([a.id, c.id, "unknown"], turn=1) == 2
    assert steps.cited_ids([a.id], turn=2) == 1
    assert steps.cited_ids([], turn=3) == 0
    assert [steps.output(each).usage_count for each in (a, c)] == [2, 1]

    assert steps.chosen(limit=10) == [a.id, c.id]  # By id, and without d.
    assert steps.chosen(limit=1) == [a.id]


def one_runner_at_a_time_holds_the_root(steps, other):
    claimed = steps.claim_root()
    with refuses(LeaseHeld):
        other.claim_root()
    with refuses(LeaseLost):
        steps.renew_root(WRONG)
    steps.home.later(60)
    renewed = steps.renew_root(claimed.lease.ownership_token)
    assert renewed.lease_until == claimed.lease.lease_until + 60
    steps.fails_root(wrong(claimed))
    assert steps.root_job().status == "running"
    steps.fails_root(claimed)
    failed = steps.root_job()
    assert (failed.status, failed.retry_remaining) == ("error", 2)
    with refuses(BackingOff):
        other.claim_root()
    steps.fails_root(claimed)
    assert steps.root_job() == failed

    # Whatever asks anew ends the wait at once: here d's mode, which a person turns off and on.
    for mode in ("disabled", "enabled"):
        people.set_mode(steps.around, D.id, mode, actor="application")
    job = steps.root_job()
    assert (job.status, job.retry_remaining, job.retry_at) == ("pending", 3, None)
    assert job.input_watermark >= steps.around.now()
    return other.claim_root()


def wrong(claimed):
    return replace(claimed, lease=replace(claimed.lease, ownership_token=WRONG))


def a_success_is_recorded_once_and_rests(steps, other, claimed, a, c):
    with refuses(LeaseLost):
        other.publish(wrong(claimed))
    assert steps.snapshot() == {}
    assert other.publish(claimed) == "succeeded"
    with refuses(LeaseLost):
        other.publish(claimed)
    assert steps.snapshot() == {a.id: (a.ended_at, 1), c.id: (c.ended_at, 1)}
    job = steps.root_job()
    assert (job.status, job.last_success_watermark) == ("done", claimed.lease.input_watermark)
    assert steps.progress() == 2
    with refuses(CoolingDown):
        steps.claim_root()


def what_aged_is_pruned(steps):
    assert steps.prune(days=30, batch=0) == 0
    assert steps.prune(days=30, batch=10) == 1
    assert steps.output(D) is None
    assert steps.prune(days=0, batch=10) == 0  # What is left is selected.


def the_last_words_leave(steps, a, c):
    assert steps.pollute(a)
    assert not steps.pollute(a)
    assert steps.chosen() == [c.id]

    c = steps.goes_on(c)
    claimed = steps.claim(c)
    with refuses(LeaseLost):
        steps.record(replace(claimed, ownership_token=WRONG), None)
    assert steps.output(c) is not None
    assert not steps.record(claimed, None)
    assert steps.output(c) is None
    assert steps.chosen() == []

    # Upstream could claim a again after its deletion. What is forgotten stays so.
    for already in (False, True):
        report = forget.forget(steps.around, a.id, reason="person", actor="application")
        assert report.already is already
    with refuses(Shut, match="it was forgotten"):
        steps.claim(steps.goes_on(a))
    assert steps.rows(stage1_outputs, ()) == []
    assert steps.progress() == 2  # What was forgotten was consolidated all the same.
    steps.reset()
    assert steps.progress() == 0
    assert steps.rows(jobs, ()) == []
