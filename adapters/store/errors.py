"""What can be wrong with the store, each as one sentence that says what to do.

Foreign errors become these at the edge of the store, once, so that nobody above it knows SQLite.
A busy database is only busy: nothing here ever calls it damaged because somebody else is writing.
"""

import errno
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ...application.ports import Busy, Conflict, Failure
from ...projections.fold import RowDamaged


class StoreError(Failure):
    """Base: the store could not do it, and nothing was stored. Shown to people as it is."""


class StoreBusy(StoreError, Busy):
    """Another process kept the write lock for the whole of our wait."""


class StoreFull(StoreError):
    """The disk, or a quota on it, has no room."""


class StoreDamaged(StoreError):
    """The file, a row of the log, a body or a projection is not what was written."""


class StoreUnreadable(StoreError):
    """The file is missing, is not ours to open, or lies where locks cannot be trusted."""


class NoMemoryYet(StoreUnreadable):
    """Nobody has made one there."""

    def __init__(self, name: object) -> None:
        super().__init__(f"there is no memory in {name} yet; `threadbook run` makes one")


class StoreMismatch(StoreError):
    """The file is sound and another's: a newer program, another clock, another application."""


class StoreSealed(StoreError):
    """The texts need a key file that is not in this home."""


class StoreLost(StoreError):
    """The connection to the database ended in the middle."""


def explain(error: sqlite3.Error, path: Path, holder: Callable[[], str] = lambda: "") -> StoreError:
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    match primary:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return busy(path, holder())
        case sqlite3.SQLITE_FULL:
            return full(path)
        case sqlite3.SQLITE_IOERR if code in WRITING_FAILED:
            return full(path)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_FORMAT:
            return damaged_file(path, str(error))
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_READONLY:
            return unreadable(path, str(error))
        case sqlite3.SQLITE_IOERR:
            return StoreUnreadable(
                f"{path} could not be read from the disk ({error}); check the disk, then try again"
            )
        case _:
            # A missing table or column, a text that is no text, a number where text should be:
            # the log and the tables made from it no longer fit each other.
            return StoreDamaged(
                f"{path} holds something unexpected ({error}); `threadbook verify` checks the log,"
                " `threadbook replay --rebuild` makes the tables anew from it"
            )


# Disk writes that failed part-way: SQLite reports a file size limit and some quotas like this.
WRITING_FAILED = {
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_FSYNC,
    sqlite3.SQLITE_IOERR_TRUNCATE,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_SHMMAP,
}


def damaged_file(path: Path | str, why: str) -> StoreDamaged:
    return StoreDamaged(
        f"{path} is damaged ({why}); nothing was changed: keep a copy of the folder,"
        " and restore the file from a backup"
    )


def busy(path: Path | str, holder: str) -> StoreBusy:
    return StoreBusy(
        f"{path}: {holder or 'another process'} holds the write lock;"
        " wait until it has finished, or stop it, then try again"
    )


def full(path: Path | str) -> StoreFull:
    return StoreFull(
        f"{path} could not grow: the disk is full or a limit is reached;"
        " nothing was stored: make room and run the command again"
    )


def unreadable(path: Path | str, why: str) -> StoreUnreadable:
    return StoreUnreadable(
        f"{path} cannot be opened ({why}); check that the folder exists, that it is yours,"
        " and that it may be written"
    )


def explain_os(error: OSError, path: Path | str) -> StoreError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return full(path)
    return unreadable(path, error.strerror or str(error))


@contextmanager
def files_of(path: Path) -> Iterator[None]:
    """Round the files that lie beside the database; never round a caller's block."""
    try:
        yield
    except OSError as error:
        raise explain_os(error, path) from error


@contextmanager
def translated(path: Path, holder: Callable[[], str] = lambda: "") -> Iterator[None]:
    try:
        yield
    except sqlite3.IntegrityError as error:
        if error.sqlite_errorname in ("SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY"):
            raise Conflict(f"it is already there ({error}); read again") from error
        raise explain(error, path, holder) from error
    except sqlite3.Error as error:
        raise explain(error, path, holder) from error
    except UnicodeEncodeError as error:
        # An argument of bytes that are no text, or half a character: no such thing was ever stored.
        raise StoreError(
            f"{error.object!r} is no Unicode text, so that it can neither be stored nor looked up"
        ) from error
    except RowDamaged as error:
        raise StoreDamaged(
            f"{path}: {error}; `threadbook replay --verify` shows what else differs,"
            " `threadbook replay --rebuild` makes the tables anew from the log"
        ) from error
