"""Several processes on one home: nothing is done twice or lost, and nobody is told of locks."""

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import defaultdict

import pytest
from msgspec.structs import replace
from threadbook import Memory
from threadbook.adapters.offline import OfflineExtractor
from threadbook.application import claims
from threadbook.application.ports import Extracted
from threadbook.projections import jobs, stage1_outputs

from tests.application.homes import (
    FERN,
    FIXTURES,
    HOUR_S,
    MOSS,
    NOON,
    ROOT,
    Interrupting,
    Session,
    Telling,
    content,
    rfc,
    used,
)
from tests.application.leases import read_again, readings, walked
from tests.application.planted import Planted, left_in, said
from tests.application.processes import Process, cli
from tests.postgres import schema_of, server

chance = random.SystemRandom()
NOW = "2026-01-01T12:00:00Z"
WISHES = ("run make lint", "sort imports", "write in past tense", "use two spaces", "say please")
SESSIONS = [
    Session(
        number=10 + at, says=(f"from now on always {wish}",), cwd=(FERN, MOSS, "/srv/reed")[at % 3]
    )
    for at, wish in enumerate(WISHES)
] + [Session(number=20, says=("what is the time?",))]


class Place:
    """A folder with sessions, a home, and processes on it; with a DSN, the log is there."""

    def __init__(self, folder, *sessions, dsn=None):
        self.dsn = dsn
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.home = folder / "home"
        self.sessions = folder / "sessions"
        self.sessions.mkdir()
        self.started = 0
        self.write(*(sessions or SESSIONS))

    def write(self, *sessions):
        for each in sessions:
            (self.sessions / f"rollout-{each.id}.jsonl").write_text(each.text())

    def start(self, command="run", *words):
        self.started += 1
        if command == "run":
            words = ("--sessions", self.sessions, "--json", *words)
        words = (command, *words, "--home", self.home, "--now", NOW)
        return Process(cli_on, self.dsn, *words, output=self.folder / f"out{self.started}")

    def run(self):
        """One run, alone, to its end: its report."""
        run = self.start()
        assert run.ended() == 0, run.said
        return json.loads(run.said)

    def open(self):
        settings = {"database": self.dsn} if self.dsn else {}
        return Memory.open(self.home, clock=lambda: float(NOON), create=False, settings=settings)

    def log(self):
        with self.open() as memory:
            return list(memory.log())

    def count(self, type_):
        """How many events of a type the log has."""
        return self.asked(f"SELECT count(*) FROM events WHERE type = '{type_}'")

    def asked(self, query):
        """A number out of the database, for somebody who only looks."""
        if self.dsn:
            return asked_of_server(self.dsn, query)
        try:
            db = sqlite3.connect(f"file:{self.home}/threadbook.sqlite?mode=ro", uri=True)
            try:
                return db.execute(query).fetchone()[0]
            finally:
                db.close()
        except sqlite3.OperationalError:
            return 0  # Not there yet.


def cli_on(dsn, *words):
    if dsn:
        os.environ["THREADBOOK_DATABASE"] = dsn
    cli(*words)


def asked_of_server(dsn, query):
    from psycopg.errors import UndefinedTable

    try:
        return server().admin(query, schema=schema_of(dsn))[0][0]
    except UndefinedTable:
        return 0  # Not there yet.


def place_on(database, folder, *sessions):
    return Place(folder, *sessions, dsn=server().dsn() if database == "postgres" else None)


def ended_well(*processes):
    for each in processes:
        assert each.ended() == 0, each.said
        for word in ("Traceback", "locked", "busy", "write lock"):
            assert word not in each.said, each.said


def assert_complete(place, sessions, *, gone=()):
    """Everything was read once, every output is in its folder, and the log is sound."""
    assert (place.home / "threadbook.sqlite").exists() == (place.dsn is None)
    log = place.log()
    walked(log)
    assert read_again(log) == []
    expected = {(each.id, each.ended_at): 1 for each in sessions if each.id not in gone}
    found = {key: count for key, count in readings(log).items() if key[0] not in gone}
    assert found == expected
    with place.open() as memory:
        assert memory.verify().ok
        assert memory.replay_verify() == []
        with memory.store.reading() as view:
            assert not [job for job in view.rows(jobs, ()) if job.status != "done"]
            outputs = view.rows(stage1_outputs, ())
            by_scope = defaultdict(list)
            for output in outputs:
                if output.memory_mode == "enabled":
                    by_scope[output.scope].append(output.thread_id)
        selected = {line.thread_id for line in memory.threads() if line.selected}
    assert selected == {thread for ids in by_scope.values() for thread in ids}
    for scope, ids in by_scope.items():
        files = content(place.home / "memories" / "v1" / scope.replace(":", "-"))
        assert all(thread in files["raw_memories.md"] for thread in ids)
        assert all(thread in files["MEMORY.md"] for thread in ids)
        assert len([path for path in files if path.startswith("rollout_summaries/")]) == len(ids)
    assert list((place.home / "workers").iterdir()) == []
    return outputs


# Runs at once.


@pytest.mark.parametrize(
    ("database", "processes", "times"),
    [("sqlite", 2, 20), ("sqlite", 4, 4), ("postgres", 2, 4), ("postgres", 4, 2)],
)
def test_runs_at_once_read_every_session_once_and_leave_every_output(
    tmp_path, database, processes, times
):
    shared = 0
    for at in range(5 * times):
        if at >= times and shared:
            break  # That two read at once is a chance.
        place = place_on(database, tmp_path / str(at))

        runs = [place.start() for _ in range(processes)]

        ended_well(*runs)
        outputs = assert_complete(place, SESSIONS)
        assert len(outputs) == len(WISHES)
        reports = [json.loads(each.said) for each in runs]
        read = [report["stage1"]["succeeded"] for report in reports]
        assert sum(read) == len(WISHES)
        shared += sum(1 for each in read if each) > 1
    assert shared, "they never met"


def other_run(home):
    """Another program's run, of which this one only sees the log."""
    common = ("--home", home.path, "--now", NOW, "--sessions", home.sessions, "--json")
    return Process(cli, "run", *common, output=home.folder / "other")


def test_a_run_that_finds_its_root_leased_waits_and_then_brings_its_own_output_in(home):
    first, second = SESSIONS[0], SESSIONS[3]
    assert first.cwd == second.cwd
    home.write(first)
    others = []

    def meanwhile():
        home.write(second)
        others.append(other_run(home))
        before = home.types().count("stage1.succeeded")
        while home.types().count("stage1.succeeded") == before and not others[0].has_ended():
            time.sleep(0.001)
        until = time.monotonic() + 0.3
        while time.monotonic() < until and not others[0].has_ended():
            time.sleep(0.001)

    home.run_with(consolidator=Interrupting(meanwhile))

    ended_well(*others)
    assert home.selected() == {first.id, second.id}
    assert "use two spaces" in content(home.root())["MEMORY.md"]
    assert not walked(home.log())


def test_a_root_whose_session_is_being_read_is_left_to_whoever_reads_it(home):
    first, second = SESSIONS[0], SESSIONS[3]
    home.write(first)
    others = []

    def meanwhile(header, items):
        home.write(second)
        others.append(other_run(home))
        ended_well(*others)
        return OfflineExtractor().extract(header, items)

    home.run_with(extractor=Telling(**{first.id: meanwhile}))

    assert json.loads(others[0].said)["phase2"] == []
    assert json.loads(others[0].said)["waiting"]
    assert home.selected() == {first.id, second.id}
    assert home.types().count("phase2.lease_claimed") == 1


def test_who_reads_a_session_past_the_end_of_the_lease_records_nothing(home):
    home.write(SESSIONS[0])

    def meanwhile(header, items):
        home.later(2 * HOUR_S)
        with home.another() as another:
            assert another.run(sessions=[home.sessions]).stage1.succeeded == 1
        return Extracted(raw_memory="late", rollout_summary="late", rollout_slug=None)

    report = home.run_with(extractor=Telling(**{SESSIONS[0].id: meanwhile}))

    assert (report.stage1.succeeded, report.stage1.failed) == (0, 1)
    assert walked(home.log()) == {"stage1 taken over": 1}
    assert left_in(home.path, "late\n", whole=True) == []
    assert "run make lint" in content(home.root())["MEMORY.md"]


def test_a_lease_that_was_taken_over_is_not_the_first_readers_while_the_second_reads(home):
    home.write(SESSIONS[0])
    second = replace(home.memory._around, worker_id="of another machine")

    def meanwhile(header, items):
        home.later(2 * HOUR_S)
        with home.memory.store.writing(actor="pipeline") as tx:
            taken = claims.claim(
                second, tx, header.thread_id, backfill=False, unfinished_mtime_ms=None
            )
        assert taken.taken_over_from
        return Extracted(raw_memory="late", rollout_summary="late", rollout_slug=None)

    report = home.run_with(extractor=Telling(**{SESSIONS[0].id: meanwhile}))

    assert (report.stage1.succeeded, report.stage1.failed) == (0, 1)
    assert not home.outputs()


def test_who_consolidates_past_the_end_of_the_lease_publishes_nothing(home):
    home.write(SESSIONS[0])

    def meanwhile():
        home.later(2 * HOUR_S).write(SESSIONS[3])
        with home.another() as another:
            [root] = another.run(sessions=[home.sessions]).phase2
            assert root.status == "succeeded"

    home.run_with(consolidator=Interrupting(meanwhile))

    assert walked(home.log()) == {"phase2 taken over": 1}
    assert home.types().count("phase2.artifacts_published") == 1
    assert home.selected() == {SESSIONS[0].id, SESSIONS[3].id}


def test_a_home_is_made_although_somebody_still_holds_the_empty_file(tmp_path):
    place = Place(tmp_path)
    place.home.mkdir()
    held = holder(place, "write", 0.4)  # As one does that was killed a moment ago.

    run = place.start()

    ended_well(run)
    assert held.wait(timeout=30) == 0
    held.stdout.close()
    assert_complete(place, SESSIONS)


def test_a_home_opens_for_all_although_whoever_made_it_was_killed(tmp_path):
    def make(home):
        Memory.open(home, clock=lambda: float(NOON)).close()

    for at in range(15):
        home = tmp_path / str(at)
        making = [Process(make, home, output=tmp_path / f"{at}-{each}") for each in range(4)]
        time.sleep(chance.uniform(0, 0.02))

        making[0].send(signal.SIGKILL)

        making[0].ended()
        ended_well(*making[1:])
        with Memory.open(home, clock=lambda: float(NOON)) as memory:
            assert memory.verify().ok
            assert [each.type for each in memory.log()] == ["store.opened"]


def test_two_programs_started_by_a_shell_do_the_same(tmp_path):
    place = Place(tmp_path)
    start = [sys.executable, "-c", "from threadbook.adapters.cli import main; main()"]
    words = ["run", "--home", place.home, "--now", NOW, "--sessions", place.sessions]

    runs = [
        subprocess.Popen(
            [*start, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
        )
        for _ in range(2)
    ]

    for run in runs:
        out, err = run.communicate(timeout=60)
        assert (run.returncode, err) == (0, ""), err
        assert "6 sessions found" in out
    assert_complete(place, SESSIONS)


def cite(place, ids):
    with place.open() as memory:
        for turn in range(3):
            print(used(memory, ids, "session", turn))


@pytest.mark.parametrize(("database", "times"), [("sqlite", 5), ("postgres", 3)])
def test_forgetting_pollution_and_citations_race_with_runs(tmp_path, database, times):
    lost, polluted = Planted(), SESSIONS[0]
    for at in range(times):
        place = place_on(database, tmp_path / str(at), lost, *SESSIONS[:3])
        place.run()
        place.write(*SESSIONS[3:])

        acts = [
            place.start(),
            place.start("forget", "thread", lost.id, "--yes"),
            place.start("pollute", polluted.id, "--yes"),
            Process(cite, place, [lost.id, SESSIONS[1].id], output=place.folder / "cited"),
            place.start(),
        ]

        ended_well(*acts)
        place.run()
        outputs = assert_complete(place, SESSIONS, gone={lost.id})
        assert left_in(place.home) == []
        assert place.asked("SELECT count(*) FROM bodies") > 0
        assert place.asked(f"SELECT count(*) FROM bodies WHERE owner LIKE '%{lost.id}'") == 0
        modes = {output.thread_id: (output.memory_mode, output.usage_count) for output in outputs}
        assert modes[polluted.id] == ("polluted", 0)
        assert modes[SESSIONS[1].id] == ("enabled", 3)
        assert lost.id not in modes


def test_machines_that_run_at_once_on_one_database_read_every_session_once(tmp_path):
    shared = 0
    for at in range(15):
        if at >= 3 and shared:
            break
        ann = place_on("postgres", tmp_path / f"ann-{at}", SESSIONS[0])
        ann.run()
        ben = Place(tmp_path / f"ben-{at}", SESSIONS[0], dsn=ann.dsn)
        ben.sessions = ann.sessions
        ann.write(*SESSIONS)
        ben.home.mkdir(mode=0o700)
        shutil.copy(ann.home / "keys.sqlite", ben.home)

        runs = [ann.start(), ben.start(), ben.start(), ann.start()]

        ended_well(*runs)
        for each in (ann, ben):  # Each folder is as its machine's last run left it.
            each.run()
        for each in (ann, ben):
            assert_complete(each, SESSIONS)
        assert not [each for each in walked(ann.log()) if "taken over" in each]
        read = [json.loads(run.said)["stage1"]["succeeded"] for run in runs]
        shared += any((read[0], read[3])) and any((read[1], read[2]))
    assert shared, "the machines never met"


# One of them is killed, or told to stop.


@pytest.mark.parametrize(("database", "times"), [("sqlite", 9), ("postgres", 6)])
def test_after_a_kill_one_more_run_completes_everything(tmp_path, database, times):
    killed, taken = 0, 0
    steps = (
        "thread.registered",
        "stage1.lease_claimed",
        "stage1.succeeded",
        "phase2.lease_claimed",
    )
    steps += ("phase2.artifacts_published", "phase2.root_rendered")
    for at in range(5 * times):
        if at >= times and killed >= times // 2 and taken:
            break  # A kill is a chance: some find a run that has ended, or that holds nothing.
        place = place_on(database, tmp_path / str(at))
        victim, other = place.start(), place.start()
        step, many = steps[at % len(steps)], chance.randrange(1, 4)
        until = time.monotonic() + 60
        while place.count(step) < many and not victim.has_ended() and time.monotonic() < until:
            time.sleep(0.001)

        victim.send(signal.SIGKILL)

        killed += victim.ended() == -signal.SIGKILL
        ended_well(other)
        place.run()
        taken += walked(place.log()).total()
        assert_complete(place, SESSIONS)
    assert killed >= times // 2, "they had ended before"
    assert taken, "no kill met a lease"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_told_to_stop_gives_its_leases_back(tmp_path, number):
    stopped = released = 0
    steps = ("stage1.lease_claimed", "stage1.succeeded", "phase2.lease_claimed", "phase2.succeeded")
    for at in range(6):
        place = Place(tmp_path / str(at))
        run = place.start()
        while place.count(steps[at % 4]) < 1 + at // 4 and not run.has_ended():
            time.sleep(0.001)

        run.send(number)

        if run.ended():
            stopped += 1
            assert run.code == 1, run.said
            assert "Traceback" not in run.said
            assert "stopped; nothing was lost" in run.said
        released += walked(place.log()).total()
        with place.open() as memory, memory.store.reading() as view:
            assert not [job for job in view.rows(jobs, ()) if job.status == "running"]
        report = place.run()
        assert report["waiting"] == {}
        assert_complete(place, SESSIONS)
    assert stopped >= 3
    assert released


# Others that hold the file.


def holder(place, mode, seconds):
    script = FIXTURES / "open" / "sqlite_lock_holder.py"
    words = [
        sys.executable,
        script,
        place.home / "threadbook.sqlite",
        mode,
        "--seconds",
        str(seconds),
    ]
    held = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    if mode != "flap":
        assert held.stdout.readline() == f"holding {mode}\n"
    return held


@pytest.mark.parametrize("mode", ["write", "flap", "read", "exclusive"])
def test_a_run_outlasts_another_program_that_holds_the_file(tmp_path, mode):
    place = Place(tmp_path, *SESSIONS[:2])
    place.run()
    place.write(*SESSIONS)
    held = holder(place, mode, 1.5)

    run = place.start()
    look = place.start("status", "--json")
    ended_well(look)
    answered_at_once = held.poll() is None
    ended_well(run)

    assert held.wait(timeout=30) == 0
    held.stdout.close()
    assert answered_at_once
    assert_complete(place, SESSIONS)
    if mode == "read":
        place.run()
        log_ahead = place.home / "threadbook.sqlite-wal"
        assert not log_ahead.exists() or log_ahead.stat().st_size < 1 << 22


# A session that is still being written.


def writer(home, *words):
    script = FIXTURES / "open" / "concurrent_writer.py"
    out = home.sessions / "live.jsonl"
    return subprocess.Popen(
        [sys.executable, script, "--out", out, "--delay", "0.03", *words],
        stdout=subprocess.PIPE,
        text=True,
    )


LIVE = "019c0000-0000-7000-8000-000000000050"


def remember(header, items):
    told = "\n".join(item.text for item in items if hasattr(item, "text"))
    return Extracted(raw_memory=told, rollout_summary=told, rollout_slug=None)


def heard(home):
    with home.memory.store.reading() as view:
        [output] = view.rows(stage1_outputs, (LIVE,))
        return view.body(output.raw_memory_ref).splitlines()


def lines(count):
    return [f"LIVE-{k} \U0001f33f 고사리" for k in range(1, count + 1)]


@pytest.mark.parametrize(
    ("words", "count"), [((), 12), (("--kill-at", "8"), 7), (("--pause-at", "6:0.7"), 12)]
)
def test_a_session_still_being_written_is_read_once_when_it_rests(home, words, count):
    home.now = time.time()
    live = writer(home, "--records", "12", *words)
    polls = 0
    while live.poll() is None:
        report = home.run_with(extractor=Telling(**{LIVE: remember}))
        assert report.stage1.claimed == 0
        assert report.skipped_lines == {}
        polls += 1
    live.stdout.close()
    assert polls > 3

    home.later(7 * HOUR_S).run_with(extractor=Telling(**{LIVE: remember}))
    home.later(7 * HOUR_S).run_with(extractor=Telling(**{LIVE: remember}))

    assert heard(home) == lines(count)
    assert list(readings(home.log()).values()) == [1]


def test_a_session_that_is_read_while_it_is_written_is_read_to_its_end_and_no_state_twice(home):
    home.now = time.time() + 7 * HOUR_S
    live = writer(home, "--records", "12")
    while live.poll() is None:
        report = home.run_with(extractor=Telling(**{LIVE: remember}))
        assert report.skipped_lines == {}
        if home.outputs():
            assert heard(home) == lines(len(heard(home)))
    live.stdout.close()
    # A session is known by the second of its last record: what goes on in it later is a new one.
    with (home.sessions / "live.jsonl").open("a") as file:
        record = {"timestamp": rfc(time.time() + 5), "type": "response_item"}
        file.write(json.dumps(record | {"payload": said("LIVE-13 \U0001f33f 고사리")}) + "\n")

    home.run_with(extractor=Telling(**{LIVE: remember}))

    assert set(readings(home.log()).values()) == {1}
    assert home.run_with(extractor=Telling(**{LIVE: remember})).stage1.claimed == 0
    assert heard(home) == lines(13)
