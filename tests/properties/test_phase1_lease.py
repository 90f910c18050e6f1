"""Whatever two workers do, a session is read by one of them at a time, and few are at once.

`Phase1Lease` states it over `log`, wherever that was recorded.
"""

from hypothesis import settings
from hypothesis.stateful import invariant
from threadbook.domain.events import (
    OutputWithdrawn,
    Stage1Failed,
    Stage1LeaseClaimed,
    Stage1LeaseReleased,
    Stage1Succeeded,
    Stage1SucceededNoOutput,
    StoreReset,
    ThreadForgotten,
)

from tests.properties.phase1_race import CAP, Phase1Race


class Phase1Lease:
    @invariant()
    def a_lease_never_has_two_holders(self):
        held = {}
        for event in self.log:
            thread = getattr(event, "thread_id", None)
            match event:
                case Stage1LeaseClaimed(at=at, ownership_token=token, lease_until=until):
                    if thread in held:
                        holder, held_until = held[thread]
                        assert held_until <= at, "claimed while held"
                        assert event.taken_over_from == holder, "taken over in silence"
                    held[thread] = token, until
                case (
                    Stage1Succeeded(ownership_token=token)
                    | Stage1SucceededNoOutput(ownership_token=token)
                    | Stage1Failed(ownership_token=token)
                    | Stage1LeaseReleased(ownership_token=token)
                ):
                    assert token == held.pop(thread, (None,))[0], "finished by somebody else"
                case ThreadForgotten():
                    held.pop(thread, None)
                case StoreReset():
                    held.clear()
                case OutputWithdrawn():
                    pass

    @invariant()
    def no_more_sessions_are_being_read_than_the_cap(self):
        held_until = {}
        for event in self.log:
            match event:
                case Stage1LeaseClaimed(at=at, thread_id=thread, lease_until=until):
                    held_until[thread] = until
                    fresh = [each for each in held_until.values() if each > at]
                    assert len(fresh) <= CAP, "one too many"
                case OutputWithdrawn():
                    pass
                case StoreReset():
                    held_until.clear()
                case _:
                    held_until.pop(event.thread_id, None)

    @invariant()
    def taking_over_the_same_reading_spends_a_try(self):
        last = {}
        for event in self.log:
            match event:
                case Stage1LeaseClaimed(thread_id=thread, taken_over_from=str()):
                    before = last[thread]
                    same = event.input_watermark == before.input_watermark
                    if same and event.ownership_token not in self.by_a_person:
                        assert event.retry_remaining == before.retry_remaining - 1
                    last[thread] = event
                case Stage1LeaseClaimed(thread_id=thread):
                    last[thread] = event


class Phase1LeaseRace(Phase1Lease, Phase1Race):
    pass


TestPhase1LeaseRace = Phase1LeaseRace.TestCase
TestPhase1LeaseRace.settings = settings(max_examples=200, deadline=None)
