"""A watched home of two projects, without the settings of whoever runs the tests."""

import os

import pytest

from tests.adapters.telemetry.watching import Watching
from tests.application.homes import MOSS, Home, Session

A = Session(number=1)
B = Session(number=2, cwd=MOSS, says=("please never use tabs in this project, always spaces",))


@pytest.fixture(autouse=True)
def nobodys_settings(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith(("THREADBOOK_", "CODEX_", "CLAUDE", "OTEL_")):
            monkeypatch.delenv(name)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "nobody"))


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
