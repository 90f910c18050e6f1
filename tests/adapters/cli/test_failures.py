"""Whatever is in the way: one line that says what to do, an exit code, and nothing lost."""

import os
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import time

import pytest
from threadbook.adapters.cli.failures import told
from threadbook.adapters.memory import Memory
from threadbook.adapters.settings import Settings
from threadbook.adapters.store import SqliteStore, StoreBusy
from threadbook.adapters.store.sqlite import WAIT_S
from threadbook.domain.events import Stage1LeaseReleased
from threadbook.projections.catalog import SYNCHRONOUS

from tests.adapters.cli.commands import A
from tests.application.homes import NOON, ROOT, Session, content

DATABASE = "threadbook.sqlite"
EVERY = ["status", "threads", "log", "verify", "replay", "run"]


def edit(home, statement, *values):
    """What somebody does to the file with another program."""
    home.memory.close()
    db = sqlite3.connect(home.path / DATABASE)
    db.execute(statement, values)
    db.commit()
    db.close()


# Paths.


def nothing_there(folder):
    return folder / "nothing"


def through_a_file(folder):
    (folder / "file").write_text("x")
    return folder / "file" / "below"


def dangling(folder):
    (folder / "link").symlink_to(folder / "gone")
    return folder / "link"


def loop(folder):
    (folder / "loop").symlink_to(folder / "loop")
    return folder / "loop"


def too_long(folder):
    return folder / ("x" * 300)


@pytest.mark.parametrize("make", [nothing_there, through_a_file, dangling, loop, too_long])
def test_a_path_that_cannot_be_read_is_told(commands, tmp_path, make):
    before = commands.home.position

    ran = commands("run", "--sessions", make(tmp_path))
    inspected = (
        commands("inspect", "rollout", tmp_path / make(tmp_path / "x").name)
        if (make is nothing_there)
        else None
    )

    assert ran.code == 3
    assert str(tmp_path) in ran.line
    assert commands.home.position == before
    assert inspected is None or inspected.code == 3


def a_folder(path):
    path.mkdir()


def a_socket(path):
    where = os.getcwd()
    os.chdir(path.parent)
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(where)


def a_pipe(path):
    os.mkfifo(path)


def empty(path):
    path.write_text("")


def no_session(path):
    path.write_text('{"a": 1}\n')


def no_json(path):
    path.write_bytes(b"\xff\xfe\x00garbage" * 50)


def broken_archive(path):
    path.with_suffix(".jsonl.zst").write_bytes(b"(\xb5/\xfdnot really")


@pytest.mark.parametrize("make", [a_socket, a_pipe, empty, no_session, no_json, a_folder])
def test_a_file_that_is_no_session_is_told(commands, tmp_path, make):
    path = tmp_path / "session.jsonl"
    make(path)

    inspected = commands("inspect", "rollout", path)
    ran = commands("run", "--sessions", path)

    assert inspected.code == 3
    assert "session.jsonl" in inspected.line
    assert "Traceback" not in ran.err
    if make is a_folder:
        assert ran.code == 0  # One without a session in it, in which there is nothing to do.
    else:
        assert ran.code == 3
        assert "session.jsonl" in ran.out + ran.err


def test_a_damaged_archive_does_not_keep_the_others_from_being_read(commands):
    broken_archive(commands.home.sessions / "session.jsonl")
    commands.home.write(Session(number=3))

    told_ = commands("run", "--sessions", commands.home.sessions, "--json")

    assert told_.code == 0
    assert len(told_.json["unreadable"]) == 1
    assert told_.json["stage1"]["succeeded"] == 1


def test_an_empty_folder_is_nothing_to_do(commands, tmp_path):
    (tmp_path / "empty").mkdir()

    assert commands("run", "--sessions", tmp_path / "empty").code == 0


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("make", [through_a_file, dangling, loop])
def test_a_home_that_cannot_be_one_is_told(commands, tmp_path, name, make):
    if name == "run" and make is dangling:
        pytest.skip("a home is made there")

    told_ = commands.bare("--home", make(tmp_path), name)

    assert told_.code == 3
    assert str(tmp_path) in told_.line


@pytest.mark.parametrize("name", EVERY)
def test_a_home_that_is_a_file_is_told(commands, tmp_path, name):
    (tmp_path / "file").write_text("mine")

    told_ = commands.bare("--home", tmp_path / "file", name)

    assert told_.code == 3
    assert str(tmp_path / "file") in told_.line
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    "args",
    [
        ("--home", "~nobody-of-that-name/x", "status"),
        ("run", "--sessions", "~nobody-of-that-name/x"),
        ("export", "~nobody-of-that-name"),
    ],
    ids=lambda args: args[-2],
)
def test_a_home_folder_that_nobody_has_is_told(commands, args):
    told_ = commands.bare(*commands.given(), *args)

    assert told_.code == 2
    assert "~nobody-of-that-name" in told_.line


def test_settings_nested_beyond_reason_are_told(commands, tmp_path):
    (tmp_path / "deep.toml").write_text(f"sources = {'[' * 5_000}")

    told_ = commands("status", "--config", tmp_path / "deep.toml")

    assert told_.code == 2
    assert "deep.toml" in told_.line


@pytest.mark.parametrize("name", ["explain", "mode", "pollute", "scope", "forget"])
def test_an_argument_that_is_no_text_is_told(commands, name):
    """Python hands on bytes that are not UTF-8 as halves of characters."""
    before = {"forget": ["thread"]}.get(name, [])
    after = {"mode": ["enabled"], "scope": ["project:x"]}.get(name, [])

    told_ = commands(name, *before, "\udcff", *after)

    assert told_.code == 3
    assert "no Unicode text" in told_.line


BEYOND = 10**25


@pytest.mark.parametrize(
    "args",
    [
        ("replay", "--until", BEYOND),
        ("log", "--after", BEYOND),
        ("log", "--limit", BEYOND),
        ("explain", A.id, "--at", BEYOND),
    ],
    ids=lambda args: " ".join(map(str, args[:-1])),
)
def test_a_number_beyond_every_position_is_only_beyond_the_end(commands, args):
    commands.home.write(A)
    commands("run", "--sessions", commands.home.sessions)

    assert commands(*args).code == 0


@pytest.mark.parametrize("name", [n for n in EVERY if n != "run"])
def test_a_home_without_a_store_says_how_to_make_one(commands, tmp_path, name):
    told_ = commands.bare("--home", tmp_path / "new", name)

    assert told_.code == 3
    assert "threadbook run" in told_.line
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "what", [DATABASE, "machine", "locks", "workers", "memories", "readers", "head"]
)
def test_a_thing_of_another_kind_in_the_home_is_told(commands, what):
    """A file where a folder belongs, or a folder where a file does."""
    home = commands.home
    home.memory.close()
    place = home.path / what
    if place.is_dir():
        place.rename(place.with_name("moved"))
        place.write_text("x")
    else:
        place.unlink()
        place.mkdir()
    home.write(Session(number=3))

    ran = commands("run", "--sessions", home.sessions)
    status = commands("status")

    for answer in (ran, status):
        assert "Traceback" not in answer.err
        assert answer.code in (0, 3)
        if answer.code:
            assert str(home.path) in answer.line
    assert ran.code == 3 or what in ("head", "readers")


def test_a_folder_in_a_file_s_place_is_told_and_kept_beside_the_root(commands):
    root = commands.home.root()
    (root / "MEMORY.md").unlink()
    (root / "MEMORY.md").mkdir()
    (root / "MEMORY.md" / "mine").write_text("x")

    told_ = commands("run", "--sessions", commands.home.sessions)

    assert told_.code == 0
    assert "your edit was kept" in told_.out
    assert [path.read_text() for path in root.parent.glob("*.edits/*/mine")] == ["x"]
    assert "make check" in content(root)["MEMORY.md"]


def test_export_to_where_nothing_can_be_written_is_told(commands, tmp_path):
    (tmp_path / "file").write_text("x")

    below = commands("export", tmp_path / "file" / "out")
    onto = commands("export", tmp_path / "file")

    assert below.code == 3
    assert str(tmp_path / "file") in below.line
    assert onto.code == 1


# The store.


def test_a_row_of_the_log_that_was_changed_is_found_and_writers_stop(commands):
    edit(commands.home, "UPDATE events SET data = replace(data, 'cli', 'exec') WHERE position = 2")

    found = commands("verify", "--json")
    refused = commands("pollute", A.id)
    reads = commands("status")

    assert found.code == 3
    assert found.json["ok"] is False
    assert found.json["positions"] == [2]
    assert refused.code == 3
    assert "threadbook verify" in refused.line
    assert reads.code == 0


@pytest.mark.parametrize(
    ("statement", "positions"),
    [
        ("DELETE FROM events WHERE position = 4", [4]),
        ("UPDATE events SET actor = 'human:cli' WHERE position = 5", [5]),
        ("DELETE FROM events WHERE position > 8", None),
    ],
)
def test_verify_names_what_was_changed_removed_or_cut(commands, statement, positions):
    last = commands.home.position
    edit(commands.home, statement)

    found = commands("verify", "--json")

    assert found.code == 3
    assert found.json["positions"] == (positions or list(range(9, last + 1)))


def test_a_cut_log_is_refused_by_every_other_command(commands):
    edit(commands.home, "DELETE FROM events WHERE position > 8")

    for name in EVERY:
        answer = commands(name)
        assert answer.code == 3
        if name != "verify":
            assert "threadbook verify" in answer.line


def test_an_event_that_cannot_be_read_is_told_with_its_position(commands):
    edit(commands.home, 'UPDATE events SET data = \'{"at": "never"}\' WHERE position = 3')

    for args in (["verify"], ["replay", "--verify"], ["replay", "--until", "5"], ["log"]):
        answer = commands(*args)
        assert "Traceback" not in answer.err
        assert answer.code == 3
        assert "3" in answer.err + answer.out


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE stage1_outputs SET usage_count = 77",
        "UPDATE threads SET mode = 'polluted'",
        "DELETE FROM jobs",
        "UPDATE selection SET matched = 0",
    ],
)
def test_a_row_of_a_table_that_was_changed_is_found_and_repaired(commands, statement):
    edit(commands.home, statement)

    found = commands("replay", "--verify", "--json")
    for_people = commands("replay", "--verify")
    repaired = commands("replay", "--rebuild")
    again = commands("replay", "--verify")

    assert found.code == for_people.code == 3
    assert found.json["ok"] is False
    assert statement.split()[1 if "UPDATE" in statement else 2] in found.json["differences"][0]
    assert repaired.code == again.code == 0


def test_a_row_that_no_longer_fits_its_type_is_told_and_repaired(commands):
    edit(commands.home, "UPDATE jobs SET status = 'nonsense'")
    edit(commands.home, "UPDATE threads SET kind = 'nonsense'")

    for name in ("run", "status", "threads"):
        answer = commands(name)
        assert "Traceback" not in answer.err
        assert answer.code in (0, 3)
    assert commands("replay", "--verify").code == 3
    assert commands("replay", "--rebuild").code == 0
    assert commands("run", "--sessions", commands.home.sessions).code == 0


def test_a_missing_table_is_told_and_repaired(commands):
    edit(commands.home, "DROP TABLE selection")

    answer = commands("status")
    repaired = commands("replay", "--rebuild")

    assert answer.code == 3
    assert "replay --rebuild" in answer.line
    assert repaired.code == 0, repaired.err
    assert commands("replay", "--verify").code == 0


def test_a_file_that_is_no_database_is_told_and_left(commands):
    commands.home.memory.close()
    for name in (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"):
        (commands.home.path / name).unlink(missing_ok=True)
    (commands.home.path / DATABASE).write_bytes(b"not a database, and longer than a header" * 99)

    for name in EVERY:
        answer = commands(name)
        assert answer.code == 3
        assert DATABASE in answer.line


def test_a_store_of_a_newer_program_is_told(commands):
    edit(commands.home, "PRAGMA user_version = 99")

    for name in EVERY:
        answer = commands(name)
        assert answer.code == 3
        assert "newer Threadbook" in answer.line


def test_an_older_database_is_brought_up_to_date_and_status_names_the_copy(commands):
    edit(commands.home, "PRAGMA user_version = 1")

    answer = commands("status")

    assert answer.code == 0
    assert "backup    " in answer.out
    assert "backups/schema-1-position-" in answer.out
    assert "(0:00:00 ago)" in answer.out


def test_a_copy_that_cannot_be_made_is_told_in_one_line(commands):
    edit(commands.home, "PRAGMA user_version = 1")
    (commands.home.path / "backups").write_text("no folder")

    for name in ("status", "run", "threads"):
        answer = commands(name)
        assert answer.code == 3
        assert "nothing was changed" in answer.line

    assert commands("verify").code == 0  # It looks at the log alone.


def test_an_event_of_a_newer_program_is_passed_over_and_counted(commands):
    home = commands.home
    code = (
        "from tests.adapters.stores import *\n"
        "import msgspec\n"
        "from threadbook.domain.events import Event\n"
        "class Newer(Event, tag='thread.dreamt', frozen=True, kw_only=True):\n"
        "    at: int\n"
        f"store = open_store(Path({str(home.path)!r}), simulated=True)\n"
        "with store.writing(actor='pipeline') as tx: tx.append('thread:t9', Newer(at=1))\n"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, cwd=ROOT)

    status = commands("status", "--json")

    assert status.json["unknown_events"] == 1
    assert commands("verify").code == 0
    assert commands("replay", "--verify").code == 0
    assert commands("run", "--sessions", home.sessions).code == 0


HOLDER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_locked_database_is_waited_for_and_then_told_and_readers_do_not_wait(commands):
    home = commands.home
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home.path / DATABASE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "held\n"
    # The command's own wait is WAIT_S; the store takes another one as an argument.
    store = SqliteStore.open(
        home.path,
        projections=SYNCHRONOUS,
        clock=lambda: float(NOON),
        simulated=True,
        wait_s=0.3,
    )
    memory = Memory(
        home.path, store, Settings(), clock=lambda: float(NOON), sample=False, from_cli=True
    )
    home.write(Session(number=3))

    began = time.monotonic()
    with pytest.raises(StoreBusy) as busy:
        memory.run(sessions=[home.sessions])
    waited = time.monotonic() - began
    reads = [commands(name).code for name in ("status", "threads", "log")]
    explained = commands("explain", A.id).code
    holder.communicate(timeout=30)
    after = memory.run(sessions=[home.sessions])

    assert 0.2 < waited < 3
    assert told(busy.value) == 3
    assert str(holder.pid) in str(busy.value) or "another process" in str(busy.value)
    assert "then try again" in str(busy.value)
    assert reads == [0, 0, 0]
    assert explained == 0
    assert after.stage1.succeeded == 1
    assert WAIT_S == 10.0
    memory.close()


# Room, readers that go away, and signals: in a process of its own.


@pytest.mark.parametrize("limit", [0, 4_096, 65_536, 200_000])
def test_a_disk_without_room_stores_nothing_by_half(commands, limit):
    home = commands.home
    home.write(*(Session(number=n) for n in range(10, 40)))
    home.memory.close()

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    full = commands.alone("run", "--sessions", home.sessions, preexec_fn=small)
    checked = commands("verify")
    with_room = commands("run", "--sessions", home.sessions)

    assert full.code == 3
    assert "room" in full.line or "space" in full.line
    assert checked.code == 0
    assert with_room.code == 0
    assert commands("replay", "--verify").code == 0
    assert len(home.memory.threads()) == 32
    assert {line.stage1 for line in home.memory.threads()} == {"succeeded"}


def test_a_first_run_without_room_leaves_nothing_in_the_way(commands, tmp_path):
    new = ["--home", str(tmp_path / "new"), "run", "--sessions", str(commands.home.sessions)]

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))

    full = commands.alone(*new, preexec_fn=small)
    with_room = commands(*new)

    assert full.code == 3
    assert "room" in full.line
    assert with_room.code == 0, with_room.err


@pytest.mark.parametrize("args", [["log"], ["log", "--json"], ["threads"], ["--help"]])
def test_a_reader_that_goes_away_is_no_failure(commands, args):
    reading, writing = os.pipe()
    process = commands.process(*args, stdout=writing)
    os.close(writing)
    os.close(reading)
    _, err = process.communicate(timeout=60)

    assert err == ""
    assert process.returncode == 0


def test_an_output_that_cannot_be_written_is_told(commands):
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as full:
        answer = commands.process("log", stdout=full)
        _, err = answer.communicate(timeout=60)

    assert answer.returncode == 3
    assert err.count("\n") == 1
    assert "No space left" in err


@pytest.mark.parametrize("args", [["status"], ["run", "--sessions", "nothing"], ["explain", A.id]])
def test_where_nothing_can_be_told_the_exit_code_still_is(commands, args):
    def mute():
        os.close(1)
        os.close(2)

    loud = commands.process(*args)
    loud.communicate(timeout=60)
    silent = commands.process(*args, preexec_fn=mute)
    silent.communicate(timeout=60)

    assert silent.returncode == loud.returncode


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_stopped_gives_its_leases_back_and_the_next_goes_on(commands, number):
    home = commands.home
    home.write(*(Session(number=n) for n in range(100, 250)))
    before = home.position

    process = commands.process("run", "--sessions", home.sessions)
    until = time.monotonic() + 60
    while "stage1.succeeded" not in home.types(before) and time.monotonic() < until:
        time.sleep(0.005)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    held = [job for job in home.memory.at()["jobs"] if job["status"] == "running"]
    done = sum(line.stage1 == "succeeded" for line in home.memory.threads())
    after = commands("run", "--sessions", home.sessions, "--json")

    assert process.returncode == 1
    # A terminal shows ^C on the line before.
    assert err.strip() == "threadbook: stopped; nothing was lost, run the same command again"
    assert out == ""
    assert held == []
    assert len(home.events(Stage1LeaseReleased, before)) <= 1
    assert 2 < done < 152
    assert after.code == 0
    assert after.json["stage1"]["claimed"] == 152 - done
    assert len(home.selected()) == 152
    assert home.memory.replay_verify() == []
