"""Hooks: what a session is given, what is started behind it, and that trouble stays ours."""

import fcntl
import json
import os
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from threadbook.adapters.cli import hook
from threadbook.adapters.hook_log import LINE_MAX, SIZE_MAX, lately, note
from threadbook.adapters.workers import Workers
from threadbook.domain.events import MemoryShown

from tests.adapters.cli.commands import A, Answer, Commands
from tests.adapters.cli.test_startup import HEAVY, SCRIPT
from tests.application.homes import FERN, MOSS, ROOT, Home, Session

PATIENT = ("--within", "20000")  # A busy machine is no failure.
BOTH = pytest.mark.parametrize("event", ["session-start", "session-end"])


def told(commands, event, said, *args, **options):
    """A hook in a process of its own, as an agent starts it."""
    content = said if isinstance(said, bytes) else json.dumps(said).encode()
    process = commands.process("hook", event, *(args or PATIENT), stdin=subprocess.PIPE, **options)
    process.stdin.buffer.write(content)
    out, err = process.communicate(timeout=60)
    return Answer(process.returncode, out, err)


def log_of(home):
    path = home.path / "hooks.log"
    return path.read_text() if path.exists() else ""


def started(home, cwd=FERN):
    return {
        "session_id": "019b7a00-00ff-7000-8000-0000000000ff",
        "transcript_path": None,
        "cwd": cwd,
        "hook_event_name": "SessionStart",
        "source": "startup",
        "model": "m",
        "permission_mode": "default",
    }


def ended(path, **more):
    return {
        "session_id": A.id,
        "transcript_path": None if path is None else str(path),
        "cwd": FERN,
        "hook_event_name": "SessionEnd",
        "reason": "other",
        **more,
    }


def waited(home):
    """Until the run that a hook started has ended: it holds the lock as long."""
    with open(home.path / "hooks.lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


@pytest.fixture
def home(home, monkeypatch):
    monkeypatch.setenv("THREADBOOK_SOURCES", str(home.sessions))
    return home


NEW = Session(number=3, cwd=MOSS, says=("from now on always write the changelog first",))


# The start of a session.


def given(answer):
    """What the agent gives to its model."""
    assert (answer.code, answer.err) == (0, "")
    said = json.loads(answer.out)["hookSpecificOutput"]
    assert said.keys() == {"hookEventName", "additionalContext"}
    assert said["hookEventName"] == "SessionStart"
    return said["additionalContext"]


def test_a_session_is_given_the_memory_of_its_project(commands):
    there = given(told(commands, "session-start", started(commands.home)))
    elsewhere = given(told(commands, "session-start", started(commands.home, cwd=MOSS)))

    assert "make check" in there
    assert there == commands("context", "--cwd", FERN).out.rstrip("\n")
    assert "make check" not in elsewhere
    assert log_of(commands.home) == ""


def test_what_it_was_shown_is_recorded_for_its_session(commands):
    position = commands.home.position

    told(commands, "session-start", started(commands.home))

    [shown] = commands.home.events(MemoryShown, after=position)
    assert (shown.session_id, shown.via) == (started(None)["session_id"], "context")


@pytest.mark.parametrize("room", [6_500, 10_000, 20_000])
def test_an_agent_is_not_given_more_than_it_takes(commands, room):
    home = commands.home
    wish = (
        "from now on always write a test of its own for part number {} of the lantern, and 日本語"
    )
    for n in range(10, 90):
        home.write(Session(number=n, says=(wish.format(n) * 2,)))
    home.run()

    answer = told(commands, "session-start", started(home), *PATIENT, "--room", str(room))

    text = given(answer)
    whole = home.memory.context(FERN).text
    assert len(whole.encode()) > 13_000
    if room > len(whole.encode()):
        assert text == whole
    else:
        assert room * 0.9 < len(text.encode()) <= room
        assert "left out" in text
        assert text.splitlines()[-2:] == whole.splitlines()[-2:]  # All that is after the memory.


def test_a_memory_that_machines_share_is_given_too(tmp_path, dsn, monkeypatch, capsys):
    monkeypatch.setenv("THREADBOOK_DATABASE", dsn)
    home = Home(tmp_path)
    home.write(A)
    home.run()

    text = given(told(Commands(home, monkeypatch, capsys), "session-start", started(home)))
    home.memory.close()

    assert "make check" in text


def test_a_person_is_told_when_trouble_stays(commands):
    home = commands.home
    old = datetime.now(UTC) - timedelta(days=2)
    (home.path / "hooks.log").write_text(f"{old:%Y-%m-%dT%H:%M:%SZ} session-end: x\n" * 9)
    note(home.path, "session-end", "one")
    with (home.path / "hooks.log").open("a") as log:
        log.write("threadbook: a run that failed\n")

    quiet = told(commands, "session-start", started(home))
    note(home.path, "session-start", "three")
    loud = told(commands, "session-start", started(home))

    assert "systemMessage" not in quiet.out
    assert "3 times in the last day" in json.loads(loud.out)["systemMessage"]
    assert str(home.path / "hooks.log") in loud.out
    assert "make check" in json.loads(loud.out)["hookSpecificOutput"]["additionalContext"]


def test_who_wants_none_is_given_none(commands, monkeypatch):
    monkeypatch.setenv("THREADBOOK_USE_MEMORIES", "false")

    answer = told(commands, "session-start", started(commands.home))

    assert (answer.code, answer.out, answer.err) == (0, "", "")
    assert log_of(commands.home) == ""


# The end of a session.


def test_the_end_of_a_persons_session_starts_a_run(commands):
    home = commands.home
    home.write(NEW)

    answer = told(commands, "session-end", ended(home.file(A)))
    waited(home)

    assert (answer.code, answer.out, answer.err) == (0, "", "")
    assert log_of(home) == ""
    assert {line.thread_id for line in home.memory.threads()} >= {NEW.id}
    assert "changelog" in "".join(p.read_text() for p in home.roots()[1].glob("*.md"))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="it looks into /proc")
def test_the_run_is_on_its_own_and_the_hook_does_not_wait_for_it(commands):
    home = commands.home
    home.write(NEW)
    with sqlite3.connect(home.path / "threadbook.sqlite", isolation_level=None) as busy:
        busy.execute("BEGIN IMMEDIATE")  # The run cannot get on.

        answer = told(commands, "session-end", ended(home.file(A)))

        [pid] = runs_of(home)
        assert answer.code == 0
        assert os.getsid(pid) == pid
        assert {os.readlink(f"/proc/{pid}/fd/{n}") for n in (0, 1)} == {"/dev/null"}
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
        again = told(commands, "session-end", ended(home.file(A)))
        assert again.code == 0
        assert runs_of(home) == [pid]  # Never two of them.
        busy.execute("ROLLBACK")
    waited(home)
    assert {line.thread_id for line in home.memory.threads()} >= {NEW.id}


def runs_of(home):
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if str(home.path).encode() in words and b"run" in words:
            found.append(int(folder.name))
    return found


def codex(source, **meta):
    def make(home):
        session = Session(number=9, source=source) if isinstance(source, str) else None
        records = (session or Session(number=9)).records()
        records[0]["payload"] |= {"source": source, **meta}
        path = home.folder / "other.jsonl"
        path.write_text("".join(json.dumps(each) + "\n" for each in records))
        return ended(path)

    return make


def claude(**more):
    def make(home):
        record = {"type": "user", "uuid": "u1", "parentUuid": None, "isSidechain": False,
                  "sessionId": "s1", "cwd": FERN, "timestamp": "2026-11-20T09:00:00.000Z",
                  "message": {"role": "user", "content": "hello"}, **more}  # fmt: skip
        path = home.folder / "claude.jsonl"
        path.write_text(json.dumps(record) + "\n")
        return ended(path)

    return make


def file_of(content):
    def make(home):
        path = home.folder / "other.jsonl"
        path.write_bytes(content)
        return ended(path)

    return make


@pytest.mark.parametrize(
    "make", [codex("cli"), codex("vscode"), claude(), claude(entrypoint="cli")]
)
def test_a_persons_sessions_start_one(commands, make):
    told(commands, "session-end", make(commands.home))

    assert (commands.home.path / "hooks.lock").exists()
    waited(commands.home)


@pytest.mark.parametrize(
    "make",
    [
        codex("exec"),
        codex({"subagent": "review"}),
        codex({"subagent": "memory_consolidation"}),
        codex("cli", thread_source="subagent"),
        codex("mcp"),
        claude(entrypoint="sdk-cli"),
        claude(entrypoint="sdk-py"),
        claude(isSidechain=True, agentId="a1"),
        file_of(b""),
        file_of(b"no session\n"),
        lambda home: ended(None),
        lambda home: ended(home.folder / "gone.jsonl"),
        lambda home: ended(home.folder),
        lambda home: ended(home.file(A), agent_id="a1"),
        lambda home: {},
        lambda home: {"transcript_path": ["x"]},
        lambda home: {"transcript_path": "a\0b"},
    ],
)
def test_programs_sub_agents_and_ephemeral_sessions_start_none(commands, make):
    answer = told(commands, "session-end", make(commands.home))

    assert (answer.code, answer.out, answer.err) == (0, "", "")
    assert not (commands.home.path / "hooks.lock").exists()
    assert log_of(commands.home) == ""


@BOTH
def test_inside_of_a_run_of_ours_hooks_do_nothing(commands, monkeypatch, event):
    monkeypatch.setenv("THREADBOOK_INSIDE", "1")
    said = started(commands.home) | ended(commands.home.file(A))

    answer = told(commands, event, said)

    assert (answer.code, answer.out, answer.err) == (0, "", "")
    assert not (commands.home.path / "hooks.lock").exists()


def test_a_run_marks_what_it_starts_as_its_own(commands, monkeypatch):
    from threadbook import Memory

    seen = []
    whole = Memory.run
    monkeypatch.setattr(
        Memory,
        "run",
        lambda *args, **more: [
            seen.append(os.environ.get("THREADBOOK_INSIDE")),
            whole(*args, **more),
        ][1],
    )

    commands("run", "--sessions", commands.home.sessions)

    assert seen == ["1"]
    assert "THREADBOOK_INSIDE" not in os.environ


def test_while_another_run_is_at_work_none_is_started(commands):
    home = commands.home
    machine_id = (home.path / "machine").read_text().strip()
    workers = Workers(home.path, machine_id)

    with workers.at_work(workers.name("0123456789")):
        told(commands, "session-end", ended(home.file(A)))
        assert not (home.path / "hooks.lock").exists()

    told(commands, "session-end", ended(home.file(A)))
    waited(home)


def test_who_wants_no_memories_gets_no_run(commands, monkeypatch):
    monkeypatch.setenv("THREADBOOK_GENERATE_MEMORIES", "false")

    told(commands, "session-end", ended(commands.home.file(A)))

    assert not (commands.home.path / "hooks.lock").exists()


def test_the_first_session_that_ends_makes_the_memory(commands, tmp_path):
    home = tmp_path / "first" / "memory"
    commands.home.write(NEW)

    process = commands.process(
        "hook", "session-end", *PATIENT, "--home", home, stdin=subprocess.PIPE
    )
    process.communicate(json.dumps(ended(commands.home.file(A))), timeout=60)
    with open(home / "hooks.lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

    assert (home / "threadbook.sqlite").exists()
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert list((home / "memories" / "v1").iterdir())


# Trouble stays ours.


def garbage_store(home, monkeypatch):
    (home.path / "threadbook.sqlite").write_bytes(b"no database " * 1000)


def cut_store(home, monkeypatch):
    for ending in ("-wal", "-shm"):
        (home.path / f"threadbook.sqlite{ending}").unlink(missing_ok=True)
    os.truncate(home.path / "threadbook.sqlite", 5000)


def no_store(home, monkeypatch):
    (home.path / "threadbook.sqlite").unlink()


def bad_settings(home, monkeypatch):
    file = home.folder / "config.toml"
    file.write_text("use_memory = false\nscope = 7\n")
    monkeypatch.setenv("THREADBOOK_CONFIG", str(file))


def bad_variable(home, monkeypatch):
    monkeypatch.setenv("THREADBOOK_MAX_UNUSED_DAYS", "soon")


def other_clock(home, monkeypatch):
    with sqlite3.connect(home.path / "threadbook.sqlite") as db:
        db.execute("DROP TABLE events")


@pytest.mark.parametrize(
    "spoil", [garbage_store, cut_store, no_store, bad_settings, bad_variable, other_clock]
)
def test_trouble_at_the_start_is_one_line_in_the_log(commands, monkeypatch, spoil):
    commands.home.memory.close()
    spoil(commands.home, monkeypatch)

    answer = told(commands, "session-start", started(commands.home))

    assert (answer.code, answer.out, answer.err) == (0, "", "")
    [line] = log_of(commands.home).splitlines()
    assert " session-start: " in line


@pytest.mark.parametrize("spoil", [bad_settings, bad_variable])
def test_trouble_at_the_end_is_one_line_in_the_log(commands, monkeypatch, spoil):
    spoil(commands.home, monkeypatch)

    answer = told(commands, "session-end", ended(commands.home.file(A)))

    assert (answer.code, answer.out, answer.err) == (0, "", "")
    [line] = log_of(commands.home).splitlines()
    assert " session-end: " in line


def test_a_run_that_fails_says_so_in_the_log(commands):
    commands.home.memory.close()
    garbage_store(commands.home, None)

    told(commands, "session-end", ended(commands.home.file(A)))
    waited(commands.home)

    [line] = log_of(commands.home).splitlines()
    assert line.startswith("threadbook: ")


@BOTH
@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"no JSON", b"[]", b"7", b"{", b"\xff\xfe{}", b"[" * 200_000, b"x" * (3 << 20)],
    ids=lambda content: str(content[:8]),
)
def test_what_an_agent_never_says_is_one_line_in_the_log(commands, event, content):
    process = commands.process("hook", event, *PATIENT, stdin=subprocess.PIPE)
    try:
        process.stdin.buffer.write(content)
        process.stdin.close()
    except BrokenPipeError:
        pass  # It does not read all of it.
    process.stdin = None
    out, err = process.communicate(timeout=60)

    assert (process.returncode, out, err) == (0, "", "")
    [line] = log_of(commands.home).splitlines()
    assert "standard input is no JSON object" in line


@pytest.mark.parametrize(
    "words",
    [
        ("session-start", "--within", "half a second"),
        ("session-start", "--room", "7"),
        ("session-starts",),
        (),
        ("session-end", "--newer-option"),
    ],
)
def test_words_that_are_no_use_stop_no_session(commands, words):
    done = commands.alone("hook", *words)
    after = commands.alone("hook", *words, "--home", commands.home.path)

    assert (done.code, done.out, done.err) == (after.code, after.out, after.err) == (0, "", "")
    lines = log_of(commands.home).splitlines()
    assert len(lines) == 2
    assert all("in the agent's settings" in line for line in lines)


@BOTH
def test_a_pipe_in_the_logs_place_holds_up_no_session(commands, event):
    os.mkfifo(commands.home.path / "hooks.log")

    done = commands.alone("hook", event, *PATIENT)

    assert (done.code, done.out, done.err) == (0, "", "")
    assert lately(commands.home.path) == 0


@BOTH
def test_without_any_streams_it_ends_well(commands, event):
    script = f"exec '{sys.executable}' -m threadbook.adapters.cli hook {event} <&- >&- 2>&-"

    done = subprocess.run(["sh", "-c", script], env=surroundings(commands), timeout=60)

    assert done.returncode == 0


def surroundings(commands):
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "THREADBOOK_HOME": str(commands.home.path),
    }


@BOTH
@pytest.mark.parametrize("what", ["file", "gone", "log is a folder", "loop"])
def test_a_home_that_is_none_is_no_trouble_for_a_session(commands, tmp_path, event, what):
    home = tmp_path / "other"
    match what:
        case "file":
            home.write_text("x")
        case "log is a folder":
            (home / "hooks.log").mkdir(parents=True)
        case "loop":
            home.symlink_to(home.name)
    said = started(commands.home) if event == "session-start" else ended(None)

    process = commands.process("hook", event, *PATIENT, "--home", home, stdin=subprocess.PIPE)
    out, err = process.communicate(json.dumps(said), timeout=60)

    assert (process.returncode, out, err) == (0, "", "")
    if what == "gone":
        assert not home.exists()


@BOTH
def test_a_disk_without_room_is_no_trouble_for_a_session(commands, event):
    said = started(commands.home, cwd="/") | {"transcript_path": str(commands.home.file(A))}

    def no_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    answer = told(commands, event, said, preexec_fn=no_room)

    assert (answer.code, answer.err) == (0, "")


# Time.


@BOTH
def test_a_hook_that_takes_too_long_ends_itself(commands, event):
    process = commands.process("hook", event, "--within", "300", stdin=subprocess.PIPE)

    process.wait(timeout=60)  # Nothing comes, and nothing is closed.

    assert process.returncode == 0
    assert process.stdout.read() == process.stderr.read() == ""
    assert "took longer than 300 ms and gave up" in log_of(commands.home)


def test_a_store_that_hangs_does_not_hold_a_session(commands):
    """Inside of SQLite no signal is heard: another thread has to end it."""
    commands.home.memory.close()
    with sqlite3.connect(commands.home.path / "threadbook.sqlite", isolation_level=None) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("BEGIN EXCLUSIVE")

        answer = told(commands, "session-start", started(commands.home), "--within", "1000")

    assert (answer.code, answer.out, answer.err) == (0, "", "")
    [line] = log_of(commands.home).splitlines()
    assert "took longer than 1000 ms and gave up" in line  # The store would say that it is busy.


def test_an_agent_that_leaves_its_end_open_is_answered(monkeypatch):
    reading, writing = os.pipe()
    monkeypatch.setattr(hook, "INPUT_S", 3_600.0)
    with os.fdopen(reading) as stdin, os.fdopen(writing, "w") as agent:
        monkeypatch.setattr(sys, "stdin", stdin)
        agent.write(json.dumps(ended(None)))
        agent.flush()
        found = []

        hearing = threading.Thread(target=lambda: found.append(hook.heard()), daemon=True)
        hearing.start()
        hearing.join(timeout=30)

        assert found == [ended(None)]


def test_an_interrupted_hook_ends_well(commands):
    process = commands.process("hook", "session-start", *PATIENT, stdin=subprocess.PIPE)
    lines = Path(f"/proc/{process.pid}/task")
    until = time.monotonic() + 30
    while lines.exists() and len(list(lines.iterdir())) < 3 and time.monotonic() < until:
        time.sleep(0.01)  # Its watches have begun: now it reads.

    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)

    assert process.returncode == 0
    assert process.stdout.read() == ""


# What it loads, and its log.


@BOTH
def test_nothing_heavy_is_loaded(commands, event):
    said = started(commands.home) if event == "session-start" else ended(commands.home.file(A))

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *commands.given("hook", event, *PATIENT)],
        env=surroundings(commands),
        input=json.dumps(said),
        capture_output=True,
        text=True,
        timeout=60,
    )
    loaded = set(done.stderr.split())

    assert "loaded" in loaded
    assert loaded & HEAVY == set()
    if event == "session-end":
        waited(commands.home)


def test_the_log_is_its_owners_and_stays_small(tmp_path):
    for n in range(4 * SIZE_MAX // LINE_MAX):
        note(tmp_path, "session-start", f"{n} a\nb\x1b[31m\u2028" + "x" * 10_000)

    files = {path.name: path.stat() for path in tmp_path.iterdir()}
    assert files.keys() == {"hooks.log", "hooks.log.1"}
    assert all(each.st_size <= SIZE_MAX + LINE_MAX + 1 for each in files.values())
    assert all(stat.S_IMODE(each.st_mode) == 0o600 for each in files.values())
    lines = (tmp_path / "hooks.log").read_text().splitlines()
    assert all("session-start: " in line and line.isprintable() for line in lines)


def test_a_log_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "hooks.log").symlink_to(tmp_path / "elsewhere")

    note(tmp_path, "session-end", "x")

    assert not (tmp_path / "elsewhere").exists()
