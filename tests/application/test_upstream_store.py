"""What upstream's tests pin that needs a database under it: rows, transactions, races.

The table in `tests/upstream.py` says which of upstream's tests each of these stands for.
"""

import os
import signal
import threading
from itertools import pairwise

import pytest
from msgspec.structs import replace
from threadbook.application import forget, people
from threadbook.application.roots import Root
from threadbook.domain.events import (
    ArtifactsPublished,
    Cited,
    ConsolidationRequested,
    Phase2LeaseClaimed,
    Phase2LeaseReleased,
    Stage1LeaseClaimed,
    Stage1LeaseReleased,
    Stage1Succeeded,
    ThreadForgotten,
    ThreadPolluted,
)
from threadbook.domain.refusals import CapReached, CoolingDown, LeaseHeld, LeaseLost, UpToDate
from threadbook.projections import jobs, stage1_outputs

from tests.application.homes import DAY_S, HOUR_S, MOSS, NOON, Session
from tests.application.steps import Ending, Steps, taught

pytestmark = pytest.mark.usefixtures("database")  # On the file and on a server.

A, B, C, D = (Session(number=each, ended_at=NOON - (6 + each) * HOUR_S) for each in (1, 2, 3, 4))
COOLDOWN_S = 6 * HOUR_S


@pytest.fixture
def steps(home):
    return Steps(home)


def made_from(steps, *sessions):
    """The root was consolidated from these sessions, and has rested since."""
    steps.meets(*sessions)
    for each in sessions:
        steps.reads(each, f"what {each.number} taught")
    assert steps.consolidates() == "succeeded"
    steps.home.later(COOLDOWN_S)
    assert all(steps.is_selected(each) for each in sessions)
    return steps.home.position


# Phase 1.


def test_the_scan_limit_counts_threads_that_are_up_to_date(steps):
    steps.meets(A, B)
    steps.reads(A, "lesson")

    within_one = steps.phase1(scan_limit=1)
    within_two = steps.phase1(scan_limit=2)

    assert within_one.claimed == 0
    assert within_two.claimed == 1
    claims = [each.thread_id for each in steps.home.events(Stage1LeaseClaimed)]
    assert claims == [A.id, B.id]


def test_the_gates_come_before_the_scan_limit(steps):
    """Five sessions, of which the fourth is the newest that may be read."""
    young, younger, ready, old = (
        Session(number=each, ended_at=NOON - ago)
        for each, ago in enumerate((HOUR_S, 12 * HOUR_S - 60, 12 * HOUR_S + 60, 31 * DAY_S), 1)
    )
    disabled = Session(number=8, ended_at=NOON - 12 * HOUR_S, memory_mode="disabled")
    untyped = Session(number=9, ended_at=NOON - 12 * HOUR_S, says=())
    executed = Session(number=10, ended_at=NOON - 12 * HOUR_S, source="exec")
    foreign = Session(number=11, ended_at=NOON - 12 * HOUR_S, source="tracker")
    steps.meets(young, younger, ready, old, disabled, untyped, executed, foreign)

    report = steps.phase1(scan_limit=1, max_rollout_age_days=30, min_rollout_idle_hours=12)

    assert report.succeeded == 1
    assert [each.thread_id for each in steps.home.events(Stage1LeaseClaimed)] == [ready.id]


def test_of_equally_recent_sessions_the_greater_id_comes_first(steps):
    steps.meets(*[Session(number=each) for each in (1, 3, 2)])

    steps.phase1(scan_limit=2)

    claims = [each.thread_id for each in steps.home.events(Stage1LeaseClaimed)]
    assert claims == [Session(number=each).id for each in (3, 2)]


def test_who_is_late_and_was_not_taken_over_still_ends_its_work(steps):
    steps.meets(A)
    claimed = steps.claim(A)
    steps.home.later(9 * HOUR_S)

    assert steps.record(claimed, taught("late"))

    held = steps.claim_root()
    steps.home.later(9 * HOUR_S)
    steps.renew_root(held.lease.ownership_token)
    with pytest.raises(LeaseHeld):
        steps.another("w2").claim_root()
    assert steps.publish(held) == "succeeded"


def test_who_follows_a_dead_worker_takes_its_slot(steps):
    steps.meets(A)
    dead = steps.claim(A)
    second = steps.another("w2", running_cap=1)
    second.around = replace(second.around, is_alive=lambda worker: worker != "w1")

    claimed = second.claim(A)

    (released,) = steps.home.events(Stage1LeaseReleased)
    assert (released.ownership_token, released.reason) == (dead.ownership_token, "worker_gone")
    assert claimed.retry_remaining == 2
    assert steps.finishes(dead) == "failed"
    assert steps.output(A) is None
    assert second.finishes(claimed) == "succeeded"


def test_a_disabled_thread_is_not_claimed_and_its_peer_is(steps):
    steps.meets(A, B)
    steps.home.memory.set_mode(A.id, "disabled")

    report = steps.phase1()

    assert report.succeeded == 1
    assert [each.thread_id for each in steps.home.events(Stage1LeaseClaimed)] == [B.id]


def claims_until_refused(worker, sessions, refusal):
    """The claims of one pass in order, and how many were refused."""
    claims, refused = [], 0
    for session in sessions:
        try:
            claims.append(worker.claim(session))
        except refusal:
            refused += 1
    return claims, refused


def test_a_pass_fills_the_slots_that_are_left_and_the_next_finds_none(steps):
    sessions = [Session(number=each) for each in range(1, 81)]
    steps.meets(*sessions)
    second = steps.another("w2", running_cap=64)
    for each in sessions[:10]:
        steps.claim(each, cap=64)

    claims, waiting = claims_until_refused(second, sessions[10:], CapReached)
    again = second.phase1(running_cap=64)

    assert (len(claims), waiting) == (54, 16)
    assert (again.claimed, again.waiting) == (0, 80)
    assert len(steps.rows(jobs, (jobs.STAGE1,))) == 64


def test_the_next_pass_takes_a_full_batch_once_the_first_is_done(steps):
    sessions = [Session(number=each) for each in range(1, 21)]
    steps.meets(*sessions)
    worker = steps.another("w2", running_cap=6)

    first, _ = claims_until_refused(worker, sessions, CapReached)
    for each in first:
        worker.record(each, taught("lesson"))
    second, _ = claims_until_refused(worker, sessions, (CapReached, UpToDate))

    assert [each.thread_id for each in first] == [each.id for each in sessions[:6]]
    assert [each.thread_id for each in second] == [each.id for each in sessions[6:12]]


def test_blank_texts_are_no_output(steps):
    steps.meets(A, B, C, D)
    blank = [("", "words"), ("words", " \t\n"), (" ", "\n")]
    for session, (raw, summary) in zip((A, B, C), blank, strict=True):
        claimed = steps.claim(session)
        found = replace(taught("words"), raw_memory=raw, rollout_summary=summary)
        assert not steps.record(claimed, found)
    steps.reads(D, "lesson")

    chosen = steps.chosen(limit=1)

    assert chosen == [D.id]  # Although the other three are newer.
    assert [steps.output(each) for each in (A, B, C)] == [None] * 3
    assert [steps.job(each).outcome for each in (A, B, C)] == ["no_output"] * 3
    assert [e.thread_id for e in steps.home.events(ConsolidationRequested)] == [D.id]


def test_no_output_where_none_was_asks_for_nothing(steps):
    steps.meets(A)

    steps.reads(A)

    assert steps.output(A) is None
    assert steps.root_job() is None
    with pytest.raises(UpToDate):
        steps.claim(A)


def test_no_output_that_removes_one_asks_for_phase_2(steps):
    made_from(steps, A)
    asked = steps.root_job().input_watermark
    later = steps.goes_on(A)

    claimed = steps.reads(later)

    assert steps.output(A) is None
    assert claimed.input_watermark == A.ended_at + 1
    assert (steps.root_job().status, asked) == ("pending", A.ended_at)
    assert steps.claim_root().lease.input_watermark == A.ended_at + 1


def test_a_success_asks_for_phase_2_in_the_same_transaction(steps):
    steps.meets(A, B)  # A is the newer one.
    steps.reads(B, "first")
    first = steps.root_job()

    steps.reads(A, "second")

    assert (first.status, first.input_watermark) == ("pending", B.ended_at)
    assert (first.retry_remaining, first.last_success_watermark) == (3, 0)
    assert steps.claim_root().lease.input_watermark == A.ended_at
    for success in each_with_its_next(steps.home.log(), Stage1Succeeded):
        done, asked = success
        assert isinstance(asked.event, ConsolidationRequested)
        assert asked.event.thread_id == done.event.thread_id


def each_with_its_next(log, kind):
    return [(one, two) for one, two in pairwise(log) if isinstance(one.event, kind)]


def test_ids_cited_in_one_turn_count_once_each(steps):
    steps.meets(A, B, C)
    steps.reads(A, "one"), steps.reads(B, "two"), steps.reads(C)
    asked = steps.root_job().input_watermark
    steps.home.later(60)

    counted = steps.cited_ids([A.id, A.id, B.id, C.id, "missing"], turn=1)
    again = steps.cited(A, turn=1)
    of_the_next_turn = steps.cited(A, turn=2)
    of_nothing = steps.cited_ids([], turn=3)

    assert (counted, again, of_the_next_turn, of_nothing) == (2, 0, 1, 0)
    first_turn = steps.home.events(Cited)[:2]
    assert {each.thread_id: each.usage_count for each in first_turn} == {A.id: 1, B.id: 1}
    assert {each.at for each in first_turn} == {NOON + 60}
    assert [(steps.output(x).usage_count, steps.output(x).last_usage) for x in (A, B)] == [
        (2, NOON + 60),
        (1, NOON + 60),
    ]
    assert steps.root_job().input_watermark == asked  # A use asks for nothing.


# What is selected.


def test_a_refreshed_output_is_selected_anew_while_the_snapshot_stays(steps):
    made_from(steps, A)
    later = steps.goes_on(A)

    steps.reads(later, "the newer")

    assert steps.snapshot() == {A.id: (A.ended_at, 1)}
    assert steps.is_selected(A)
    claimed = steps.claim_root()
    (read,) = claimed.outputs
    assert (read.rollout_summary, read.updated_at) == ("the newer", A.ended_at + 1)
    assert steps.publish(claimed) == "succeeded"
    assert steps.snapshot() == {A.id: (A.ended_at + 1, 1)}


def test_an_output_refreshed_during_a_run_is_not_marked_and_is_read_next(steps):
    steps.meets(A)
    steps.reads(A, "the older")
    claimed = steps.claim_root()
    steps.reads(steps.goes_on(A), "the newer")

    status = steps.publish(claimed)

    assert status == "succeeded"
    assert steps.snapshot() == {A.id: (A.ended_at, 0)}
    assert not steps.is_selected(A)
    steps.home.later(COOLDOWN_S)
    before = steps.root_job()
    steps.pollute(A)
    assert steps.root_job() == before  # Nothing was made from the reading that is there.
    people.set_mode(steps.around, A.id, "enabled", actor="application")
    assert [each.rollout_summary for each in steps.claim_root().outputs] == ["the newer"]


def test_a_consolidator_whose_clock_lags_has_read_what_it_has_read(steps):
    lagging = steps.another("w2", clock=lambda: steps.home.now - 5)
    steps.meets(A)
    steps.reads(A, "lesson")

    lagging.consolidates()

    assert steps.is_selected(A)
    steps.home.now = A.ended_at + 31 * DAY_S
    assert steps.prune() == 0
    assert steps.pollute(A)
    assert steps.root_job().status == "pending"


def test_what_was_consolidated_before_has_no_better_place(steps):
    steps.meets(A, B, C)  # A is the newest.
    for each in (A, B, C):
        steps.reads(each, "lesson")
    steps.pollute(B)
    steps.consolidates()
    steps.home.memory.set_mode(B.id, "enabled")

    chosen = steps.chosen(limit=2)

    assert steps.snapshot().keys() == {A.id, C.id}
    assert chosen == [A.id, B.id]
    assert steps.root_job().last_success_watermark >= A.ended_at


def test_what_phase_2_reads_comes_with_its_session_and_without_what_is_not_known(steps):
    bare = Session(number=8, cwd=None)
    on_main = Session(number=9, cwd=MOSS, repository_url="https://git.example/moss.git")
    steps.meets(bare, on_main)
    steps.reads(bare, "lesson")
    claimed = steps.claim(on_main)
    steps.record(claimed, replace(taught("lesson"), rollout_slug="a-slug"))

    first, second = steps.claim_root().outputs

    assert (first.cwd, first.git_branch, first.rollout_slug) == ("", None, None)
    assert (second.cwd, second.git_branch, second.rollout_slug) == (MOSS, "main", "a-slug")
    assert second.rollout_path == str(steps.home.file(on_main))
    assert second.updated_at == on_main.ended_at


def test_pruning_leaves_the_jobs_and_what_is_selected(steps):
    old = NOON - 31 * DAY_S
    unused, used, selected, fresh = sessions = [
        Session(number=each, ended_at=old - each) for each in (1, 2, 3, 4)
    ]
    steps.meets(*sessions)
    steps.home.now = old + 7 * HOUR_S
    steps.reads(selected, "selected")
    steps.consolidates()
    for each in (unused, used, fresh):
        steps.reads(each, "lesson")
    steps.home.now = old + 8 * HOUR_S
    steps.cited(used, turn=1)
    steps.home.now = NOON - HOUR_S
    steps.cited(fresh, turn=2)
    steps.home.now = NOON + 8 * HOUR_S
    before = [steps.job(each) for each in sessions]
    asked = steps.root_job()

    none, one, rest = steps.prune(batch=0), steps.prune(batch=1), steps.prune()

    assert (none, one, rest) == (0, 1, 1)
    assert [steps.output(each) is None for each in sessions] == [True, True, False, False]
    assert [steps.job(each) for each in sessions] == before
    assert steps.root_job() == asked
    with pytest.raises(UpToDate):
        steps.claim(unused, backfill=True)


def test_the_mode_of_an_output_does_not_keep_it_from_pruning(steps):
    steps.meets(A)
    steps.reads(A, "lesson")
    steps.pollute(A)
    steps.home.now = A.ended_at + 30 * DAY_S

    at_the_cutoff = steps.prune()
    steps.home.later(1)
    past_it = steps.prune()

    assert (at_the_cutoff, past_it) == (0, 1)


# Phase 2's job.


def test_a_root_that_nobody_asked_for_is_claimed_once_and_then_rests(steps):
    other = steps.another("w2")

    claimed = steps.claim_root()

    assert claimed.lease.input_watermark == 0
    with pytest.raises(LeaseHeld):
        other.claim_root()
    assert steps.publish(claimed) == "succeeded"
    steps.home.later(COOLDOWN_S - 1)
    with pytest.raises(CoolingDown):
        other.claim_root()
    steps.home.later(1)
    assert other.claim_root().lease.taken_over_from is None


def test_who_takes_over_publishes_and_who_was_late_does_not(steps):
    steps.meets(A)
    steps.reads(A, "lesson")
    other = steps.another("w2")
    late = steps.claim_root()
    steps.home.later(HOUR_S - 1)
    with pytest.raises(LeaseHeld):
        other.claim_root()
    steps.home.later(1)

    claimed = other.claim_root()

    assert claimed.lease.taken_over_from == late.lease.ownership_token
    assert claimed.lease.input_watermark == A.ended_at
    with pytest.raises(LeaseLost):
        steps.publish(late)
    assert other.publish(claimed) == "succeeded"


LEFT = {
    "polluted": lambda steps: steps.pollute(A),
    "disabled": lambda steps: people.set_mode(steps.around, A.id, "disabled", actor="application"),
    "taught nothing more": lambda steps: steps.reads(steps.goes_on(A)),
}


@pytest.mark.parametrize("leaves", LEFT.values(), ids=LEFT.keys())
def test_nothing_is_published_of_a_session_that_left_meanwhile(steps, leaves):
    steps.meets(A, B)
    steps.reads(A, "one"), steps.reads(B, "two")
    claimed = steps.claim_root()
    leaves(steps)

    status = steps.publish(claimed)

    assert status == "inputs_changed"
    assert steps.home.events(ArtifactsPublished) == []
    assert steps.snapshot() == {}
    job = steps.root_job()
    assert (job.status, job.lease_until, job.retry_remaining) == ("pending", None, 3)
    assert [each.thread_id for each in steps.claim_root().outputs] == [B.id]


def test_nothing_is_published_of_a_session_that_moved_to_another_project(home):
    steps = Steps(home, scope="project")
    steps.meets(A, B)
    steps.reads(A, "one"), steps.reads(B, "two")
    root = Root(memory_version="v1", scope=home.scope_of(A))
    claimed = steps.claim_root(root)
    people.set_scope(steps.around, A.id, "project:moss-1", actor="application")

    assert steps.publish(claimed, root) == "inputs_changed"

    assert [each.thread_id for each in steps.claim_root(root).outputs] == [B.id]


def test_who_was_late_is_told_of_the_lease_before_anything_else(steps):
    steps.meets(A)
    steps.reads(A, "lesson")
    late = steps.claim_root()
    steps.home.later(HOUR_S)
    steps.another("w2").claim_root()
    steps.pollute(A)
    before = steps.home.position

    with pytest.raises(LeaseLost):
        steps.publish(late)
    steps.fails_root(late)
    steps.gives_root_back(late)

    assert steps.home.position == before


def test_a_lease_that_is_given_back_can_be_claimed_at_once_and_costs_no_try(steps):
    steps.meets(A)
    steps.reads(A, "lesson")
    held = steps.claim_root()

    steps.gives_root_back(held)
    steps.gives_root_back(held)

    job = steps.root_job()
    assert (job.status, job.retry_remaining) == ("pending", 3)
    assert len(steps.home.events(Phase2LeaseReleased)) == 1
    assert steps.claim_root().lease.taken_over_from is None


def test_a_request_during_a_run_is_still_to_be_answered_after_it(steps):
    steps.meets(A, B)
    steps.reads(B, "lesson")
    claimed = steps.claim_root()
    steps.reads(A, "lesson")

    during = steps.root_job()
    steps.publish(claimed)

    assert (during.status, during.lease_until) == ("running", claimed.lease.lease_until)
    job = steps.root_job()
    assert job.status == "done"
    assert job.input_watermark > job.last_success_watermark


# What asks for phase 2.


def test_pollution_of_a_selected_thread_asks_for_phase_2(steps):
    made_from(steps, A, B)
    done = steps.root_job()
    unselected = Session(number=9)
    steps.meets(unselected)
    steps.reads(unselected, "lesson")
    asked = steps.root_job().input_watermark

    first, again = steps.pollute(A), steps.pollute(A)
    other = steps.pollute(unselected)

    assert (first, again, other) == (True, False, True)
    assert done.status == "done"
    job = steps.root_job()
    assert (job.status, job.input_watermark) == ("pending", max(NOON + COOLDOWN_S, asked + 1))
    assert steps.output(A) is not None  # The text and its uses stay, and nobody reads them.
    assert [each.thread_id for each in steps.claim_root().outputs] == [B.id]


def test_pollution_during_the_rest_waits_for_its_end_unless_it_is_waived(steps):
    made_from(steps, A)
    steps.home.later(-1)
    steps.pollute(A)

    with pytest.raises(CoolingDown):
        steps.claim_root()
    steps.home.later(1)

    assert steps.claim_root().outputs == ()


def test_forgetting_a_selected_thread_removes_its_output_and_asks_for_phase_2(steps):
    made_from(steps, A, B)

    report = forget.forget(steps.around, A.id, reason="person", actor="application")
    again = forget.forget(steps.around, A.id, reason="person", actor="application")

    assert (report.already, again.already) == (False, True)
    assert (steps.output(A), steps.job(A)) == (None, None)
    job = steps.root_job()
    assert job.status == "pending"
    assert job.input_watermark >= NOON + COOLDOWN_S
    assert steps.chosen() == [B.id]
    assert len(steps.home.events(ThreadForgotten)) == 1


def test_forgetting_what_nobody_selected_asks_for_nothing(steps):
    made_from(steps, B)
    steps.meets(A)
    steps.reads(A, "lesson")
    before = steps.root_job()

    forget.forget(steps.around, A.id, reason="person", actor="application")

    assert steps.output(A) is None
    assert steps.root_job() == before


def test_a_reset_empties_outputs_and_jobs_and_leaves_modes_alone(steps):
    other = steps.another("w2", version="v2")
    made_from(steps, A, B)
    for each in (A, B):
        other.reads(each, "in the second version")
    steps.pollute(B)
    steps.meets(C)
    held = steps.claim(C)

    steps.reset()

    assert [row.memory_version for row in steps.rows(stage1_outputs, ())] == ["v2", "v2"]
    assert {row.memory_version for row in steps.rows(jobs, ())} == {"v2"}
    assert (steps.snapshot(), steps.progress()) == ({}, 0)
    assert [steps.mode(each) for each in (A, B, C)] == ["enabled", "polluted", "enabled"]
    assert steps.fails(held) == "failed"  # Its token is dead, and nothing is recorded of it.
    assert steps.job(C) is None
    assert steps.claim(A).input_watermark == A.ended_at  # Read anew at once.
    assert steps.claim_root().lease.input_watermark == 0  # Nor does anything rest.


def test_versions_keep_apart_jobs_outputs_and_resets(steps):
    second = steps.another("w2", version="v2", running_cap=1)
    steps.meets(A)

    steps.reads(A, "in v1"), second.reads(A, "in v2")

    assert [each.body(each.output(A).rollout_summary_ref) for each in (steps, second)] == [
        "in v1",
        "in v2",
    ]
    steps.consolidates(), second.consolidates()
    steps.home.later(COOLDOWN_S)
    steps.pollute(A)
    assert [each.root_job().status for each in (steps, second)] == ["pending", "pending"]
    later = steps.goes_on(B)
    second.reads(later, "only in v2")
    asked = [each.root_job().input_watermark for each in (steps, second)]
    people.set_mode(steps.around, B.id, "disabled", actor="application")
    people.set_mode(steps.around, B.id, "enabled", actor="application")
    again = [each.root_job().input_watermark for each in (steps, second)]
    assert (again[0], again[1] > asked[1]) == (asked[0], True)
    second.reset()
    assert (second.output(A), second.job(A), second.root_job()) == (None, None, None)
    assert steps.output(A) is not None
    assert steps.progress() == 1
    forget.forget(steps.around, A.id, reason="person", actor="application")
    assert (steps.output(A), steps.job(A)) == (None, None)


# Together, or not at all.

ACTS = {
    "pollution": (
        lambda steps: steps.pollute(A),
        ["ThreadPolluted", "ConsolidationRequested"],
    ),
    "disabling": (
        lambda steps: people.set_mode(steps.around, A.id, "disabled", actor="application"),
        ["MemoryModeSet", "ConsolidationRequested"],
    ),
    "moving": (
        lambda steps: people.set_scope(steps.around, A.id, "project:moss-1", actor="application"),
        ["ConsolidationRequested", "ThreadRescoped", "ConsolidationRequested"],
    ),
    "a success": (
        lambda steps: steps.record(steps.held, taught("more")),
        ["Stage1Succeeded", "ConsolidationRequested"],
    ),
    "no output": (
        lambda steps: steps.record(steps.held, None),
        ["Stage1SucceededNoOutput", "ConsolidationRequested"],
    ),
    "publishing": (
        lambda steps: steps.publish(steps.root_held),
        ["ArtifactsPublished", "Phase2Succeeded"],
    ),
    "forgetting": (
        lambda steps: forget.forget(steps.around, A.id, reason="person", actor="application"),
        [
            "ThreadForgotten",
            "Phase2LeaseReleased",
            "ArtifactsPublished",
            "ConsolidationRequested",
            "BodiesErased",
        ],
    ),
}


class Ended(BaseException):
    """The program's end."""


def ended():
    raise Ended


@pytest.mark.parametrize("act", ACTS)
def test_what_commits_together_is_there_whole_or_not_at_all(steps, act):
    does, expected = ACTS[act]
    made_from(steps, A, B)
    steps.pollute(B)
    steps.held = steps.claim(steps.goes_on(A))
    steps.root_held = steps.claim_root()
    before = steps.home.position

    given = steps.around
    for after in range(len(expected)):
        steps.around = replace(given, store=Ending(given.store, after=after, end=ended))
        with pytest.raises(Ended):
            does(steps)
        assert steps.home.position == before

    steps.around = given
    does(steps)
    recorded = [type(each.event).__name__ for each in steps.home.log(after=before)]
    assert [each for each in recorded if each != "RootRendered"] == expected
    assert steps.store.replay_verify() == []


def test_pollution_and_its_request_are_recorded_together(steps):
    made_from(steps, A)
    before = steps.home.position
    dying = replace(steps.around, store=Ending(steps.store, after=1, end=ended))

    with pytest.raises(Ended):
        people.pollute(dying, A.id, cause="web_search", actor="application")
    child = os.fork()
    if child == 0:
        try:
            dying = Ending(steps.store, after=1, end=lambda: os.kill(os.getpid(), signal.SIGKILL))
            people.pollute(
                replace(steps.around, store=dying), A.id, cause="killed", actor="application"
            )
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)

    assert os.WTERMSIG(status) == signal.SIGKILL
    assert steps.home.position == before
    assert (steps.mode(A), steps.root_job().status) == ("enabled", "done")
    assert steps.memory.verify().ok
    assert steps.pollute(A)
    assert [type(each.event) for each in steps.home.log(after=before)] == [
        ThreadPolluted,
        ConsolidationRequested,
    ]


# Races: each racer has a store object of its own, as a program of its own has.


def race(acts):
    """What each came to, all of them started at one moment."""
    start = threading.Barrier(len(acts))
    ends = [None] * len(acts)

    def run(place, act):
        start.wait(30)
        try:
            ends[place] = act()
        except Exception as error:
            ends[place] = error

    racers = [threading.Thread(target=run, args=each) for each in enumerate(acts)]
    for each in racers:
        each.start()
    for each in racers:
        each.join(60)
    return ends


def racers(steps, count, **given):
    return [steps.another(f"w{place}", **given) for place in range(count)]


def test_eight_racing_claims_of_a_root_give_one(steps):
    steps.meets(A)
    steps.reads(A, "lesson")
    workers = racers(steps, 8)

    ends = race([each.claim_root for each in workers])

    losers = [each for each in ends if isinstance(each, Exception)]
    assert [type(each) for each in losers] == [LeaseHeld] * 7
    (lease,) = steps.home.events(Phase2LeaseClaimed)
    assert steps.root_job().ownership_token == lease.ownership_token


def test_ten_racing_claims_with_a_cap_of_three_give_three(steps):
    sessions = [Session(number=each) for each in range(1, 11)]
    steps.meets(*sessions)
    workers = racers(steps, 10, running_cap=3)

    ends = race(
        [
            lambda worker=worker, session=session: worker.claim(session)
            for worker, session in zip(workers, sessions, strict=True)
        ]
    )

    losers = [each for each in ends if isinstance(each, Exception)]
    assert [type(each) for each in losers] == [CapReached] * 7
    assert len(steps.home.events(Stage1LeaseClaimed)) == 3


def test_eight_racing_claims_of_a_session_give_one(steps):
    steps.meets(A)
    workers = racers(steps, 8)

    ends = race([lambda worker=worker: worker.claim(A) for worker in workers])

    losers = [each for each in ends if isinstance(each, Exception)]
    assert [type(each) for each in losers] == [LeaseHeld] * 7
    assert len(steps.home.events(Stage1LeaseClaimed)) == 1


def test_readings_that_end_while_the_root_is_claimed_are_all_recorded(steps):
    sessions = [Session(number=each, cwd=MOSS) for each in range(1, 9)]
    steps.meets(*sessions)
    workers = racers(steps, 8)
    held = [worker.claim(each) for worker, each in zip(workers, sessions, strict=True)]
    acts = [
        lambda worker=worker, claimed=claimed: worker.record(claimed, taught("lesson"))
        for worker, claimed in zip(workers, held, strict=True)
    ]

    ends = race([*acts, steps.claim_root])

    assert ends[:-1] == [True] * 8
    asked = [each.input_watermark for each in steps.home.events(ConsolidationRequested)]
    assert asked == sorted(set(asked))
    assert len(asked) == 8
    assert steps.root_job().input_watermark == asked[-1]
    assert len(steps.rows(stage1_outputs, ())) == 8
