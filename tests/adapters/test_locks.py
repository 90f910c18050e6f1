"""Several processes on one file: nobody waits for ever, nothing is lost, nothing counts twice."""

import os
import signal
import sqlite3
import subprocess
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from threadbook.adapters.store import StoreBusy, StoreFull
from threadbook.adapters.store.readers import locks_on

from tests.adapters.stores import append, ended, open_store, polluted, process


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


HOLD = """
import sqlite3
db = sqlite3.connect(home / "threadbook.sqlite", isolation_level=None)
db.execute({"read": "BEGIN"}.get(sys.argv[2], "BEGIN " + sys.argv[2]))
db.execute("SELECT count(*) FROM sqlite_master").fetchone()
print("holding", flush=True)
sys.stdin.readline()
db.execute("ROLLBACK")
"""


@contextmanager
def held(home, how):
    """Another process holds a lock on the file until the block ends, or until it is let go."""
    holder = process(HOLD, home, how, stdin=subprocess.PIPE)
    assert holder.stdout.readline() == "holding\n", holder.stderr.read()
    try:
        yield holder
    finally:
        if holder.poll() is None:
            let_go(holder)


def let_go(holder):
    holder.communicate("\n", timeout=30)
    assert holder.returncode == 0


@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_writer_waits_and_then_says_in_one_line_which_file_and_whom_to_wait_for(home, how):
    store = open_store(home, wait_s=0.3)
    with held(home, how) as holder:
        with store.reading() as view:  # Readers do not wait.
            assert view.position == 1

        with pytest.raises(StoreBusy) as refusal:
            append(store)

        assert str(store.path) in str(refusal.value)
        if os.path.exists("/proc/locks"):
            assert f"process {holder.pid} holds the write lock" in str(refusal.value)
        assert "\n" not in str(refusal.value)
        assert "locked" not in str(refusal.value)
    append(store)
    found = store.verify()
    assert (found.ok, found.checked) == (True, 2)


def test_a_writer_succeeds_as_soon_as_the_lock_is_released(home):
    store = open_store(home)
    with held(home, "IMMEDIATE") as holder:
        writer = process("append(open_store(home)); print('done', flush=True)", home)
        let_go(holder)

        assert ended(writer) == ["done"]

    assert store.head().position == 2


def test_a_file_that_is_held_while_it_is_made_is_busy_and_not_touched(home):
    home.mkdir()
    sqlite3.connect(home / "threadbook.sqlite").close()
    with held(home, "EXCLUSIVE"):
        with pytest.raises(StoreBusy):
            open_store(home, wait_s=0.3)

        assert (home / "threadbook.sqlite").stat().st_size == 0
    append(open_store(home))


def test_a_long_reader_keeps_the_wal_only_while_it_reads(home):
    store = open_store(home)
    wal = home / "threadbook.sqlite-wal"
    with held(home, "read"):
        with store.writing(actor="pipeline") as writing:
            writing.append("thread:t1", *[polluted()] * 5_000)
        grown = wal.stat().st_size

    for _ in range(3):
        with store.writing(actor="pipeline") as writing:
            writing.append("thread:t1", *[polluted()] * 5_000)

    assert wal.stat().st_size < 4 * grown
    assert store.verify().checked == 20_001


def test_another_programs_reader_is_named_when_it_holds_up_an_erasure(home):
    store = open_store(home)
    with store.writing(actor="pipeline") as writing:
        ref = writing.put("thread:t1", "a text")
    with held(home, "read") as holder:
        with store.writing(actor="human:cli") as writing:
            writing.erase(refs=[ref])

        (pending,) = store.pending_erasures()
        if os.path.exists("/proc/locks"):
            assert [one.pid for one in pending.held_by] == [holder.pid]

    assert store.pending_erasures() == []


def test_a_reader_that_was_killed_is_not_named_any_more(home):
    store = open_store(home)
    script = """
store = open_store(home)
with store.reading("a look that never ends"):
    print("reading", flush=True)
    sys.stdin.readline()
"""
    reader = process(script, home, stdin=subprocess.PIPE)
    assert reader.stdout.readline() == "reading\n"
    assert len(list((home / "readers").iterdir())) == 1
    reader.kill()
    reader.communicate()
    with store.writing(actor="pipeline") as writing:
        writing.put("thread:t1", "a text")

    with store.reading(), store.writing(actor="human:cli") as writing:
        writing.erase(owners=["thread:t1"])
        (pid,) = {int(file.name.split("-")[0]) for file in (home / "readers").iterdir()} - {
            reader.pid
        }
        assert pid == os.getpid()
    assert store.pending_erasures() == []


def test_what_killed_readers_left_is_swept_away_also_when_they_had_not_written_it_yet(home):
    store = open_store(home)
    ended_process = process("", home)
    ended(ended_process)
    (home / "readers").mkdir(exist_ok=True)
    (home / "readers" / f"{ended_process.pid}-1").touch()
    (home / "readers" / f"{ended_process.pid}-2").write_text(f'{{"pid":{ended_process.pid}}}')
    (home / "readers" / "a persons note").write_text("mine")

    assert store.pending_erasures() == []

    assert [file.name for file in (home / "readers").iterdir()] == ["a persons note"]


def test_the_kernels_table_of_locks_is_read_by_inode_and_range():
    table = (
        "1: POSIX  ADVISORY  WRITE 4711 fe:00:99 120 120\n"
        "2: POSIX  ADVISORY  READ 4712 fe:00:99 123 123\n"
        "2: -> POSIX  ADVISORY  WRITE 4713 fe:00:99 120 120\n"
        "3: FLOCK  ADVISORY  WRITE 4714 fe:00:98 0 EOF\n"
    )

    assert list(locks_on("fe:00:99", table)) == [(4711, 120, 120), (4712, 123, 123)]


def test_four_processes_append_at_once_and_every_event_is_there_once(home):
    open_store(home).close()
    script = """
store = open_store(home)
for _ in range(100):
    with store.writing(actor="pipeline") as writing:
        version = writing.version("thread:shared")
        writing.append("thread:shared", polluted("shared"), expected_version=version)
"""
    for running in [process(script, home) for _ in range(4)]:
        ended(running)

    store = open_store(home)
    found = store.verify()
    assert (found.ok, found.checked, store.head().position) == (True, 401, 401)
    with store.reading() as view:
        versions = [recorded.version for recorded in view.events(stream="thread:shared")]
    assert versions == list(range(1, 401))
    assert store.replay_verify() == []


def test_a_process_killed_in_the_middle_leaves_whole_blocks_behind(home):
    open_store(home).close()
    script = """
store = open_store(home)
for n in range(100_000):
    with store.writing(actor="pipeline") as writing:
        writing.append(f"thread:{n}", polluted(str(n)), polluted(str(n)), polluted(str(n)))
    if n == 20:
        print("going", flush=True)
"""
    for _ in range(3):
        running = process(script.replace("{n}", f"{os.urandom(4).hex()}-{{n}}"), home)
        assert running.stdout.readline() == "going\n", running.stderr.read()
        running.send_signal(signal.SIGKILL)
        running.communicate()

        store = open_store(home)
        found = store.verify()
        assert found.ok
        assert found.checked % 3 == 1  # StoreOpened, and blocks of three.
        append(store, 3)
        assert store.replay_verify() == []
        store.close()


# A disk that is full, a folder that is not ours.


def test_a_full_disk_stores_nothing_and_says_so(home):
    script = """
import resource, signal
from threadbook.adapters.store import StoreFull
store = open_store(home)
limit = 1_000_000
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    with store.writing(actor="pipeline") as writing:
        for n in range(400):
            writing.put("thread:t1", os.urandom(4_000).hex())
        writing.append("thread:t1", forgotten("t1"))
except StoreFull as error:
    print(error)
else:
    raise SystemExit("it was stored")
append(store)
"""
    words = ended(process(script, home))

    assert "disk is full or a limit is reached" in " ".join(words)
    store = open_store(home)
    assert (store.verify().ok, store.head().position) == (True, 2)
    assert store.erasures() == {}  # The line of an act that was not committed is taken back.
    with store.reading() as view:
        assert view.value("SELECT count(*) FROM bodies WHERE owner <> ''") == 0


def test_a_line_of_the_erasures_for_which_there_is_no_room_leaves_none_of_its_bytes(home):
    script = """
import resource
from threadbook.adapters.store.erasures import Act, ActsWritten
home.mkdir()
kept = ActsWritten(home, [Act(act="forget", kind="thread", id="t1", position=1)])
kept.keep()
size = (home / "erasures.log").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, size + 10))
try:
    ActsWritten(home, [Act(act="forget", kind="thread", id="t2", position=2)])
except OSError:
    print("refused")
print((home / "erasures.log").stat().st_size - size)
"""

    said = ended(process(script, home))

    assert said == ["refused", "0"]


def test_a_database_at_its_limit_of_pages_is_full_and_still_sound(home):
    store = open_store(home)
    with store._connections.one() as db:
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {pages + 2}")

    with pytest.raises(StoreFull), store.writing(actor="pipeline") as writing:
        writing.put("thread:t1", "text " * 10_000)

    assert store.verify().ok
    append(store)


UNPRIVILEGED = """
if os.getuid() == 0:
    os.setuid(65534)
from threadbook.adapters.store import StoreUnreadable
try:
    append(open_store(home))
except StoreUnreadable as error:
    print(error)
else:
    raise SystemExit("it was stored")
"""


@pytest.fixture
def reachable():
    """A folder that another user can come to: pytest's own are closed to others."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        for file in Path(folder).rglob("*"):
            file.chmod(0o700)


def test_a_home_that_may_not_be_written_is_refused_with_advice(reachable):
    home = reachable / "home"
    home.mkdir()
    store = open_store(home)
    append(store)
    store.close()
    home.chmod(0o555)
    for file in home.iterdir():
        file.chmod(0o444)

    words = " ".join(ended(process(UNPRIVILEGED, home)))

    assert "cannot be opened" in words
    assert "check that the folder exists, that it is yours" in words


def test_an_unreadable_home_is_refused_with_advice(reachable):
    home = reachable / "home"
    open_store(home).close()
    home.chmod(0o000)

    words = " ".join(ended(process(UNPRIVILEGED, home)))

    assert "cannot be opened" in words
