"""Every test has a home of its own and none of the settings of whoever runs it."""

import pytest

from tests.application.homes import HOUR_S, Home, Session, used
from tests.support import forget_whose_machine_this_is

A = Session(number=1)
B = Session(number=2, says=("please never use tabs in this project, always spaces",))


@pytest.fixture(autouse=True)
def nobodys_settings(monkeypatch, tmp_path):
    forget_whose_machine_this_is(monkeypatch, tmp_path / "nobody")


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path)
    yield home
    home.memory.close()


@pytest.fixture
def story(home):
    """A run of two sessions, a citation, a pollution, a run: four positions to look from."""
    home.write(A, B)
    home.run()
    home.ran = home.position
    used(home.later(HOUR_S).memory, [A.id], "session", 1)
    home.cited = home.position
    home.later(HOUR_S).memory.pollute(A.id, "web_search")
    home.polluted = home.position
    home.later(HOUR_S).run()
    return home
