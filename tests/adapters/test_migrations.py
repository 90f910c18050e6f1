"""A memory that an older program made: its tables become this program's, and nothing is lost."""

import json
import os
import shutil
import signal
import sqlite3
import stat
import sys
from contextlib import closing
from functools import partial
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from threadbook.adapters.store import (
    StoreBusy,
    StoreError,
    StoreMismatch,
    StoreUnreadable,
    dialect,
    postgres_dialect,
)
from threadbook.adapters.store.backups import make
from threadbook.adapters.store.codec import Codec
from threadbook.domain.events import NoteAdded, StoreOpened, thread_stream
from threadbook.domain.thread import Thread, register
from threadbook.projections import threads
from threadbook.projections.catalog import SYNCHRONOUS
from threadbook.projections.fold import fold_all

from tests.adapters.next_schema import NEXT, longer_notes, module, uses
from tests.adapters.stores import NOON, append, bytes_of, edit, ended, open_store, process
from tests.adapters.test_old_logs import VERSIONS, lines
from tests.application.homes import HOUR_S, Home, Session
from tests.application.processes import Process
from tests.support import header

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
DATABASES = FIXTURES / "databases"
KESTREL = b"kestrel"  # In what session 3 of the old database says, and what was made of that.
CONSOLIDATIONS = ("consolidation:v1:project:moss-b22c4228",)
on_both = pytest.mark.usefixtures("database")


def loaded(home, number=1):
    """A home with the database that a program of that schema left."""
    home.mkdir(mode=0o700)
    with closing(sqlite3.connect(home / "threadbook.sqlite", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript((DATABASES / f"schema-{number}.sql").read_text(encoding="utf-8"))
        db.execute(f"PRAGMA application_id = {dialect.APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {number}")
    (home / "threadbook.sqlite").chmod(0o600)
    return home


@pytest.fixture
def old(tmp_path):
    return loaded(tmp_path / "home")


@pytest.fixture
def home(tmp_path):
    """A home of this program, on either database, that a next program will open."""
    home = tmp_path / "home"
    store = open_store(home)
    append(store)
    with store.writing(actor="pipeline") as writing:
        ref = writing.put("store", "notes/a.md\nfeed the kestrel")
        writing.append("store", NoteAdded(at=NOON, scope="global", body_ref=ref, via="cli"))
    store.close()
    return home


def opened_old(home, **options):
    return open_store(home, clock=lambda: NOON + 9.0 * HOUR_S, simulated=True, **options)


def rows_of(path, query):
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as db:
        return db.execute(query).fetchall()


def log_of(path):
    return rows_of(path, "SELECT * FROM events ORDER BY position")


def openings(store):
    with store.reading() as view:
        return [each.event for each in view.events() if isinstance(each.event, StoreOpened)]


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def backups(home):
    return sorted((home / "backups").glob("*"))


# Which schema it is.


def digest(value):
    return sha256(msgspec.json.encode(value)).hexdigest()


def schema_of_today():
    """What a database of this program is, in digests: its log, its tables, and what they hold."""
    text = (FIXTURES / "logs" / "0.1.0" / "log.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    log = [
        Codec().decode(n, each["type"], json.dumps(each["data"])) for n, each in enumerate(lines)
    ]
    rows = fold_all(SYNCHRONOUS, log)
    return {
        "schema": dialect.SCHEMA_NUMBER,
        "log": digest([dialect.LOG, postgres_dialect.LOG]),
        "tables": digest([[each.NAME, each.KEY, each.SCHEMA] for each in SYNCHRONOUS]),
        "rows": digest([[each.NAME, rows[each]] for each in SYNCHRONOUS]),
    }


def test_a_change_of_the_tables_or_of_their_rows_has_a_new_schema_number():
    *_, last = [json.loads(line) for line in (DATABASES / "schemas.jsonl").read_text().splitlines()]

    today = schema_of_today()

    if today != last:
        changed = [name for name in today if today[name] != last[name]]
        today["schema"] = last["schema"] + 1
        pytest.fail(
            f"the databases of this program are not those of schema {last['schema']} any more"
            f" (changed: {', '.join(changed)}). Set SCHEMA_NUMBER = {today['schema']} in"
            " adapters/store/dialect.py, and add this line to tests/fixtures/databases/"
            f"schemas.jsonl, where no line is ever changed:\n{json.dumps(today)}\n"
            "A table, or an evolve, needs no more than that: an older database is migrated. Where"
            " `log` changed, which is never made anew, LogStore._migrate needs a step for it."
        )


def test_every_schema_there_was_is_listed_in_order():
    lines = [json.loads(line) for line in (DATABASES / "schemas.jsonl").read_text().splitlines()]

    assert [each["schema"] for each in lines] == list(range(1, dialect.SCHEMA_NUMBER + 1))


# What becomes of an older one.


def test_a_database_of_schema_1_is_backed_up_and_made_todays(old):
    before = log_of(old / "threadbook.sqlite")

    store = opened_old(old)

    (backup,) = backups(old)
    assert backup.name == f"schema-1-position-{len(before)}.sqlite"
    assert (mode(backup.parent), mode(backup)) == (0o700, 0o600)
    assert log_of(backup) == before
    assert rows_of(backup, "PRAGMA user_version") == [(1,)]
    assert KESTREL in backup.read_bytes()
    assert [each.schema for each in openings(store)] == [1, dialect.SCHEMA_NUMBER]
    assert openings(store)[-1] == StoreOpened(
        at=NOON + 9 * HOUR_S, schema=dialect.SCHEMA_NUMBER, clock="simulated"
    )
    assert log_of(store.path)[: len(before)] == before
    found = store.verify()
    assert (found.ok, found.checked) == (True, len(before) + 1)
    assert store.replay_verify() == []


@pytest.mark.parametrize(("position", "chain"), [(1, None), (-1, None), (0, b"\0" * 32)])
def test_a_copy_that_does_not_end_as_the_log_does_is_no_backup(old, position, chain):
    database = old / "threadbook.sqlite"
    *_, (last, *_, end) = log_of(database)
    makes = partial(make, old, database, schema=1, now=NOON)
    makes(position=last, chain=end).unlink()

    with pytest.raises(StoreError) as refused:
        makes(position=last + position, chain=chain or end)

    assert "it could not be copied" in str(refused.value)
    assert backups(old) == []


def test_an_older_database_is_made_todays_once(old):
    opened_old(old).close()
    (backup,) = backups(old)
    before = log_of(old / "threadbook.sqlite"), backup.stat().st_mtime_ns, backup.read_bytes()

    store = opened_old(old)

    assert len(openings(store)) == 2
    store.close()
    assert (log_of(store.path), backup.stat().st_mtime_ns, backup.read_bytes()) == before


@on_both
def test_any_other_definition_of_a_table_is_another_schema(home, database):
    store = open_store(home, projections=NEXT)

    with store.reading() as view:
        assert view.value("SELECT length FROM notes") == 7
        assert view.rows(uses, ()) == []
        (last,) = view.events(after=3)
    assert (last.type, last.stream, last.version, last.actor) == (
        "store.opened",
        "store",
        3,
        "application",
    )
    assert store.replay_verify() == []
    assert store.verify().ok
    tables = "sqlite_master" if database == "sqlite" else "pg_class"
    column = "name" if database == "sqlite" else "relname"
    with store._looking() as db:  # Nobody has a use for the table of a projection that is gone.
        found = db.execute(f"SELECT count(*) FROM {tables} WHERE {column} = 'spend'").fetchone()
        named = "SELECT count(*) FROM meta WHERE key = 'table:spend'"
        assert db.execute(named).fetchone() == (0,)
    if database == "sqlite":
        assert found == (0,)
    assert (len(backups(home)) == 1) == (database == "sqlite")
    append(store)
    assert store.replay_verify() == []


def test_a_reader_of_the_file_sees_what_was_there_until_it_ends(home):
    store = open_store(home)
    with store.reading() as view:
        before = view.value("SELECT count(*) FROM notes")
        open_store(home, projections=NEXT).close()

        assert (view.position, view.value("SELECT count(*) FROM spend")) == (3, 0)
        assert view.value("SELECT count(*) FROM notes") == before == 1


def test_a_reader_on_a_server_is_waited_for_and_then_told_of(tmp_path, dsn):
    home = tmp_path / "home"
    store = open_store(home)
    with store.reading() as view:
        view.value("SELECT count(*) FROM notes")
        with pytest.raises(StoreBusy, match="then try again"):
            open_store(home, projections=NEXT, wait_s=0.2)

    assert len(openings(store)) == 1
    assert store.replay_verify() == []
    assert len(openings(open_store(home, projections=NEXT))) == 2


@on_both
def test_processes_that_open_an_older_database_at_once_migrate_it_once(home, database):
    script = (
        "from tests.adapters.next_schema import NEXT;"
        "store = open_store(home, projections=NEXT); print(store.head().position)"
    )
    running = [process(script, home) for _ in range(4)]

    assert [line for one in running for line in ended(one)] == ["4"] * 4

    store = open_store(home, projections=NEXT)
    assert len(openings(store)) == 2
    assert store.verify().ok
    assert store.replay_verify() == []
    assert len(backups(home)) == (database == "sqlite")


@on_both
def test_a_log_that_other_programs_began_gets_no_event_of_ours(tmp_path):
    open_store(tmp_path / "home", announce=False).close()

    store = open_store(tmp_path / "home", projections=NEXT)

    with store.reading() as view:
        assert view.position == 0
        assert view.rows(longer_notes, ()) == []


# When it cannot be done.


class Unable(Exception):
    pass


def unable(rows, event):
    raise Unable


UNABLE = (
    *(each for each in NEXT if each is not longer_notes),
    module("unable", **{**longer_notes.__dict__, "evolve": unable}),
)


# Its table is the last of all, so that the others have been made anew by then.
HALF_MADE = (*NEXT, module("half_made", **{**uses.__dict__, "SCHEMA": ("CREATE TABLE half (x",)}))


@on_both
@pytest.mark.parametrize(("projections", "error"), [(UNABLE, Unable), (HALF_MADE, StoreError)])
def test_a_migration_that_fails_leaves_what_was_there(home, projections, error):
    for _ in range(2):
        with pytest.raises(error):
            open_store(home, projections=projections)

    store = open_store(home)  # To the older program it is the same as ever.
    assert len(openings(store)) == 1
    assert store.replay_verify() == []
    append(store)
    assert store.verify().ok


def killing_at(number):
    """From now on the process ends itself, as by kill -9, at its so manieth touch of a file."""
    touches = 0

    def touched(event, arguments):
        nonlocal touches
        if event.startswith(("open", "os.", "fcntl.", "sqlite3.connect")) and not (
            event == "open" and str(arguments[0]).endswith((".py", ".pyc"))
        ):
            touches += 1
            if touches == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(touched)
    return lambda: touches


def migrating(home, number):
    count = killing_at(number)
    opened_old(home).close()
    print(count())


def test_killed_at_any_point_a_migration_has_happened_or_has_not(old, tmp_path):
    counted = tmp_path / "counted"
    shutil.copytree(old, counted)
    counting = Process(migrating, counted, -1, output=tmp_path / "count")
    assert counting.ended() == 0, counting.said
    touches = int(counting.said)
    assert touches > 15
    before = log_of(old / "threadbook.sqlite")
    ends = set()

    for number in range(1, touches + 1):
        home = tmp_path / f"home-{number}"
        shutil.copytree(old, home)
        victim = Process(migrating, home, number, output=tmp_path / "said")
        assert victim.ended() == -signal.SIGKILL, number
        with closing(sqlite3.connect(home / "threadbook.sqlite")) as db:
            (schema,) = db.execute("PRAGMA user_version").fetchone()
            tables = db.execute("SELECT value FROM meta WHERE key = 'projections'").fetchone()
            (position,) = db.execute("SELECT max(position) FROM events").fetchone()
        ends.add((schema, position - len(before), tables))
        whole = [path for path in backups(home) if path.suffix == ".sqlite"]
        assert all(log_of(path) == before for path in whole), number
        assert whole or schema == 1, "changed without a backup"

        store = opened_old(home)
        assert len(openings(store)) == 2, number
        assert store.verify().ok
        assert store.replay_verify() == []
        assert [path.suffix for path in backups(home)] == [".sqlite"]
        store.close()
        shutil.rmtree(home)
    assert {(schema, more) for schema, more, _ in ends} == {(1, 0), (dialect.SCHEMA_NUMBER, 1)}
    assert len(ends) == 2


def test_without_a_place_for_the_backup_nothing_is_changed(old):
    (old / "backups").write_text("no folder")
    before = log_of(old / "threadbook.sqlite")

    with pytest.raises(
        StoreUnreadable, match=r"only after a copy .*/backups, which failed"
    ) as told:
        opened_old(old)

    assert "see to it that the folder may be written" in str(told.value)
    assert "\n" not in str(told.value)
    assert log_of(old / "threadbook.sqlite") == before
    assert rows_of(old / "threadbook.sqlite", "PRAGMA user_version") == [(1,)]


FULL = """
import resource
from threadbook.adapters.store import StoreFull
from tests.adapters.test_migrations import opened_old
size = (home / "threadbook.sqlite").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))
try:
    opened_old(home)
except StoreFull as error:
    print(str(error).replace(" ", "_"))
"""


def test_on_a_full_disk_nothing_is_changed_and_room_is_asked_for(old):
    before = log_of(old / "threadbook.sqlite")

    (told,) = ended(process(FULL, old))

    assert "nothing_was_changed" in told
    assert "has_room_for_the_copy" in told
    assert backups(old) == []
    assert log_of(old / "threadbook.sqlite") == before
    assert len(openings(opened_old(old))) == 2


# Who else is there.


def newer(home, database, number):
    edit(
        home,
        f"PRAGMA user_version = {number}"
        if database == "sqlite"
        else f"UPDATE meta SET value = '{number}' WHERE key = 'schema'",
    )


@on_both
def test_a_program_that_was_running_writes_nothing_to_tables_that_it_does_not_know(home, database):
    store = open_store(home)
    newer(home, database, dialect.SCHEMA_NUMBER + 1)

    with pytest.raises(StoreMismatch, match=r"changed the tables .* start it again"):
        append(store)
    for act in (store.replay_rebuild, store._migrate):
        with pytest.raises(StoreMismatch, match="update"):
            act()

    with store.reading() as view:
        assert view.position == 3
    newer(home, database, dialect.SCHEMA_NUMBER)
    append(store)


@on_both
def test_tables_of_a_newer_program_are_not_made_older(home, database):
    newer(home, database, dialect.SCHEMA_NUMBER + 1)

    with pytest.raises(StoreMismatch, match=r"newer Threadbook .* update this program"):
        open_store(home)
    with pytest.raises(StoreMismatch, match=r"newer Threadbook .* update this program"):
        open_store(home, projections=NEXT)

    assert backups(home) == []


@on_both
def test_tables_of_an_older_number_are_made_anew_also_where_they_are_defined_alike(home, database):
    newer(home, database, dialect.SCHEMA_NUMBER - 1)
    edit(home, "UPDATE notes SET via = 'mcp'")  # As another evolve would have had it.

    store = open_store(home)

    assert store.replay_verify() == []
    assert len(openings(store)) == 2


@on_both
@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_log_in_an_older_database_is_migrated(tmp_path, database, version):
    home = tmp_path / "home"
    store = open_store(home)
    old = lines(version)
    with store._writing(actor="pipeline", run_id=None) as writing:
        for line in old:
            after_ours = line["version"] + (line["stream"] == "store")
            data = json.dumps(line["data"], ensure_ascii=False)
            writing.record(line["stream"], after_ours, line["type"], data)
    store.close()
    newer(home, database, 1)

    clock = [each["data"]["clock"] for each in old if each["type"] == "store.opened"][-1]
    store = open_store(home, simulated=clock == "simulated")

    assert store.replay_verify() == []
    assert store.verify().checked == len(old) + 2
    assert openings(store)[-1].schema == dialect.SCHEMA_NUMBER
    assert openings(store)[-1].clock == clock


@on_both
def test_a_column_that_came_with_schema_3_is_filled_from_the_log(home, database):
    store = open_store(home)
    seen = {"root": None, "scope": "global", "preview_ref": None, "mode_reason": "default"}
    for number, machine_id in enumerate((None, "a-machine")):
        new = Thread(thread_id=f"new-{number}")
        event = register(
            new, header=header(), mode="enabled", machine_id=machine_id, now=NOON, **seen
        )
        with store.writing(actor="pipeline") as writing:
            writing.append(thread_stream(new.thread_id), event)
    store.close()
    newer(home, database, 2)
    edit(
        home,
        "ALTER TABLE threads DROP COLUMN machine_id",
        "UPDATE meta SET value = 'another' WHERE key IN ('projections', 'table:threads')",
        "DELETE FROM meta WHERE key = 'tables'",
    )

    store = open_store(home)

    with store.reading() as view:
        found = view.find(threads, threads.NEWEST_FIRST)
    assert {row.thread_id: row.machine_id for row in found} == {
        "new-0": None,
        "new-1": "a-machine",
    }
    assert store.replay_verify() == []
    assert len(openings(store)) == 2


# The backup.


def test_a_backup_that_is_put_back_is_the_older_programs_database(home):
    open_store(home, projections=NEXT).close()
    (backup,) = backups(home)
    for file in home.glob("threadbook.sqlite*"):
        file.unlink()
    (home / "head").unlink()
    shutil.copy(backup, home / "threadbook.sqlite")

    store = open_store(home)

    assert store.verify().checked == 3
    assert store.replay_verify() == []
    with store._looking() as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    append(store)


def test_a_backup_goes_with_the_first_of_its_texts_that_is_forgotten(old, tmp_path):
    home = Home(tmp_path, now=NOON + 9 * HOUR_S)
    (told,) = home.memory.status()["backups"]

    home.memory.forget(Session(number=3).id)

    assert f"{backup_name(told)}, made 2026-01-01 21:00:00Z (0:00:00 ago)" in told
    assert backups(old) == []
    assert home.memory.status()["backups"] == home.memory.status()["erasures_pending"] == []
    assert KESTREL not in bytes_of(old)


def backup_name(told):
    return told.partition(",")[0]


def test_a_backup_goes_before_the_forgetting_is_committed(old):
    store = opened_old(old)
    (backup,) = backups(old)
    with store.writing(actor="application") as writing:
        writing.erase(owners=[f"thread:{Session(number=3).id}"])
        assert backup.exists()

    assert not backup.exists()


def test_a_backup_stays_while_every_text_in_it_does(old):
    store = opened_old(old)
    with store.writing(actor="application") as writing:
        ref = writing.put("store", "written since")
    with store.writing(actor="application") as writing:
        writing.erase(refs=[ref])

    assert len(backups(old)) == 1
    assert store.pending_erasures() == []


def test_what_a_killed_migration_left_goes_with_an_erasure_too(old):
    store = opened_old(old)
    part = old / "backups" / "schema-1-position-7.part"
    shutil.copy(*backups(old), part)

    with store.writing(actor="application") as writing:
        ref = writing.put("store", "written since")
    assert part.exists()
    with store.writing(actor="application") as writing:
        writing.erase(refs=[ref])

    assert [path.suffix for path in backups(old)] == [".sqlite"]


@pytest.mark.parametrize("is_linked", [False, True])
def test_what_a_person_keeps_beside_the_backups_stays_as_it_is(old, tmp_path, is_linked):
    folder = tmp_path / "elsewhere" if is_linked else old / "backups"
    (folder / "old").mkdir(mode=0o755, parents=True)
    if is_linked:
        (old / "backups").symlink_to(folder)
    for name in ("letter.txt", "taxes.sqlite"):
        (folder / name).write_text("my own")
    (folder / "schema-1-position-2.sqlite").symlink_to(folder / "letter.txt")
    mode = folder.stat().st_mode

    store = opened_old(old)
    with store.writing(actor="application") as writing:
        writing.erase(owners=[f"thread:{Session(number=3).id}", *CONSOLIDATIONS])

    assert sorted(os.listdir(folder)) == ["letter.txt", "old", "taxes.sqlite"]
    assert {path.read_text() for path in folder.iterdir() if path.is_file()} == {"my own"}
    assert not is_linked or folder.stat().st_mode == mode
    assert store.pending_erasures() == []
    assert KESTREL not in bytes_of(old)


def test_a_backup_of_texts_that_the_older_program_has_erased_since_goes_with_the_next_migration(
    old,
):
    kept = old / "backups" / "schema-1-position-7.sqlite"
    kept.parent.mkdir()
    with closing(sqlite3.connect(old / "threadbook.sqlite")) as db:
        db.execute("VACUUM INTO ?", (str(kept),))  # As a migration that was killed left it.
        db.execute("DELETE FROM bodies WHERE owner = ?", (f"thread:{Session(number=3).id}",))
        db.commit()

    opened_old(old)

    assert kept not in backups(old)
    assert len(backups(old)) == 1


def test_a_backup_that_cannot_be_removed_is_told_as_pending_until_it_is_gone(old):
    store = opened_old(old)
    stuck = old / "backups" / "schema-1-position-7.sqlite"
    stuck.mkdir()

    with store.writing(actor="application") as writing:
        writing.erase(owners=[f"thread:{Session(number=3).id}", *CONSOLIDATIONS])
    (pending,) = store.pending_erasures()
    stuck.rmdir()

    assert f"{stuck}, which could not be removed: remove it" in str(pending)
    assert store.pending_erasures() == []
    assert KESTREL not in bytes_of(old)
