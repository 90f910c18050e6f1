"""Two workers race for one phase-2 job: what its promises are tested on.

Each worker acts on what it last read, which is stale once the other has acted, as it would be in
two processes. `stream.events` is what was recorded.
"""

from hypothesis import event as reached
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from threadbook.domain.consolidation import (
    COOLDOWN_S,
    Consolidation,
    claim,
    evolve,
    fail,
    release,
    renew,
    request,
    succeed,
)
from threadbook.domain.refusals import Refused

from tests.support import NOON, Conflict, Stream

WORKERS = ("w1", "w2")
ROOT = {"memory_version": "v1", "scope": "global"}


class Phase2Race(RuleBasedStateMachine):
    workers = st.sampled_from(WORKERS)
    watermarks = st.integers(min_value=0, max_value=9)

    def __init__(self):
        super().__init__()
        self.now = NOON
        self.stream = Stream(Consolidation(**ROOT), evolve)
        self.last_read = dict.fromkeys(WORKERS, self.stream.read())
        self.token = dict.fromkeys(WORKERS, "never claimed")

    def logs_of_roots(self):
        return [self.stream.events]

    def attempt(self, worker, command, **arguments):
        read = self.last_read[worker]
        try:
            event = command(read.state, now=self.now, **arguments)
            self.stream.append(event, expected_version=read.version)
        except (Refused, Conflict) as error:
            reached(f"{command.__name__}: {type(error).__name__}")
            return None  # Both are ordinary answers. What must hold is what was recorded.
        finally:
            self.last_read[worker] = self.stream.read()
        reached(f"recorded {type(event).__name__}")
        return event

    @rule(beside_s=st.sampled_from([-1, 0, 1]), worker=workers)
    def somebody_returns_at_a_boundary(self, beside_s, worker):
        """When a lease, a wait or a rest is about to end, or has just ended, a worker claims."""
        job = self.stream.read().state
        rest = None if job.finished_at is None else job.finished_at + COOLDOWN_S
        until = job.lease_until or job.retry_at or rest
        if until is None:
            return
        self.now = max(self.now, until + beside_s)
        if self.now < until:
            reached("a second too early" + (" for the rest" if until == rest else ""))
        self.last_read[worker] = self.stream.read()
        self.claim_as(worker, cooldown_waived=None)

    @rule(worker=workers, watermark=watermarks)
    def request(self, worker, watermark):
        self.attempt(worker, request, cause="polluted", thread_id=None, watermark=watermark)

    @rule(worker=workers, cooldown_waived=st.sampled_from([None, None, "person"]))
    def claim(self, worker, cooldown_waived):
        self.claim_as(worker, cooldown_waived=cooldown_waived)

    def claim_as(self, worker, *, cooldown_waived):
        token = f"{worker}-{len(self.stream.events)}"
        lease = {"worker_id": worker, "ownership_token": token}
        claimed = self.attempt(worker, claim, **lease, cooldown_waived=cooldown_waived)
        if claimed:
            self.token[worker] = token
            if claimed.taken_over_from:
                reached("took over")

    @rule(worker=workers)
    def renew(self, worker):
        self.attempt(worker, renew, ownership_token=self.token[worker])

    @rule(worker=workers)
    def release(self, worker):
        self.attempt(worker, release, ownership_token=self.token[worker], reason="stopped")

    @rule(worker=workers, watermark=watermarks)
    def succeed(self, worker, watermark):
        done = {"completed_watermark": watermark, "selected": ()}
        self.attempt(worker, succeed, ownership_token=self.token[worker], **done)

    @rule(worker=workers, delay_s=st.sampled_from([0, 3600]))
    def fail(self, worker, delay_s):
        failure = {"reason": "failed_agent", "delay_s": delay_s}
        self.attempt(worker, fail, ownership_token=self.token[worker], **failure)
