"""A home made from two sessions, without the settings of whoever runs the tests."""

import pytest

from tests.adapters.cli.commands import A, B, Commands
from tests.application.homes import Home
from tests.support import forget_whose_machine_this_is


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
def commands(home, monkeypatch, capsys):
    home.run()
    return Commands(home, monkeypatch, capsys)
