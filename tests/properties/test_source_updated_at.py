"""The reading that a live output stands for never gets older, whoever finishes late."""

from hypothesis import settings
from hypothesis.stateful import invariant
from threadbook.domain.events import (
    OutputWithdrawn,
    Stage1Succeeded,
    Stage1SucceededNoOutput,
    StoreReset,
    ThreadForgotten,
)

from tests.properties.phase1_race import Phase1Race


class SourceUpdatedAt:
    @invariant()
    def source_updated_at_never_falls(self):
        live = {}
        for event in self.log:
            match event:
                case Stage1Succeeded(thread_id=thread, source_updated_at=read_at):
                    newer = thread not in live or read_at >= live[thread]
                    assert event.output_replaced == newer, "an older reading replaced a newer one"
                    if event.output_replaced:
                        live[thread] = read_at
                case Stage1SucceededNoOutput(thread_id=thread):
                    assert event.output_removed == (thread in live)
                    live.pop(thread, None)
                case OutputWithdrawn(thread_id=thread):
                    assert thread in live, "nothing was there to withdraw"
                    del live[thread]
                case ThreadForgotten(thread_id=thread):
                    live.pop(thread, None)
                case StoreReset():
                    live.clear()


class SourceUpdatedAtRace(SourceUpdatedAt, Phase1Race):
    pass


TestSourceUpdatedAt = SourceUpdatedAtRace.TestCase
TestSourceUpdatedAt.settings = settings(max_examples=150, deadline=None)
