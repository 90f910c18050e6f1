"""A backup that was put back is refused until somebody accepts it, and brings nobody back."""

import shutil
import sqlite3

import pytest
from threadbook import Memory
from threadbook.adapters.care import accept_restore
from threadbook.adapters.store import StoreDamaged, head
from threadbook.application import forget
from threadbook.domain.events import StoreOpened

from tests.adapters.stores import dsn_beside, edit
from tests.adapters.test_migrations import loaded
from tests.application.homes import FERN, HOUR_S, NOON, Session, content
from tests.application.planted import PLANTED, Planted, left_in
from tests.postgres import schema_of, server

OTHER = Session(number=2, cwd=FERN, says=("hello", "please never use tabs, always spaces"))
LATER = Session(number=3, cwd=FERN, says=("hello", "from now on always sing a storkish song"))


@pytest.fixture
def restored(home, tmp_path):
    """Two sessions, a backup of the database, a forgetting and one session more; and the backup."""
    home.write(Planted(cwd=FERN), OTHER)
    home.run()
    home.backup_at = home.position
    home.memory.close()
    copy = sqlite3.connect(tmp_path / "backup.sqlite")
    with sqlite3.connect(home.path / "threadbook.sqlite") as db:
        db.backup(copy)
    copy.close()
    db.close()
    home.reopened()
    home.memory.forget(Planted().id)
    home.write(LATER)
    home.later(60).run()
    home.came_to = home.position
    home.memory.close()
    for beside in ("-wal", "-shm"):
        (home.path / f"threadbook.sqlite{beside}").unlink(missing_ok=True)
    shutil.copy(tmp_path / "backup.sqlite", home.path / "threadbook.sqlite")
    return home


def accepted(home):
    told = accept_restore(home.path, clock=lambda: home.now)
    home.memory = home.another()
    return told


def test_until_somebody_accepts_it_everything_is_refused_with_what_to_do(restored):
    with pytest.raises(StoreDamaged, match="--accept-restore"):
        restored.another()


def test_what_is_accepted_is_recorded_and_the_log_goes_on(restored):
    told = accepted(restored)

    assert (told.came_to, told.position) == (restored.came_to, restored.backup_at)
    opened = restored.events(StoreOpened)[-1]
    assert (opened.restored_from, opened.clock) == (restored.came_to, "simulated")
    assert restored.memory.verify().ok
    assert restored.memory.store.head().position == restored.position


def test_what_was_forgotten_since_the_backup_is_forgotten_again(restored):
    told = accepted(restored)

    assert told.forgotten_again == [Planted().id]
    assert left_in(restored.path, *PLANTED.values()) == []
    restored.run()
    assert left_in(restored.path, *PLANTED.values()) == []


def test_the_next_run_learns_again_what_the_backup_did_not_have(restored):
    folder = content(restored.root())
    accepted(restored)

    restored.run()

    assert content(restored.root()) == folder
    assert restored.memory.replay_verify() == []


def test_a_log_that_was_changed_is_no_restored_one(restored):
    db = sqlite3.connect(restored.path / "threadbook.sqlite")
    db.execute("UPDATE events SET actor = 'human:cli' WHERE position = 3")
    db.commit()
    db.close()

    with pytest.raises(StoreDamaged, match="was changed"):
        accept_restore(restored.path, clock=lambda: restored.now)

    with pytest.raises(StoreDamaged, match="--accept-restore"):
        restored.another()


def test_a_log_that_is_well_may_be_accepted_and_loses_nothing(home):
    home.write(OTHER)
    home.run()
    before = content(home.root())
    home.memory.close()

    told = accepted(home)

    assert told.position == told.came_to
    assert home.memory.verify().ok
    assert content(home.root()) == before


def test_a_folder_of_the_days_that_are_lost_is_not_read_for_this_logs(home, tmp_path):
    home.write(OTHER)
    home.run()
    home.memory.close()
    shutil.copy(home.path / "threadbook.sqlite", tmp_path / "backup.sqlite")
    home.reopened()
    home.write(LATER)
    home.run()
    home.memory.close()
    shutil.copy(tmp_path / "backup.sqlite", home.path / "threadbook.sqlite")

    accepted(home)

    assert "storkish" in content(home.root())["MEMORY.md"]
    assert "storkish" not in home.memory.read("MEMORY.md", cwd=FERN).content


@pytest.fixture
def put_back(home, tmp_path):
    """A database of an earlier day with no head beside it, as an older program needs it; in the
    folder is what came after."""
    home.write(OTHER)
    home.run()
    home.memory.close()
    shutil.copy(home.path / "threadbook.sqlite", tmp_path / "backup.sqlite")
    home.reopened()
    for number in range(3, 7):
        home.write(
            Session(number=number, cwd=FERN, says=("hello", f"always sing storkish {number}"))
        )
        home.later(60).run()
    home.memory.close()
    shutil.copy(tmp_path / "backup.sqlite", home.path / "threadbook.sqlite")
    (home.path / "head").unlink()
    home.memory = home.another()
    return home


def test_a_folder_from_behind_the_logs_end_is_not_read_for_it(put_back):
    assert "storkish" in content(put_back.root())["MEMORY.md"]
    assert "storkish" not in put_back.memory.read("MEMORY.md", cwd=FERN).content


def test_a_folder_from_behind_the_logs_end_is_emptied_by_a_reset(put_back):
    put_back.memory.reset()

    assert content(put_back.root()) == {}


def test_a_folder_from_behind_the_logs_end_keeps_a_persons_file_and_follows(put_back):
    (put_back.root() / "mine.md").write_text("a file of my own\n")
    put_back.file(OTHER).unlink()
    before = [each.thread_id for each in put_back.memory.threads()]

    put_back.run([put_back.sessions])

    assert content(put_back.root())["mine.md"] == "a file of my own\n"
    assert len(put_back.memory.threads()) > len(before)
    assert put_back.memory.replay_verify() == []


def test_a_folder_that_another_log_left_is_not_read_for_an_imported_one(home, tmp_path):
    home.write(OTHER)
    home.run()
    home.memory.export_log(tmp_path / "log.jsonl")
    forget_the_log(home)
    shutil.rmtree(home.path / "memories")
    home.file(OTHER).unlink()
    home.write(LATER)
    home.memory = home.another()
    home.run()
    (home.root() / "mine.md").write_text("a file of my own\n")
    forget_the_log(home)

    Memory.import_log(tmp_path / "log.jsonl", home.path, simulated=True)
    home.memory = home.another()

    assert "storkish" in content(home.root())["MEMORY.md"]
    assert "storkish" not in home.memory.read("MEMORY.md", cwd=FERN).content
    home.run()
    assert content(home.root())["mine.md"] == "a file of my own\n"


def forget_the_log(home):
    home.memory.close()
    for file in (*home.path.glob("threadbook.sqlite*"), home.path / "head"):
        file.unlink()


@pytest.mark.parametrize("was_reset", [False, True])
def test_what_a_person_left_in_the_folder_meanwhile_outlives_the_restoring(
    home, tmp_path, was_reset
):
    home.write(OTHER)
    home.run()
    if was_reset:
        home.later(60).memory.reset()
        home.run()
    home.memory.close()
    shutil.copy(home.path / "threadbook.sqlite", tmp_path / "backup.sqlite")
    home.reopened()
    home.write(LATER)
    home.later(60).run()
    home.memory.close()
    (home.root() / "mine.md").write_text("a file of my own\n")
    with (home.root() / "MEMORY.md").open("a") as file:
        file.write("a line of my own\n")
    shutil.copy(tmp_path / "backup.sqlite", home.path / "threadbook.sqlite")

    accepted(home)
    home.run()

    assert content(home.root())["mine.md"] == "a file of my own\n"
    assert "a line of my own\n" in content(home.root())["MEMORY.md"]


class Killed(BaseException):
    pass


def test_who_is_killed_while_accepting_has_brought_nobody_back(restored, monkeypatch):
    def killed(around):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(forget, "again", killed)
        with pytest.raises(Killed):
            accept_restore(restored.path, clock=lambda: restored.now)
    with pytest.raises(StoreDamaged, match="--accept-restore"):
        restored.another()
    told = accepted(restored)

    assert told.forgotten_again == [Planted().id]
    assert left_in(restored.path, *PLANTED.values()) == []
    assert "storkish" not in restored.memory.read("MEMORY.md", cwd=FERN).content
    assert restored.memory.verify().ok


def test_a_database_of_an_older_program_is_accepted_and_made_todays(tmp_path):
    home = loaded(tmp_path / "home")
    (home / "head").write_bytes(head.render(head.Head(900, bytes(32))))
    (home / "erasures.log").write_text(
        f'{{"act":"forget","kind":"thread","id":"{Session(number=3).id}","position":800}}\n'
    )

    told = accept_restore(home, clock=lambda: NOON + 9.0 * HOUR_S)

    assert (told.came_to, told.forgotten_again) == (900, [Session(number=3).id])
    with Memory.open(home, clock=lambda: NOON + 9.0 * HOUR_S) as memory:
        assert memory.store.replay_verify() == []


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_a_server_that_was_restored_is_accepted_by_each_of_its_machines(database, home):
    home.write(OTHER)
    home.run()
    kept = home.position
    home.memory.note("the harbour master wants tea", cwd=home.folder)
    edit(home.path, f"DELETE FROM events WHERE position > {kept}", "DELETE FROM notes")
    with pytest.raises(StoreDamaged, match="--accept-restore"):
        home.another()

    told = accept_restore(
        home.path, clock=lambda: home.now, settings={"database": dsn_beside(home.path)}
    )

    assert told.position == kept
    assert home.another().verify().ok


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_what_is_forgotten_on_a_server_that_was_restored_goes_with_its_key(database, home):
    numbered = [
        Session(number=n, cwd=FERN, says=("hello", f"always sing song {n}")) for n in (2, 3)
    ]
    home.write(Planted(cwd=FERN), *numbered)
    home.run()
    dsn = dsn_beside(home.path)
    put_back = server_backup(schema_of(dsn))
    home.memory.forget(Planted().id)
    home.memory.close()
    put_back()
    accept_restore(home.path, clock=lambda: home.now, settings={"database": dsn})
    home.memory = home.another()

    certificate = home.memory.forget(numbered[0].id, prove=True)

    assert (certificate.verdict, certificate.keys_left) == ("clean", 0)
    assert left_in(home.path, *PLANTED.values()) == []


def server_backup(schema):
    """Copies of the schema's tables; a function that puts them back."""
    admin = server().admin
    tables = admin(f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'")
    for (name,) in tables:
        admin(f'CREATE TABLE "{schema}_{name}" AS TABLE "{schema}"."{name}"')

    def put_back():
        for (name,) in tables:
            admin(
                f'DELETE FROM "{schema}"."{name}"',
                f'INSERT INTO "{schema}"."{name}" TABLE "{schema}_{name}"',
            )

    return put_back
