"""A few sessions' life on a real home: files that grow, people who decide, runs that are cut in on.

Three sessions of two projects. Whatever is done goes through the library's face or the use cases,
so that what a property says of the log and of the folder holds for the whole program.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import event as reached
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from threadbook.domain.events import STORE_STREAM, StoreReset, consolidation_stream
from threadbook.domain.refusals import Refused
from threadbook.projections import jobs

from tests.application.homes import DAY_S, FERN, HOUR_S, MOSS, Home, Interrupting, Session, used

NUMBERS = (1, 2, 3)
WISHES = {
    1: "from now on always run make check before you commit",
    2: "please never use tabs in this project, always spaces",
    3: "from now on always write release notes in past tense",
}
WORDS = {1: "make check", 2: "never use tabs", 3: "release notes"}
MEMORY_DISK = "/dev/shm" if os.path.isdir("/dev/shm") else None


class Life(RuleBasedStateMachine):
    numbers = st.sampled_from(NUMBERS)

    def __init__(self):
        super().__init__()
        self.folder = TemporaryDirectory(dir=MEMORY_DISK)
        self.home = Home(Path(self.folder.name))
        self.turn = 0

    def teardown(self):
        self.home.memory.close()
        self.folder.cleanup()

    def session(self, number, **facts):
        return Session(number=number, cwd=MOSS if number == 3 else FERN, **facts)

    def write(self, number, *, memory_mode=None, more=""):
        says = (WISHES[number], more) if more else (WISHES[number],)
        ended_at = int(self.home.now) - 7 * HOUR_S
        self.home.write(self.session(number, says=says, ended_at=ended_at, memory_mode=memory_mode))

    @initialize()
    def three_sessions(self):
        for number in NUMBERS:
            self.write(number)
        self.home.run()

    def id(self, number):
        return self.session(number).id

    def attempt(self, act):
        with suppress(Refused):
            act()

    @rule(number=numbers, mode=st.sampled_from([None, "enabled", "disabled", "polluted"]))
    def the_session_goes_on(self, number, mode):
        self.turn += 1
        self.home.later(60)
        self.write(number, memory_mode=mode, more=f"thanks, turn {self.turn}")

    @rule(number=numbers)
    def pollute(self, number):
        self.attempt(lambda: self.home.memory.pollute(self.id(number), "web_search"))

    @rule(number=numbers, mode=st.sampled_from(["enabled", "disabled"]))
    def set_mode(self, number, mode):
        self.attempt(lambda: self.home.memory.set_mode(self.id(number), mode))

    @rule(number=numbers, scope=st.sampled_from(["project:garden", "project:yard"]))
    def rescope(self, number, scope):
        self.attempt(lambda: self.home.memory.set_scope(self.id(number), scope))

    @rule(number=numbers)
    def cite(self, number):
        self.turn += 1
        used(self.home.memory, [self.id(number)], "session", self.turn)

    @rule(time=st.sampled_from([60, HOUR_S, 8 * HOUR_S, 9 * DAY_S]))
    def time_passes(self, time):
        self.home.later(time)

    @rule(backfill=st.sampled_from([None, None, -1]))
    def run(self, backfill):
        self.home.later(1).run(backfill=backfill)
        self.a_run_ended()

    def a_run_ended(self):
        """What a property says of the moment."""

    @rule(number=numbers, grown=numbers, what=st.sampled_from(["pollute", "disable", "rescope"]))
    def run_cut_in_on(self, number, grown, what):
        self.the_session_goes_on(grown, None)
        acts = {
            "pollute": lambda memory: memory.pollute(self.id(number), "web_search"),
            "disable": lambda memory: memory.set_mode(self.id(number), "disabled"),
            "rescope": lambda memory: memory.set_scope(self.id(number), "project:shed"),
        }

        def act():
            with self.home.another() as other:
                self.attempt(lambda: acts[what](other))

        cutting_in = Interrupting(act)
        self.home.later(1).run_with(consolidator=cutting_in)
        if cutting_in.worked:
            reached(f"cut in on: {what}")

    @rule()
    def reset(self):
        """The event, with the folders and the texts of the roots: a reset takes them along."""
        for root in self.home.roots():
            shutil.rmtree(root)
        with self.home.memory.store.writing(actor="application") as tx:
            roots = tx.rows(jobs, (jobs.PHASE2,))
            tx.append(STORE_STREAM, StoreReset(at=int(self.home.now), memory_version="v1"))
            tx.erase(owners=[consolidation_stream("v1", root.job_key) for root in roots])
