"""What the store promises to those who read and write it."""

import os
import sqlite3
import stat
import threading
import traceback
from contextlib import suppress
from pathlib import Path

import pytest
from threadbook.adapters.store import StoreDamaged, StoreError, StoreMismatch, StoreUnreadable
from threadbook.adapters.store.codec import Codec
from threadbook.adapters.store.dialect import SCHEMA_NUMBER
from threadbook.adapters.store.files import refuse_network
from threadbook.application.ports import Conflict
from threadbook.domain.events import Cited, ForgettingLifted, StoreOpened
from threadbook.projections import stage1_outputs, threads

from tests.adapters.stores import (
    NOON,
    append,
    bytes_of,
    edit,
    ended,
    forgotten,
    open_store,
    polluted,
    process,
)

on_both = pytest.mark.usefixtures("database")
CANARY = "kestrel over the quarry 7719"


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def store(home):
    opened = open_store(home)
    yield opened
    opened.close()


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


# Opening.


def test_a_new_store_is_for_its_owner_alone_and_begins_with_store_opened(home, store):
    with store.reading() as view:
        first = next(view.events())

    assert first.event == StoreOpened(at=NOON, schema=SCHEMA_NUMBER, clock="real")
    assert (mode(home), mode(store.path), mode(home / "head")) == (0o700, 0o600, 0o600)
    assert {mode(file) for file in home.iterdir() if file.is_file()} == {0o600}


def test_a_folder_that_others_have_filled_keeps_its_mode(home):
    home.mkdir(mode=0o755)
    (home / "theirs.txt").write_text("theirs")

    open_store(home).close()

    assert mode(home) == 0o755


def test_the_file_says_whose_it_is_and_waits_for_no_reader(store):
    db = sqlite3.connect(store.path)

    found = [
        db.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "application_id", "user_version")
    ]

    assert found == ["wal", 0x54424F4B, SCHEMA_NUMBER]


@on_both
def test_processes_that_make_the_same_home_at_once_all_succeed_and_it_opens_once(home):
    script = "store = open_store(home); append(store); print(store.head().position)"
    running = [process(script, home) for _ in range(6)]

    positions = sorted(int(line) for one in running for line in ended(one))

    store = open_store(home)
    assert positions[-1] == 7
    with store.reading() as view:
        types = [recorded.type for recorded in view.events()]
    assert types == ["store.opened"] + ["thread.polluted"] * 6
    assert store.verify().ok


def test_a_store_keeps_to_the_kind_of_clock_it_began_with(tmp_path):
    open_store(tmp_path / "real").close()
    open_store(tmp_path / "simulated", simulated=True).close()

    with pytest.raises(StoreMismatch, match="keeps real time; leave out --now"):
        open_store(tmp_path / "real", simulated=True)
    with pytest.raises(StoreMismatch, match="keeps simulated time; give --now"):
        open_store(tmp_path / "simulated")
    open_store(tmp_path / "simulated", simulated=True).close()


def test_a_file_of_a_newer_program_is_left_alone(home, store):
    edit(home, f"PRAGMA user_version = {SCHEMA_NUMBER + 1}")

    with pytest.raises(StoreMismatch, match="newer Threadbook"):
        open_store(home)


def test_another_programs_file_is_left_alone(home):
    home.mkdir()
    edit(home, "CREATE TABLE theirs (x)")
    before = (home / "threadbook.sqlite").read_bytes()

    with pytest.raises(StoreMismatch, match="another program"):
        open_store(home)

    assert (home / "threadbook.sqlite").read_bytes() == before


def test_a_file_that_is_no_database_is_damaged_and_left_alone(home):
    home.mkdir()
    (home / "threadbook.sqlite").write_bytes(b"no database at all" * 100)

    with pytest.raises(StoreDamaged, match="restore the file from a backup"):
        open_store(home)

    assert (home / "threadbook.sqlite").read_bytes() == b"no database at all" * 100


@on_both
def test_a_missing_store_is_not_made_by_a_command_that_only_looks(home):
    with pytest.raises(
        StoreUnreadable, match=r"there is no memory in .* yet; `threadbook run` makes one"
    ):
        open_store(home, create=False)

    assert not home.exists()


@on_both
def test_a_home_that_is_a_file_is_refused_in_one_line(home):
    home.write_text("not a folder")

    with pytest.raises(StoreUnreadable, match="check that the folder exists") as refusal:
        open_store(home)

    assert "\n" not in str(refusal.value)


@on_both
def test_tables_of_another_shape_are_made_anew_from_the_log(home, store):
    append(store)
    store.close()
    edit(home, "DROP TABLE threads", "UPDATE meta SET value = 'another' WHERE key = 'projections'")

    again = open_store(home)

    assert again.replay_verify() == []


# Where the file lies.

MOUNTS = """\
22 1 8:1 / / rw - ext4 /dev/sda1 rw
30 22 0:40 / /mnt/c rw - 9p drvfs rw,dirsync,aname=drvfs;path=C:\\;uid=1000
31 22 0:41 / /srv/team\\040share rw - nfs4 server:/share rw
32 31 8:2 / /srv/team\\040share/local rw - ext4 /dev/sdb1 rw
"""
MAC = """\
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
//ann@nas/home on /Volumes/nas (smbfs, nodev, nosuid, mounted by ann)
"""


@pytest.mark.parametrize(
    ("folder", "table", "kind"),
    [
        ("/mnt/c/Users/ann", MOUNTS, "9p"),
        ("/srv/team share/ann", MOUNTS, "nfs4"),
        ("/Volumes/nas/ann", MAC, "smbfs"),
    ],
)
def test_network_file_systems_and_windows_drives_are_refused_with_advice(folder, table, kind):
    with pytest.raises(StoreUnreadable, match=f"{kind} file system.*local disk"):
        refuse_network(Path(folder), table)


@pytest.mark.parametrize(
    ("folder", "table"),
    [("/home/ann", MOUNTS), ("/srv/team share/local/x", MOUNTS), ("/Users/ann", MAC), ("/x", "")],
)
def test_local_folders_are_not_refused(folder, table):
    refuse_network(Path(folder), table)


@on_both
def test_nothing_is_made_on_a_file_system_that_is_refused(home):
    with pytest.raises(StoreUnreadable):
        open_store(home, mounts="22 1 0:9 / / rw - nfs4 server:/ rw\n")

    assert not home.exists()


# Appending.


@on_both
def test_versions_are_contiguous_and_an_old_one_is_a_conflict(store):
    with store.writing(actor="pipeline", run_id="r1") as writing:
        writing.append("thread:t1", polluted(), polluted(), expected_version=0)

    with (
        pytest.raises(Conflict, match="at version 2, not 1"),
        store.writing(actor="pipeline") as writing,
    ):
        writing.append("thread:t1", polluted(), expected_version=1)

    with store.reading() as view:
        found = list(view.events(stream="thread:t1"))
    assert [(r.position, r.version, r.actor, r.run_id) for r in found] == [
        (2, 1, "pipeline", "r1"),
        (3, 2, "pipeline", "r1"),
    ]


@on_both
def test_a_block_is_committed_together_or_not_at_all(store):
    with suppress(ZeroDivisionError), store.writing(actor="pipeline") as writing:
        ref = writing.put("thread:t1", "text")
        writing.append("thread:t1", forgotten())
        raise ZeroDivisionError

    with store.reading() as view:
        assert (view.position, view.version("thread:t1"), view.body(ref)) == (1, 0, None)
        assert view.rows(threads, ()) == []
    assert store.erasures() == {}
    append(store)
    assert store.head().position == 2  # The position of what was rolled back is not lost.


@on_both
def test_a_block_sees_what_it_has_written_and_others_see_it_after_the_commit(store):
    with store.writing(actor="pipeline") as writing:
        assert writing.append("thread:t1", forgotten()) == writing.position == 2
        assert [row.thread_id for row in writing.rows(threads, ("t1",))] == ["t1"]
        assert writing.version("thread:t1") == 1
        with store.reading() as view:
            assert (view.position, view.rows(threads, ("t1",))) == (1, [])

    with store.reading() as view:
        assert [row.thread_id for row in view.rows(threads, ("t1",))] == ["t1"]
        assert view.find(threads, "WHERE thread_id = :id", id="t1") == view.rows(threads, ("t1",))
        assert view.value("SELECT count(*) FROM threads WHERE thread_id = :id", id="t1") == 1
        assert view.value("SELECT thread_id FROM threads WHERE FALSE") is None


@on_both
def test_recorded_time_never_runs_backward_and_finds_its_position(home):
    now = [float(NOON)]
    store = open_store(home, clock=lambda: now[0])
    for at in (NOON + 10, NOON + 5, NOON + 20):
        now[0] = float(at)
        append(store)

    with store.reading() as view:
        times = [recorded.recorded_at_ms // 1000 - NOON for recorded in view.events()]

    assert times == [0, 10, 10, 20]
    assert [store.position_at(NOON + s) for s in (-1, 0, 9, 10, 19, 20, 99)] == [
        0, 1, 1, 3, 3, 4, 4,
    ]  # fmt: skip


@on_both
@pytest.mark.parametrize("beyond", [2**63 - 1, 2**63, 10**30])
def test_a_position_beyond_every_other_is_the_newest_and_nothing_is_behind_it(store, beyond):
    append(store)

    with store.at(beyond) as past, store.reading() as view:
        assert past.position == view.position
        assert list(view.events(after=beyond)) == []
        assert len(list(view.events(after=-beyond))) == view.position


@on_both
def test_a_time_without_end_is_the_newest_position_and_one_that_is_none_is_before_the_first(store):
    append(store)

    with store.reading() as view:
        assert store.position_at(float("inf")) == view.position
    assert store.position_at(float("-inf")) == 0
    assert store.position_at(float("nan")) == 0


@on_both
def test_the_log_is_read_in_order_from_behind_a_position_also_over_many_pages(store):
    with store.writing(actor="pipeline") as writing:
        writing.append("thread:t1", *[polluted()] * 2_500)

    with store.reading() as view:
        assert [r.position for r in view.events(after=3)] == list(range(4, 2_502))
        assert sum(1 for _ in view.events(stream="thread:t1")) == 2_500
        assert view.recorded_at_ms == NOON * 1000


# The past.


@on_both
def test_the_past_is_every_projection_as_it_was(store):
    with store.writing(actor="pipeline") as writing:
        writing.append("thread:t1", forgotten("t1"))
    with store.writing(actor="pipeline") as writing:
        writing.append("thread:t2", forgotten("t2"))

    with store.at(2) as past:
        assert [row.thread_id for row in past.rows(threads, ())] == ["t1"]
        assert (past.position, past.version("thread:t2")) == (2, 0)
        assert past.value("SELECT count(*) FROM threads") == 1
        assert past.find(stage1_outputs, "WHERE thread_id = :id", id="t1") == []
        assert [recorded.position for recorded in past.events()] == [1, 2]
    with store.at(0) as past:
        assert (past.position, past.recorded_at_ms, past.rows(threads, ())) == (0, 0, [])
    with store.at(99) as past:
        assert past.position == 3


@on_both
def test_a_text_erased_since_is_gone_from_the_past_as_well(store):
    with store.writing(actor="pipeline") as writing:
        ref = writing.put("thread:t1", CANARY)
        position = writing.append("thread:t1", polluted())
    with store.writing(actor="human:cli") as writing:
        writing.erase(refs=[ref])

    with store.at(position) as past:
        assert past.body(ref) is None


# Texts.


def test_erased_texts_are_in_no_byte_of_the_home(home, store):
    with store.writing(actor="pipeline") as writing:
        writing.put("thread:t1", f"{CANARY} one " * 500)
        writing.put("thread:t1", f"{CANARY} two")
        kept = writing.put("thread:t2", "the other thread's")
        single = writing.put("thread:t3", f"{CANARY} three")
    assert CANARY.encode() in bytes_of(home)

    with store.writing(actor="human:cli") as writing:
        assert writing.erase(owners=["thread:t1"], refs=[single]) == 3

    assert store.pending_erasures() == []
    assert CANARY.encode() not in bytes_of(home)
    with store.reading() as view:
        assert view.body(kept) == "the other thread's"


def test_a_text_of_a_block_that_failed_never_reached_the_disk(home, store):
    with suppress(ZeroDivisionError), store.writing(actor="pipeline") as writing:
        for n in range(3_000):  # More than SQLite's page cache, which would have spilled.
            writing.put("thread:t1", f"{CANARY} {n} " * 40)
        raise ZeroDivisionError

    assert CANARY.encode() not in bytes_of(home)


def test_a_reader_holds_up_an_erasure_and_is_named_until_it_has_ended(home, store):
    with store.writing(actor="pipeline") as writing:
        writing.put("thread:t1", CANARY)

    with store.reading("a long look"):
        with store.writing(actor="human:cli") as writing:
            writing.erase(owners=["thread:t1"])
        (pending,) = store.pending_erasures()
        assert pending.bodies == 1
        assert [(h.pid, h.what) for h in pending.held_by] == [(os.getpid(), "a long look")]

    append(store)  # Any later write completes it.
    assert CANARY.encode() not in bytes_of(home)
    assert store.pending_erasures() == []


def test_the_next_open_completes_an_erasure_that_a_reader_held_up(home, store):
    with store.writing(actor="pipeline") as writing:
        writing.put("thread:t1", CANARY)
    with store.reading(), store.writing(actor="human:cli") as writing:
        writing.erase(owners=["thread:t1"])
    assert CANARY.encode() in bytes_of(home)

    open_store(home).close()

    assert CANARY.encode() not in bytes_of(home)


def test_a_text_that_was_changed_under_its_ref_is_never_shown(home, store):
    with store.writing(actor="pipeline") as writing:
        ref = writing.put("thread:t1", "as it was")
    edit(home, "UPDATE bodies SET text = 'as it was not'")

    with pytest.raises(StoreDamaged, match=ref), store.reading() as view:
        view.body(ref)


@on_both
def test_half_a_character_becomes_the_sign_for_a_lost_one(store):
    with store.writing(actor="pipeline") as writing:
        ref = writing.put("thread:t1", "PRE\ud83dMID\U0001f33f\udc88POST")

    with store.reading() as view:
        assert view.body(ref) == "PRE�MID\U0001f33f�POST"


@on_both
def test_forgetting_and_lifting_leave_a_line_outside_of_the_database(home, store):
    with store.writing(actor="human:cli") as writing:
        writing.append("thread:t1", forgotten("t1"))
        writing.append("thread:t2", forgotten("t2"))
    with store.writing(actor="human:cli") as writing:
        writing.append("thread:t1", ForgettingLifted(at=NOON, thread_id="t1"))

    found = store.erasures()

    assert {key: (act.act, act.position) for key, act in found.items()} == {
        ("thread", "t1"): ("lift", 4),
        ("thread", "t2"): ("forget", 3),
    }
    assert len((home / "erasures.log").read_bytes().splitlines()) == 3


@on_both
def test_a_cut_off_line_of_the_erasures_spoils_no_other(home, store):
    with store.writing(actor="human:cli") as writing:
        writing.append("thread:t1", forgotten("t1"))
    with (home / "erasures.log").open("ab") as file:
        file.write(b'{"act":"forg')

    with store.writing(actor="human:cli") as writing:
        writing.append("thread:t2", forgotten("t2"))

    assert set(store.erasures()) == {("thread", "t1"), ("thread", "t2")}


# Events of other programs and times.


@on_both
def test_an_event_of_a_newer_program_folds_to_nothing_and_is_counted(store):
    with store._writing(actor="pipeline", run_id=None) as writing:
        writing.record("thread:t1", 1, "thread.blessed", '{"type":"thread.blessed"}')

    with store.reading() as view:
        (found,) = view.events(stream="thread:t1")
    assert (found.type, found.event) == ("thread.blessed", None)
    assert store.verify().unknown == {"thread.blessed": 1}
    assert store.replay_verify() == []


@on_both
def test_an_event_that_should_be_readable_and_is_not_stops_whoever_decides_on_it(store):
    with store._writing(actor="pipeline", run_id=None) as writing:
        writing.record("thread:t1", 1, "thread.polluted", '{"type":"thread.polluted"}')

    with pytest.raises(StoreDamaged, match="position 2"), store.reading() as view:
        list(view.events())
    found = store.verify()
    assert (found.ok, found.quarantined) == (True, (2,))


def test_old_payloads_are_brought_up_to_date_before_they_are_read():
    def renamed(payload):
        return {"usage_count": payload.get("uses"), **payload}

    codec = Codec({"stage1.cited": renamed})
    old = '{"type":"stage1.cited","at":1,"thread_id":"t","memory_version":"v1",\
"citation_id":"c","uses":3}'
    new = Cited(at=1, thread_id="t", memory_version="v1", citation_id="c", usage_count=4)

    assert codec.decode(1, "stage1.cited", old).usage_count == 3
    assert codec.decode(2, "stage1.cited", codec.encode(new)) == new


# Threads and forks.


@on_both
def test_threads_append_at_once_each_on_its_own_connection(store):
    running = [threading.Thread(target=append, args=(store, 20, f"t{n}")) for n in range(8)]
    for one in running:
        one.start()
    for one in running:
        one.join()

    found = store.verify()
    assert (found.ok, found.checked) == (True, 161)


def in_a_child(act):
    """Run it after a fork; 0 when it ended well."""
    child = os.fork()
    if child == 0:
        try:
            act()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@on_both
def test_a_forked_child_opens_its_own_connection(store):
    append(store)

    assert in_a_child(lambda: append(store, 3, "child")) == 0

    append(store)
    found = store.verify()
    assert (found.ok, found.checked) == (True, 6)


def test_a_child_forked_inside_of_a_block_is_told_so_and_harms_nothing(store):
    def child():
        with pytest.raises(StoreError, match="was in use when this process was forked"):
            append(store)

    with store.reading():
        assert in_a_child(child) == 0

    append(store)
    assert store.verify().ok


@on_both
def test_a_child_commits_nothing_that_its_parent_has_begun(store):
    child = None
    try:
        with store.writing(actor="pipeline") as writing:
            writing.append("thread:t1", polluted())
            child = os.fork()
        if child == 0:
            os._exit(1)  # It has committed.
    except AssertionError:
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    found = store.verify()
    assert (found.ok, found.checked) == (True, 2)
