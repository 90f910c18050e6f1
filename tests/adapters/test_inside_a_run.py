"""The mark of a run in the environment: there as long as any run of the program, and no longer."""

import os
import subprocess
import sys
import threading

import pytest
from msgspec.structs import replace
from threadbook.adapters.actor import INSIDE_A_RUN, inside_a_run, is_inside_a_run
from threadbook.application.ports import Proposal

from tests.application.homes import Home, Session


@pytest.fixture(autouse=True)
def _outside(monkeypatch):
    monkeypatch.delenv(INSIDE_A_RUN, raising=False)


def test_what_is_started_in_a_run_knows_it_and_afterwards_nothing_does():
    code = f"import os; print({INSIDE_A_RUN!r} in os.environ)"

    with inside_a_run():
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert told.stdout == "True\n"
    assert not is_inside_a_run()


def test_a_run_within_a_marked_program_leaves_its_mark(monkeypatch):
    monkeypatch.setenv(INSIDE_A_RUN, "theirs")

    with inside_a_run():
        pass

    assert os.environ[INSIDE_A_RUN] == "theirs"


def test_of_two_runs_at_once_the_one_that_ends_first_leaves_the_others_mark():
    began, first_is_over = threading.Event(), threading.Event()
    seen = []

    def second():
        with inside_a_run():
            began.set()
            first_is_over.wait(10)
            seen.append(is_inside_a_run())

    with inside_a_run():
        other = threading.Thread(target=second)
        other.start()
        began.wait(10)
    first_is_over.set()
    other.join()

    assert seen == [True]
    assert not is_inside_a_run()


class Looking:
    """A consolidator that looks at its own environment."""

    name = "looking"
    kind = "offline"

    def __init__(self, consolidator):
        self.consolidator = consolidator
        self.seen = []

    def propose(self, task) -> Proposal:
        self.seen.append(is_inside_a_run())
        return self.consolidator.propose(task)


def test_a_program_that_runs_a_memory_marks_what_it_starts(tmp_path):
    home = Home(tmp_path)
    home.write(Session(number=1))
    looking = Looking(home.memory._around.consolidator)
    home.memory._around = replace(home.memory._around, consolidator=looking)

    home.run()

    assert looking.seen == [True]
    assert not is_inside_a_run()
