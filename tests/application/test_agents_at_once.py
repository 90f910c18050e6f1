"""Two programs at once whose consolidator is an agent: what goes wrong in Codex at a first start,
at an empty one and at a killed one does not."""

import json
import signal
import time

import pytest
from msgspec.structs import replace
from threadbook import Memory
from threadbook.adapters.offline import OfflineExtractor
from threadbook.application import startup
from threadbook.domain.events import (
    ArtifactsPublished,
    Phase2InputsSelected,
    Phase2LeaseClaimed,
    Phase2LeaseReleased,
    Phase2Succeeded,
)
from threadbook.projections import jobs

from tests.application.agents import COST, Agent, honest, until_told
from tests.application.homes import HOUR_S, NOON, AtOnce, Session, bytes_of, content
from tests.application.processes import Process

A = Session(number=1)
B = Session(number=2, says=("please never use tabs in this project, always spaces",))
C = Session(number=3, says=("from now on always feed the kestrel",), ended_at=NOON + HOUR_S)


class Gate:
    """A file that a process makes, and one that it waits for."""

    def __init__(self, folder, name):
        self.reached_file = folder / f"{name}.reached"
        self.open_file = folder / f"{name}.open"

    def passed(self):
        with self.reached_file.open("a") as file:
            file.write("x")
        wait_for(self.open_file.exists)

    def reached(self):
        return self.reached_file.exists()

    def opened(self):
        self.open_file.touch()


def wait_for(holds, seconds=30):
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it has not come"
        time.sleep(0.005)


class Slow(AtOnce):
    """The offline extractor, which waits at a gate within each session."""

    def __init__(self, gate):
        self.gate = gate

    def extract(self, material):
        self.gate.passed()
        return OfflineExtractor().extract(material.header, material.items())


def run(home, act, extractor=None):
    """A whole run of another program; it prints what its agent was asked and what came of it."""
    agent = Agent(act)
    with Memory.open(home.path, clock=lambda: home.now) as memory:
        around = replace(memory._around, consolidator=agent)
        if extractor is not None:
            around = replace(around, extractor=extractor)
        with memory._workers.at_work(around.worker_id):
            report = startup.run(around, [home.sessions])
    asked = [len(task.outputs) for task in agent.tasks]
    statuses = [root.status for root in report.phase2]
    print(json.dumps({"asked": asked, "statuses": statuses, "waiting": report.waiting}))


def started(home, act, extractor=None):
    home.started = getattr(home, "started", 0) + 1
    return Process(run, home, act, extractor, output=home.folder / f"out{home.started}")


def told(process):
    assert process.ended() == 0, process.said
    return json.loads(process.said)


def test_a_first_start_of_two_leaves_every_output_in_the_folder(home):
    home.write(A, B)
    reading = Gate(home.folder, "reading")

    first = started(home, honest, Slow(reading))
    wait_for(reading.reached)
    second = started(home, honest)
    soon = told(second)
    reading.opened()
    late = told(first)

    assert soon["asked"] == []
    assert soon["waiting"]
    assert late["asked"] == [2]
    assert [len(e.selected) for e in home.events(Phase2InputsSelected)] == [2]
    assert home.selected() == {A.id, B.id}
    assert len([path for path in content(home.root()) if "summaries/" in path]) == 2


def test_an_empty_first_start_of_two_asks_nobody_and_no_folder_rests_after_it(home):
    both = [started(home, honest) for _ in range(2)]
    empty = [told(each) for each in both]
    home.write(A)
    after = told(started(home, honest))

    assert [each["asked"] for each in empty] == [[], []]
    assert len(home.events(Phase2LeaseClaimed)) == 1
    assert (after["asked"], after["statuses"], after["waiting"]) == ([1], ["succeeded"], {})


def test_two_at_once_ask_one_agent_and_the_other_waits_for_it(home):
    home.write(A, B)
    work = Gate(home.folder, "work")

    def slow(task):
        work.passed()
        return honest(task)

    first = started(home, slow)
    wait_for(work.reached)
    second = started(home, slow)
    time.sleep(0.3)
    assert not second.has_ended()
    work.opened()

    assert [told(first)["asked"], told(second)["asked"]] == [[2], []]
    assert len(home.events(ArtifactsPublished)) == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_agent_that_was_killed_or_stopped_leaves_the_folder_and_the_next_run_goes_on(
    home, number
):
    home.write(A, B)
    told(started(home, honest))
    home.later(24 * HOUR_S).write(C)
    before = bytes_of(home.root())
    work = Gate(home.folder, "work")

    def slow(task):
        work.reached_file.touch()
        until_told(task)

    victim = started(home, slow)
    wait_for(work.reached)
    victim.send(number)
    victim.ended()
    there = bytes_of(home.root())
    again = told(started(home, honest))

    assert there == before
    assert again["statuses"] == ["succeeded"]
    assert "kestrel" in content(home.root())["MEMORY.md"]
    (released,) = home.events(Phase2LeaseReleased)
    assert released.tokens.calls == (0 if number == signal.SIGKILL else COST.calls)
    assert len(home.events(Phase2Succeeded)) == 2
    with home.memory.store.reading() as view:
        assert not [job for job in view.rows(jobs, ()) if job.status == "running"]
    assert home.memory.replay_verify() == []
