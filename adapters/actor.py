"""Who acts: the observed channel, never an argument.

A person is believed only where standard input and output are a terminal and no agent has marked
the environment. The limit is stated in README: a program with the user's rights can forge a
terminal.
"""

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO

# Whatever starts a shell for an agent leaves one of these behind.
AGENT_MARKERS = ("CLAUDECODE", "CLAUDE_CODE", "CODEX_", "CURSOR_AGENT", "GEMINI_CLI", "AIDER_")
# Where an agent keeps its home is a person's setting, and marks nobody.
PEOPLES_SETTINGS = ("CODEX_HOME",)

# Stands in the environment of a run and of all that it starts.
INSIDE_A_RUN = "THREADBOOK_INSIDE"


def at_the_terminal(
    environment: Mapping[str, str] | None = None,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
) -> bool:
    """Whether a person can be asked, and believed."""
    environment = os.environ if environment is None else environment
    streams = (stdin or sys.stdin, stdout or sys.stdout)
    marked = any(
        name.startswith(AGENT_MARKERS) and name not in PEOPLES_SETTINGS for name in environment
    )
    return not marked and all(stream is not None and stream.isatty() for stream in streams)


def cli_actor(*, confirmed: bool) -> str:
    return "human:cli" if confirmed and at_the_terminal() else "agent:cli"


class _Marked:
    """The mark in the environment, which all threads share: the last run to end takes it away."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs = 0
        self._before: str | None = None

    def begin(self) -> None:
        with self._lock:
            if not self._runs:
                self._before = os.environ.get(INSIDE_A_RUN)
                os.environ[INSIDE_A_RUN] = "1"
            self._runs += 1

    def end(self) -> None:
        with self._lock:
            self._runs -= 1
            if self._runs:
                return
            if self._before is None:
                os.environ.pop(INSIDE_A_RUN, None)
            else:
                os.environ[INSIDE_A_RUN] = self._before


_marked = _Marked()


@contextmanager
def inside_a_run() -> Iterator[None]:
    """What this program starts in the block knows that it is the run's, and not a person's."""
    _marked.begin()
    try:
        yield
    finally:
        _marked.end()


def is_inside_a_run() -> bool:
    return INSIDE_A_RUN in os.environ
