"""Two workers race for the phase-1 jobs of three threads: what several promises are tested on.

Each worker acts on what it last read of a job, which is stale once the other has acted. Only the
count of running jobs is always fresh, because the store counts it where it appends. `log` is what
was recorded, in order; the promises are stated over it, never over the state. Most steps are about
the pair that claimed last: drawn freely, few runs would get as far as a third failure.
"""

from hypothesis import event as reached
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from threadbook.domain.extraction import (
    Extraction,
    claim,
    evolve,
    fail,
    is_held,
    release,
    succeed,
    succeed_without_output,
    withdraw,
)
from threadbook.domain.refusals import Refused

from tests.support import NOON, Conflict, Stream

WORKERS = ("w1", "w2")
THREADS = ("t1", "t2", "t3")
CAP = 2


class Phase1Race(RuleBasedStateMachine):
    workers = st.sampled_from(WORKERS)
    threads = st.sampled_from(THREADS)
    watermarks = st.integers(min_value=0, max_value=3)
    last = st.sampled_from([True, True, True, False])

    def __init__(self):
        super().__init__()
        self.now = NOON
        self.streams = {
            thread: Stream(Extraction(thread_id=thread, memory_version="v1"), evolve)
            for thread in THREADS
        }
        pairs = [(worker, thread) for worker in WORKERS for thread in THREADS]
        self.last_read = {pair: self.streams[pair[1]].read() for pair in pairs}
        self.token = dict.fromkeys(pairs, "never claimed")
        self.last_claimed = pairs[0]
        self.by_a_person = set()  # Tokens of claims made with `again`.
        self.log = []

    def attempt(self, pair, command, **arguments):
        worker, thread = pair
        read, stream = self.last_read[worker, thread], self.streams[thread]
        try:
            event = command(read.state, now=self.now, **arguments)
            stream.append(event, expected_version=read.version)
        except (Refused, Conflict) as error:
            reached(f"{command.__name__}: {type(error).__name__}")
            return None  # Both are ordinary answers. What must hold is what was recorded.
        finally:
            self.last_read[worker, thread] = stream.read()
        reached(f"recorded {type(event).__name__}")
        self.log.append(event)
        return event

    def pair(self, last, worker, thread):
        return self.last_claimed if last else (worker, thread)

    def running_elsewhere(self, thread):
        others = (self.streams[other].read().state for other in THREADS if other != thread)
        return sum(is_held(job, now=self.now) for job in others)

    @rule(
        last=last,
        thread=threads,
        beside_s=st.sampled_from([-1, 0, 1]),
        worker=workers,
        watermark=st.one_of(st.none(), watermarks),
    )
    def somebody_returns_at_a_boundary(self, last, thread, beside_s, worker, watermark):
        """When a lease or a wait is about to end, or has just ended, a worker reads and claims."""
        _, thread = self.pair(last, worker, thread)
        job = self.streams[thread].read().state
        until = job.lease_until if job.lease_until is not None else job.retry_at
        if until is None or job.input_watermark is None:
            return
        self.now = max(self.now, until + beside_s)
        self.last_read[worker, thread] = self.streams[thread].read()
        wanted = job.input_watermark if watermark is None else watermark
        self.claim_as((worker, thread), watermark=wanted, extractor="offline", again=False)

    @rule(
        last=last,
        worker=workers,
        thread=threads,
        watermark=watermarks,
        extractor=st.sampled_from(["offline", "offline", "model"]),
        again=st.sampled_from([False, False, False, True]),
    )
    def claim(self, last, worker, thread, watermark, extractor, again):
        pair = self.pair(last, worker, thread)
        self.claim_as(pair, watermark=watermark, extractor=extractor, again=again)

    def claim_as(self, pair, *, watermark, extractor, again):
        worker, thread = pair
        token = f"{worker}-{len(self.log)}"
        claimed = self.attempt(
            pair,
            claim,
            watermark=watermark,
            extractor=extractor,
            worker_id=worker,
            ownership_token=token,
            running_elsewhere=self.running_elsewhere(thread),
            running_cap=CAP,
            again=again,
        )
        if claimed:
            self.token[pair] = token
            if again:
                self.by_a_person.add(token)
            self.last_claimed = pair
            if claimed.taken_over_from:
                reached("took over")

    @rule(last=last, worker=workers, thread=threads)
    def the_session_goes_on(self, last, worker, thread):
        """Somebody reads the job as it is and claims the next reading."""
        worker, thread = pair = self.pair(last, worker, thread)
        self.last_read[pair] = self.streams[thread].read()
        known = self.last_read[pair].state.input_watermark or 0
        self.claim_as(pair, watermark=known + 1, extractor="offline", again=False)

    @rule(last=last, worker=workers, thread=threads)
    def release(self, last, worker, thread):
        pair = self.pair(last, worker, thread)
        self.attempt(pair, release, ownership_token=self.token[pair])

    @rule(
        last=last,
        worker=workers,
        thread=threads,
        extractor=st.sampled_from(["offline", "model"]),
        beside_held=st.sampled_from([None, -1, 0, 1]),
    )
    def succeed(self, last, worker, thread, extractor, beside_held):
        """Mostly with the reading that was claimed, else with one beside the output we hold."""
        pair = self.pair(last, worker, thread)
        held = self.streams[pair[1]].read().state.output_source_updated_at
        read_at = None if beside_held is None or held is None else held + beside_held
        if read_at is not None:
            reached("a reading beside the one we hold")
        self.attempt(
            pair,
            succeed,
            ownership_token=self.token[pair],
            raw_memory_ref="raw",
            rollout_summary_ref="summary",
            rollout_slug_ref=None,
            memory_mode="enabled",
            scope="global",
            extractor=extractor,
            source_updated_at=read_at,
        )

    @rule(last=last, worker=workers, thread=threads)
    def succeed_without_output(self, last, worker, thread):
        pair = self.pair(last, worker, thread)
        done = {"ownership_token": self.token[pair], "extractor": "offline"}
        self.attempt(pair, succeed_without_output, **done)

    @rule(
        last=last,
        worker=workers,
        thread=threads,
        kind=st.sampled_from(["bad_reply", "bad_reply", "transient", "refused"]),
        retry_after_s=st.sampled_from([None, 0]),
    )
    def fail(self, last, worker, thread, kind, retry_after_s):
        pair = self.pair(last, worker, thread)
        self.attempt(
            pair,
            fail,
            ownership_token=self.token[pair],
            kind=kind,
            reason="json",
            retry_after_s=retry_after_s,
        )

    @rule(worker=workers, thread=threads)
    def withdraw(self, worker, thread):
        self.attempt((worker, thread), withdraw)
