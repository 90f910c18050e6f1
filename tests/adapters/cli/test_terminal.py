"""At a terminal a person is asked, and believed; an agent that has one is not."""

import os
import pty
import subprocess
import sys

import pytest
from threadbook.domain.events import ForgettingLifted, MemoryModeSet, ThreadForgotten

from tests.adapters.cli.commands import MAIN, A, B
from tests.application.homes import ROOT, Session

MARKERS = ("CLAUDE", "CODEX_", "CURSOR_AGENT", "GEMINI_CLI", "AIDER_")


def at_a_terminal(commands, *args, typed="", **environment):
    """The exit code and what was shown, with `typed` on the keyboard."""
    ours, theirs = pty.openpty()
    kept = {k: v for k, v in os.environ.items() if not k.startswith(MARKERS)}
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *commands.given(*args)],
        env=kept | {"PYTHONPATH": paths, "TERM": "dumb"} | environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:
        pass  # So a terminal ends on Linux; elsewhere it reads as empty.
    os.close(ours)
    return process.wait(60), shown.decode()


def actors(home, kind):
    return [each.actor for each in home.log() if isinstance(each.event, kind)]


def test_a_person_is_asked_and_what_was_agreed_to_is_a_person_s(commands):
    code, shown = at_a_terminal(commands, "mode", A.id, "disabled", typed="y\n")

    assert code == 0, shown
    assert f"Set {A.id} to disabled?" in shown
    assert actors(commands.home, MemoryModeSet) == ["human:cli"]


def test_what_was_not_agreed_to_is_not_done(commands):
    before = commands.home.position

    code, shown = at_a_terminal(commands, "forget", "thread", A.id, typed="n\n")

    assert code == 1, shown
    assert commands.home.position == before
    assert "Traceback" not in shown


def test_who_answers_beforehand_is_not_asked_and_no_person(commands):
    code, shown = at_a_terminal(commands, "mode", A.id, "disabled", "--yes")

    assert code == 0, shown
    assert actors(commands.home, MemoryModeSet) == ["agent:cli"]


@pytest.mark.parametrize("marker", ["CLAUDECODE", "CODEX_SANDBOX", "CURSOR_AGENT"])
def test_an_agent_with_a_terminal_is_not_asked_and_not_believed(commands, marker):
    code, shown = at_a_terminal(commands, "mode", A.id, "disabled", **{marker: "1"})
    lifted, refused = at_a_terminal(
        commands, "forget", "thread", B.id, "--lift", typed="y\n", **{marker: "1"}
    )

    assert code == 0, shown
    assert actors(commands.home, MemoryModeSet) == ["agent:cli"]
    assert lifted == 1
    assert "only a person" in refused


def test_a_person_forgets_and_lifts_and_the_next_run_reads_again(commands):
    forgot, _ = at_a_terminal(commands, "forget", "thread", A.id, typed="y\n")
    gone = commands.home.selected()
    lifted, shown = at_a_terminal(commands, "forget", "thread", A.id.upper(), "--lift", typed="y\n")
    commands("run", "--sessions", commands.home.sessions)

    assert (forgot, lifted) == (0, 0), shown
    assert gone == {B.id}
    assert actors(commands.home, ThreadForgotten) == ["human:cli"]
    assert actors(commands.home, ForgettingLifted) == ["human:cli"]
    assert commands.home.selected() == {A.id, B.id}


def test_a_run_shows_how_far_it_is_and_leaves_only_the_report(commands):
    commands.home.write(*(Session(number=n) for n in range(10, 40)))

    code, shown = at_a_terminal(commands, "run", "--sessions", commands.home.sessions, TERM="xterm")

    assert code == 0, shown
    assert "30 taught something" in shown
    assert "extracting" in shown
