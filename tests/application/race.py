"""A race: several processes on one memory, which are killed and come back, drawn from one number.

Each racer lives several lives. In a life it opens the memory and does what its dice say: whole
runs, sessions that go on, citations, pollution, modes, moves, forgettings, looks. Most lives end
by SIGKILL: after some milliseconds, or at a place in the program (so many calls after it has
entered a function), which is how the narrow moments are reached. Then its next life begins.

The clock is everybody's and stands still by itself. Who waits lets it go on, and a model that hangs
lets whole hours pass: so leases run out under those who hold them. What a racer did, and every
exception it saw, it writes down at once, line by line.
"""

import faulthandler
import json
import mmap
import os
import random
import shutil
import signal
import string
import struct
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace
from threadbook import Memory
from threadbook.adapters.offline import OfflineConsolidator, OfflineExtractor
from threadbook.application import forget
from threadbook.domain.refusals import Refused

from tests.application.homes import DAY_S, HOUR_S, NOON, AtOnce, Session, rfc, thread_id, used
from tests.application.planted import said
from tests.application.processes import Process

PROJECTS = ("fern", "moss", "reed")
STUCK_S = 90  # So long nobody has done anything: they wait for each other.
# Of an act: functions that it enters, to die so many calls later.
PLACES = {
    "run": (
        ("ingest.py", "record_one"),
        ("claims.py", "claim"),
        ("phase1.py", "begin"),
        ("phase1.py", "begin"),
        ("outcomes.py", "record"),
        ("lease.py", "claim"),
        ("phase2.py", "proposed"),
        ("publication.py", "publish"),
        ("publication.py", "publish"),
        ("render.py", "attempt"),
        ("retention.py", "expire"),
    ),
    "forget": (("forget.py", "forget"), ("forget.py", "publish_without"), ("forget.py", "finish")),
    "cite": (("citing.py", "count"),),
    "pollute": (("people.py", "pollute"),),
    "mode": (("people.py", "set_mode"),),
    "move": (("people.py", "set_scope"),),
}
DEPTHS = (1, 3, 10, 30, 100, 300, 1000)


class Clock:
    """Unix seconds that the processes share: NOON, and what each of them has let pass."""

    def __init__(self, racers: int) -> None:
        self.passed = mmap.mmap(-1, 8 * (racers + 1))  # A word each, so that no two write one.

    def now(self) -> float:
        return float(NOON + sum(struct.unpack(f"{len(self.passed) // 8}q", self.passed)))

    def later(self, seconds: int, *, racer: int = 0) -> None:
        (before,) = struct.unpack_from("q", self.passed, 8 * racer)
        struct.pack_into("q", self.passed, 8 * racer, before + seconds)


class Death(Struct, frozen=True, kw_only=True):
    """By the parent after so long, or by its own hand `calls` calls after it entered a function
    for the `nth` time."""

    after_s: float | None = None
    place: tuple[str, str] | None = None
    nth: int = 1
    calls: int = 1


class Racer(Struct, kw_only=True):
    number: int
    home: Path
    lives: int
    process: Process | None = None
    death: Death | None = None
    dies_at: float | None = None


class Race:
    """`run()` it, then hold against it what must be true (`race_checks`)."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        *,
        dsn: str | None = None,
        machines: int = 1,
        racers: int = 6,
        lives: int = 6,
        sessions: int = 12,
    ) -> None:
        dice = random.Random(f"{seed} race")
        self.folder, self.seed, self.dsn = folder, seed, dsn
        self.sessions_folder = folder / "sessions"
        self.sessions_folder.mkdir(parents=True)
        self.told = folder / "told"
        self.told.mkdir()
        self.homes = [folder / f"machine-{at}" / "home" for at in range(machines)]
        self.clock = Clock(racers)
        self.settings: dict[str, object] = {
            "scope": dice.choice(("project", "project", "global")),
            "history_days": dice.choice((0, 30, 30)),
            "max_rollout_age_days": 90,
            "max_unused_days": 90,
        }
        self.numbers = range(1, sessions + 1)
        self.words = {
            number: "".join(dice.choices(string.ascii_lowercase, k=20)) for number in self.numbers
        }
        self.doomed = list(self.numbers[-4:])  # Those that may be forgotten.
        self.returning = self.doomed[0]  # And the one that may be lifted again.
        self.racers = [
            Racer(number=at, home=self.homes[at % machines], lives=lives)
            for at in range(1, racers + 1)
        ]
        self.killed: list[int] = []
        self.reached: Counter[str] = Counter()

    # What there is before it begins.

    def prepare(self) -> None:
        """Half of the sessions have been read, and every machine has the keys."""
        before = {*self.numbers[::2], *self.doomed}
        for number in sorted(before):
            self.write(number)
        for home in self.homes:
            if self.dsn and home != self.homes[0]:
                home.mkdir(mode=0o700, parents=True)
                shutil.copy(self.homes[0] / "keys.sqlite", home)
            with self.open(home) as memory:
                memory.run(sessions=[self.sessions_folder])
        for number in sorted({*self.numbers} - before):
            self.write(number)

    def file(self, number: int) -> Path:
        return self.sessions_folder / f"rollout-{thread_id(number)}.jsonl"

    def write(self, number: int) -> None:
        project = PROJECTS[number % len(PROJECTS)]
        session = Session(
            number=number,
            says=(f"from now on always run {self.words[number]} before you commit",),
            cwd=f"/srv/{project}",
            repository_url=f"https://example.org/{project}.git",
            ended_at=NOON - 3 * DAY_S,
        )
        self.file(number).write_text(session.text())

    def goes_on(self, number: int, word: str) -> None:
        """One more record, later than all before it, whoever writes at the same moment."""
        import fcntl

        with self.file(number).open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            lines = file.read().splitlines()
            count = len(lines) - 1  # Of one that was killed all of the record is there, or none.
            record = {"timestamp": rfc(NOON - 3 * DAY_S + 60 * count), "type": "response_item"}
            text = f"from now on always say {self.words[number]}{word} in the headings"
            file.seek(0, os.SEEK_END)
            file.write(json.dumps(record | {"payload": said(text)}).encode() + b"\n")

    def open(self, home: Path, *, lag_s: int = 0) -> Memory:
        database = {"database": self.dsn} if self.dsn else {}
        return Memory.open(
            home, clock=lambda: self.clock.now() - lag_s, settings={**self.settings, **database}
        )

    # The race.

    def run(self) -> None:
        self.prepare()
        written, until = 0, 0.0
        try:
            while any(racer.lives or racer.process for racer in self.racers):
                for racer in self.racers:
                    self.look_after(racer)
                time.sleep(0.001)
                if time.monotonic() > until:
                    before, written = written, sum(e.stat().st_size for e in self.told.iterdir())
                    assert written > before or not until, f"they wait: {self.where_they_are()}"
                    until = time.monotonic() + STUCK_S
        finally:
            for process in self.living():
                process.send(signal.SIGKILL)
                process.ended()

    def living(self) -> list[Process]:
        return [racer.process for racer in self.racers if racer.process is not None]

    def where_they_are(self) -> str:
        """The stack of everybody who is alive."""
        for process in self.living():
            process.send(signal.SIGUSR1)
        time.sleep(1)
        return "\n".join(process.said for process in self.living())

    def look_after(self, racer: Racer) -> None:
        process = racer.process
        if process is None:
            if racer.lives:
                self.give_birth(racer)
        elif process.has_ended():
            racer.process = None
            self.reached["lives"] += 1
            if process.code == -signal.SIGKILL:
                self.killed.append(process.pid)
                self.reached["killed"] += 1
            else:
                assert process.code == 0, process.said
                assert process.said == ""
        elif racer.dies_at is not None and time.monotonic() > racer.dies_at:
            process.send(signal.SIGKILL)
            racer.dies_at = None

    def give_birth(self, racer: Racer) -> None:
        racer.lives -= 1
        life = Life(self, racer)
        racer.death = self.death_of(racer, life.acts)
        after_s = racer.death and racer.death.after_s
        racer.dies_at = None if after_s is None else time.monotonic() + after_s
        output = self.folder / f"said-{racer.number}-{racer.lives}"
        racer.process = Process(life.live, output=output)

    def death_of(self, racer: Racer, acts: list[str]) -> Death | None:
        dice = random.Random(f"{self.seed} death {racer.number} {racer.lives}")
        how = dice.random()
        if how < 0.1:
            return None
        if how < 0.4:
            return Death(after_s=dice.uniform(0, 0.3))
        places = PLACES[dice.choice([act for act in acts if act in PLACES])]
        return Death(
            place=dice.choice(places), nth=dice.choice((1, 1, 2, 3)), calls=dice.choice(DEPTHS)
        )


class Told(Struct, omit_defaults=True):
    """A line of what a racer wrote down."""

    act: str
    pid: int = 0
    result: object = None
    ids: list[str] = field(default_factory=list)
    session: str | None = None
    turn: int | None = None
    error: str | None = None
    message: str | None = None


class Life:
    """One life of a racer, from its birth to its death, in a process of its own."""

    def __init__(self, race: Race, racer: Racer) -> None:
        self.race, self.racer = race, racer
        self.dice = random.Random(f"{race.seed} life {racer.number} {racer.lives}")
        self.lag_s = self.dice.choice((0, 0, 1, 3))
        several = self.dice.choices(
            ("run", "goes on", "cite", "pollute", "mode", "move", "forget", "lift", "look"),
            weights=(6, 5, 3, 2, 4, 1, 1, 0.7, 1),
            k=self.dice.randrange(4, 9),
        )
        self.acts = [*several, "run"]

    def live(self) -> None:
        self.report = os.open(
            self.race.told / f"{self.racer.number}-{self.racer.lives}",
            os.O_WRONLY | os.O_CREAT | os.O_APPEND,
        )
        if self.racer.death and self.racer.death.place:
            sys.setprofile(self.dying(self.racer.death))
        faulthandler.register(signal.SIGUSR1, file=sys.stderr)
        told = Told(act="open")
        try:
            with self.race.open(self.racer.home, lag_s=self.lag_s) as memory:
                memory._around = replace(
                    memory._around,
                    extractor=Slow(self, OfflineExtractor()),
                    consolidator=Slow(self, OfflineConsolidator()),
                    sleep=self.sleep,
                )
                self.tell(told)
                for at, act in enumerate(self.acts):
                    told = Told(act=act)
                    self.do(memory, told, at)
                told = Told(act="close")
        except BaseException as error:
            told.error = type(error).__name__
            told.message = "".join(traceback.format_exception(error))
        self.tell(told)
        sys.setprofile(None)

    def tell(self, told: Told) -> None:
        told.pid = os.getpid()
        os.write(self.report, msgspec.json.encode(told) + b"\n")

    def do(self, memory: Memory, told: Told, at: int) -> None:
        race, dice = self.race, self.dice
        number = dice.choice(race.numbers)
        told.ids = [thread_id(number)]
        try:
            match told.act:
                case "run":
                    report = memory.run(sessions=[race.sessions_folder])
                    told.result = [report.waiting, [root.status for root in report.phase2]]
                    assert not report.unreadable, report.unreadable
                    assert not report.skipped_lines, report.skipped_lines
                case "goes on":
                    for each in dice.sample(race.numbers, 3):
                        race.goes_on(each, f" {self.racer.number}{self.racer.lives}{at}")
                case "cite":
                    told.ids = [thread_id(each) for each in dice.sample(race.numbers, 4)]
                    told.session = dice.choice(("everybody", f"racer {self.racer.number}"))
                    told.turn = dice.randrange(6)
                    told.result = used(memory, told.ids, told.session, told.turn)
                case "pollute":
                    told.result = memory.pollute(told.ids[0], "web_search")
                case "mode":
                    mode = dice.choice(("enabled", "enabled", "disabled"))
                    told.result = memory.set_mode(told.ids[0], mode)
                case "move":
                    known = sorted(
                        {line.scope for line in memory.threads() if line.scope is not None}
                    )
                    told.result = memory.set_scope(told.ids[0], dice.choice(known))
                case "forget":
                    told.ids = [thread_id(dice.choice(race.doomed))]
                    memory.forget(told.ids[0])
                case "lift":  # As a person at a terminal would.
                    told.ids = [thread_id(race.returning)]
                    forget.lift(memory._around, told.ids[0], actor="human:cli")
                case "look":
                    assert memory.verify().ok
                    memory.status()
                    memory.threads()
        except Refused as refused:
            told.error, told.message = refused.code, str(refused)
        self.tell(told)

    # What lets time pass.

    def sleep(self, seconds: float) -> None:
        """Who waits for another's lease sees it run out, if need be."""
        time.sleep(seconds / 5)
        self.race.clock.later(60, racer=self.racer.number)

    def think(self, longest_s: float) -> None:
        how = self.dice.random()
        if how < 0.4:
            time.sleep(self.dice.uniform(0, longest_s))
        elif how < 0.5:
            self.race.clock.later(HOUR_S + 10, racer=self.racer.number)
            time.sleep(self.dice.uniform(0, 0.2))  # Long enough for somebody to take it over.

    # Death.

    def dying(self, death: Death) -> Callable[[object, str, object], None]:
        assert death.place is not None
        file, function = death.place
        entered = calls = 0

        def profile(frame, event, _) -> None:
            nonlocal entered, calls
            if entered < death.nth:
                code = frame.f_code
                if event == "call" and code.co_name == function and code.co_filename.endswith(file):
                    entered += 1
                return
            calls += 1
            if calls >= death.calls:
                self.tell(Told(act="died", ids=list(names(frame))))
                os.kill(os.getpid(), signal.SIGKILL)

        return profile


def names(frame) -> Iterator[str]:
    """Of the functions it is in, inside out."""
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.parent.name in ("application", "store", "adapters"):
            yield f"{path.stem}.{frame.f_code.co_name}"
        frame = frame.f_back


class Slow(AtOnce):
    """The offline model, which takes its time."""

    kind = "offline"

    def __init__(self, life: Life, model) -> None:
        self.life, self.model = life, model

    def extract(self, material):
        found = self.model.extract(material.header, material.items())
        self.life.think(0.03)
        return found

    def propose(self, task):
        self.life.think(0.15)
        return self.model.propose(task)
