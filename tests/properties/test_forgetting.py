"""A forgotten thread stays forgotten, whatever follows, until a person lifts it.

Every command decides on what is stored when it appends, as the store has it. Two threads live in
two memory versions; files keep being read, runs keep finishing, versions are reset. The promise is
stated over the log: between a forgetting and its lifting nothing is recorded of the thread.
"""

from hypothesis import event as reached
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from threadbook.domain import extraction, thread
from threadbook.domain.eligibility import Limits, failed, gates
from threadbook.domain.events import (
    ForgettingLifted,
    Stage1LeaseClaimed,
    StoreReset,
    ThreadForgotten,
)
from threadbook.domain.refusals import Refused

from tests.support import NOON, header

THREADS = ("t1", "t2")
VERSIONS = ("v1", "v2")
OF_THREAD = (ThreadForgotten, ForgettingLifted)


class Forgetting(RuleBasedStateMachine):
    threads = st.sampled_from(THREADS)
    versions = st.sampled_from(VERSIONS)
    last = st.sampled_from([True, True, False])

    def __init__(self):
        super().__init__()
        self.known = {each: thread.Thread(thread_id=each) for each in THREADS}
        self.jobs = {
            (each, version): extraction.Extraction(thread_id=each, memory_version=version)
            for each in THREADS
            for version in VERSIONS
        }
        self.tokens = dict.fromkeys(self.jobs, "never claimed")
        self.last_claimed = "t1", "v1"
        self.log = []
        self.reading = 0

    def record(self, event):
        self.log.append(event)
        if type(event).__name__.startswith(("Thread", "Memory", "Forgetting")):
            self.known[event.thread_id] = thread.evolve(self.known[event.thread_id], event)
        for pair, job in self.jobs.items():
            if isinstance(event, StoreReset) or (
                pair[0] == event.thread_id
                and (isinstance(event, OF_THREAD) or pair[1] == version_of(event))
            ):
                self.jobs[pair] = extraction.evolve(job, event)

    def attempt(self, command, state, **arguments):
        was_forgotten = state.forgotten
        try:
            event = command(state, now=NOON, **arguments)
        except Refused as error:
            if was_forgotten:
                reached(f"{command.__name__} of a forgotten thread: {type(error).__name__}")
            return None
        if event is not None:
            reached(f"recorded {type(event).__name__}")
            self.record(event)
        return event

    @rule(of=threads)
    def a_file_is_read(self, of):
        self.reading += 1
        found = header(of, updated_at_ms=self.reading * 1000)
        if self.known[of].exists:
            self.attempt(thread.change, self.known[of], header=found, preview_ref="preview")
            return
        self.attempt(
            thread.register,
            self.known[of],
            header=found,
            scope="global",
            root=None,
            preview_ref="preview",
            mode="enabled",
            mode_reason="default",
        )

    @rule(of=threads, mode=st.sampled_from(["enabled", "disabled"]))
    def set_mode(self, of, mode):
        self.attempt(thread.set_mode, self.known[of], mode=mode, reason="person")

    @rule(of=threads)
    def pollute(self, of):
        self.attempt(thread.pollute, self.known[of], cause="web_search")

    @rule(of=threads, scope=st.sampled_from(["global", "project:fern-1"]))
    def rescope(self, of, scope):
        self.attempt(thread.rescope, self.known[of], scope=scope, reason="person")

    @rule(of=threads, version=versions, again=st.booleans())
    def claim(self, of, version, again):
        token = f"token-{len(self.log)}"
        terms = {"extractor": "offline", "worker_id": "w", "ownership_token": token}
        cap = {"running_elsewhere": 0, "running_cap": 1}
        job = self.jobs[of, version]
        if self.attempt(extraction.claim, job, watermark=self.reading, **terms, **cap, again=again):
            self.tokens[of, version] = token
            self.last_claimed = of, version

    @rule(last=last, of=threads, version=versions, teaches=st.sampled_from([True, True, False]))
    def finish(self, last, of, version, teaches):
        pair = self.last_claimed if last else (of, version)
        job = self.jobs[pair]
        done = {"ownership_token": self.tokens[pair], "extractor": "offline"}
        if not teaches:
            self.attempt(extraction.succeed_without_output, job, **done)
            return
        self.attempt(
            extraction.succeed,
            job,
            **done,
            raw_memory_ref="raw",
            rollout_summary_ref="summary",
            rollout_slug_ref=None,
            memory_mode="enabled",
            scope="global",
        )

    @rule(last=last, of=threads, version=versions)
    def cite(self, last, of, version):
        pair = self.last_claimed if last else (of, version)
        self.attempt(extraction.cite, self.jobs[pair], citation_id="s:1")

    @rule(last=last, of=threads, version=versions)
    def withdraw(self, last, of, version):
        pair = self.last_claimed if last else (of, version)
        self.attempt(extraction.withdraw, self.jobs[pair])

    @rule(version=versions)
    def reset(self, version):
        self.record(StoreReset(at=NOON, memory_version=version))

    @rule(of=threads)
    def forget(self, of):
        self.attempt(thread.forget, self.known[of], reason="person")

    @rule(of=threads, really=st.sampled_from([False, False, True]))
    def lift(self, of, really):
        if really:
            self.attempt(thread.lift, self.known[of])

    @invariant()
    def nothing_is_recorded_of_a_forgotten_thread(self):
        gone, leases = set(), {}
        for event in self.log:
            match event:
                case StoreReset(memory_version=version):
                    leases = {pair: token for pair, token in leases.items() if pair[1] != version}
                case ForgettingLifted(thread_id=of):
                    assert of in gone, "lifted without need"
                    gone.remove(of)
                case ThreadForgotten(thread_id=of):
                    assert of not in gone, "forgotten twice"
                    gone.add(of)
                    leases = {pair: token for pair, token in leases.items() if pair[0] != of}
                case _:
                    assert event.thread_id not in gone, f"{type(event).__name__} of a forgotten one"
                    pair = event.thread_id, version_of(event)
                    token = getattr(event, "ownership_token", None)
                    if isinstance(event, Stage1LeaseClaimed):
                        leases[pair] = token
                    elif token is not None:
                        assert leases.pop(pair, None) == token, "a lease outlived its end"

    @invariant()
    def the_first_gate_is_shut_exactly_while_it_is_forgotten(self):
        for of, known in self.known.items():
            last = [event for event in self.log if isinstance(event, OF_THREAD)]
            ends = [event for event in last if event.thread_id == of]
            forgotten = bool(ends) and isinstance(ends[-1], ThreadForgotten)
            gate = failed(gates(known, None, now=NOON, limits=Limits()))
            assert (gate is not None and gate.name == "not_forgotten") is forgotten


def version_of(event):
    return getattr(event, "memory_version", None)


TestForgetting = Forgetting.TestCase
TestForgetting.settings = settings(max_examples=200, deadline=None)
