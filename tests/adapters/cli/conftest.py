"""A home made from two sessions, without the settings of whoever runs the tests."""

import os

import pytest

from tests.adapters.cli.commands import A, B, Commands
from tests.application.homes import Home


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
def commands(home, monkeypatch, capsys):
    home.run()
    return Commands(home, monkeypatch, capsys)
