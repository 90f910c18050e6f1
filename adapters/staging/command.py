"""command: a command of the user's as the consolidator, run in a staging folder.

It gets the prompt on standard input, the folder as its working directory, and an environment of
its own: what it needs to find itself and its login, what the user's setting names, and the mark by
which our own hooks know that no person is at work. It is ended, with all of its process group, when
its time is over, when it fills the folder, when the lease is lost, and when it has itself ended and
left something behind. Nothing here raises for what a command does.

Not prevented, because it is the user's own program with the user's rights: writing elsewhere,
the network, and a process that leaves the group (`setsid`) and goes on. What counts is what is read
back from the folder afterwards, and that is checked like a model's work.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

from ...domain.redaction import redact

# HOME, because `codex` and `claude` keep their login below it.
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TERM")
INSIDE = "THREADBOOK_INSIDE"  # As in `actor`; hooks of ours start nothing where it is set.

POLL_S = 0.05
LOOK_S = 0.5  # As often the folder's size is looked at.
GRACE_S = 2.0  # From being asked to end to being ended.
TAIL_BYTES = 64 * 1024  # Redacted as a whole, so that no secret is cut where its name was.
TAIL_LINES = 12
LINE_CHARS_MAX = 300
PIECE_BYTES = 64 * 1024
DRAIN_PIECES = 64

Reason = Literal["done", "failed", "killed", "timeout", "cancelled", "too_much", "not_started"]


class Ended(NamedTuple):
    """How a command ended. `status` is its exit status, minus the signal's number for `killed`,
    None where it was ended or not started. `tail` is for a person: its last lines, redacted."""

    reason: Reason
    status: int | None
    seconds: float
    output_bytes: int
    tail: str
    advice: str = ""

    @property
    def is_done(self) -> bool:
        return self.reason == "done"


class Bounds(NamedTuple):
    wall_s: float = 1_800.0
    folder_bytes: int = 256 * 1024 * 1024
    folder_files: int = 10_000


def environment(given: Mapping[str, str], *, also: Collection[str] = ()) -> dict[str, str]:
    """What a command is given of this program's environment, and the mark of a run."""
    kept = {name: given[name] for name in (*KEPT, *also) if name in given}
    if "PATH" in kept:
        # A relative folder would be looked for in staging, where only data lies.
        folders = kept["PATH"].split(os.pathsep)
        kept["PATH"] = os.pathsep.join(each for each in folders if os.path.isabs(each))
    return {**kept, INSIDE: "1"}


def run(
    argv: Sequence[str],
    folder: Path,
    prompt: str,
    *,
    environment: Mapping[str, str],
    bounds: Bounds = Bounds(),  # noqa: B008 - it is a tuple of numbers
    cancelled: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> Ended:
    """Run it to its end, or to ours. `cancelled` is asked every `POLL_S`."""
    started = clock()
    refused = refusal(argv)
    process: subprocess.Popen[bytes] | None = None
    if not refused:
        try:
            process = subprocess.Popen(
                list(argv),
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                start_new_session=True,  # Its own group, and no terminal to ask a person on.
                umask=0o077,
            )
        except (OSError, ValueError) as error:
            refused = not_started(argv[0], folder, error)
    if process is None:
        return Ended("not_started", None, clock() - started, 0, "", refused)
    with process:
        try:
            talk = Talk(process, prompt.encode("utf-8", "replace"))
            reason = _watch(talk, folder, bounds, cancelled, clock, started)
        finally:
            # However we leave, also by a signal of our own: none of the group stays behind.
            _end_group(process)
            status = process.wait()
        talk.close()
    if reason is None:
        reason = "done" if status == 0 else "failed" if status > 0 else "killed"
        kept_status: int | None = status
    else:
        kept_status = None
    return Ended(
        reason,
        kept_status,
        clock() - started,
        talk.output_bytes,
        "" if reason == "done" else talk.tail(),
        ADVICE.get(reason, ""),
    )


ADVICE = {
    "failed": "run the command by hand in an empty folder to see what it lacks",
    "killed": "something ended the command; see its last lines, and run it again",
    "timeout": "it took too long; give it less to do, or more time",
    "too_much": "it wrote more into the folder than a memory holds; see what it leaves there",
}


def refusal(argv: Sequence[str]) -> str:
    if not argv or not argv[0]:
        return 'no command is given; set consolidator = ["cmd", "name", …]'
    if "/" in argv[0] and not os.path.isabs(argv[0]):
        # It would be looked for in staging.
        return f"{argv[0]} is relative; give the command's name, or its whole path"
    return ""


def not_started(name: str, folder: Path, error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and not folder.is_dir():
        return f"the staging folder {folder} is not there; run it again, a run makes a new one"
    if isinstance(error, FileNotFoundError):
        return f"there is no command {name} on the PATH; install it, or give its whole path"
    if isinstance(error, OSError):
        return f"{name} cannot be started ({error.strerror}); check the setting consolidator"
    return f"{name} cannot be started ({error}); check the setting consolidator"


class Talk:
    """What goes in and what comes out, without ever waiting for either. Of the output only the end
    is kept: it is another program's, may hold anything, and is shown only where that failed."""

    def __init__(self, process: "subprocess.Popen[bytes]", prompt: bytes) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.output_bytes = 0
        self._input, self._output = process.stdin, process.stdout
        self._left = memoryview(prompt)
        self._tail = b""
        self._output_ended = False
        self._selector = selectors.DefaultSelector()
        for pipe, events in (
            (self._input, selectors.EVENT_WRITE),
            (self._output, selectors.EVENT_READ),
        ):
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, events)

    def go_on(self, wait_s: float) -> None:
        if not self._selector.get_map():
            time.sleep(wait_s)
            return
        for ready, _ in self._selector.select(wait_s):
            if ready.fileobj is self._input:
                self._give()
            else:
                self._take()

    def drain(self) -> None:
        """What is in the pipe already; whoever still holds its other end is not waited for."""
        for _ in range(DRAIN_PIECES):
            before = self.output_bytes
            if not self._output_ended:
                self._take()
            if self.output_bytes == before:
                return

    def close(self) -> None:
        self.drain()
        self._selector.close()

    def tail(self) -> str:
        kept = self._tail
        if self.output_bytes > len(kept):  # It begins in the middle of a line.
            kept = kept.partition(b"\n")[2]
        lines = redact(kept.decode("utf-8", "replace")).strip().split("\n")
        return "\n".join(line[:LINE_CHARS_MAX] for line in lines[-TAIL_LINES:])

    def _give(self) -> None:
        try:
            written = os.write(self._input.fileno(), self._left[:PIECE_BYTES])
        except BlockingIOError:
            return
        except OSError:
            written = len(self._left)  # It wants no more of it, which is its own affair.
        self._left = self._left[written:]
        if not self._left:
            self._selector.unregister(self._input)
            self._input.close()

    def _take(self) -> None:
        try:
            piece = os.read(self._output.fileno(), PIECE_BYTES)
        except BlockingIOError:
            return
        if not piece:
            self._output_ended = True
            self._selector.unregister(self._output)
        self.output_bytes += len(piece)
        self._tail = (self._tail + piece)[-TAIL_BYTES:]


def _watch(
    talk: Talk,
    folder: Path,
    bounds: Bounds,
    cancelled: Callable[[], bool],
    clock: Callable[[], float],
    started: float,
) -> Reason | None:
    """Until the command has ended; or why it is to be ended."""
    look_at = started + LOOK_S
    while not _has_ended(talk.process):
        talk.go_on(POLL_S)
        now = clock()
        if cancelled():
            return "cancelled"
        if now - started >= bounds.wall_s:
            return "timeout"
        if now >= look_at:
            if _is_too_much(folder, bounds):
                return "too_much"
            look_at = clock() + LOOK_S
    return "too_much" if _is_too_much(folder, bounds) else None


def _has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Whether it has ended, without forgetting it: as long as it is not waited for, no other
    process can come by its number, and its group can be ended safely."""
    if process.returncode is not None:
        return True
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    with suppress(ChildProcessError):
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, process.pid, flags) is not None
    return process.poll() is not None


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """Ask the group to end, and end it. What it left behind it is not asked twice."""
    for number, wait_s in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, 0.0)):
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            return  # Nobody is left in it; a Mac says so of one that has only not been waited for.
        until = time.monotonic() + wait_s
        while time.monotonic() < until and not _has_ended(process):
            time.sleep(POLL_S)


def _is_too_much(folder: Path, bounds: Bounds) -> bool:
    size = count = 0
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    count += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        size += entry.stat(follow_symlinks=False).st_size
                    if size > bounds.folder_bytes or count > bounds.folder_files:
                        return True
        except OSError:
            continue  # It went, or cannot be entered: then it is not read back either.
    return False
