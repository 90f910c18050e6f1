"""What a killed consolidation left in its staging goes with whoever comes next."""

import pytest

from tests.application.homes import Home, Session
from tests.support import NOON


@pytest.fixture
def home(tmp_path):
    made = Home(tmp_path)
    made.write(Session(number=1))
    made.run()
    return made


def left_by(home: Home, worker_id: str):
    place = home.path / "staging" / f"{'0' * 32}.{worker_id}"
    place.mkdir(parents=True, mode=0o700)
    (place / "MEMORY.md").write_text("a copy\n")
    return place


def dead(home: Home) -> str:
    return home.memory._workers.name("gone")


def test_a_run_removes_what_the_dead_left_and_nothing_of_the_living(home):
    of_the_dead = left_by(home, dead(home))
    living = f"{dead(home)}-lives"
    of_the_living = left_by(home, living)

    with home.memory._workers.at_work(living):
        home.run()

        assert not of_the_dead.exists()
        assert of_the_living.exists()
    home.run()
    assert not of_the_living.exists()


def test_a_rehearsal_removes_nothing(home):
    place = left_by(home, dead(home))

    home.run(dry_run=True)

    assert place.exists()


@pytest.mark.parametrize("prove", [False, True])
def test_what_is_forgotten_is_not_left_in_a_copy(home, prove):
    place = left_by(home, dead(home))

    home.memory.forget(Session(number=1, ended_at=NOON).id, prove=prove)

    assert not place.exists()


def test_a_reset_leaves_no_copy(home):
    place = left_by(home, dead(home))

    home.memory.reset()

    assert not place.exists()
