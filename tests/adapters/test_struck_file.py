"""A file that a disk has struck anywhere is an error in one line or an answer, never a crash."""

import sqlite3
from contextlib import closing, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadbook.adapters.store import StoreDamaged, StoreError
from threadbook.domain.events import (
    Cited,
    ConsolidationRequested,
    Phase2LeaseClaimed,
    Phase2Succeeded,
    Stage1LeaseClaimed,
    Stage1Succeeded,
    ThreadPolluted,
    ThreadRegistered,
)
from threadbook.projections import threads
from threadbook.projections.catalog import SYNCHRONOUS

from tests.adapters.stores import append, forgotten, open_store, polluted
from tests.projections.specimens import plain

ROWS = 9
EVENTS = (
    ThreadRegistered,
    Stage1LeaseClaimed,
    Stage1Succeeded,
    Cited,
    ConsolidationRequested,
    Phase2LeaseClaimed,
    Phase2Succeeded,
    ThreadPolluted,
)


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def store(home):
    opened = open_store(home)
    append(opened, ROWS - 1)
    yield opened
    opened.close()


def strike(home, statement, *values):
    """Change a row in a way that only a disk can: past the types and rules of its table."""
    with closing(sqlite3.connect(home / "threadbook.sqlite", isolation_level=None)) as db:
        rules = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        write_rules(db, [(name, (sql or "").replace("STRICT", "")) for name, sql in rules])
    with closing(sqlite3.connect(home / "threadbook.sqlite", isolation_level=None)) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        db.execute(statement, values)
        write_rules(db, rules)


def write_rules(db, rules):
    db.execute("PRAGMA writable_schema = ON")
    for name, sql in rules:
        if not name.startswith("sqlite_"):
            db.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (sql, name))
    db.execute("PRAGMA writable_schema = RESET")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("chain", "no chain of ours, but as long.."),
        ("chain", b""),
        ("type", b"\xff\xfe"),
        ("data", b"{}"),
        ("actor", b"pipeline"),
        ("recorded_at_ms", "noon"),
    ],
)
@pytest.mark.parametrize("position", [1, 4, ROWS])
def test_a_column_of_another_type_is_found_at_its_row(home, store, column, value, position):
    strike(home, f"UPDATE events SET {column} = ? WHERE position = ?", value, position)

    found = store.verify()

    assert not found.ok
    assert position in found.positions
    assert set(found.positions) <= {position, position + 1}
    assert (home / "verify-failed").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("column", "value"), [("chain", "text"), ("data", b"{}")])
def test_no_decision_is_taken_behind_a_struck_last_row(home, store, column, value):
    strike(home, f"UPDATE events SET {column} = ? WHERE position = ?", value, ROWS)

    with pytest.raises(StoreDamaged, match="threadbook verify"):
        append(store)


def test_a_type_that_is_no_text_is_counted_in_characters_that_can_be_printed(home, store):
    strike(home, "UPDATE events SET type = CAST(? AS TEXT) WHERE position = 4", b"\xfftype")

    found = store.verify()

    assert found.positions == (4,)
    assert "".join(found.unknown).isascii()


def test_a_time_that_is_none_has_no_moment_before_it(home, store):
    strike(home, "UPDATE events SET recorded_at_ms = 'noon' WHERE position = 5")

    with pytest.raises(StoreDamaged, match="position 5"):
        store.position_at(0)


def test_rows_whose_keys_have_no_order_are_a_table_that_differs(home, store):
    with store.writing(actor="human:cli") as writing:
        writing.append("thread:t1", forgotten("t1"))
    strike(home, "UPDATE threads SET thread_id = ?", b"t1")

    found = store.replay_verify()

    assert [difference.table for difference in found] == [threads.NAME]


def test_a_list_of_tables_that_is_no_text_is_a_damaged_file(home, store):
    store.close()
    file = home / "threadbook.sqlite"
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    file.write_bytes(
        file.read_bytes().replace(b"CREATE TABLE events", b"CREATE TABLE \xf0vents", 1)
    )

    with pytest.raises(StoreDamaged, match="restore the file from a backup"):
        open_store(home)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of a file with rows in every table, and of its head."""
    home = tmp_path_factory.mktemp("sound") / "home"
    store = open_store(home)
    with store.writing(actor="pipeline") as writing:
        for event in EVENTS:
            writing.append("specimens", plain(event))
        ref = writing.put("thread:t1", "a text")
    store.close()
    with closing(sqlite3.connect(home / "threadbook.sqlite")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return (home / "threadbook.sqlite").read_bytes(), (home / "head").read_bytes(), ref


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_a_file_struck_at_any_byte_never_ends_in_a_foreign_error(sound, tmp_path_factory, data):
    content, head, ref = sound
    written = [place for place, byte in enumerate(content) if byte]  # Empty pages teach nothing.
    struck = bytearray(content)
    for _ in range(data.draw(st.sampled_from([1, 1, 3, 8]))):
        struck[written[data.draw(st.integers(0, len(written) - 1))]] ^= data.draw(
            st.integers(1, 255)
        )
    home = tmp_path_factory.mktemp("struck")
    (home / "threadbook.sqlite").write_bytes(struck)
    (home / "head").write_bytes(head)

    use_everything(home, ref)


def use_everything(home, ref):
    """Whatever is not a `StoreError` comes out."""
    with suppress(StoreError):
        store = open_store(home, check=False, create=False)
        with suppress(StoreError), store.reading() as reading:
            for projection in SYNCHRONOUS:
                reading.rows(projection, ())
            list(reading.events())
            reading.body(ref)
        with suppress(StoreError), store.at(3) as past:
            past.rows(threads, ())
        with suppress(StoreError):
            store.replay_verify()
        with suppress(StoreError), store.writing(actor="pipeline") as writing:
            writing.append("thread:t1", polluted("t1"))
        with suppress(StoreError):
            store.position_at(0)
        with suppress(StoreError):
            store.pending_erasures()
        store.verify()
        store.close()
