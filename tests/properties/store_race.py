"""Two workers race on one home: what the promises of both phases are tested on with a store below.

Each worker has a store object of its own and a clock that lags by some seconds. What it claimed it
may finish much later, when the lease is long another's; and whole runs are cut in on, by the other
worker or by a person, while a model is at work. Two sessions are of one root and one is of another.
What was recorded is read back from the store: `log` is phase 1's, `logs_of_roots()` are phase 2's.
"""

import os
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import current_thread, main_thread

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from msgspec.structs import replace
from threadbook import Memory
from threadbook.application import forget, people, startup
from threadbook.application.roots import Root
from threadbook.domain.consolidation import COOLDOWN_S
from threadbook.domain.events import (
    ConsolidationEvent,
    OutputWithdrawn,
    Stage1Failed,
    Stage1LeaseClaimed,
    Stage1LeaseReleased,
    Stage1Succeeded,
    Stage1SucceededNoOutput,
    StoreReset,
    ThreadForgotten,
)
from threadbook.domain.refusals import Refused
from threadbook.projections import jobs

from tests.application.homes import DAY_S, FERN, HOUR_S, MOSS, Home, Session
from tests.application.steps import Luna, Steps, Terra, taught

WORKERS = ("w1", "w2")
NUMBERS = (1, 2, 3)
CAP = 2
UNUSED_DAYS = 1
PHASE_1 = (
    Stage1LeaseClaimed,
    Stage1LeaseReleased,
    Stage1Succeeded,
    Stage1SucceededNoOutput,
    Stage1Failed,
    OutputWithdrawn,
    ThreadForgotten,
    StoreReset,
)
# Who comes first is no question to the disk, and waiting for one is most of the time.
MEMORY_DISK = "/dev/shm" if os.path.isdir("/dev/shm") else None


workers = st.sampled_from(WORKERS)
numbers = st.sampled_from(NUMBERS)
places = st.sampled_from((0, 1))
last = st.sampled_from((True, True, True, False))
beside_s = st.sampled_from((-1, 0, 1))
endings = st.sampled_from(("teaches",) * 4 + ("nothing", "bad_reply", "bad_reply", "transient"))
root_endings = st.sampled_from(("publish", "publish", "fail", "give back"))
cuts = st.lists(
    st.sampled_from(
        ("the other runs",) * 3
        + ("it goes on", "it goes on", "an hour", "pollute", "enable", "move", "cite", "prune")
        + ("forget", "reset")
    ),
    max_size=3,
)
said = st.sampled_from(("pollute", "enable", "enable", "move", "cite", "cite"))
# One rule for all of them: several would be left out of most runs, which then come to little.
commands = st.one_of(
    st.tuples(st.just("claims"), workers, numbers),
    st.tuples(st.just("goes_on"), numbers),
    st.tuples(st.just("goes_on_and_is_claimed"), last, workers, numbers),
    st.tuples(st.just("finish"), last, workers, numbers, endings),
    st.tuples(st.just("finish"), st.just(True), workers, numbers, endings),
    st.tuples(st.just("claims_root"), workers, places),
    st.tuples(st.just("root_has_rested_and_is_claimed"), workers, places),
    st.tuples(st.just("finish_root"), last, workers, places, root_endings),
    st.tuples(st.just("somebody_returns_to_a_session"), last, workers, numbers, beside_s),
    st.tuples(st.just("somebody_returns_to_a_root"), last, workers, places, beside_s),
    st.tuples(st.just("an_output_is_about_to_age"), workers, numbers, beside_s, st.booleans()),
    st.tuples(st.just("claims_each"), workers, st.permutations(NUMBERS)),
    st.tuples(st.just("prune"), workers),
    st.tuples(st.just("run"), workers, numbers, cuts, cuts),
    st.tuples(st.just("cut"), said, workers, numbers),
)


def reached(what):
    """Counted, except in an agent's thread, of which Hypothesis knows nothing."""
    if current_thread() is main_thread():
        event(what)


class StoreRace(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = TemporaryDirectory(dir=MEMORY_DISK)
        self.home = Home(Path(self.folder.name))
        self.sessions = {
            number: Session(number=number, cwd=MOSS if number == 3 else FERN) for number in NUMBERS
        }
        self.position = 0
        self.everything = []
        self.log = []
        self.roots = defaultdict(list)
        self.by_a_person = set()
        self.turn = 0

    @initialize(lags=st.tuples(st.integers(0, 5), st.integers(0, 5)))
    def they_open_the_home(self, lags):
        self.lag = dict(zip(WORKERS, lags, strict=True))
        self.steps = {
            worker: Steps(
                self.home,
                worker_id=worker,
                memory=Memory.open(self.home.path, clock=lambda lag=lag: self.home.now - lag),
                scope="project",
                running_cap=CAP,
                max_rollout_age_days=90,
                max_unused_days=UNUSED_DAYS,
            )
            for worker, lag in self.lag.items()
        }
        self.steps["w1"].meets(*self.sessions.values())
        scopes = {number: self.home.scope_of(self.sessions[number]) for number in NUMBERS}
        self.places = [
            Root(memory_version="v1", scope=scope) for scope in sorted(set(scopes.values()))
        ]
        assert len(self.places) == 2
        self.held = {}  # (worker, number) -> what it last claimed.
        self.roots_held = {}  # (worker, place) -> the same of a root.
        self.last_claimed = "w1", 1
        self.last_root = "w1", 0
        self.follow()

    def teardown(self):
        if hasattr(self, "steps"):
            store = self.steps["w1"].store
            assert store.verify().ok
            assert store.replay_verify() == []
            for each in self.steps.values():
                each.memory.close()
        self.home.memory.close()
        self.folder.cleanup()

    @rule(command=commands)
    def step(self, command):
        name, *arguments = command
        getattr(self, name)(*arguments)

    def logs_of_roots(self):
        return self.roots.values()

    def follow(self):
        """Read what was recorded since."""
        for recorded in self.home.log(after=self.position):
            self.position, event = recorded.position, recorded.event
            self.everything.append(event)
            if isinstance(event, ConsolidationEvent):
                self.roots[event.scope].append(event)
            if isinstance(event, PHASE_1):
                self.log.append(event)
            if isinstance(event, StoreReset):
                for log in self.roots.values():
                    log.append(event)
            reached(f"recorded {type(event).__name__}")

    def attempt(self, what, act, *arguments, **given):
        """A refusal is an ordinary answer. What must hold is what was recorded."""
        try:
            return act(*arguments, **given)
        except Refused as error:
            reached(f"{what}: {type(error).__name__}")
            return None
        finally:
            self.follow()

    def other(self, worker):
        return "w2" if worker == "w1" else "w1"

    # Phase 1, a step at a time.

    def claims(self, worker, number):
        claimed = self.attempt("claim", self.steps[worker].claim, self.sessions[number])
        if claimed:
            self.held[worker, number] = claimed
            self.last_claimed = worker, number
            if claimed.taken_over_from:
                reached("took a session over")

    def claims_each(self, worker, order):
        """More than the cap allows."""
        for number in order:
            self.goes_on(number)
            self.claims(worker, number)

    def goes_on(self, number):
        self.sessions[number] = self.steps["w1"].goes_on(self.sessions[number])
        self.follow()

    def goes_on_and_is_claimed(self, last, worker, number):
        worker, number = self.last_claimed if last else (worker, number)
        self.goes_on(number)
        self.claims(worker, number)

    def finish(self, last, worker, number, how):
        pair = self.last_claimed if last else (worker, number)
        claimed, steps = self.held.get(pair), self.steps[pair[0]]
        if claimed is None:
            return
        if how == "teaches":
            self.attempt("record", steps.record, claimed, taught("lesson"))
        elif how == "nothing":
            self.attempt("record", steps.record, claimed, None)
        else:
            self.attempt("fail", steps.fails, claimed, how, retry_after_s=None)

    # Phase 2, a step at a time.

    def claims_root(self, worker, place):
        root = self.places[place]
        claimed = self.attempt("claim a root", self.steps[worker].claim_root, root)
        if claimed:
            self.roots_held[worker, place] = claimed
            self.last_root = worker, place
            if claimed.lease.taken_over_from:
                reached("took a root over")

    def root_has_rested_and_is_claimed(self, worker, place):
        for job in self.steps[worker].rows(jobs, (jobs.PHASE2, self.places[place].scope, "v1")):
            if job.finished_at:
                self.come_to(job.finished_at + COOLDOWN_S, worker)
        self.claims_root(worker, place)

    def finish_root(self, last, worker, place, how):
        pair = self.last_root if last else (worker, place)
        claimed, steps, root = self.roots_held.get(pair), self.steps[pair[0]], self.places[pair[1]]
        if claimed is None:
            return
        if how == "publish":
            reached(f"published: {self.attempt('publish', steps.publish, claimed, root)}")
        elif how == "fail":
            self.attempt("fail a root", steps.fails_root, claimed, root)
        else:
            self.attempt("give a root back", steps.gives_root_back, claimed, root)

    # Time.

    def somebody_returns_to_a_session(self, last, worker, number, beside_s):
        """When a lease or a wait is about to end by the worker's clock, or has just ended."""
        number = self.last_claimed[1] if last else number
        job = self.steps[worker].job(self.sessions[number])
        until = job and (job.lease_until or job.retry_at)
        if until:
            self.come_to(until + beside_s, worker)
            self.claims(worker, number)

    def somebody_returns_to_a_root(self, last, worker, place, beside_s):
        place = self.last_root[1] if last else place
        for job in self.steps[worker].rows(jobs, (jobs.PHASE2, self.places[place].scope, "v1")):
            rest = job.finished_at and job.finished_at + COOLDOWN_S
            until = job.lease_until or job.retry_at or rest
            if until:
                self.come_to(until + beside_s, worker)
                self.claims_root(worker, place)

    def an_output_is_about_to_age(self, worker, number, beside_s, is_pruned):
        output = self.steps[worker].output(self.sessions[number])
        if output is not None:
            needed = output.last_usage or output.counts_from
            self.come_to(needed + UNUSED_DAYS * DAY_S + beside_s, worker)
            if is_pruned:
                self.prune(worker)

    def come_to(self, at, worker):
        self.home.now = max(self.home.now, at + self.lag[worker])

    def prune(self, worker):
        self.attempt("prune", self.steps[worker].prune, days=UNUSED_DAYS, batch=2)

    # Whole runs, and who cuts in on them.

    def run(self, worker, number, during_reading, during_consolidation):
        def cut(names):
            while names:
                self.cut(names.pop(0), self.other(worker), number)

        during_reading, during_consolidation = [*during_reading], [*during_consolidation]

        class Reading(Luna):
            def extract(self, material):
                cut(during_reading)
                return super().extract(material)

        class Consolidating(Terra):
            def consolidate(self, **given):
                cut(during_consolidation)
                return super().consolidate(**given)

        self.runs(worker, Reading(), Consolidating())

    def runs(self, worker, extractor=None, consolidator=None):
        given = self.steps[worker].around
        around = replace(
            given,
            extractor=extractor or given.extractor,
            consolidator=consolidator or given.consolidator,
            sleep=lambda _: self.later(HOUR_S // 3),
        )
        report = self.attempt("run", startup.run, around, [])
        for root in report.phase2:
            reached(f"run: {root.status}")

    def later(self, seconds):
        self.home.now += seconds

    def cut(self, name, other, number):
        reached(f"cut in: {name}")
        steps, session = self.steps[other], self.sessions[number]
        match name:
            case "the other runs":
                self.runs(other)
            case "it goes on":
                self.goes_on(number)
            case "an hour":
                self.later(HOUR_S)
            case "pollute":
                self.attempt(name, steps.pollute, session)
            case "enable":
                self.attempt(
                    name, people.set_mode, steps.around, session.id, "enabled", actor="application"
                )
            case "move":
                wanted = self.places[number % 2].scope
                self.attempt(
                    name, people.set_scope, steps.around, session.id, wanted, actor="application"
                )
            case "cite":
                self.turn += 1
                self.attempt(name, steps.cited, session, turn=self.turn)
            case "prune":
                self.prune(other)
            case "forget":  # The third one only: one that is left to none of the rest.
                self.attempt(
                    name,
                    forget.forget,
                    steps.around,
                    self.sessions[3].id,
                    reason="person",
                    actor="application",
                )
            case "reset":
                self.attempt(name, steps.reset)
