"""The commands on a shared memory, by the setting, the environment and the library's face."""

import pytest
from threadbook import Memory

from tests.adapters.cli.commands import A, B, Commands
from tests.application.homes import Home

SECRET = "s3cr3t-w0rd"


@pytest.fixture
def shared(tmp_path, dsn, monkeypatch, capsys):
    """A home of a shared memory, whose DSN has a password that this server does not ask for."""
    monkeypatch.setenv("THREADBOOK_DATABASE", dsn.replace(":@", f":{SECRET}@"))
    home = Home(tmp_path)
    home.write(A, B)
    home.run()
    yield Commands(home, monkeypatch, capsys)
    home.memory.close()


def test_the_commands_work_as_on_the_file_and_show_no_password(shared):
    told = [
        shared("run", "--sessions", str(shared.home.sessions)),
        shared("status"),
        shared("--json", "status"),
        shared("threads"),
        shared("explain", A.id),
        shared("log"),
        shared("verify"),
        shared("replay", "--verify"),
        shared("pollute", A.id),
    ]

    assert [answer.code for answer in told] == [0] * len(told), [each.err for each in told]
    assert not any(SECRET in answer.out + answer.err for answer in told)
    status = told[2].json
    assert status["database"].startswith("postgresql://postgres@/")
    assert status["settings"]["database"]["value"].startswith("postgresql://postgres@/")


def test_a_server_that_is_not_there_is_one_line_and_exit_code_3(shared, monkeypatch):
    monkeypatch.setenv("THREADBOOK_DATABASE", f"postgresql://ann:{SECRET}@127.0.0.1:9/memory")

    answer = shared("status")

    assert (answer.code, SECRET in answer.err) == (3, False)
    assert "no server answers" in answer.line


def test_a_database_that_is_none_is_a_mistake_in_the_settings(shared, monkeypatch):
    monkeypatch.setenv("THREADBOOK_DATABASE", f"mysql://ann:{SECRET}@host/memory")

    answer = shared("status")

    assert (answer.code, SECRET in answer.err) == (2, False)
    assert "must begin with postgresql://" in answer.line


def test_a_rehearsal_of_a_shared_memory_makes_no_home_to_throw_its_keys_away(shared, tmp_path):
    answer = shared("run", "--dry-run", "--sessions", str(shared.home.sessions))

    assert answer.code == 0
    assert (shared.home.path / "keys.sqlite").exists()


def test_a_program_opens_a_shared_memory_by_its_dsn(tmp_path, dsn):
    with Memory.open(dsn, home=tmp_path / "home", clock=lambda: 1_767_268_800.0) as memory:
        status = memory.status()

    assert status["home"] == str(tmp_path / "home")
    assert status["database"].startswith("postgresql://")
    assert status["settings"]["database"]["value"].startswith("postgresql://")
    assert not (tmp_path / "home" / "threadbook.sqlite").exists()
