"""A folder that was not written: a person is told why, and what to do about it."""

import json
import re
import sys

import pytest
from threadbook.adapters.cli.folder_failed import SAYS, told

from tests.application.homes import ROOT, Session

SOURCES = ("adapters/models/loop.py", "adapters/staging/command.py")


def codes():
    """Every code that the loop and a command end with, as they are written there."""
    loop, command = ((ROOT / path).read_text() for path in SOURCES)
    found = set(re.findall(r'_ended\("(\w+)"\)|_refused_by = "(\w+)"', loop))
    (reasons,) = re.findall(r"^Reason = Literal\[(.*)\]$", command, re.MULTILINE)
    ended = set(re.findall(r'"(\w+)"', reasons)) - {"done", "not_started"}
    return {a or b for a, b in found} | {f"command_{reason}" for reason in ended}


def test_each_way_to_end_is_told_in_words():
    assert len(codes()) >= 9
    assert codes() <= SAYS.keys()


@pytest.mark.parametrize("code", SAYS)
def test_what_is_told_has_the_code_the_words_and_what_becomes_of_the_folder(code):
    line = told(code if code.startswith("failed_") else f"failed_agent:{code}")

    assert code in line
    assert SAYS[code] in line
    assert "the folder is as it was" in line
    assert "\n" not in line


def test_a_code_that_nobody_put_in_words_is_told_as_it_is():
    assert told("failed_agent:http_418").startswith("failed_agent:http_418; the folder")


@pytest.mark.parametrize(
    ("argv", "reason", "advice"),
    [
        (
            [sys.executable, "-c", "raise SystemExit('no login: run login first')"],
            "failed_agent:command_failed: the command ended with an error",
            ["run the command by hand in an empty folder", "no login: run login first"],
        ),
        (
            ["no-such-command-here"],
            "failed_spawn_agent: the command could not be started",
            ["there is no command no-such-command-here on the PATH; install it"],
        ),
    ],
)
def test_a_command_that_fails_says_what_it_said_last(commands, monkeypatch, argv, reason, advice):
    commands.home.write(Session(number=7))
    monkeypatch.setenv("THREADBOOK_CONSOLIDATOR", json.dumps(argv))

    answer = commands("run", "--sessions", commands.home.sessions, "--consolidate")

    assert answer.code == 0  # The session was read: not everything has failed.
    assert reason in answer.out
    assert all(each in answer.out for each in advice)
