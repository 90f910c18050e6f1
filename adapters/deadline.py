"""A deadline for the whole process: when it has passed, the process ends with success.

Watched by a thread and not by a signal: the main thread may be inside of SQLite, which would not
be interrupted before it returns. What the process took to start counts as far as it is known, as
the processor time it has used.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

GRACE_S = 0.015  # For telling that it passed; a disk that hangs gets no more.


class Deadline:
    def __init__(self, seconds: float, *, passed: Callable[[], None]) -> None:
        self._left = max(seconds - time.process_time(), 0.001)
        self._passed = passed
        self._speaking = threading.Lock()
        self._over = threading.Event()

    @contextmanager
    def watched(self) -> Iterator[None]:
        watches = (
            threading.Thread(target=self._tell, daemon=True),
            threading.Thread(target=self._end, daemon=True),
        )
        for watch in watches:
            watch.start()
        try:
            yield
        finally:
            self._over.set()

    @contextmanager
    def speaking(self) -> Iterator[None]:
        """Inside nothing ends the process: what is said is said whole."""
        with self._speaking:
            self._over.set()
            yield

    def _tell(self) -> None:
        if not self._over.wait(self._left) and self._speaking.acquire(blocking=False):
            self._passed()
            os._exit(0)

    def _end(self) -> None:
        if not self._over.wait(self._left + GRACE_S):
            os._exit(0)
