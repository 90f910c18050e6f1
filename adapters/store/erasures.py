"""Erasures that must outlive the transaction: what is not yet overwritten, and what was forgotten.

Deleted text stays in the WAL, and behind it in the file, until the WAL has been truncated; a reader
with an older view holds that up. `erasures_pending` remembers it until it has been done.

`erasures.log` is for a database that comes back from a backup: one line an act, without text,
synced before the commit, outside of the database; the last line of an id counts.
"""

import os
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from ...projections.fold import Database
from .files import sync_folder
from .readers import Holder

NAME = "erasures.log"


class Act(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    act: Literal["forget", "lift"]
    kind: Literal["thread", "value"]
    id: str
    position: int


class PendingErasure(msgspec.Struct, frozen=True, kw_only=True):
    position: int
    since_ms: int
    bodies: int
    held_by: tuple[Holder, ...]
    backups: tuple[str, ...] = ()  # That still hold them.

    def __str__(self) -> str:
        since = f"{datetime.fromtimestamp(self.since_ms // 1000, UTC):%Y-%m-%d %H:%M:%SZ}"
        holders = ", ".join(map(str, self.held_by)) or "a reader that has just ended"
        if self.backups:
            holders = f"{', '.join(self.backups)}, which could not be removed: remove it"
        return f"{self.bodies} erased texts since {since}, held up by {holders}"


def acts(home: Path) -> dict[tuple[str, str], Act]:
    """The last act on each (kind, id). A line cut off by a crash was never committed."""
    found: dict[tuple[str, str], Act] = {}
    try:
        lines = (home / NAME).read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}
    for line in lines:
        try:
            act = msgspec.json.decode(line, type=Act)
        except msgspec.MsgspecError:
            continue
        found[act.kind, act.id] = act
    return found


class ActsWritten:
    """Lines that stand if the transaction commits. The write lock makes us the only writer."""

    def __init__(self, home: Path, lines: Iterable[Act]) -> None:
        text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        self.file = os.open(home / NAME, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.size_before = os.fstat(self.file).st_size
        try:
            if self.size_before and os.pread(self.file, 1, self.size_before - 1) != b"\n":
                text = b"\n" + text  # A crash cut the last line off; it must not spoil this one.
            while text:  # A disk that is about to be full takes a part, and says no the next time.
                text = text[os.write(self.file, text) :]
            os.fsync(self.file)
            if not self.size_before:
                sync_folder(home)  # A new file's name has to outlive a power cut, too.
        except BaseException:
            self.withdraw()
            raise

    def keep(self) -> None:
        os.close(self.file)

    def withdraw(self) -> None:
        try:
            os.ftruncate(self.file, self.size_before)
            os.fsync(self.file)
        finally:
            os.close(self.file)


def note_pending(db: Database, *, position: int, since_ms: int, bodies: int) -> None:
    db.execute(
        "INSERT INTO erasures_pending (position, since_ms, bodies) VALUES (?, ?, ?)"
        " ON CONFLICT (position) DO UPDATE SET bodies = erasures_pending.bodies + excluded.bodies",
        (position, since_ms, bodies),
    )


def any_pending(db: sqlite3.Connection) -> int | None:
    """The newest erasure that is not complete."""
    found: int | None = db.execute("SELECT max(position) FROM erasures_pending").fetchone()[0]
    return found


def complete(db: sqlite3.Connection, timeout_s: float, wait_s: float) -> bool:
    """Truncate the WAL, and strike off what that completes. False: a reader is in the way."""
    newest = any_pending(db)
    if newest is None:
        return True
    db.execute(f"PRAGMA busy_timeout = {int(wait_s * 1000)}")
    try:
        (busy, _, _) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy:
            db.execute("DELETE FROM erasures_pending WHERE position <= ?", (newest,))
        return not busy
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return False  # Somebody is writing. It stays pending, and the next one tries again.
        raise
    finally:
        db.execute(f"PRAGMA busy_timeout = {int(timeout_s * 1000)}")


def pending(
    db: sqlite3.Connection, held_by: tuple[Holder, ...], backups: tuple[str, ...]
) -> list[PendingErasure]:
    found = db.execute("SELECT position, since_ms, bodies FROM erasures_pending ORDER BY position")
    return [
        PendingErasure(
            position=position, since_ms=since_ms, bodies=bodies, held_by=held_by, backups=backups
        )
        for position, since_ms, bodies in found
    ]
