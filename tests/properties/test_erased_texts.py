"""Erased texts leave no copy in the file, whatever else was stored, erased and kept before.

SQLite moves rows to other pages when rows beside them are deleted, and leaves copies of them in
the gaps of pages, also with secure_delete. These are histories in which a store that deletes the
rows of erased texts leaves one (ten of 70 that were drawn), with the store's own tables and
pragmas.
"""

import random
import sqlite3
from contextlib import contextmanager
from pathlib import Path

import pytest
from threadbook.adapters.store import bodies, dialect

from tests.adapters.stores import open_store

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SIZES = (20, 60, 300, 900, 3000)
PIECE = 20


@pytest.fixture
def file(tmp_path):
    return tmp_path / "texts.sqlite"


@pytest.fixture
def db(file):
    db = sqlite3.connect(file, isolation_level=None)
    for pragma in dialect.ON_CREATION:
        db.execute(pragma)
    for name, value, _ in dialect.ON_EVERY_CONNECTION:
        db.execute(f"PRAGMA {name} = {value}")
    db.execute("PRAGMA synchronous = OFF")  # Nobody pulls the plug here.
    for statement in dialect.LOG:
        db.execute(statement)
    yield db
    db.close()


def stored(db, seed):
    """400 texts of all sizes by ref, and 300 of the refs in the order in which they are erased."""
    draw = random.Random(seed)
    texts = {}
    for _ in range(400):
        text = "".join(draw.choices(LETTERS, k=draw.choice(SIZES)))
        ref = f"{draw.getrandbits(128):032x}"
        bodies.keep(db, ref, f"thread:{draw.randrange(40)}", text)
        texts[ref] = text
    order = list(texts)
    draw.shuffle(order)
    return texts, order[:300]


def truncated(db):
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def left_of(file, texts):
    files = filter(Path.is_file, file.parent.iterdir())
    written = b"".join(path.read_bytes() for path in files).decode("latin-1")
    return [
        text
        for text in texts
        if any(text[at : at + PIECE] in written for at in range(0, len(text) - PIECE + 1, PIECE))
    ]


@pytest.mark.parametrize("seed", [5, 11, 14, 18])
def test_what_is_erased_is_nowhere_in_the_file_and_the_rest_can_be_read(db, file, seed):
    texts, going = stored(db, seed)

    for start in range(0, 300, 5):
        assert bodies.erase(db, (), going[start : start + 5]) == 5
        truncated(db)

    assert left_of(file, [texts[ref] for ref in going]) == []
    for ref, text in texts.items():
        assert bodies.get(db, ref) == (None if ref in going else text)


@pytest.mark.parametrize("seed", [5, 11, 14, 18])
def test_texts_that_are_written_anew_meanwhile_leave_nothing_either(db, file, seed):
    texts, going = stored(db, seed)

    for start in range(0, 300, 5):
        bodies.erase(db, (), going[start : start + 5])
        if start % 50 == 0:
            db.execute("BEGIN IMMEDIATE")
            bodies.write_anew(db)
            db.execute("COMMIT")
        truncated(db)

    assert left_of(file, [texts[ref] for ref in going]) == []
    for ref, text in texts.items():
        assert bodies.get(db, ref) == (None if ref in going else text)


def test_the_file_grows_with_what_is_kept_and_not_with_what_was_erased(tmp_path):
    sizes = []
    with closing_store(tmp_path / "home") as store:
        for _ in range(6):
            with store.writing(actor="pipeline") as writing:
                refs = [writing.put("store", "x" * 900) for _ in range(bodies.ERASED_MIN)]
            with store.writing(actor="pipeline") as writing:
                writing.erase(refs=refs)
            store.tidy()
            sizes.append(store.path.stat().st_size)

    assert max(sizes[1:]) < 1.2 * sizes[1]


def test_an_older_programs_leftovers_go_with_the_migration(tmp_path):
    kept = tmp_path / "home" / "threadbook.sqlite"
    with closing_store(tmp_path / "home") as store, store._looking() as old:
        texts, going = stored(old, 5)
        for start in range(0, 300, 5):
            old.executemany("DELETE FROM bodies WHERE ref = ?", [(r,) for r in going[start:][:5]])
            truncated(old)
        old.execute("PRAGMA user_version = 1")
    assert len(left_of(kept, [texts[ref] for ref in going])) == 1

    with closing_store(tmp_path / "home") as store:
        (backup,) = store.backups()
        assert left_of(backup.path, [texts[ref] for ref in going]) == []

    assert left_of(kept, [texts[ref] for ref in going]) == []


@contextmanager
def closing_store(home):
    store = open_store(home)
    yield store
    store.close()


def test_erasing_by_owner_counts_each_text_once(db):
    _, going = stored(db, 5)
    bodies.erase(db, (), going)

    left = [bodies.erase(db, [f"thread:{n}"], ()) for n in range(40)]

    assert sum(left) == 100
    assert bodies.erase(db, [f"thread:{n}" for n in range(40)], going) == 0


def test_what_an_older_program_left_is_gone_after_the_advice_of_a_certificate(db, file):
    texts, going = stored(db, 5)
    for start in range(0, 300, 5):
        for ref in going[start : start + 5]:
            db.execute("DELETE FROM bodies WHERE ref = ?", (ref,))  # As 0.1.0 did.
        truncated(db)
    before = left_of(file, [texts[ref] for ref in going])

    db.execute("VACUUM")
    truncated(db)

    assert len(before) == 1
    assert left_of(file, [texts[ref] for ref in going]) == []
