"""The head: how far the log had come, kept outside of it, so that a cut tail is seen.

85 bytes: the position in 19 digits, a space, the chain there in 64 hex digits, a line feed. They
are overwritten in place under a file lock after each commit, only forward, and never synced: a
head behind the log is sound (the machine stopped between commit and head), a head ahead of it
means that rows are gone.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

NAME = "head"
SIZE = 85


class Head(Struct, frozen=True, gc=False):
    position: int
    chain: bytes

    def __str__(self) -> str:
        return f"position {self.position}, chain {self.chain.hex()}"


def read(home: Path) -> Head | None:
    """The head, or None where there is none or it is not one (a write was cut off)."""
    try:
        with locked(home / NAME, os.O_RDONLY, fcntl.LOCK_SH) as file:
            return parse(os.pread(file, SIZE + 1, 0))
    except FileNotFoundError:
        return None


def glance(home: Path) -> Head | None:
    """Without the lock, and so perhaps in the middle of a write: good for an equality only."""
    try:
        file = os.open(f"{home}/{NAME}", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return parse(os.pread(file, SIZE + 1, 0))
    finally:
        os.close(file)


def advance(home: Path, head: Head) -> None:
    with locked(f"{home}/{NAME}", os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX) as file:
        known = parse(os.pread(file, SIZE + 1, 0))
        if known is None or known.position < head.position:
            os.pwrite(file, render(head), 0)


def renew(home: Path, head: Head) -> None:
    """Set the head also backward: only a person who accepts a restored backup may."""
    with locked(home / NAME, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX) as file:
        os.pwrite(file, render(head), 0)


def render(head: Head) -> bytes:
    return b"%019d %s\n" % (head.position, head.chain.hex().encode())


def parse(line: bytes) -> Head | None:
    position, _, chain = line[:-1].partition(b" ")
    if len(line) != SIZE or not position.isdigit():
        return None
    try:
        return Head(int(position), bytes.fromhex(chain.decode("ascii")))
    except ValueError:
        return None


@contextmanager
def locked(path: Path | str, flags: int, lock: int) -> Iterator[int]:
    file = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, lock)
        yield file
    finally:
        os.close(file)
