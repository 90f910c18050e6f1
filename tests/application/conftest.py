"""Every test has a home of its own and none of the settings of whoever runs it."""

import os

import pytest

from tests.application.homes import Home


@pytest.fixture(autouse=True)
def nobodys_settings(monkeypatch, tmp_path):
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "nobody"))
    for name in list(os.environ):
        if name.startswith("THREADBOOK_"):
            monkeypatch.delenv(name)


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path)
    yield home
    home.memory.close()
