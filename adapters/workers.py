"""Workers: who is at work on a home, told by a lock that dies with its process.

A worker's id begins with its machine, because several may share a memory and only this one's
processes can be looked at. A lock file is 0600 and goes with the worker. It says what the worker
has in hand: of a killed one that is what may have killed it. What was left by a killed process goes
at the end of the next worker's work, which has given back its leases by then.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..application.ports import Failure

ID_CHARS_MAX = 128  # Of a thread's id.


class Workers:
    def __init__(self, home: Path, machine_id: str) -> None:
        self.folder = home / "workers"
        self.machine_id = machine_id

    def name(self, new_id: str) -> str:
        """An id that a person can follow: machine, process, and what tells two runs apart."""
        return f"{self.machine_id[:8]}-{os.getpid()}-{new_id[:8]}"

    @contextmanager
    def at_work(self, worker_id: str) -> Iterator[None]:
        """Be seen as alive until the end of the block, however it ends."""
        path = self.folder / worker_id
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = locked(path)
        except OSError as error:
            raise Failure(
                f"{path} cannot be made ({error.strerror}), and without it another run could not"
                " see that this one is at work; check the folder, or make room, and run it again"
            ) from error
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            os.close(descriptor)
            self.sweep()

    def sweep(self) -> None:
        """Take away what killed workers have left."""
        for other in list(self.folder.iterdir()):
            if not self.is_alive(other.name):
                other.unlink(missing_ok=True)

    def take_in_hand(self, worker_id: str, what: str) -> None:
        """Note what a worker goes at now; empty: nothing that could end it."""
        with suppress(OSError):  # Not at work, or no room for it: then nobody knows.
            descriptor = os.open(self.folder / worker_id, os.O_WRONLY | os.O_CLOEXEC)
            try:
                # Over what was there: to cut a file costs a hundred times as much.
                os.write(descriptor, f"{what:<{ID_CHARS_MAX}}\n".encode())
            finally:
                os.close(descriptor)

    def had_in_hand(self, worker_id: str) -> str | None:
        """What a worker went at last; None: nobody knows."""
        with suppress(OSError, UnicodeDecodeError):
            noted = (self.folder / worker_id).read_text(encoding="utf-8")
            return noted.strip() if noted.endswith("\n") else None
        return None

    def is_alive(self, worker_id: str) -> bool:
        """Whether the worker may still be at work. Of another machine's nothing is known: yes."""
        if not worker_id.startswith(f"{self.machine_id[:8]}-"):
            return True
        path = self.folder / worker_id
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except PermissionError:
            return True  # Another user's on this machine, and nobody can tell.
        try:
            # Shared, so that two who ask at once do not take each other for the worker.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            return False
        finally:
            os.close(descriptor)


def locked(path: Path) -> int:
    """An open lock on the file of that name, waiting for whoever has it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Whoever had it before us has removed the name, and nobody would find us there.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        os.close(descriptor)
