"""Connections to the file: each belongs to the thread that opened it, and to its process.

Closing a connection that another thread is inside of crashes Python, so a thread closes its own,
and what it leaves behind is closed when it ends. A connection carried over a fork believes in locks
that its process does not hold, so a thread that forks closes its idle ones first, and a child
leaves alone what it inherited and opens its own.
"""

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import dialect
from .errors import StoreError, unreadable

INHERITED: list[sqlite3.Connection] = []  # Kept for ever: closing them would drop foreign locks.


class Connections:
    def __init__(self, path: Path, *, timeout_s: float) -> None:
        self.path = path
        self.timeout_s = timeout_s
        self._local = threading.local()
        self._closed = False
        EVERY_SET.add(self)

    @contextmanager
    def one(self) -> Iterator[sqlite3.Connection]:
        """A connection that nobody else uses: one asked for inside of another is another."""
        idle = self._idle()
        db = idle.pop() if idle else open_connection(self.path, timeout_s=self.timeout_s)
        try:
            yield db
        finally:
            if db.in_transaction:
                db.rollback()
            if self._closed:
                db.close()
            else:
                self._idle().append(db)

    def close(self) -> None:
        """Close this thread's; the others' go when their threads end."""
        self._closed = True
        self.close_idle()

    def close_idle(self) -> None:
        idle = self._idle()
        while idle:
            idle.pop().close()

    def _idle(self) -> list[sqlite3.Connection]:
        local = self._local
        if getattr(local, "pid", None) != os.getpid():
            INHERITED.extend(getattr(local, "idle", ()))
            local.pid = os.getpid()
            local.idle = []
        found: list[sqlite3.Connection] = local.idle
        return found


EVERY_SET: "weakref.WeakSet[Connections]" = weakref.WeakSet()


def before_fork() -> None:
    for connections in list(EVERY_SET):
        connections.close_idle()


os.register_at_fork(before=before_fork)


def open_connection(path: Path, *, timeout_s: float) -> sqlite3.Connection:
    if not path.exists():
        raise unreadable(path, "there is no such file")
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=timeout_s, isolation_level=None
    )
    try:
        for pragma, value, expected in dialect.ON_EVERY_CONNECTION:
            db.execute(f"PRAGMA {pragma} = {value}").fetchall()
            found = db.execute(f"PRAGMA {pragma}").fetchone()
            if found is not None and found[0] != expected:
                raise StoreError(
                    f"this SQLite ({sqlite3.sqlite_version}) refuses {pragma} = {value}, without"
                    " which erased text would stay on the disk; use a Python with a full SQLite"
                )
    except BaseException:
        db.close()
        raise
    return db
