"""The quick pass over the log says that all is well exactly when the walk finds nothing."""

import os
import signal
import sqlite3
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadbook.adapters.store import chain, checkers, dialect, sound
from threadbook.adapters.store.codec import Codec
from threadbook.adapters.store.verify import Walk, rows_of

from tests.adapters.stores import NOON, append, edit, open_store

ROWS = 12
COLUMNS = ("position", "stream", "version", "type", "actor", "run_id", "data", "chain")


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def store(home):
    opened = open_store(home)
    append(opened, ROWS - 1)
    yield opened
    opened.close()


@pytest.fixture
def in_parts(monkeypatch):
    """Each process gets three rows."""
    monkeypatch.setattr(sound, "ROWS_EACH", 3)
    monkeypatch.setattr(sound, "ROWS_MEANWHILE", 0)
    monkeypatch.setattr(sound, "processes", lambda codec: 4)


@pytest.fixture
def heard(monkeypatch):
    """What the checkers answered, in order."""
    answers, heard = [], checkers.heard

    def listening(checker):
        answers.append(heard(checker))
        return answers[-1]

    monkeypatch.setattr(checkers, "heard", listening)
    return answers


def log_in_memory(types=("thread.blessed",)):
    db = sqlite3.connect(":memory:", isolation_level=None)
    for statement in dialect.LOG:
        db.execute(statement.replace("STRICT", "").replace("NOT NULL", ""))
    before = chain.START
    for n in range(1, ROWS + 1):
        row = (n, "thread:t", n, types[n % len(types)], NOON, "pipeline", None, "{}")
        before = chain.link(before, row)
        db.execute(dialect.INSERT_EVENT, (*row, before))
    return db


def chain_anew(db):
    before = chain.START
    for columns in db.execute(f"SELECT {chain.COLUMNS} FROM events ORDER BY position").fetchall():
        before = chain.link(before, columns)
        db.execute("UPDATE events SET chain = ? WHERE position = ?", (before, columns[0]))


def checked_in_parts(db, cuts):
    ends = [*sorted(cuts), ROWS]
    parts = [sound.Part(a + 1, b) for a, b in zip([0, *ends], ends, strict=False)]
    return [sound.part(db, part, Codec()) for part in parts]


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_part_is_in_doubt_exactly_when_the_walk_finds_something(data):
    db = log_in_memory()
    cuts = data.draw(st.sets(st.integers(1, ROWS - 1), max_size=3))
    for _ in range(data.draw(st.integers(0, 2))):
        position = data.draw(st.integers(1, ROWS))
        column = data.draw(st.sampled_from([*COLUMNS, "all", "all, with a new chain"]))
        if column.startswith("all"):
            db.execute("DELETE FROM events WHERE position = ?", (position,))
        if column.endswith("chain") and column != "chain":
            chain_anew(db)
        if column not in COLUMNS:
            continue
        numbers = st.integers(-1, ROWS + 2)
        new = data.draw(
            numbers if column == "position" else st.none() | numbers | st.text() | st.binary()
        )
        db.execute(f"UPDATE OR IGNORE events SET {column} = ? WHERE position = ?", (new, position))

    parts = checked_in_parts(db, cuts)
    whole = sound.whole(db, Codec())

    walk = Walk(Codec(), None)
    walk.over(rows_of(db))
    walk.cut_off(ROWS)
    longer = db.execute("SELECT 1 FROM events WHERE position < 1 OR position > ?", (ROWS,))
    if longer.fetchone() is None:
        assert (None in parts) == bool(walk.touched())
    if walk.last == ROWS:  # Of a cut end, the number that was issued tells.
        assert (whole is None) == bool(walk.touched())


def test_every_row_is_counted_once_whatever_the_cuts():
    db = log_in_memory(types=("thread.blessed", "thread.polluted", "thread.praised"))

    parts = checked_in_parts(db, {1, 5, 6})

    together = parts[0]
    for part in parts[1:]:
        together = sound.together(together, part)
    assert together == sound.whole(db, Codec())
    assert together.checked == ROWS
    assert together.unknown == {"thread.blessed": 4, "thread.praised": 4}
    assert together.quarantined == [1, 4, 7, 10]


@pytest.mark.parametrize("rows", [1, 99_999, 200_000, 230_001, 1_000_003])
@pytest.mark.parametrize("processes", [1, 2, 4])
def test_the_parts_follow_each_other_from_the_first_row_to_the_last(rows, processes):
    parts = sound.parts(rows, processes)

    assert (parts[0].first, parts[-1].until) == (1, rows)
    assert [part.first for part in parts[1:]] == [part.until + 1 for part in parts[:-1]]
    assert len(parts) <= max(1, min(processes, rows // sound.ROWS_EACH))
    assert all(part.first <= part.until for part in parts)


def test_an_end_that_was_cut_off_is_missed_without_a_head_too(home, store):
    edit(home, f"DELETE FROM events WHERE position = {ROWS}")
    (home / "head").unlink()

    found = store.verify()

    assert found.positions == (ROWS,)


def test_other_processes_answer_for_their_parts(home, store, in_parts, heard):
    found = store.verify()

    assert (found.ok, found.checked, found.position) == (True, ROWS, ROWS)
    assert [answer.checked for answer in heard] == [3, 3, 3]


def test_a_row_touched_in_a_part_of_another_process_is_named(home, store, in_parts, heard):
    edit(home, "UPDATE events SET actor = 'human:cli' WHERE position = 8")

    found = store.verify()

    assert heard[1] is None
    assert (found.ok, found.positions) == (False, (8,))


def test_a_checker_that_is_killed_leaves_its_part_to_us(home, store, in_parts, heard, monkeypatch):
    started = checkers.started

    def killed(path, part, ended):
        checker = started(path, part, ended)
        os.kill(checker.pid, signal.SIGKILL)
        return checker

    monkeypatch.setattr(checkers, "started", killed)

    found = store.verify()

    assert (found.ok, found.checked, heard) == (True, ROWS, [None, None, None])


def test_a_checker_that_cannot_start_leaves_its_part_to_us(home, store, in_parts, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(home / "python"))

    found = store.verify()

    assert (found.ok, found.checked) == (True, ROWS)


def test_no_checker_outlives_a_check_that_ended_early(home, store, in_parts, monkeypatch):
    checkers_started, started = [], checkers.started

    def remembered(path, part, ended):
        checkers_started.append(started(path, part, ended))
        return checkers_started[-1]

    monkeypatch.setattr(checkers, "started", remembered)
    edit(home, "UPDATE events SET actor = 'human:cli' WHERE position = 2")

    found = store.verify()

    assert found.positions == (2,)
    assert all(checker.returncode is not None for checker in checkers_started)


def test_a_program_that_is_no_python_starts_none(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/opt/editor/editor")

    assert sound.processes(Codec()) == 1


def test_a_log_read_with_upcasts_is_checked_where_they_are():
    codec = Codec({"thread.polluted": lambda raw: raw})

    assert sound.processes(codec) == 1
