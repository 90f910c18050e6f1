"""Whoever touches the log is found out, and the rows that were touched are named."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadbook.adapters.store import StoreDamaged, chain, dialect, head, verify
from threadbook.adapters.store.codec import Codec
from threadbook.projections import threads

from tests.adapters.stores import NOON, append, forgotten, open_store

ROWS = 9


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def store(home):
    """A log of nine rows."""
    opened = open_store(home)
    append(opened, ROWS - 1)
    yield opened
    opened.close()


def tamper(home, *statements):
    with closing(sqlite3.connect(home / "threadbook.sqlite")) as db:
        db.executescript("BEGIN;" + ";".join(statements) + ";COMMIT;")


def swap(a, b):
    return (
        f"UPDATE events SET position = -1 WHERE position = {a}",
        f"UPDATE events SET position = {a} WHERE position = {b}",
        f"UPDATE events SET position = {b} WHERE position = -1",
    )


def swap_all_but_the_chain(a, b):
    columns = "type, data, actor"
    return (
        "CREATE TEMP TABLE held AS SELECT * FROM events",
        f"UPDATE events SET ({columns}) = (SELECT {columns} FROM held WHERE position = {b})"
        f" WHERE position = {a}",
        f"UPDATE events SET ({columns}) = (SELECT {columns} FROM held WHERE position = {a})"
        f" WHERE position = {b}",
    )


TAMPERINGS = {
    "data": (("UPDATE events SET data = replace(data, 'web', 'Web') WHERE position = 4",), [4]),
    "actor": (("UPDATE events SET actor = 'human:cli' WHERE position = 4",), [4]),
    "run": (("UPDATE events SET run_id = '' WHERE position = 4",), [4]),
    "time": (("UPDATE events SET recorded_at_ms = 0 WHERE position = 4",), [4]),
    "type": (("UPDATE events SET type = 'thread.blessed' WHERE position = 4",), [4]),
    "version": (("UPDATE events SET version = 99 WHERE position = 4",), [4]),
    "chain": (("UPDATE events SET chain = zeroblob(32) WHERE position = 4",), [4]),
    "bytes": (("UPDATE events SET data = CAST(x'fffe22' AS TEXT) WHERE position = 4",), [4]),
    "first": (("UPDATE events SET actor = 'human:cli' WHERE position = 1",), [1]),
    "last": (("UPDATE events SET actor = 'human:cli' WHERE position = 9",), [9]),
    "two": (("UPDATE events SET actor = 'human:cli' WHERE position IN (3, 8)",), [3, 8]),
    "deleted": (("DELETE FROM events WHERE position = 5",), [5]),
    "several": (("DELETE FROM events WHERE position IN (2, 5, 6)",), [2, 5, 6]),
    "beginning": (("DELETE FROM events WHERE position < 3",), [1, 2]),
    "cut": (("DELETE FROM events WHERE position > 7",), [8, 9]),
    "cut, counter": (
        ("DELETE FROM events WHERE position > 7", "UPDATE sqlite_sequence SET seq = 7"),
        [8, 9],
    ),
    "all": (("DELETE FROM events", "DELETE FROM sqlite_sequence"), list(range(1, 10))),
    "swapped": (swap(3, 7), [3, 7]),
    "swapped, neighbours": (swap(4, 5), [4, 5]),
    "swapped, ends": (swap(1, 9), [1, 9]),
    "swapped, contents": (swap_all_but_the_chain(1, 7), [1, 7]),
    "added": (
        (
            "INSERT INTO events SELECT 10, stream, 99, type, recorded_at_ms, actor, run_id, data,"
            " chain FROM events WHERE position = 9",
        ),
        [10],
    ),
    "before the first": (("UPDATE events SET position = 0 WHERE position = 9",), [0, 9]),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_verify_names_the_rows_that_were_touched_and_no_other(home, store, name):
    statements, touched = TAMPERINGS[name]
    assert store.verify().ok

    tamper(home, *statements)

    found = store.verify()
    assert (found.ok, list(found.positions)) == (False, touched)
    assert all(str(position) in found.message for position in (touched[0], touched[-1]))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_single_change_of_any_column_is_found_at_its_row(data):
    rows, codec = log_in_memory(), Codec()
    column = data.draw(st.sampled_from(["stream", "version", "type", "actor", "run_id", "data"]))
    position = data.draw(st.integers(1, ROWS))
    row = rows.execute(f"SELECT {column} FROM events WHERE position = ?", (position,)).fetchone()
    others = st.integers(100, 999) if column == "version" else st.text(max_size=5)
    new = data.draw(others.filter(lambda drawn: drawn != row[0]))

    rows.execute(f"UPDATE events SET {column} = ? WHERE position = ?", (new, position))

    assert verify.verify_log(rows, None, codec).positions == (position,)


def log_in_memory():
    db = sqlite3.connect(":memory:", isolation_level=None)
    for statement in dialect.LOG:
        db.execute(statement)
    before = chain.START
    for n in range(1, ROWS + 1):
        row = (n, "thread:t", n, "thread.blessed", NOON, "pipeline", None, "{}")
        before = chain.link(before, row)
        db.execute(dialect.INSERT_EVENT, (*row, before))
    return db


def test_a_log_written_anew_and_sound_in_itself_is_not_the_one_its_head_knows(home, store):
    known = store.head()
    store.close()
    (home / "threadbook.sqlite").unlink()
    (home / "head").unlink()
    other = open_store(home, clock=lambda: NOON + 1.0)
    append(other, ROWS - 1)
    head.renew(home, known)

    with pytest.raises(StoreDamaged, match="not the log that its head knows"):
        append(other)

    found = other.verify()
    assert (found.ok, found.positions) == (False, (ROWS,))
    assert "written anew" in found.message


# The head.


def test_the_head_is_85_bytes_and_goes_forward_only(home, store):
    assert (home / "head").stat().st_size == 85
    assert store.head() == head.Head(ROWS, store.head().chain)

    head.advance(home, head.Head(3, bytes(32)))

    assert store.head().position == ROWS


@pytest.mark.parametrize("left", [b"", b"0" * 40, b"x" * 85])
def test_a_head_that_was_lost_or_cut_off_is_behind_and_so_is_sound(home, store, left):
    (home / "head").write_bytes(left)

    assert store.head() is None
    assert store.verify().ok
    append(store)
    assert store.head().position == ROWS + 1


def test_a_head_behind_the_log_is_sound(home, store):
    behind = (home / "head").read_bytes()
    append(store, 3)
    (home / "head").write_bytes(behind)

    assert store.verify().ok
    append(store)
    assert store.head().position == ROWS + 4


# After that nobody writes.


@pytest.mark.parametrize(
    "name", ["last", "cut", "cut, counter", "all", "swapped, ends", "added", "deleted"]
)
def test_an_append_refuses_a_log_whose_end_is_not_sound(home, store, name):
    tamper(home, *TAMPERINGS[name][0])
    if name == "deleted":
        tamper(home, "DELETE FROM events WHERE position = 8")

    with pytest.raises(StoreDamaged, match="threadbook verify"):
        append(store)


def test_a_cut_is_seen_without_a_head_by_the_positions_that_were_issued(home, store):
    (home / "head").unlink()
    tamper(home, *TAMPERINGS["cut"][0])

    with pytest.raises(StoreDamaged, match="position 8 is gone"):
        append(store)


def test_a_decision_is_not_taken_on_a_changed_row(home, store):
    tamper(home, "UPDATE events SET actor = 'human:cli' WHERE position = 4")

    with (
        pytest.raises(StoreDamaged, match="position 4"),
        store.writing(actor="pipeline") as writing,
    ):
        list(writing.events(stream="thread:t1"))


def test_after_a_failed_verify_writers_refuse_until_one_passes(home, store):
    tamper(home, "UPDATE events SET actor = 'human:cli' WHERE position = 4")
    append(store)  # Not seen yet: an append checks the end, and what it reads.
    assert not store.verify().ok

    with pytest.raises(StoreDamaged, match="failed `threadbook verify`"):
        append(store)
    with pytest.raises(StoreDamaged):
        append(open_store(home))  # The mark is in the home, not in this process.
    with store.reading() as view:
        assert view.position == ROWS + 1

    tamper(home, "UPDATE events SET actor = 'pipeline' WHERE position = 4")
    assert store.verify().ok
    append(store)


def test_a_shorter_copy_that_was_restored_opens_for_verify_alone(home, store):
    store.close()
    copy = (home / "threadbook.sqlite").read_bytes()
    later = open_store(home)
    append(later, 3)
    later.close()
    (home / "threadbook.sqlite").write_bytes(copy)

    with pytest.raises(StoreDamaged, match="an older copy was restored"):
        open_store(home)
    found = open_store(home, check=False).verify()
    assert (found.ok, found.positions) == (False, (10, 11, 12))


def test_a_first_row_that_cannot_be_read_keeps_verify_from_nothing(home, store):
    store.close()
    tamper(home, "UPDATE events SET data = '{}' WHERE position = 1")

    with pytest.raises(StoreDamaged, match="position 1"):
        open_store(home)
    found = open_store(home, check=False).verify()
    assert (found.positions, found.quarantined) == ((1,), (1,))


def test_a_lost_file_is_not_replaced_by_an_empty_one(home, store):
    store.close()
    (home / "threadbook.sqlite").unlink()

    with pytest.raises(StoreDamaged, match=f"had come to {ROWS}"):
        open_store(home)

    assert not (home / "threadbook.sqlite").exists()


# The tables.


def test_replay_finds_every_kind_of_wrong_row_and_rebuilds_it(home, store):
    with store.writing(actor="human:cli") as writing:
        for name in ("a", "b", "c"):
            writing.append(f"thread:{name}", forgotten(name))
    assert store.replay_verify() == []

    tamper(
        home,
        "DELETE FROM threads WHERE thread_id = 'a'",
        "UPDATE threads SET thread_id = 'zz' WHERE thread_id = 'c'",
    )

    found = store.replay_verify()
    assert [(d.table, d.key[0]) for d in found] == [
        ("threads", "a"),
        ("threads", "c"),
        ("threads", "zz"),
    ]
    assert "missing" in found[0].message
    assert "should not be there" in found[2].message
    assert store.replay_rebuild()["threads"] == 3
    assert store.replay_verify() == []


def test_replay_finds_a_changed_column_and_names_both_values(home, store):
    with store.writing(actor="human:cli") as writing:
        writing.append("thread:a", forgotten("a"))
    tamper(home, "UPDATE threads SET mode_reason = 'made up'")

    (found,) = store.replay_verify()

    assert (found.table, found.key) == ("threads", ("a",))
    assert "mode_reason is 'made up', should be" in found.message


def test_replay_finds_a_table_that_is_gone_and_rebuilds_it(home, store):
    tamper(home, "DROP TABLE threads")
    with pytest.raises(StoreDamaged, match="replay --rebuild"), store.reading() as view:
        view.rows(threads, ())

    (found,) = store.replay_verify()

    assert (found.table, found.key) == ("threads", ())
    store.replay_rebuild()
    assert store.replay_verify() == []


def test_a_row_that_nobody_writes_is_an_error_with_advice_not_a_traceback(home, store):
    with store.writing(actor="human:cli") as writing:
        writing.append("thread:a", forgotten("a"))
    tamper(home, "UPDATE threads SET mode = 'entranced'")

    with (
        pytest.raises(StoreDamaged, match=r"replay --verify.*replay --rebuild"),
        store.reading() as view,
    ):
        view.rows(threads, ("a",))
    store.replay_rebuild()
    with store.reading() as view:
        assert len(view.rows(threads, ("a",))) == 1
