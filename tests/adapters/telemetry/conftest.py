"""A watched home of two projects, without the settings of whoever runs the tests."""

import pytest

from tests.adapters.telemetry.watching import Watching
from tests.application.homes import MOSS, Home, Session
from tests.support import forget_whose_machine_this_is

A = Session(number=1)
B = Session(number=2, cwd=MOSS, says=("please never use tabs in this project, always spaces",))


@pytest.fixture(autouse=True)
def nobodys_settings(monkeypatch, tmp_path):
    forget_whose_machine_this_is(monkeypatch, tmp_path / "nobody")


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path)
    home.write(A, B)
    yield home
    home.memory.close()


@pytest.fixture
def watching(home):
    """The home has had its run before anybody watched."""
    home.run()
    watching = Watching()
    watching.over(home.memory)
    return watching
