"""A forgetting that is killed, wherever that is, is finished by the next run: no byte is left."""

import os
import random
import resource
import shutil
import signal
import sys
import time
from collections import Counter
from contextlib import ExitStack, contextmanager

import pytest
from msgspec.structs import replace
from threadbook import Memory
from threadbook.adapters.store import StoreError
from threadbook.application import forget, state
from threadbook.domain.events import ThreadForgotten

from tests.application.homes import NOON, Home, Session, content
from tests.application.planted import Planted, left_in
from tests.application.processes import Process, cli

LOST = Planted()
KEPT = Session(number=2, says=("please never use tabs in this project, always spaces",))
chance = random.SystemRandom()  # Never the same points, and none that a fork inherits.


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A home that read both sessions, with a person's edit and with an edit nobody has seen."""
    home = Home(tmp_path_factory.mktemp("prepared"))
    home.write(LOST, KEPT)
    home.run()
    memory_file = home.root() / "MEMORY.md"
    for _ in range(2):
        memory_file.write_text(f"{memory_file.read_text()}\nand {LOST.records()[2]}\n")
        home.run() if _ == 0 else None
    home.memory.close()
    return home


class Copy:
    """A copy of the prepared home, on which processes act."""

    def __init__(self, prepared, folder):
        self.path = folder / "home"
        self.output = folder / "output"
        self.sessions = prepared.sessions
        shutil.copytree(prepared.path, self.path)

    def open(self):
        return Memory.open(self.path, clock=lambda: NOON)

    def forget(self, before=lambda: None):
        with self.open() as memory:
            before()
            memory.forget(LOST.id)

    def run(self, before=lambda: None):
        with self.open() as memory:
            before()
            memory.run(sessions=[self.sessions])

    def process(self, what, *args):
        return Process(what, *args, output=self.output)


TOUCHING = ("open", "os.", "fcntl.", "shutil.", "sqlite3.connect")


def killing_at(number):
    """From now on the process ends itself, as by kill -9, at its so manieth touch of a file."""
    seen = 0

    def touched(event, arguments):
        nonlocal seen
        if not event.startswith(TOUCHING) or (
            event == "open" and str(arguments[0]).endswith("pyc")
        ):
            return
        seen += 1
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(touched)
    return lambda: seen


def touches(copy, what):
    """How many there are when nobody kills it."""

    def counted():
        count = killing_at(-1)
        start = time.monotonic()
        what(lambda: None)
        print(count(), time.monotonic() - start)

    counting = copy.process(counted)
    assert counting.ended() == 0, counting.said
    count, seconds = counting.said.split()
    return int(count), float(seconds)


def test_killed_at_any_point_the_next_run_leaves_no_byte(prepared, tmp_path):
    (tmp_path / "counted").mkdir()
    count, seconds = touches(copy := Copy(prepared, tmp_path / "counted"), copy.forget)
    assert count > 60
    reached = Counter()
    points = [(at, None) for at in range(1, 6)]  # Before the commit there are only a few.
    points += [(at * count // 16 + chance.randrange(1, count // 16), None) for at in range(16)]
    points += [(None, chance.uniform(0, seconds)) for _ in range(5)]

    for trial, (at, after_s) in enumerate(points):
        folder = tmp_path / f"trial{trial}"
        folder.mkdir()
        copy = Copy(prepared, folder)
        victim = copy.process(copy.forget, lambda at=at: at and killing_at(at))
        if after_s is not None:
            time.sleep(after_s)
            victim.send(signal.SIGKILL)
        ended = victim.ended()
        if trial % 3 == 0:  # And the run that would finish it is killed, too.
            second = copy.process(copy.run, lambda: killing_at(chance.randrange(1, 200)))
            second.ended()

        log = copy.path / "erasures.log"
        asked = log.exists() and LOST.id in log.read_text()
        assert asked or ended
        with copy.open() as memory:
            memory.run(sessions=[copy.sessions])
            verified = memory.verify()
            differences = memory.replay_verify()
            forgotten = [e.event for e in memory.log() if isinstance(e.event, ThreadForgotten)]
            selected = {line.thread_id for line in memory.threads() if line.selected}
        told = f"{at=} of {count}, {after_s=} of {seconds}: {victim.said}"
        assert verified.ok, told
        assert differences == [], told
        assert len(forgotten) == asked, told
        assert selected == ({KEPT.id} if asked else {LOST.id, KEPT.id}), told
        root = next(each for each in (copy.path / "memories/v1").iterdir() if not each.suffix)
        assert "never use tabs" in content(root)["MEMORY.md"], told
        if asked:
            assert left_in(copy.path) == [], told
        reached["killed"] += ended != 0
        reached["before it was asked for"] += not asked
        reached["before the commit"] += any(e.reason == "asked_before" for e in forgotten)

    assert reached["killed"] >= 20, reached
    assert reached["before it was asked for"], reached


@contextmanager
def full_disk():
    """No file may grow: for whoever writes, the disk is as good as full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_on_a_full_disk_nothing_is_forgotten_by_half_and_it_says_so(prepared, tmp_path):
    copy = Copy(prepared, tmp_path)

    def forget_on_a_full_disk():
        with copy.open() as memory:
            try:
                with full_disk():
                    memory.forget(LOST.id)
            except StoreError as error:
                print(error)

    full = copy.process(forget_on_a_full_disk)

    assert full.ended() == 0, full.said
    assert "disk is full or a limit is reached" in full.said
    assert len(full.said.splitlines()) == 1
    with copy.open() as memory:
        assert memory.verify().ok
        memory.run(sessions=[copy.sessions])
        memory.forget(LOST.id)
    assert left_in(copy.path) == []


def test_a_disk_that_is_full_after_the_log_has_forgotten_is_told_and_finished(prepared, tmp_path):
    copy = Copy(prepared, tmp_path)

    def forget_and_find_the_disk_full():
        with copy.open() as memory:
            around = memory._around
            with ExitStack() as until_then:

                def workspace(*where):
                    with around.store.reading() as view:
                        if state.thread(view, LOST.id).forgotten:
                            until_then.enter_context(full_disk())
                    return around.workspace(*where)

                later = replace(around, workspace=workspace)
                with pytest.raises(forget.StillInTheFolder) as told:
                    forget.forget(later, LOST.id, reason="person", actor="application")
            print(told.value)

    full = copy.process(forget_and_find_the_disk_full)

    assert full.ended() == 0, full.said
    assert "is forgotten, but" in full.said
    assert "no space is left" in full.said
    assert "threadbook run" in full.said
    assert len(full.said.splitlines()) == 1
    assert all("memories" in each for each in left_in(copy.path))
    with copy.open() as memory:
        memory.run(sessions=[copy.sessions])
        assert memory.verify().ok
        assert memory.replay_verify() == []
    assert left_in(copy.path) == []


def test_on_the_command_line_it_is_one_line_and_an_exit_code(prepared, tmp_path):
    copy = Copy(prepared, tmp_path)
    common = ("--home", copy.path, "--now", "2026-01-01T12:00:00Z")
    [root] = [each for each in (copy.path / "memories/v1").iterdir() if not each.suffix]
    root.rename(tmp_path / "moved")
    root.write_text("a file where a folder should be")

    refused = copy.process(cli, *common, "forget", "thread", LOST.id)

    assert refused.ended() == 3
    assert len(refused.said.splitlines()) == 1
    assert refused.said.startswith(f"threadbook: {LOST.id} is forgotten, but")
    root.unlink()
    (tmp_path / "moved").rename(root)
    finished = Process(
        cli, *common, "run", "--sessions", copy.sessions, output=tmp_path / "finished"
    )
    assert finished.ended() == 0, finished.said
    assert left_in(copy.path) == []


def test_the_command_line_lets_no_program_lift_a_forgetting(prepared, tmp_path):
    copy = Copy(prepared, tmp_path)
    copy.forget()
    common = ("--home", copy.path, "--now", "2026-01-01T12:00:00Z")

    lifting = copy.process(cli, *common, "forget", "thread", LOST.id, "--lift")

    assert lifting.ended() == 1
    assert "only a person can lift" in lifting.said
    copy.run()
    assert left_in(copy.path) == []
