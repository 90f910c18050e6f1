"""The store: one SQLite file that holds the log, the texts, and the rows made from the log.

Every write is one `BEGIN IMMEDIATE`: what is read in the block is what is decided on, the events
and the rows that follow from them are committed together, and then the head moves. Reading never
waits for writing. No foreign error leaves here: `errors.py` says what each one means.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from ...application.ports import Left
from ...projections import fold
from ...projections.fold import Database
from . import backups, bodies, dialect, erasures, files, head, readers
from .base import WAIT_S, LogStore, cut, end_of, make_folder, refuse_newer
from .codec import Codec, Upcast
from .connections import Connections
from .errors import (
    NoMemoryYet,
    StoreMismatch,
    StoreUnreadable,
    busy,
    explain_os,
    translated,
)
from .verify import Verified, shape_of, verify_log
from .views import LastRow, WritingView

FILE = "threadbook.sqlite"
KEY_FILE = "keys.sqlite"  # Of a home whose log is elsewhere.
TRUNCATE_WAIT_S = 0.2


class SqliteStore(LogStore):
    """Open with `SqliteStore.open`."""

    def __init__(
        self,
        home: Path,
        *,
        projections: Sequence[ModuleType],
        clock: Callable[[], float],
        codec: Codec,
        wait_s: float,
    ) -> None:
        self.path = home / FILE
        super().__init__(
            home,
            str(self.path),
            projections=projections,
            clock=clock,
            codec=codec,
            wait_s=wait_s,
            bodies=bodies,
        )
        self._connections = Connections(self.path, timeout_s=wait_s)
        # The newest erasure of which no backup holds a text. They are read through once for each,
        # and not by every write while a reader keeps an erasure pending.
        self._backups_follow: int | None = None

    @classmethod
    def open(
        cls,
        home: Path,
        *,
        projections: Sequence[ModuleType],
        clock: Callable[[], float],
        simulated: bool = False,
        create: bool = True,
        check: bool = True,
        announce: bool = True,
        upcasts: dict[str, Upcast] | None = None,
        wait_s: float = WAIT_S,
        mounts: str | None = None,
    ) -> "SqliteStore":
        """Open the store in `home`, or make it there.

        `simulated` says that `clock` is not the machine's; a store keeps to the kind of clock it
        began with. `check=False` opens a log that has been cut, for `verify` alone.
        `announce=False` makes a log without our own first event, for other programs' events.
        """
        store = cls(home, projections=projections, clock=clock, codec=Codec(upcasts), wait_s=wait_s)
        try:
            files.refuse_network(home, mounts)
            with translated(store.path, store._writer):
                store._create(simulated=simulated, create=create, announce=announce)
                store._admit(simulated=simulated, check=check)
        except OSError as error:
            store.close()
            raise explain_os(error, store.path) from error
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Close what this thread opened. Other threads' connections close when they end."""
        self._connections.close()

    @contextmanager
    def _snapshot(self, what: str) -> Iterator[Database]:
        with (
            translated(self.path, self._writer),
            self._connections.one() as db,
            readers.registered(self.home, what),
        ):
            db.execute(dialect.BEGIN_READING)
            yield db

    @contextmanager
    def _looking(self) -> Iterator[Database]:
        with translated(self.path, self._writer), self._connections.one() as db:
            yield db

    @contextmanager
    def _watching(self) -> Iterator[Callable[[], bool]]:
        with self._looking() as db:
            seen = -1

            def changed() -> bool:
                nonlocal seen
                (now,) = db.execute("PRAGMA data_version").fetchone()
                before, seen = seen, now
                return bool(now != before)

            yield changed

    def _verified(self, db: Database, known: head.Head | None) -> Verified:
        assert isinstance(db, sqlite3.Connection)
        return verify_log(db, known, self.codec)

    def _shapes(
        self, projection: ModuleType, stored: Database, replayed: sqlite3.Connection
    ) -> tuple[list[Any], list[Any]]:
        return shape_of(projection, stored), shape_of(projection, replayed)

    def sealed(self) -> str | None:
        return None  # The texts lie in the file as they are.

    def pending_erasures(self) -> list[erasures.PendingErasure]:
        """Erased texts whose bytes are still on the disk, and who holds that up."""
        with translated(self.path, self._writer), self._connections.one() as db:
            if self._complete(db, TRUNCATE_WAIT_S):
                readers.sweep(self.home)
                return []
            return erasures.pending(
                db,
                tuple(readers.reading_now(self.home, self.path)),
                tuple(backups.outdated(self.home, db)),
            )

    def _clean(self, db: Database) -> None:
        bodies.write_anew(db)

    def tidy(self) -> None:
        with self._looking() as db:
            if not bodies.has_room_to_give(db):
                return
        with self._writing(actor="application", run_id=None, append_nothing=True) as view:
            if bodies.has_room_to_give(view._log):
                bodies.write_anew(view._log)

    def backups(self) -> list[backups.Backup]:
        return backups.known(self.home, now=self.clock())

    def left(self, owner: str) -> Left:
        pending = [str(each) for each in self.pending_erasures()]
        return Left(texts=self._texts_of(owner), pending=pending)

    @contextmanager
    def _writing(
        self,
        *,
        actor: str,
        run_id: str | None,
        append_nothing: bool = False,
        migrating: bool = False,
        restoring: bool = False,
        wait_s: float | None = None,
    ) -> Iterator[WritingView]:
        restoring = restoring or self._restoring
        with (
            translated(self.path, self._writer),
            self._turn.taken(self._wait_s if wait_s is None else wait_s, self.name),
            self._connections.one() as db,
        ):
            if not restoring:
                self._refuse_damaged()
            with waiting(db, wait_s, usually_s=self._wait_s):
                db.execute(dialect.BEGIN_WRITING)
            if not (migrating or restoring):
                self._refuse_migrated(db)
            last = LastRow(db)
            if not restoring:
                self._hold_against_head(db, last)
            view = self._view(db, last, actor, run_id)
            yield view
            assert view.pid == os.getpid(), "a child commits nothing that its parent has begun"
            assert not (append_nothing and view.appended)
            self._commit(db, view)

    def _commit(self, db: sqlite3.Connection, view: WritingView) -> None:
        view.before_commit()
        newest = erasures.any_pending(db)
        pending = newest is not None
        if view.bodies_erased or newest not in (None, self._backups_follow):
            self._backups_follow = None
            backups.drop_outdated(self.home, db)  # What it cannot remove stays pending, too.
        self._end(db, view)
        if pending:
            with suppress(sqlite3.Error):  # It stays pending, and every later write tries again.
                self._complete(db, TRUNCATE_WAIT_S if view.bodies_erased else 0)

    def _complete(self, db: sqlite3.Connection, wait_s: float) -> bool:
        newest = erasures.any_pending(db)
        if newest is None:
            return True
        if newest != self._backups_follow:
            if backups.outdated(self.home, db):
                return False
            self._backups_follow = newest
        return erasures.complete(db, self._wait_s, wait_s)

    def _schema_of(self, db: Database) -> int:
        (number,) = db.execute("PRAGMA user_version").fetchone()
        return int(number)

    def _set_schema(self, db: Database) -> None:
        db.execute(f"PRAGMA user_version = {dialect.SCHEMA_NUMBER}")

    def _back_up(self, schema: int, view: WritingView) -> None:
        assert isinstance(view._log, sqlite3.Connection)
        # A migration that was killed left one, and the older program, which knows nothing of it,
        # has erased since.
        if left := backups.drop_outdated(self.home, view._log):
            raise StoreUnreadable(
                f"{', '.join(left)} holds texts that were erased since and cannot be removed;"
                " remove it, then run the command again"
            )
        backups.make(
            self.home,
            self.path,
            schema=schema,
            position=view.position,
            chain=view.chain,
            now=self.clock(),
        )

    def _create(self, *, simulated: bool, create: bool, announce: bool) -> None:
        if not create and not self.path.exists():
            raise NoMemoryYet(self.home)
        if self.path.exists() and self._schema_number() != 0:
            return
        if (self.home / KEY_FILE).exists():
            raise StoreMismatch(
                f"{self.home} is this machine's part of a memory in PostgreSQL; open it by its DSN,"
                " or choose another --home"
            )
        make_folder(self.home)
        with creating(self.home, self._wait_s, self.path):
            if not self.path.exists():
                self._refuse_lost_file()
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            if self._schema_number() != 0:
                return  # Somebody else was first.
            with self._connections.one() as db:
                for pragma in dialect.ON_CREATION:
                    patiently(db, pragma, self._wait_s)
                db.execute(dialect.BEGIN_WRITING)
                for statement in dialect.LOG:
                    db.execute(statement)
                for projection in self.projections:
                    fold.create(projection, db)
                self._remember_shape(db)
                db.execute(f"PRAGMA application_id = {dialect.APPLICATION_ID}")
                self._set_schema(db)
                view = self._view(db, LastRow(db), "application", None)
                if announce:
                    self._announce(view, simulated=simulated)
                self._commit(db, view)

    def _schema_number(self) -> int:
        """0 for an empty file. Another program's file, or a newer program's, is refused."""
        with self._connections.one() as db:
            db.execute(dialect.BEGIN_READING)  # All three before it was made, or all three after.
            (number,) = db.execute("PRAGMA user_version").fetchone()
            (application,) = db.execute("PRAGMA application_id").fetchone()
            (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != dialect.APPLICATION_ID and (application or number or tables):
            raise StoreMismatch(
                f"{self.path} is a SQLite file of another program; choose another folder (--home)"
            )
        refuse_newer(self.name, number)
        return int(number)

    def _admit(self, *, simulated: bool, check: bool) -> None:
        known = head.read(self.home)  # Before the log is looked at, which others lengthen.
        with self._connections.one() as db:
            self._hold_against_clock(db, simulated=simulated, check=check)
            if check:
                position, _ = end_of(db)
                if known is not None and known.position > position:
                    raise cut(self.name, known.position, position)
            current = self._is_current(db)
            with suppress(sqlite3.Error):  # A reader's folder may be read-only; writers try again.
                self._complete(db, 0)
        if check and not current:
            self._migrate()

    def _refuse_lost_file(self) -> None:
        known = head.read(self.home)
        if known is not None and known.position > 0:
            raise cut(self.name, known.position, 0)

    def _writer(self) -> str:
        return readers.writing_now(self.path)


@contextmanager
def waiting(db: sqlite3.Connection, wait_s: float | None, *, usually_s: float) -> Iterator[None]:
    """For the lock only: whoever has it waits for nobody."""
    if wait_s is None:
        yield
        return
    db.execute(f"PRAGMA busy_timeout = {int(wait_s * 1000)}").fetchall()
    try:
        yield
    finally:
        db.execute(f"PRAGMA busy_timeout = {int(usually_s * 1000)}").fetchall()


@contextmanager
def creating(home: Path, wait_s: float, path: Path) -> Iterator[None]:
    """One process makes the file; the others wait here, because SQLite's own wait does not hold
    while a file is being turned to WAL."""
    file = os.open(home / "creating.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise busy(path, "another process that is making it") from None
                time.sleep(0.01)
        yield
    finally:
        os.close(file)


def patiently(db: sqlite3.Connection, pragma: str, wait_s: float) -> None:
    """Turn the file to WAL although somebody looks at it: SQLite itself would not wait for them."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            db.execute(pragma).fetchall()
            return
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
