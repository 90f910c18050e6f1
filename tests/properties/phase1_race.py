"""Two workers race for the phase-1 jobs of three threads: what several promises are tested on.

Each worker acts on what it last read of a job, which is stale once the other has acted. Only the
count of running jobs is always fresh, because the store counts it where it appends. `log` is what
was recorded, in order; the promises are stated over it, never over the state.
"""

from hypothesis import event as reached
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from threadbook.domain.extraction import (
    LEASE_S,
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
    watermarks = st.integers(min_value=0, max_value=4)

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
        self.log = []

    def attempt(self, worker, thread, command, **arguments):
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

    def running_elsewhere(self, thread):
        others = (self.streams[other].read().state for other in THREADS if other != thread)
        return sum(is_held(job, now=self.now) for job in others)

    @rule(elapsed_s=st.sampled_from([1, 60, LEASE_S - 1, LEASE_S]))
    def time_passes(self, elapsed_s):
        self.now += elapsed_s

    @rule(
        worker=workers,
        thread=threads,
        watermark=watermarks,
        extractor=st.sampled_from(["offline", "offline", "model"]),
        again=st.sampled_from([False, False, False, True]),
    )
    def claim(self, worker, thread, watermark, extractor, again):
        token = f"{worker}-{len(self.log)}"
        claimed = self.attempt(
            worker,
            thread,
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
            self.token[worker, thread] = token
            if claimed.taken_over_from:
                reached("took over")

    @rule(worker=workers, thread=threads)
    def release(self, worker, thread):
        self.attempt(worker, thread, release, ownership_token=self.token[worker, thread])

    @rule(
        worker=workers,
        thread=threads,
        extractor=st.sampled_from(["offline", "model"]),
        read_at=st.one_of(st.none(), watermarks),
    )
    def succeed(self, worker, thread, extractor, read_at):
        self.attempt(
            worker,
            thread,
            succeed,
            ownership_token=self.token[worker, thread],
            raw_memory_ref="raw",
            rollout_summary_ref="summary",
            rollout_slug_ref=None,
            memory_mode="enabled",
            scope="global",
            extractor=extractor,
            source_updated_at=read_at,
        )

    @rule(worker=workers, thread=threads)
    def succeed_without_output(self, worker, thread):
        token = self.token[worker, thread]
        self.attempt(
            worker, thread, succeed_without_output, ownership_token=token, extractor="offline"
        )

    @rule(
        worker=workers,
        thread=threads,
        kind=st.sampled_from(["bad_reply", "transient", "refused"]),
        retry_after_s=st.sampled_from([None, 0]),
    )
    def fail(self, worker, thread, kind, retry_after_s):
        self.attempt(
            worker,
            thread,
            fail,
            ownership_token=self.token[worker, thread],
            kind=kind,
            reason="json",
            retry_after_s=retry_after_s,
        )

    @rule(worker=workers, thread=threads)
    def withdraw(self, worker, thread):
        self.attempt(worker, thread, withdraw)
