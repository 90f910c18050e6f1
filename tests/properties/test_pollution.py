"""A thread whose last mode event is ThreadPolluted is never selected, and only a person leaves it.

Stated over the log of real homes, and over the folders: after a run none of its words is there.
"""

from hypothesis import event as reached
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from threadbook.domain.events import (
    MemoryModeSet,
    Phase2InputsSelected,
    Phase2Succeeded,
    ThreadPolluted,
    ThreadRegistered,
)

from tests.properties.life import NUMBERS, WORDS, Life


class Pollution(Life):
    def polluted(self):
        """The threads whose last mode event is a pollution, from the log."""
        last = {}
        for recorded in self.home.log():
            match recorded.event:
                case ThreadRegistered(thread_id=thread_id, mode=mode):
                    last[thread_id] = mode
                case MemoryModeSet(thread_id=thread_id, mode=mode, reason=reason):
                    assert last[thread_id] != "polluted" or reason == "asked", recorded.position
                    last[thread_id] = mode
                case ThreadPolluted(thread_id=thread_id):
                    last[thread_id] = "polluted"
                case Phase2InputsSelected(selected=selected) | Phase2Succeeded(selected=selected):
                    for each in selected:
                        assert last[each.thread_id] != "polluted", recorded.position
        return {thread_id for thread_id, mode in last.items() if mode == "polluted"}

    @invariant()
    def no_polluted_thread_is_selected(self):
        self.polluted()

    def a_run_ended(self):
        polluted = self.polluted()
        texts = [p.read_text() for root in self.home.roots() for p in root.rglob("*.md")]
        for number in NUMBERS:
            if self.id(number) in polluted:
                reached("a run with a polluted thread")
                assert not any(WORDS[number] in text for text in texts)
                told = self.home.memory.explain(self.id(number))
                assert not told.selected
                assert not told.gates[1].passed
        for line in self.home.memory.threads():
            assert (line.memory_mode == "polluted") == (line.thread_id in polluted)

    @rule(number=Life.numbers, grown=Life.numbers, by_itself=st.booleans())
    def pollute_and_go_on(self, number, grown, by_itself):
        """The way in that matters: a session that is in the folder, and a reason to run."""
        if by_itself:
            self.the_session_goes_on(number, "polluted")
            self.run(None)
            self.the_session_goes_on(number, "enabled")
        else:
            self.pollute(number)
            self.the_session_goes_on(grown, "enabled")
        self.run(None)


TestPollution = Pollution.TestCase
TestPollution.settings = settings(max_examples=30, stateful_step_count=12, deadline=None)
