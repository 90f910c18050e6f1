"""Whatever two workers do, one of them consolidates at a time, and rests when it is told to.

`Phase2Lease` states it over the log of each root, wherever that was recorded.
"""

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
    StoreReset,
)

from tests.properties.phase2_race import Phase2Race


class Phase2Lease:
    @invariant()
    def the_lease_never_has_two_holders(self):
        for log in self.logs_of_roots():
            has_one_holder(log)

    @invariant()
    def phase_2_rests_after_a_success_unless_somebody_waived_it(self):
        for log in self.logs_of_roots():
            rests_after_a_success(log)

    @invariant()
    def a_failure_waits_unless_something_new_came(self):
        for log in self.logs_of_roots():
            waits_after_a_failure(log)


def has_one_holder(log):
    holder, held_until = None, 0
    for event in log:
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
            case StoreReset():
                holder = None


def rests_after_a_success(log):
    rests_until = 0
    for event in log:
        match event:
            case Phase2Succeeded(at=at):
                rests_until = at + COOLDOWN_S
            case Phase2LeaseClaimed(at=at, cooldown_waived=waived):
                assert waived or rests_until <= at, "claimed while it should rest"
                rests_until = 0  # A run that began, however it ends, is not a success yet.
            case StoreReset():
                rests_until = 0


def waits_after_a_failure(log):
    waits_until = 0
    for event in log:
        match event:
            case Phase2Failed(retry_at=retry_at):
                waits_until = retry_at
            case ConsolidationRequested() | StoreReset():
                waits_until = 0
            case Phase2LeaseClaimed(at=at):
                assert waits_until <= at, "claimed while it should wait"


class Phase2LeaseRace(Phase2Lease, Phase2Race):
    pass


TestPhase2LeaseRace = Phase2LeaseRace.TestCase
TestPhase2LeaseRace.settings = settings(max_examples=200, deadline=None)
