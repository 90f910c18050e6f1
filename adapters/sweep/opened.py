"""Opened: a file to look through, of whatever kind, and no lock of another program is lost by it.

A file of SQLite's must not be closed by us: the system would drop the locks that SQLite holds on it
in this process, and another program could then destroy it. So such files stay open until they are
gone from the disk, one descriptor each.
"""

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

PIECE_BYTES = 1 << 20
DATABASE = re.compile(r".*\.(sqlite3?|db)(-wal|-shm|-journal)?", re.IGNORECASE)
DATABASE_BEGINS = b"SQLite format 3\0"

HELD: dict[tuple[int, int], int] = {}  # (device, inode) -> the descriptor.
HOLDING = threading.Lock()


class Opened:
    """A regular file to read from. SQLite's are kept open behind us."""

    def __init__(self, path: Path) -> None:
        named = bool(DATABASE.fullmatch(path.name))
        with HOLDING:
            seen = os.lstat(path)
            held = HELD.get((seen.st_dev, seen.st_ino))
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            self.descriptor = os.open(path, flags) if held is None else held
            self.is_database = named or self.read(0, len(DATABASE_BEGINS)) == DATABASE_BEGINS
            if self.is_database:
                there = os.fstat(self.descriptor)
                HELD.setdefault((there.st_dev, there.st_ino), self.descriptor)

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, *_: object) -> None:
        if not self.is_database:
            os.close(self.descriptor)

    def read(self, at: int, size: int) -> bytes:
        return os.pread(self.descriptor, size, at)

    def in_order(self) -> Iterator[bytes]:
        at = 0
        while content := self.read(at, PIECE_BYTES):
            yield content
            at += len(content)


def release() -> None:
    """Let go of files that are gone from the disk: nobody locks those any more."""
    with HOLDING:
        for key, descriptor in list(HELD.items()):
            if os.fstat(descriptor).st_nlink == 0:
                os.close(descriptor)
                del HELD[key]
