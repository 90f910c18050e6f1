"""No watermark of either phase ever moves back, and no request goes unheard."""

from hypothesis import settings
from hypothesis.stateful import invariant
from threadbook.domain.events import (
    ConsolidationRequested,
    Phase2LeaseClaimed,
    Phase2Succeeded,
    Stage1LeaseClaimed,
    Stage1Succeeded,
    Stage1SucceededNoOutput,
    StoreReset,
    ThreadForgotten,
)

from tests.properties.phase1_race import Phase1Race
from tests.properties.phase2_race import Phase2Race


class Phase1Watermarks:
    @invariant()
    def what_was_read_is_never_older_than_what_was_read_before(self):
        claimed, done = {}, {}
        for event in self.log:
            match event:
                case Stage1LeaseClaimed(thread_id=thread, input_watermark=watermark):
                    assert done.get(thread, -1) <= watermark, "an older reading was asked for"
                    claimed[thread] = watermark
                case (
                    Stage1Succeeded(thread_id=thread, input_watermark=watermark)
                    | Stage1SucceededNoOutput(thread_id=thread, input_watermark=watermark)
                ):
                    assert watermark == claimed[thread], "another reading was claimed"
                    done[thread] = watermark
                case ThreadForgotten(thread_id=thread):
                    claimed.pop(thread, None)
                    done.pop(thread, None)
                case StoreReset():
                    claimed.clear()
                    done.clear()


class Phase2Watermarks:
    @invariant()
    def watermarks_never_move_back_and_every_request_is_heard(self):
        for log in self.logs_of_roots():
            never_moves_back(log)


def never_moves_back(log):
    asked, done = 0, 0
    for event in log:
        match event:
            case ConsolidationRequested(input_watermark=watermark):
                assert asked < watermark, "a request went unheard"
                asked = watermark
            case Phase2LeaseClaimed(input_watermark=watermark):
                assert watermark == asked, "a claim missed a request"
            case Phase2Succeeded(last_success_watermark=watermark):
                assert done <= watermark, "a success was forgotten"
                assert event.completed_watermark <= watermark, "a success was not counted"
                done = watermark
            case StoreReset():
                asked, done = 0, 0


class Phase1WatermarksRace(Phase1Watermarks, Phase1Race):
    pass


class Phase2WatermarksRace(Phase2Watermarks, Phase2Race):
    pass


TestPhase1Watermarks = Phase1WatermarksRace.TestCase
TestPhase1Watermarks.settings = settings(max_examples=150, deadline=None)
TestPhase2Watermarks = Phase2WatermarksRace.TestCase
TestPhase2Watermarks.settings = settings(max_examples=150, deadline=None)
