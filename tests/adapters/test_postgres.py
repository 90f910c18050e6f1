"""What PostgreSQL brings along: a server that may be gone, people who may not, and other texts."""

import threading
import traceback

import pytest
from threadbook.adapters.store import (
    StoreBusy,
    StoreDamaged,
    StoreLost,
    StoreMismatch,
    StoreUnreadable,
)
from threadbook.adapters.store.dialect import SCHEMA_NUMBER
from threadbook.domain.events import ThreadRegistered
from threadbook.projections import threads
from threadbook.projections.catalog import SYNCHRONOUS

from tests.adapters.stores import DSN, NOON, append, edit, forgotten, open_store, polluted
from tests.postgres import Proxy, schema_of, server
from tests.projections.specimens import plain

SECRET = "s3cr3t-w0rd"


@pytest.fixture
def home(tmp_path, dsn):
    return tmp_path / "home"


@pytest.fixture
def store(home):
    opened = open_store(home)
    yield opened
    opened.close()


@pytest.fixture
def proxy():
    opened = Proxy()
    yield opened
    opened.close()


def opened(dsn, home, **options):
    from threadbook.adapters.store.postgres import PostgresStore

    return PostgresStore.open(
        dsn, home, projections=SYNCHRONOUS, clock=lambda: float(NOON), **options
    )


def end_every_connection():
    server().admin(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE application_name LIKE 'threadbook%'"
    )


# What stands in the way of opening.


def test_what_a_server_says_is_passed_on_without_the_password(dsn):
    from threadbook.adapters.store.postgres_place import Place

    place = Place(f"postgresql://ann:{SECRET}@host/memory?schema=ours")

    assert place.without_password(f"no {SECRET}\n here") == "no *** here"
    assert place.name == "postgresql://ann@host/memory?schema=ours"


def asked_for_a_password(dsn):
    """A user who needs one, and a DSN with another."""
    instance = server()
    rules = instance.folder / "pg_hba.conf"
    if "locked" not in rules.read_text():
        instance.admin("CREATE ROLE locked LOGIN PASSWORD 'another'")
        rules.write_text("local all locked scram-sha-256\n" + rules.read_text())
        instance.admin("SELECT pg_reload_conf()")
    return dsn.replace("//postgres:", f"//locked:{SECRET}")


WAYS_THAT_LEAD_NOWHERE = {
    "no server": (
        lambda dsn: f"postgresql://ann:{SECRET}@127.0.0.1:9/memory",
        "no server answers",
    ),
    "no such database": (
        lambda dsn: dsn.replace("/postgres?", "/nowhere?").replace(":@", f":{SECRET}@"),
        "there is no such database .* createdb nowhere",
    ),
    "no such user": (
        lambda dsn: dsn.replace("//postgres:", f"//nobody:{SECRET}"),
        "there is no such user",
    ),
    "wrong password": (asked_for_a_password, r"check the user's name, and the password in"),
    "no port": (lambda dsn: f"postgresql://ann:{SECRET}@host:port/memory", "."),
    "no option": (lambda dsn: f"postgresql://ann@host/memory?passwort={SECRET}", "cannot be read"),
    "no DSN": (lambda dsn: f"postgresql://ann:{SECRET}@[host/memory", "cannot be read"),
}


@pytest.mark.parametrize("way", WAYS_THAT_LEAD_NOWHERE)
def test_a_way_that_leads_nowhere_is_told_with_advice_and_without_the_password(way, tmp_path, dsn):
    leading_to, advice = WAYS_THAT_LEAD_NOWHERE[way]

    with pytest.raises(StoreUnreadable, match=advice) as told:
        opened(leading_to(dsn), tmp_path / "home")

    assert "\n" not in str(told.value)
    assert SECRET not in "".join(traceback.format_exception(told.value))


def test_a_schema_of_another_program_is_left_alone(tmp_path, dsn):
    server().admin(
        f'CREATE SCHEMA "{schema_of(dsn)}"', f'CREATE TABLE "{schema_of(dsn)}".t (x int)'
    )

    with pytest.raises(StoreMismatch, match="schema of another program"):
        open_store(tmp_path / "home")

    assert not (tmp_path / "home" / "keys.sqlite").exists()


def test_a_schema_of_a_newer_program_is_left_alone(home, store):
    edit(home, f"UPDATE meta SET value = '{SCHEMA_NUMBER + 1}' WHERE key = 'schema'")

    with pytest.raises(StoreMismatch, match="newer Threadbook"):
        open_store(home)


def test_a_shared_memory_keeps_to_the_kind_of_clock_it_began_with(home, store):
    with pytest.raises(StoreMismatch, match="keeps real time; leave out --now"):
        open_store(home, simulated=True)


def test_a_home_belongs_to_one_memory(tmp_path, home, store):
    (tmp_path / DSN).rename(tmp_path / "aside")

    with pytest.raises(StoreMismatch, match="a memory in PostgreSQL; open it by its DSN"):
        open_store(home)
    with pytest.raises((StoreMismatch, StoreDamaged), match=r"another memory|rows are gone"):
        opened(server().dsn(), home)


def test_a_home_with_a_memory_of_its_own_takes_no_part_in_a_shared_one(tmp_path, dsn):
    (tmp_path / DSN).rename(tmp_path / "aside")
    open_store(tmp_path / "home").close()

    with pytest.raises(StoreMismatch, match="a memory of its own"):
        opened(dsn, tmp_path / "home")


def test_another_memorys_key_file_is_refused(tmp_path, home, store):
    other = tmp_path / "other" / "home"
    opened(server().dsn(), other).close()
    third = tmp_path / "third"
    third.mkdir()
    (third / "keys.sqlite").write_bytes((other / "keys.sqlite").read_bytes())

    with pytest.raises(StoreMismatch, match="belongs to another memory"):
        opened((tmp_path / DSN).read_text(), third)


# A server that goes.


def test_a_connection_that_ended_while_nobody_used_it_is_replaced_without_a_word(store):
    append(store)
    end_every_connection()

    append(store)

    assert store.verify().checked == 3


def test_a_server_that_was_restarted_between_two_blocks_is_not_noticed(store):
    append(store)
    server().restart()

    append(store)

    assert (store.verify().ok, store.verify().checked) == (True, 3)


def test_a_connection_that_ends_inside_of_a_block_leaves_nothing_of_it(store):
    def act():
        with store.writing(actor="pipeline") as writing:
            writing.put("thread:t1", "text")
            writing.append("thread:t1", polluted())
            end_every_connection()
            writing.version("thread:t2")

    with pytest.raises(StoreLost, match="run the command again"):
        act()

    assert store.verify().checked == 1
    assert server().admin("SELECT count(*) FROM bodies", schema=store.place.schema) == [(0,)]


def test_a_commit_that_nobody_heard_of_is_told_as_lost_and_has_happened(tmp_path, dsn, proxy):
    (tmp_path / DSN).write_text(proxy.dsn(dsn))
    store = open_store(tmp_path / "home")
    proxy.commits_until_cut = 1

    with (
        pytest.raises(StoreLost, match="doing it twice changes nothing"),
        store.writing(actor="human:cli") as writing,
    ):
        writing.append("thread:t1", forgotten("t1"))

    assert proxy.cut == 1
    assert store.verify().checked == 2
    assert store.forgotten() == ["t1"]  # The line beside the log stands, as the event does.
    append(store)
    assert store.head().position == 3


def test_a_server_that_is_gone_for_good_is_told(store):
    append(store)
    store._connections.wait_s = 0.3
    server().stop()
    try:
        with pytest.raises(StoreUnreadable, match="no server answers"):
            append(store)
    finally:
        server().start()


# Others at work.


def test_whoever_waits_too_long_for_the_lock_is_told_who_has_it(home, store, tmp_path):
    impatient = open_store(tmp_path / "other", wait_s=0.2)

    with (
        store.writing(actor="pipeline"),
        pytest.raises(StoreBusy, match=r"threadbook \d+ on this machine .*try again"),
    ):
        append(impatient)

    append(impatient)
    impatient.close()


def test_writers_of_several_homes_take_turns_and_leave_no_gap(home, tmp_path, store):
    others = [open_store(tmp_path / f"m{n}") for n in range(3)]

    running = [threading.Thread(target=append, args=(each, 15)) for each in (store, *others)]
    for one in running:
        one.start()
    for one in running:
        one.join()

    assert (store.verify().ok, store.verify().checked) == (True, 61)
    assert [each.verify().ok for each in others] == [True] * 3
    for each in others:
        each.close()


def test_a_reader_sees_one_moment_while_the_tables_are_made_anew(store):
    append(store)
    with store.writing(actor="pipeline") as writing:
        writing.append("thread:t1", forgotten("t1"))

    with store.reading() as view:
        assert view.position == 3
        store.replay_rebuild()
        assert [row.thread_id for row in view.rows(threads, ())] == ["t1"]


# Whoever touches it is found out.

TAMPERINGS = {
    "data": (["UPDATE events SET data = replace(data, 'web', 'Web') WHERE position = 4"], [4]),
    "actor": (["UPDATE events SET actor = 'human:cli' WHERE position IN (3, 8)"], [3, 8]),
    "chain": ([r"UPDATE events SET chain = '\x00' WHERE position = 4"], [4]),
    "deleted": (["DELETE FROM events WHERE position IN (2, 5, 6)"], [2, 5, 6]),
    "swapped": (
        [
            "UPDATE events SET position = -1 WHERE position = 3",
            "UPDATE events SET position = 3 WHERE position = 7",
            "UPDATE events SET position = 7 WHERE position = -1",
        ],
        [3, 7],
    ),
    "cut": (["DELETE FROM events WHERE position > 7"], [8, 9]),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_verify_names_the_rows_that_were_touched_and_no_other(home, store, name):
    append(store, 8)
    statements, touched = TAMPERINGS[name]
    assert store.verify().ok

    edit(home, *statements)

    assert list(store.verify().positions) == touched
    with pytest.raises(StoreDamaged):
        append(store)


def test_replay_verify_names_the_row_that_differs_and_a_rebuild_mends_it(home, store):
    with store.writing(actor="pipeline") as writing:
        writing.append("thread:t1", forgotten("t1"))
    edit(home, "UPDATE threads SET scope = 'project:x'")
    edit(home, "DROP INDEX jobs_running")

    found = [each.message for each in store.replay_verify()]
    store.replay_rebuild()

    assert found == [
        "threads t1: scope is 'project:x', should be ''",
        "jobs: its table or an index is not as it should be",
    ]
    assert store.replay_verify() == []


def test_a_sealed_text_that_was_changed_or_moved_is_never_shown(home, store):
    with store.writing(actor="pipeline") as writing:
        one, two = writing.put("thread:t1", "one"), writing.put("thread:t1", "two")
    edit(home, f"UPDATE bodies SET sealed = set_byte(sealed, 14, 0) WHERE ref = '{one}'")
    edit(home, f"UPDATE bodies SET owner = 'thread:t2' WHERE ref = '{two}'")

    for ref in (one, two):
        with pytest.raises(StoreDamaged, match=ref), store.reading() as view:
            view.body(ref)


def test_the_key_of_an_erased_text_is_gone_when_the_block_has_ended(store):
    with store.writing(actor="pipeline") as writing:
        gone, kept = writing.put("thread:t1", "gone"), writing.put("thread:t1", "kept")
    paths = dict(server().admin("SELECT ref, path FROM bodies", schema=store.place.schema))

    with store.writing(actor="human:cli") as writing:
        writing.erase(refs=[gone])

    assert store.keys.key(paths[gone]) is None
    assert store.keys.key(paths[kept]) is not None
    with store.writing(actor="human:cli") as writing:
        writing.erase(owners=["thread:t1"])
        again = writing.put("thread:t1", "again")
    assert store.keys.key(paths[kept]) is None
    with store.reading() as view:
        assert view.body(again) == "again"


# Other texts.


def test_characters_that_postgresql_does_not_have_come_back_as_they_were(store):
    odd = ["/a\x00b", "/a\x01b", "/a\x00", "/a\x01", "/a\x02", "/a\x01\x01\x00", "/a", "/a\x01\x02"]
    with store.writing(actor="pipeline") as writing:
        for n, cwd in enumerate(odd):
            event = plain(ThreadRegistered, thread_id=f"t{n}", cwd=cwd)
            writing.append(f"thread:t{n}", event)
        ref = writing.put("thread:t1", "a\x00b\x01c")

    with store.reading() as view:
        rows = view.find(threads, "ORDER BY cwd")
        assert [row.cwd for row in rows] == sorted(odd)
        assert view.body(ref) == "a\x00b\x01c"
        assert view.value("SELECT thread_id FROM threads WHERE cwd = :cwd", cwd="/a\x00") == "t2"
    assert store.replay_verify() == []
    assert store.verify().ok
