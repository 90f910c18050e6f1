"""One memory in PostgreSQL and several machines, each with a home of its own."""

import shutil
import threading

import pytest
from msgspec.structs import replace
from threadbook.adapters.offline import OfflineConsolidator
from threadbook.adapters.store import StoreSealed
from threadbook.application.ports import Proposal
from threadbook.domain.events import (
    FolderEdited,
    RootRendered,
    ThreadChanged,
    ThreadRegistered,
    thread_stream,
)
from threadbook.projections import threads

from tests.adapters.stores import DSN
from tests.application.homes import DAY_S, NOON, Home, Session, content, used
from tests.postgres import server

RULE = "from now on always run make check before you commit"
KESTREL = "from now on always feed the kestrel before noon"
GATE = "from now on always close the gate"
HALF_AN_HOUR_S = 1_800
REMOTE = "https://example.org/fern.git"


def session(number, says, **more):
    return Session(number=number, says=(says,), repository_url=REMOTE, **more)


class Machines:
    """`make(name)` is a home of one more machine; the first one makes the memory."""

    def __init__(self, folder):
        self.folder = folder
        self.dsn = server().dsn()
        self.homes = {}

    def make(self, name, *, keys_of=None):
        folder = self.folder / name
        folder.mkdir()
        (folder / DSN).write_text(self.dsn)
        if keys_of is not None:
            (folder / "home").mkdir(mode=0o700)
            shutil.copy(keys_of.path / "keys.sqlite", folder / "home" / "keys.sqlite")
        self.homes[name] = Home(folder)
        return self.homes[name]

    def run(self, name, **options):
        """A run of that machine, whose disk has nothing of what lies on the others'."""
        others = [home.sessions for other, home in self.homes.items() if other != name]
        for folder in others:
            folder.rename(folder.with_name("on another disk"))
        try:
            return self.homes[name].run(**options)
        finally:
            for folder in others:
                folder.with_name("on another disk").rename(folder)

    def are_quiet(self):
        """Two runs of each have nothing to say, and the folders are equal."""
        for name in [*self.homes] * 2:
            home = self.homes[name]
            before = home.position
            self.run(name)
            assert home.types(after=before) == [], name
        first, *others = (content(home.root()) for home in self.homes.values())
        assert all(each == first for each in others)

    def close(self):
        for home in self.homes.values():
            home.memory.close()


@pytest.fixture
def machines(tmp_path):
    found = Machines(tmp_path)
    yield found
    found.close()


@pytest.fixture
def ann(machines):
    """The first machine, with one session remembered."""
    home = machines.make("ann")
    home.write(session(1, RULE))
    home.run()
    return home


def words(root):
    return "".join(content(root).values())


# Keys.


def test_a_machine_without_the_keys_looks_and_is_told_what_is_missing(machines, ann):
    ben = machines.make("ben")

    status = ben.memory.status()
    (thread,) = ben.memory.threads()
    past = ben.memory.at()

    assert "copy keys.sqlite from the home of a machine" in status["sealed"]
    assert thread.thread_id == session(1, RULE).id
    assert past["outputs"][0]["raw_memory"] == "[erased]"
    assert ben.memory.verify().ok
    assert ben.memory.store.replay_verify() == []
    assert used(ben.memory, [thread.thread_id], session="s", turn=1) == 1


def test_a_machine_without_the_keys_changes_nothing_that_is_made_of_words(machines, ann):
    ben = machines.make("ben")
    ben.write(session(2, KESTREL))
    before = ann.position

    for act in (
        ben.run,
        lambda: ben.memory.forget(session(1, RULE).id),
        lambda: ben.memory.export(ben.folder / "out"),
        lambda: ben.memory.ingest([ben.sessions]),
    ):
        with pytest.raises(StoreSealed, match=r"copy keys\.sqlite"):
            act()

    assert ann.position == before
    assert not (ben.path / "memories").exists()
    assert not (ben.path / "keys.sqlite").exists()


def test_a_key_file_that_is_copied_once_opens_what_is_written_later_on_either_side(machines, ann):
    ben = machines.make("ben", keys_of=ann)
    ben.write(session(2, KESTREL))

    ben.run()
    ann.run()

    assert content(ann.root()) == content(ben.root())
    assert {"make check", "kestrel"} <= {
        w for w in ("make check", "kestrel") if w in words(ann.root())
    }


# Folders.


def test_a_second_machine_renders_its_folder_and_takes_nothing_for_a_persons_edit(machines, ann):
    ben = machines.make("ben", keys_of=ann)

    ben.run([ben.sessions])

    assert content(ben.root()) == content(ann.root())
    assert ben.events(FolderEdited) == []
    assert len(ben.events(RootRendered)) == 1  # The same folder needs no second manifest.


def test_an_older_folder_of_a_second_machine_is_rendered_not_taken_for_edits(machines, ann):
    ben = machines.make("ben", keys_of=ann)
    ben.run([ben.sessions])
    older = content(ben.root())
    ann.write(session(2, KESTREL))
    ann.run()
    assert content(ann.root()) != older == content(ben.root())

    ben.run([ben.sessions])

    assert content(ben.root()) == content(ann.root())
    assert ben.events(FolderEdited) == []
    assert ben.memory.replay_verify() == ann.memory.replay_verify() == []


def test_what_a_person_left_in_a_second_machines_folder_is_kept(machines, ann):
    ben = machines.make("ben", keys_of=ann)
    ben.run([ben.sessions])
    (ben.root() / "MEMORY.md").write_text("mine\n")
    (ben.root() / "memory_summary.md").unlink()
    ann.write(session(2, KESTREL))
    ann.run()
    before = ann.position

    ben.run([ben.sessions])

    edits = ben.events(FolderEdited)
    assert "phase2.lease_claimed" in ben.types(after=before)  # A consolidator has to see them.
    assert sorted(each.deleted for each in edits) == [False, True]
    assert "mine\n" in content(ben.root())["MEMORY.md"]
    ann.run()
    assert content(ben.root()) == content(ann.root())


class WithSkill:
    """The offline consolidator, and a skill of its own beside what it writes."""

    name = "offline"
    kind = "offline"

    def propose(self, task):
        files = OfflineConsolidator().propose(task).files
        skill = "---\nname: gate\ndescription: x\n---\nclose it\n"
        return Proposal(files={**files, "skills/gate/SKILL.md": skill})


def test_a_file_that_came_or_went_while_another_machine_rendered_is_nobodys_act(machines, ann):
    ben = machines.make("ben", keys_of=ann)
    ben.run([ben.sessions])
    skill = ben.root() / "skills" / "gate" / "SKILL.md"

    ann.write(session(2, KESTREL))
    ann.run_with(consolidator=WithSkill())
    ben.run([ben.sessions])
    assert skill.exists()
    assert ben.types().count("phase2.lease_claimed") == 2  # What was published is only rendered.
    ann.write(session(3, "from now on always close the gate"))
    ann.run()
    ben.run([ben.sessions])

    assert not skill.exists()
    assert ben.events(FolderEdited) == []
    assert content(ben.root()) == content(ann.root())


def test_an_older_folder_is_known_also_when_the_log_no_longer_knows_what_it_held(machines, ann):
    ben = machines.make("ben", keys_of=ann)
    ben.run([ben.sessions])
    ann.reopened(history_days=0)
    ann.write(session(2, KESTREL))
    ann.run()

    ben.run([ben.sessions])

    assert ben.events(FolderEdited) == []
    assert content(ben.root()) == content(ann.root())


# Forgetting.


def test_what_one_machine_forgets_leaves_the_others_folder_and_key_file(machines, ann):
    ann.write(session(2, KESTREL))
    ann.run()
    ben = machines.make("ben", keys_of=ann)
    ben.run([ben.sessions])
    assert "kestrel" in words(ben.root())

    ann.memory.forget(session(2, KESTREL).id)
    (pending,) = ann.memory.status()["erasures_pending"]
    ben.run([ben.sessions])

    assert "key file of machine" in pending
    assert ann.memory.status()["erasures_pending"] == []
    assert ben.events(FolderEdited) == []
    assert content(ben.root()) == content(ann.root())
    left = b"".join(f.read_bytes() for f in ben.path.rglob("*") if f.is_file())
    assert b"kestrel" not in left


def test_an_edit_in_a_folder_that_has_not_followed_a_forgetting_is_not_kept(machines, ann):
    ann.write(session(2, KESTREL))
    ann.run()
    ben = machines.make("ben", keys_of=ann)
    ben.run([ben.sessions])
    with (ben.root() / "MEMORY.md").open("a") as file:
        file.write("and kestrels like mice\n")

    ann.memory.forget(session(2, KESTREL).id)
    ben.run([ben.sessions])

    assert ben.events(FolderEdited) == []
    assert content(ben.root()) == content(ann.root())
    assert b"kestrel" not in b"".join(f.read_bytes() for f in ben.path.rglob("*") if f.is_file())


def test_a_text_whose_key_is_erased_stays_unreadable_when_the_database_comes_back(machines, ann):
    def bodies(*statements):
        return server().admin(*statements, schema=machines.dsn.rpartition("=")[2])

    ref = ann.outputs()[0].raw_memory_ref
    bodies("CREATE TABLE backup AS SELECT * FROM bodies")

    ann.memory.forget(session(1, RULE).id)
    bodies("INSERT INTO bodies SELECT * FROM backup ON CONFLICT DO NOTHING")

    assert bodies(f"SELECT count(*) FROM bodies WHERE ref = '{ref}'") == [(1,)]
    with ann.memory.store.reading() as view:
        assert view.body(ref) is None


def test_no_word_stands_in_the_database(machines, ann):
    schema = machines.dsn.rpartition("=")[2]
    tables = server().admin(f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'")

    rows = [
        server().admin(f"SELECT t::text FROM {table} AS t", schema=schema) for (table,) in tables
    ]

    assert len(rows) > 10
    everything = "".join(row for found in rows for (row,) in found)
    assert session(1, RULE).id in everything
    assert "make check" not in everything
    assert b"make check".hex() not in everything


# At once.


def test_two_machines_that_start_at_once_on_an_empty_database_make_one_memory(machines):
    homes, failed = [], []

    def start(name):
        try:
            homes.append(machines.make(name))
        except BaseException as error:
            failed.append(error)

    running = [threading.Thread(target=start, args=(f"m{n}",)) for n in range(4)]
    for one in running:
        one.start()
    for one in running:
        one.join()

    assert failed == []
    assert [home.types() for home in homes] == [["store.opened"]] * 4
    keys = [home for home in homes if (home.path / "keys.sqlite").exists()]
    assert len(keys) == 1  # Whose the keys are is decided once; the others are told to copy them.


def test_an_unread_session_of_each_machine_is_extracted_once(machines, ann):
    ben = machines.make("ben", keys_of=ann)
    ann.write(session(2, KESTREL))
    ben.write(session(3, "from now on always close the gate", ended_at=NOON - DAY_S))

    running = [threading.Thread(target=home.run) for home in (ann, ben)]
    for one in running:
        one.start()
    for one in running:
        one.join()
    ann.run()
    ben.run()

    assert ann.types().count("stage1.succeeded") == 3
    assert content(ann.root()) == content(ben.root())
    assert ann.memory.replay_verify() == ben.memory.replay_verify() == []
    assert ann.memory.verify().ok


# One session on several disks.


def gone_on(known, *more):
    """The same session, that went on for half an hour."""
    return replace(
        known,
        says=(*known.says, *more),
        ended_at=known.ended_at + HALF_AN_HOUR_S,
        repository_url=REMOTE,
    )


def registered(home):
    with home.memory.store.reading() as view:
        return view.rows(threads, ())


def test_two_machines_with_a_copy_each_of_a_session_do_not_take_turns(machines, ann):
    ben = machines.make("ben", keys_of=ann)
    ben.write(session(1, RULE))
    before = ann.position

    machines.run("ben")
    machines.run("ann")

    assert set(ann.types(after=before)) <= {"phase2.root_rendered"}
    (thread,) = registered(ann)
    assert thread.rollout_path == str(ann.file(session(1, RULE)))
    assert content(ann.root()) == content(ben.root())
    machines.are_quiet()
    assert str(ben.sessions) not in words(ben.root())


def test_a_session_that_went_on_elsewhere_is_known_from_there_and_read_once(machines, ann):
    ben = machines.make("ben", keys_of=ann)
    twice = gone_on(session(1, RULE), KESTREL)
    ben.write(twice)

    machines.run("ben")
    machines.run("ann")

    assert ann.types().count("stage1.succeeded") == 2
    (thread,) = registered(ann)
    assert (thread.rollout_path, thread.machine_id) == (
        str(ben.file(session(1, RULE))),
        ben.memory._around.machine_id,
    )
    assert "kestrel" in words(ann.root())
    assert content(ann.root()) == content(ben.root())
    machines.are_quiet()

    ann.write(gone_on(twice, GATE))
    machines.run("ann")
    machines.run("ben")
    assert registered(ann)[0].rollout_path == str(ann.file(session(1, RULE)))
    assert content(ann.root()) == content(ben.root())
    machines.are_quiet()
    assert ann.memory.replay_verify() == ben.memory.replay_verify() == []


def test_an_unread_session_is_read_from_this_machines_copy(machines, ann):
    ben = machines.make("ben", keys_of=ann)
    for home in (ann, ben):
        home.write(session(2, KESTREL))
    ann.memory.ingest([ann.sessions])
    ann.file(session(2, KESTREL)).unlink()

    report = machines.run("ben")

    assert report.stage1.succeeded == 1
    assert "kestrel" in words(ben.root())
    assert str(ben.sessions) not in words(ben.root())


def test_a_path_that_another_machine_saw_is_not_read_here_whatever_lies_there(machines, ann):
    ben = machines.make("ben", keys_of=ann)
    ann.write(session(2, KESTREL))
    ann.memory.ingest([ann.sessions])
    other = session(9, "from now on always trust the weasel")
    ann.file(session(2, KESTREL)).write_text(other.text())  # The path, as it is on ben's disk.
    ben.write(session(3, GATE))

    report = ben.run()

    assert report.waiting == {"source_missing": 1}
    assert "weasel" not in words(ben.root())
    assert len(registered(ben)) == 3


def test_an_older_copy_is_not_read_for_what_another_machine_knows_is_newer(machines, ann):
    ben = machines.make("ben", keys_of=ann)
    ann.write(session(2, KESTREL))
    ben.write(gone_on(session(2, KESTREL), GATE))
    ben.memory.ingest([ben.sessions])

    report = machines.run("ann")

    assert report.stage1.claimed == 0
    assert report.waiting == {"source_missing": 1}
    machines.run("ben")
    machines.run("ann")
    assert "close the gate" in words(ann.root())
    assert content(ann.root()) == content(ben.root())


def test_a_session_archived_where_it_is_known_is_followed_and_not_elsewhere(machines, ann):
    ben = machines.make("ben", keys_of=ann)
    ben.write(session(1, RULE))
    machines.run("ben")
    machines.run("ann")
    moved_to_archive(ben, session(1, RULE))

    machines.are_quiet()
    moved_to_archive(ann, session(1, RULE))
    machines.run("ann")
    machines.run("ben")

    assert registered(ann)[0].archived == 1
    assert "archived_sessions" in registered(ann)[0].rollout_path
    assert content(ann.root()) == content(ben.root())
    machines.are_quiet()


def moved_to_archive(home, session):
    archive = home.sessions / "archived_sessions"
    archive.mkdir()
    shutil.move(home.file(session), archive / home.file(session).name)


def test_a_path_of_nobody_knows_whom_is_read_only_where_it_is_that_session(machines, ann):
    ben = machines.make("ben", keys_of=ann)
    (known,) = ann.events(ThreadRegistered)
    other = session(9, "from now on always trust the weasel")
    ann.write(other)
    same = session(3, GATE)
    ann.write(same)
    for each, path in ((session(2, KESTREL), ann.file(other)), (same, ann.file(same))):
        of_old = replace(known, thread_id=each.id, machine_id=None, rollout_path=str(path))
        with ann.memory.store.writing(actor="pipeline") as tx:
            tx.append(thread_stream(each.id), of_old)

    report = ben.run()

    assert (report.stage1.succeeded, report.waiting) == (1, {"source_missing": 1})
    assert "weasel" not in words(ben.root())
    assert "close the gate" in words(ben.root())


def test_a_path_from_before_machines_were_told_apart_settles_on_one(machines, ann):
    ben = machines.make("ben", keys_of=ann)
    (known,) = ann.events(ThreadRegistered)
    of_old = replace(
        known, thread_id=session(2, KESTREL).id, machine_id=None, rollout_path="/n.jsonl"
    )
    with ann.memory.store.writing(actor="pipeline") as tx:
        tx.append(thread_stream(of_old.thread_id), of_old)
    for home in (ann, ben):
        home.write(session(2, KESTREL))

    for name in ("ann", "ben", "ann"):
        machines.run(name)

    (changed,) = ann.events(ThreadChanged)
    assert changed.machine_id == ann.memory._around.machine_id
    assert content(ann.root()) == content(ben.root())
    machines.are_quiet()
