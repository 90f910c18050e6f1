"""`threadbook doctor`: lines for people, an object for programs, and an exit code."""

import pytest

from tests.adapters.cli.commands import A


@pytest.fixture
def learned(commands):
    commands.home.write(A)
    assert commands("run", "--sessions", commands.home.sessions).code == 0
    return commands


def test_a_memory_that_is_well_ends_with_0_and_tells_what_was_looked_at(learned):
    answer = learned("doctor")

    assert answer.code == 0
    assert "ERROR" not in answer.out
    kinds = {line.split()[1] for line in answer.out.splitlines()}
    assert {"permissions", "disk", "secrets", "stuck", "lag", "store", "canary"} <= kinds


def test_what_is_wrong_ends_with_3(learned):
    learned.home.path.chmod(0o755)

    answer = learned("doctor", "--json")

    assert (answer.code, answer.json["ok"]) == (3, False)
    assert {"permissions"} == {
        each["what"] for each in answer.json["findings"] if each["level"] == "error"
    }


def test_a_store_that_cannot_be_opened_is_a_finding_and_no_end_of_the_looking(learned):
    database = learned.home.path / "threadbook.sqlite"
    learned.home.memory.close()
    database.write_bytes(b"no database at all, whatever it is called" * 100)

    answer = learned("doctor", "--json")

    assert answer.code == 3
    levels = {each["what"]: each["level"] for each in answer.json["findings"]}
    assert (levels["store"], levels["canary"]) == ("error", "fine")


def test_no_home_at_all_says_what_makes_one(commands, tmp_path):
    answer = commands.bare("doctor", "--home", tmp_path / "none")

    assert answer.code == 3
    assert "threadbook run" in answer.out
    assert not (tmp_path / "none").exists()


def test_a_backup_is_accepted_only_by_somebody_who_says_so(learned):
    home = learned.home
    home.memory.close()
    kept = (home.path / "threadbook.sqlite").read_bytes()
    wal = (home.path / "threadbook.sqlite-wal").exists()
    assert learned("note", "--cwd", home.path.parent, "the harbour master wants tea").code == 0
    for beside in ("-wal", "-shm"):
        (home.path / f"threadbook.sqlite{beside}").unlink(missing_ok=True)
    (home.path / "threadbook.sqlite").write_bytes(kept)

    refused = learned("threads")
    unasked = learned("doctor", "--accept-restore")
    accepted = learned("doctor", "--accept-restore", "--yes", "--json")

    assert not wal
    assert (refused.code, "--accept-restore" in refused.line) == (3, True)
    assert (unasked.code, "say --yes" in unasked.line) == (1, True)
    assert accepted.code == 0
    assert accepted.json["came_to"] > accepted.json["position"]
    assert learned("threads").code == 0
