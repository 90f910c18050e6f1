"""Who is reading: a transaction that is open keeps erased text in the WAL until it ends.

SQLite cannot say who that is. So each of our read transactions leaves a small file with its
process, its beginning and its purpose; the file of a process that has ended is swept away. On Linux
the kernel's table of locks also names processes that are not ours, and who holds the write lock.
"""

import itertools
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

FOLDER = "readers"
WRITE_LOCK_BYTE = 120  # In `-shm`, by SQLite's file format: 120 writes, 123 to 127 read.
READ_LOCK_BYTES = range(123, 128)

numbers = itertools.count()


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    pid: int
    since_s: float | None = None
    what: str | None = None

    def __str__(self) -> str:
        return f"process {self.pid}" + (f" ({self.what})" if self.what else "")


@contextmanager
def registered(home: Path, what: str) -> Iterator[None]:
    file = home / FOLDER / f"{os.getpid()}-{next(numbers)}"
    line = msgspec.json.encode(Holder(pid=os.getpid(), since_s=time.time(), what=what))
    # A note for others, no promise: where it cannot be written, reading goes on without it.
    with suppress(OSError):
        write(file, line)
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(file)


def write(file: Path, line: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        opened = os.open(file, flags, 0o600)
    except FileNotFoundError:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        opened = os.open(file, flags, 0o600)
    try:
        os.write(opened, line)
    finally:
        os.close(opened)


def reading_now(home: Path, path: Path) -> list[Holder]:
    ours = {holder.pid: holder for holder in sorted_by_age(home)}
    others = {pid: Holder(pid=pid) for pid in locking(path, READ_LOCK_BYTES)}
    return list((others | ours).values())


def sweep(home: Path) -> None:
    """Away with the notes of readers that were killed, also when nobody has to be named."""
    with suppress(OSError):  # A folder that may only be read keeps them.
        sorted_by_age(home)


def sorted_by_age(home: Path) -> list[Holder]:
    """Newest first, so that of a process's several readings the oldest is kept in a dict."""
    found = []
    with suppress(FileNotFoundError):
        for file in sorted((home / FOLDER).iterdir()):
            try:
                holder = msgspec.json.decode(file.read_bytes(), type=Holder)
            except OSError:
                continue  # It ended between listing and reading.
            except msgspec.MsgspecError:
                # Not written yet, or never because of a kill: the name has the process, too.
                pid, _, _ = file.name.partition("-")
                if not pid.isdecimal():
                    continue  # Nobody of ours has made it.
                holder = Holder(pid=int(pid))
            if alive(holder.pid):
                found.append(holder)
            else:
                file.unlink(missing_ok=True)
    return sorted(found, key=lambda holder: -(holder.since_s or 0))


def writing_now(path: Path) -> str:
    """Who holds the write lock, in words; empty where the system does not say."""
    pids = locking(path, range(WRITE_LOCK_BYTE, WRITE_LOCK_BYTE + 1))
    return f"process {pids[0]}" if pids else ""


def locking(path: Path, wanted: range) -> list[int]:
    """Processes with a lock on any of these bytes of the `-shm` file, from /proc/locks.

    The file itself must not be opened to ask: closing it would drop our own process's locks.
    """
    try:
        shm = os.stat(f"{path}-shm")
        table = Path("/proc/locks").read_text()
    except OSError:
        return []
    inode = f"{os.major(shm.st_dev):02x}:{os.minor(shm.st_dev):02x}:{shm.st_ino}"
    return sorted(
        {pid for pid, first, last in locks_on(inode, table) if overlaps(first, last, wanted)}
    )


def locks_on(inode: str, table: str) -> Iterator[tuple[int, int, int]]:
    for line in table.splitlines():
        words = line.split()
        if len(words) == 8 and words[5] == inode and int(words[4]) > 0:
            last = 2**63 - 1 if words[7] == "EOF" else int(words[7])
            yield int(words[4]), int(words[6]), last


def overlaps(first: int, last: int, wanted: range) -> bool:
    return first < wanted.stop and last >= wanted.start


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # Another user's, and running.
    return True
