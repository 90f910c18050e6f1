"""Backups: the database as it was before a newer program changed its tables, in `<home>/backups`.

One is whole or not there: it is written under another name, read through, synced, and only then
named. It holds texts as the database does, so that it goes when one of them is erased: in the
transaction that erases, before the commit, so that no crash leaves a forgotten text in it.

What else lies in that folder, or behind a link there, is a person's own, and is not touched.
"""

import os
import re
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct

from . import files
from .errors import (
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreUnreadable,
    damaged_file,
    explain,
    explain_os,
)

FOLDER = "backups"
PART = ".part"  # One that is being made, or was when its process was killed.
SUFFIX = ".sqlite"
# What is made here, and what SQLite puts beside it.
OURS = re.compile(r"schema-\d+-position-\d+\.(sqlite|part)(-wal|-shm|-journal)?")
PAGE = 500


class Backup(Struct, frozen=True, kw_only=True):
    path: Path
    made_at: float
    age_s: int

    def __str__(self) -> str:
        made = f"{datetime.fromtimestamp(self.made_at, UTC):%Y-%m-%d %H:%M:%SZ}"
        return (
            f"{self.path}, made {made} ({timedelta(seconds=self.age_s)} ago), before a newer"
            " Threadbook changed the tables; it goes with the first text in it that is erased"
        )


def known(home: Path, *, now: float) -> list[Backup]:
    found = []
    for path in sorted(names(home)):
        if path.suffix == SUFFIX:
            with suppress(FileNotFoundError):  # It has just gone.
                made_at = path.stat().st_mtime
                age_s = max(0, int(now - made_at))
                found.append(Backup(path=path, made_at=made_at, age_s=age_s))
    return found


def make(home: Path, source: Path, *, schema: int, position: int, chain: bytes, now: float) -> Path:
    """Copy the database as it is committed. The caller holds the write lock and has written
    nothing yet; what it read last is what the copy has to end with."""
    folder = home / FOLDER
    backup = folder / f"schema-{schema}-position-{position}{SUFFIX}"
    part = backup.with_suffix(PART)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if not folder.is_symlink():  # A folder elsewhere has other files, and other readers.
            folder.chmod(0o700)
        remove_parts(home)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            copy(source, part)
            check(part, position, chain)
            os.utime(part, (now, now))
            sync(part)
            part.replace(backup)
        except BaseException:
            with suppress(OSError):
                remove_parts(home)  # What is left goes with the next one, or with an erasure.
            raise
        files.sync_folder(folder)
        files.sync_folder(home)
    except sqlite3.Error as error:
        raise not_made(source, folder, explain(error, part), str(error)) from error
    except OSError as error:
        raise not_made(source, folder, explain_os(error, part), error.strerror) from error
    return backup


def copy(source: Path, part: Path) -> None:
    # Not page by page: what was erased may still stand between the rows until the next checkpoint.
    with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as db:
        db.execute("VACUUM INTO ?", (str(part),))


def check(part: Path, position: int, chain: bytes) -> None:
    """Read all of it once. It is turned to WAL as the original is, which whoever puts it back
    relies on."""
    with closing(sqlite3.connect(f"{part.absolute().as_uri()}?mode=rw", uri=True)) as db:
        db.execute("PRAGMA journal_mode = WAL").fetchall()
        (sound,) = db.execute("PRAGMA integrity_check(1)").fetchone()
        end = db.execute(
            "SELECT position, chain FROM events ORDER BY position DESC LIMIT 1"
        ).fetchone()
        if sound != "ok" or (end or (0, chain)) != (position, chain):
            raise sqlite3.DatabaseError(f"{part} is not what was copied ({sound})")


def not_made(source: Path, folder: Path, told: StoreError, why: str | None) -> StoreError:
    if isinstance(told, StoreDamaged):
        return damaged_file(source, f"it could not be copied: {why}")
    kind = StoreFull if isinstance(told, StoreFull) else StoreUnreadable
    return kind(
        f"{source} is an older Threadbook's, and its tables are changed only after a copy of it was"
        f" put into {folder}, which failed ({why}); nothing was changed: see to it that the folder"
        " may be written and has room for the copy, then run the command again"
    )


def drop_outdated(home: Path, db: sqlite3.Connection) -> list[str]:
    """Remove each backup with a text that is no longer in the database, whoever erased it; which
    of them could not be, and why. The caller holds the write lock, so nobody is making one."""
    left = []
    for path in list(names(home)):
        if path.suffix == SUFFIX and not is_outdated(path, db):
            continue
        try:
            remove(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            left.append(f"{path} ({error.strerror})")
    return left


def outdated(home: Path, db: sqlite3.Connection) -> list[str]:
    return [str(path) for path in names(home) if path.suffix != SUFFIX or is_outdated(path, db)]


def is_outdated(path: Path, db: sqlite3.Connection) -> bool:
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        ) as backup:
            refs = backup.execute("SELECT ref FROM bodies WHERE owner <> ''")
            while page := [ref for (ref,) in refs.fetchmany(PAGE)]:
                marks = ", ".join("?" * len(page))
                (there,) = db.execute(
                    f"SELECT count(*) FROM bodies WHERE ref IN ({marks})", page
                ).fetchone()
                if there != len(page):
                    return True
    except sqlite3.Error:
        return True  # Nobody can tell what it holds, and it is no use as a backup.
    return False


def names(home: Path) -> Iterator[Path]:
    """Every backup in the folder, and of one that was cut off SQLite's own files too."""
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in (home / FOLDER).iterdir():
            if OURS.fullmatch(path.name):
                yield path


def remove_parts(home: Path) -> None:
    for path in list(names(home)):
        if path.suffix != SUFFIX:
            remove(path)


def remove(path: Path) -> None:
    """Overwritten first, as what is erased from the database is. Of a link only the name goes."""
    if stat.S_ISREG(os.lstat(path).st_mode):
        opened = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(opened, "r+b", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            zeros = bytes(1 << 20)
            while (at := file.tell()) < size:
                file.write(zeros[: size - at])
            os.fsync(file.fileno())
    path.unlink()
    files.sync_folder(path.parent)


def sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
