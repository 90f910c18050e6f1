"""Real processes for tests: forked, so that twenty of them cost no twenty starts of Python."""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from threadbook.adapters.cli import main

TIMEOUT_S = 90


class Process:
    """`what` in a process of its own. What it prints goes to a file; how it ended is `ended()`."""

    def __init__(self, what: Callable[..., object], *args: object, output: Path) -> None:
        self.output = output
        self.code: int | None = None
        output.touch(mode=0o600)
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            be(what, *args, output=output)

    def ended(self) -> int:
        """The exit code; of one that a signal ended, minus its number."""
        until = time.monotonic() + TIMEOUT_S
        while not self.has_ended():
            if time.monotonic() > until:
                self.send(signal.SIGKILL)
                raise TimeoutError(f"process {self.pid} did not end: {self.said}")
            time.sleep(0.005)
        assert self.code is not None
        return self.code

    def has_ended(self) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def send(self, number: int) -> None:
        if not self.has_ended():
            os.kill(self.pid, number)

    @property
    def said(self) -> str:
        return self.output.read_text()


def be(what: Callable[..., object], *args: object, output: Path) -> None:
    code: object = 70
    try:
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, 1)
        os.dup2(file, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, "w" if n else "r") for n in range(3))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        what(*args)
        code = 0
    except SystemExit as error:
        code = error.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def cli(*words: object) -> None:
    sys.argv = ["threadbook", *map(str, words)]
    main()
