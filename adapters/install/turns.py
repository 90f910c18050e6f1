"""turns: one program at a time changes an agent's settings and what we know of them.

Two at once would each leave a record of what the other has not left, and the bytes that were there
could not be given back. What is locked is the agent's folder itself, so that no file of ours lies
in it; the lock goes with its program.
"""

import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from .files import CannotInstall

WAIT_S = 10.0
_POLL_S = 0.02


@contextmanager
def alone(folders: Iterable[Path]) -> Iterator[None]:
    """Raises `CannotInstall` where another program takes too long. Give the folders in one order
    everywhere."""
    with ExitStack() as held:
        for folder in folders:
            try:
                descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError as error:
                raise CannotInstall(
                    f"{folder} cannot be opened ({error.strerror}); check it, then try again"
                ) from error
            held.callback(os.close, descriptor)
            _take(descriptor, folder)
        yield


def _take(descriptor: int, folder: Path) -> None:
    until = time.monotonic() + WAIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise CannotInstall(
                    f"the settings in {folder} are being changed by another program; try again"
                    " when it has ended"
                ) from None
            time.sleep(_POLL_S)
        except OSError:
            return  # A file system without such locks. Whoever is later is told, as ever.
