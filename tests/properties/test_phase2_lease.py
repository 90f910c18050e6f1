"""Whatever two workers do, one of them consolidates at a time, and rests when it is told to."""

from hypothesis import settings
from hypothesis.stateful import invariant
from threadbook.domain.consolidation import COOLDOWN_S
from threadbook.domain.events import (
    ConsolidationRequested,
    Phase2Failed,
    Phase2LeaseClaimed,
    Phase2LeaseReleased,
    Phase2LeaseRenewed,
    Phase2Succeeded,
)

from tests.properties.phase2_race import Phase2Race
from tests.support import NOON


class Phase2LeaseRace(Phase2Race):
    @invariant()
    def the_lease_never_has_two_holders(self):
        holder, held_until = None, NOON
        for event in self.stream.events:
            match event:
                case Phase2LeaseClaimed(at=at, ownership_token=token, lease_until=until):
                    assert holder is None or held_until <= at, "claimed while held"
                    assert event.taken_over_from == holder, "taken over in silence"
                    holder, held_until = token, until
                case Phase2LeaseRenewed(ownership_token=token, lease_until=until):
                    assert token == holder, "renewed by somebody else"
                    assert held_until <= until, "renewal shortened the lease"
                    held_until = until
                case (
                    Phase2Succeeded(ownership_token=token)
                    | Phase2Failed(ownership_token=token)
                    | Phase2LeaseReleased(ownership_token=token)
                ):
                    assert token == holder, "finished by somebody else"
                    holder = None

    @invariant()
    def phase_2_rests_after_a_success_unless_somebody_waived_it(self):
        rests_until = NOON
        for event in self.stream.events:
            match event:
                case Phase2Succeeded(at=at):
                    rests_until = at + COOLDOWN_S
                case Phase2LeaseClaimed(at=at, cooldown_waived=waived):
                    assert waived or rests_until <= at, "claimed while it should rest"
                    rests_until = NOON  # A run that began, however it ends, is not a success yet.

    @invariant()
    def a_failure_waits_unless_something_new_came(self):
        waits_until = NOON
        for event in self.stream.events:
            match event:
                case Phase2Failed(retry_at=retry_at):
                    waits_until = retry_at
                case ConsolidationRequested():
                    waits_until = NOON
                case Phase2LeaseClaimed(at=at):
                    assert waits_until <= at, "claimed while it should wait"


TestPhase2LeaseRace = Phase2LeaseRace.TestCase
TestPhase2LeaseRace.settings = settings(max_examples=200, deadline=None)
