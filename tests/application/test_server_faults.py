"""A run goes on, or can be given again, whatever becomes of the server and of the way to it."""

from contextlib import suppress

import pytest
from threadbook.adapters.store import StoreLost, StoreUnreadable

from tests.adapters.stores import DSN
from tests.application.homes import Home, Interrupting, Session, content, show
from tests.postgres import Proxy, server

SESSIONS = [
    Session(number=n, says=(f"from now on always run make check-{n} before you commit",))
    for n in (1, 2)
]


@pytest.fixture
def proxy():
    opened = Proxy()
    yield opened
    opened.close()


@pytest.fixture
def home(tmp_path, dsn, proxy):
    """A home with two sessions to read, that goes to its server by a way that can be cut."""
    (tmp_path / DSN).write_text(proxy.dsn(dsn))
    home = Home(tmp_path)
    home.write(*SESSIONS)
    yield home
    home.memory.close()


@pytest.fixture
def undisturbed(tmp_path):
    folder = tmp_path / "undisturbed"
    folder.mkdir()
    home = Home(folder)
    home.write(*SESSIONS)
    home.run()
    yield home
    home.memory.close()


def is_whole(home, undisturbed):
    """As if nothing had happened: each session read once, the same folder, a sound log."""
    assert home.types().count("stage1.succeeded") == len(SESSIONS)
    assert {
        path: text.replace(str(home.folder), str(undisturbed.folder))
        for path, text in content(home.root()).items()
    } == content(undisturbed.root())
    assert home.memory.verify().ok
    assert home.memory.replay_verify() == []
    assert home.selected() == {session.id for session in SESSIONS}


@pytest.mark.parametrize("commit", range(1, 10))
def test_a_run_whose_commit_nobody_heard_of_can_be_given_again(home, undisturbed, proxy, commit):
    proxy.commits_until_cut = commit
    with suppress(StoreLost):  # Where the run cannot go on by itself.
        home.run()
    proxy.commits_until_cut = 0

    home.run()

    assert proxy.cut == 1
    is_whole(home, undisturbed)


@pytest.mark.parametrize(
    "act",
    [
        lambda memory, thread: memory.cited([thread], session="s", turn=1),
        lambda memory, thread: memory.pollute(thread),
        lambda memory, thread: memory.set_mode(thread, "disabled"),
        lambda memory, thread: memory.forget(thread),
    ],
)
def test_what_a_person_said_is_done_once_though_it_was_said_twice(home, proxy, act):
    home.run()
    thread = home.memory.threads()[0].thread_id
    show(home.memory._around, [thread], "s")
    proxy.commits_until_cut = 1
    with pytest.raises(StoreLost):
        act(home.memory, thread)
    first = home.types()

    act(home.memory, thread)

    said = ("stage1.cited", "thread.polluted", "thread.mode_set", "thread.forgotten")
    assert [type_ for type_ in home.types() if type_ in said] == [
        type_ for type_ in first if type_ in said
    ]
    assert len([type_ for type_ in first if type_ in said]) == 1
    home.run()
    assert home.memory.replay_verify() == []


def test_a_server_that_restarts_while_a_model_works_is_not_noticed(tmp_path, dsn, undisturbed):
    home = Home(tmp_path)
    home.write(*SESSIONS)

    report = home.run_with(consolidator=Interrupting(server().restart))

    assert [root.status for root in report.phase2] == ["succeeded"]
    is_whole(home, undisturbed)
    home.memory.close()


def test_a_run_that_lost_its_server_ends_with_advice_and_the_next_one_finishes(
    tmp_path, dsn, undisturbed
):
    home = Home(tmp_path)
    home.write(*SESSIONS)
    home.memory.store._connections.wait_s = 0.2
    try:
        with pytest.raises(StoreUnreadable, match="no server answers"):
            home.run_with(consolidator=Interrupting(server().stop))
    finally:
        server().start()

    home.run()

    is_whole(home, undisturbed)
    home.memory.close()
