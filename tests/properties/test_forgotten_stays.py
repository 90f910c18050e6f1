"""A forgotten thread stays forgotten whatever follows, until a person lifts it.

Over a real home: files are read again and grow, people set modes, agents cite, runs are cut in on,
the version is reset. Between a forgetting and its lifting the log says nothing of the thread, no
folder is made from it, and no byte of the home holds a phrase that only it had.
"""

from hypothesis import event as reached
from hypothesis import settings
from hypothesis.stateful import invariant, rule
from threadbook.application import forget
from threadbook.domain.events import (
    ForgettingLifted,
    Phase2InputsSelected,
    Phase2Succeeded,
    ThreadForgotten,
    extraction_stream,
    thread_stream,
)

from tests.application.homes import Interrupting
from tests.properties.life import NUMBERS, WORDS, Life


class Forgotten(Life):
    @rule(number=Life.numbers)
    def forget(self, number):
        self.home.memory.forget(self.id(number))

    @rule(number=Life.numbers, grown=Life.numbers)
    def forget_while_a_run_works(self, number, grown):
        self.the_session_goes_on(grown, None)

        def act():
            with self.home.another() as other:
                other.forget(self.id(number))

        cutting_in = Interrupting(act)
        self.home.later(1).run_with(consolidator=cutting_in)
        if cutting_in.worked:
            reached("forgotten while a run was at work")

    @rule(number=Life.numbers)
    def lift(self, number):
        around = self.home.memory._around
        self.attempt(lambda: forget.lift(around, self.id(number), actor="human:cli"))

    @invariant()
    def nothing_is_left_and_nothing_comes_back(self):
        gone = set()
        for recorded in self.home.log():
            for thread_id in gone:
                if recorded.stream in (
                    thread_stream(thread_id),
                    extraction_stream("v1", thread_id),
                ):
                    assert isinstance(recorded.event, ForgettingLifted), recorded.type
            match recorded.event:
                case ThreadForgotten(thread_id=thread_id):
                    gone.add(thread_id)
                case ForgettingLifted(thread_id=thread_id):
                    gone.discard(thread_id)
                case Phase2InputsSelected(selected=selected) | Phase2Succeeded(selected=selected):
                    assert not gone & {each.thread_id for each in selected}, recorded.position
        states = {line.thread_id: line.stage1 for line in self.home.memory.threads()}
        assert {each for each, told in states.items() if told == "forgotten"} == gone
        if gone:
            reached("a thread is forgotten")
            self.no_byte_holds_a_phrase_of([n for n in NUMBERS if self.id(n) in gone])

    def no_byte_holds_a_phrase_of(self, numbers):
        everything = b"\n".join(
            path.read_bytes() for path in self.home.path.rglob("*") if path.is_file()
        )
        for number in numbers:
            assert WORDS[number].encode() not in everything, number


TestForgotten = Forgotten.TestCase
TestForgotten.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
