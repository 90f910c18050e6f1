"""Connections to the file: each belongs to the thread that opened it, and to its process.

Closing a connection that another thread is inside of crashes Python, so a thread closes its own,
and what it leaves behind is closed when it ends. A connection carried over a fork believes in locks
that its process does not hold, and makes SQLite believe in them for every later connection of that
process. So a thread that forks closes its idle ones first; where one was in use, or another
thread's, the child may not open that file at all: losing events would be the alternative.
"""

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import dialect
from .errors import StoreError, damaged_file, unreadable

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
        idle, owner = self._idle(), os.getpid()
        db = idle.pop() if idle else open_connection(self.path, timeout_s=self.timeout_s)
        try:
            yield db
        finally:
            if os.getpid() != owner:  # A fork inside of the block, which the parent will end.
                INHERITED.append(db)
            elif self._closed:
                close(db)
            else:
                if db.in_transaction:
                    db.rollback()
                self._idle().append(db)

    def close(self) -> None:
        """Close this thread's; the others' go when their threads end."""
        self._closed = True
        self.close_idle()

    def close_idle(self) -> None:
        idle = self._idle()
        while idle:
            close(idle.pop())

    def _idle(self) -> list[sqlite3.Connection]:
        local = self._local
        if getattr(local, "pid", None) != os.getpid():
            INHERITED.extend(getattr(local, "idle", ()))
            local.pid = os.getpid()
            local.idle = []
        found: list[sqlite3.Connection] = local.idle
        return found


class Owned(sqlite3.Connection):
    """A connection that can be found again when the process forks."""

    file: Path


EVERY_SET: "weakref.WeakSet[Connections]" = weakref.WeakSet()
OPEN: "weakref.WeakSet[Owned]" = weakref.WeakSet()
CARRIED_OVER: set[Path] = set()


def before_fork() -> None:
    for connections in list(EVERY_SET):
        connections.close_idle()


def after_fork_in_child() -> None:
    for db in list(OPEN):
        INHERITED.append(db)
        CARRIED_OVER.add(db.file)
    OPEN.clear()


os.register_at_fork(before=before_fork, after_in_child=after_fork_in_child)


def open_connection(path: Path, *, timeout_s: float) -> sqlite3.Connection:
    if not path.exists():
        raise unreadable(path, "there is no such file")
    file = path.resolve()
    if file in CARRIED_OVER:
        raise StoreError(
            f"{path} was in use when this process was forked; fork outside of its blocks and"
            " before other threads use it, or start a new process instead (spawn)"
        )
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=timeout_s,
        isolation_level=None,
        factory=Owned,
    )
    db.file = file
    OPEN.add(db)
    try:
        for pragma, value, expected in dialect.ON_EVERY_CONNECTION:
            db.execute(f"PRAGMA {pragma} = {value}").fetchall()
            found = db.execute(f"PRAGMA {pragma}").fetchone()
            if found is not None and found[0] != expected:
                raise StoreError(
                    f"this SQLite ({sqlite3.sqlite_version}) refuses {pragma} = {value}, without"
                    " which erased text would stay on the disk; use a Python with a full SQLite"
                )
    except UnicodeDecodeError as error:
        # The tables' definitions are struck, and SQLite's message quotes bytes that are no text.
        close(db)
        raise damaged_file(path, "its list of tables is no text") from error
    except BaseException:
        close(db)
        raise
    return db


def close(db: sqlite3.Connection) -> None:
    db.close()
    OPEN.discard(db)  # type: ignore[arg-type]  # Every one is `Owned`.
