"""The store in a PostgreSQL schema, for a memory that several machines share.

The log, its chain and its tables are the same as in the SQLite file, row by row. What is this
machine's own lies in the home: the head, the erasures, the folders, and the key file that opens
the texts (`keys.py`, `sealing.py`). Every write is one transaction under one advisory lock of the
schema, so that positions have no gaps and what is read in the block is what is decided on. Making
the tables happens under the same lock, so that machines that start at once agree.

When the connection ends while a commit is under way, nobody can say whether it was kept. The error
says so, and every command may be given again: it changes nothing that has been done.
"""

import os
import sqlite3
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import psycopg
from msgspec.structs import astuple

from ...application.ports import Left
from ...projections import fold
from ...projections.fold import Database
from . import chain, dialect, files, head, postgres_dialect, sound
from .base import WAIT_S, LogStore, cut, end_of, make_folder, refuse_newer
from .codec import Codec, Upcast
from .errors import (
    NoMemoryYet,
    StoreError,
    StoreLost,
    StoreMismatch,
    explain_os,
)
from .keys import NAME as KEY_FILE
from .keys import KeyFile
from .postgres_connections import Connection, Connections, Paged
from .postgres_errors import explain, explained
from .postgres_place import Place
from .sealing import SealedBodies
from .sqlite import FILE as SQLITE_FILE
from .verify import Verified, Walk, all_sound, in_words, is_as_known, last_issued, report
from .views import LastRow, WritingView


class PendingKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Erased texts whose keys another machine may still have."""

    bodies: int
    machine: str
    since_ms: int

    def __str__(self) -> str:
        return (
            f"{self.bodies} erased texts or groups of them could still be opened with the key file"
            f" of machine {self.machine[:8]}, which has not looked since; it drops the keys when"
            " Threadbook next runs there"
        )


class PostgresStore(LogStore):
    """Open with `PostgresStore.open`."""

    def __init__(
        self,
        dsn: str,
        home: Path,
        *,
        projections: Sequence[ModuleType],
        clock: Callable[[], float],
        codec: Codec,
        wait_s: float,
    ) -> None:
        self.place = Place(dsn)
        self.keys = KeyFile(home)
        self.sealing = SealedBodies(self.keys)
        super().__init__(
            home,
            self.place.name,
            projections=projections,
            clock=clock,
            codec=codec,
            wait_s=wait_s,
            bodies=self.sealing,
        )
        self.machine: str | None = None
        self._connections = Connections(self.place, wait_s=wait_s)
        self._begin = postgres_dialect.begin_writing(self.place.schema, wait_s)
        self._seen = 0  # The position up to which the erasures of others are known.

    @classmethod
    def open(
        cls,
        dsn: str,
        home: Path,
        *,
        projections: Sequence[ModuleType],
        clock: Callable[[], float],
        machine: Callable[[], str] | None = None,
        simulated: bool = False,
        create: bool = True,
        check: bool = True,
        announce: bool = True,
        upcasts: dict[str, Upcast] | None = None,
        wait_s: float = WAIT_S,
        mounts: str | None = None,
    ) -> "PostgresStore":
        """Open the memory in the DSN's schema, or make it there; `home` is this machine's part.

        `machine` gives this machine's id, once the home is there. The other options are those of
        `SqliteStore.open`.
        """
        store = cls(
            dsn, home, projections=projections, clock=clock, codec=Codec(upcasts), wait_s=wait_s
        )
        try:
            files.refuse_network(home, mounts)
            store._create(simulated=simulated, create=create, announce=announce)
            store.machine = machine() if machine is not None else None
            store._admit(simulated=simulated, check=check)
        except OSError as error:
            store.close()
            raise explain_os(error, home) from error
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        self._connections.close()
        self.keys.close()

    def sealed(self) -> str | None:
        return self.sealing.missing

    def pending_erasures(self) -> list[PendingKeys]:
        """Which machines have not dropped the keys of what was erased."""
        self._follow_erasures()
        with self._looking() as db:
            found = db.execute(
                "SELECT machine, count(*), min(since_ms)"
                " FROM machines JOIN erasures ON id > applied GROUP BY machine ORDER BY machine"
            ).fetchall()
        return [
            PendingKeys(machine=machine, bodies=bodies, since_ms=since_ms)
            for machine, bodies, since_ms in found
        ]

    def left(self, owner: str) -> Left:
        late = [str(each) for each in self.pending_erasures() if each.machine != self.machine]
        with self._looking() as db:
            cut = db.execute("SELECT path FROM erasures ORDER BY id").fetchall()
        return Left(
            texts=self._texts_of(owner),
            keys=self.keys.opens(path for (path,) in cut),
            elsewhere=[*self._on_the_server(len(cut)), *late],
        )

    def _on_the_server(self, cut: int) -> list[str]:
        return [
            f"the server of {self.name}: it keeps deleted rows in its table files until VACUUM,"
            " and in its write-ahead log, replicas and base backups for as long as their owner"
            " keeps those. Texts lie there sealed, and this home's key file opens none of the"
            f" {cut} that were cut from it: texts of their own, and whole threads",
            "events on the server, which are not sealed: ids, times, paths and folders",
            f"copies of {KEY_FILE} that were put aside before: with one of them, what an old backup"
            " of the server holds can still be opened; delete them",
        ]

    # What PostgreSQL does in its own way.

    @contextmanager
    def _snapshot(self, what: str) -> Iterator[Database]:
        with (
            explained(self.place, self._holder),
            self._connections.one(postgres_dialect.BEGIN_READING) as db,
        ):
            yield db

    @contextmanager
    def _looking(self) -> Iterator[Database]:
        with explained(self.place, self._holder), self._connections.one() as db:
            yield db

    @contextmanager
    def _watching(self) -> Iterator[Callable[[], bool]]:
        with explained(self.place), self._connections.one() as db:
            db.script(f"LISTEN {self._channel()}")
            asked = False

            def changed() -> bool:
                nonlocal asked
                first, asked = not asked, True
                return bool(list(db.raw.notifies(timeout=0))) or first

            try:
                yield changed
            finally:
                with suppress(psycopg.Error):
                    db.script("UNLISTEN *")

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
        begin = self._begin
        if wait_s is not None:
            begin = postgres_dialect.begin_writing(self.place.schema, wait_s)
        with (
            explained(self.place, self._holder),
            self._turn.taken(self._wait_s if wait_s is None else wait_s, self.name),
            self._connections.one(begin) as db,
        ):
            if not restoring:
                self._refuse_damaged()
            if not (migrating or restoring):
                self._refuse_migrated(db)
            last = LastRow(db)
            if not restoring:
                self._hold_against_head(db, last)
            others_wrote = last.position != self._seen
            view = self._view(db, last, actor, run_id)
            self.sealing.now_ms = int(self.clock() * 1000)
            yield view
            assert view.pid == os.getpid(), "a child commits nothing that its parent has begun"
            assert not (append_nothing and view.appended)
            self._commit(db, view)
        # It has happened, and nothing that fails from here on may say otherwise: what is not
        # followed now is followed by the next block.
        with suppress(StoreError):
            if others_wrote or view.bodies_erased:
                self._follow_erasures()
            self._seen = view.position

    def _commit(self, db: Connection, view: WritingView) -> None:
        view.write()
        if view.appended:
            db.script(f"NOTIFY {self._channel()}")
        self._end(db, view)

    def _may_stand(self, error: BaseException) -> bool:
        return isinstance(error, psycopg.Error) and isinstance(
            explain(error, self.place, lambda: ""), StoreLost
        )

    def _verified(self, db: Database, known: head.Head | None) -> Verified:
        assert isinstance(db, Connection)
        every = f"SELECT {chain.COLUMNS}, chain FROM events ORDER BY position"
        last = last_issued(db, 0)
        found = sound.rows(Paged(db).execute(every), sound.Part(1, last), chain.START, self.codec)
        if found is not None and is_as_known(db, last, known):
            return all_sound(found, known)
        walk = Walk(self.codec, known)
        walk.over(iter(Paged(db).execute(every)))
        walk.cut_off(walk.last)
        touched = walk.touched()
        return report(walk, touched, in_words(walk, touched))

    def _shapes(
        self, projection: ModuleType, stored: Database, replayed: sqlite3.Connection
    ) -> tuple[list[Any], list[Any]]:
        known = stored.execute(
            "SELECT value FROM meta WHERE key = ?", (f"table:{projection.NAME}",)
        ).fetchone()
        sound = known is not None and known[0] == definition(projection, stored)
        return ([] if not sound else [projection.NAME]), [projection.NAME]

    def _paged(self, db: Database) -> Database:
        assert isinstance(db, Connection)
        return Paged(db)

    def _replace(self, projection: ModuleType, rows: Sequence[Any], db: Database) -> None:
        """Where the table is as it should be its rows are replaced: a reader's older moment would
        not find them in a new table of the same name."""
        known = db.execute(
            "SELECT value FROM meta WHERE key = ?", (f"table:{projection.NAME}",)
        ).fetchone()
        if known is not None and known[0] == definition(projection, db):
            db.execute(f"DELETE FROM {projection.NAME}")
        else:
            fold.replace_all(projection, (), db)
            remember(projection, db)
        assert isinstance(db, Connection)
        db.fill(projection.NAME, fold.plan(projection).columns, map(astuple, rows))

    def _schema_of(self, db: Database) -> int:
        (number,) = db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        return int(number)

    def _set_schema(self, db: Database) -> None:
        db.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (str(dialect.SCHEMA_NUMBER),))

    def _back_up(self, schema: int, view: WritingView) -> None:
        """Nothing is copied: of a server that is somebody's we have no files, and what a migration
        changes are only the tables that are made from the log, in one transaction that the server
        takes back whole. Backups of the log are the server's owner's."""

    def _clean(self, db: Database) -> None:
        """Texts lie sealed there, and whose keys are gone cannot be read."""

    def tidy(self) -> None:
        """The server does so by itself."""

    # Inside.

    def _create(self, *, simulated: bool, create: bool, announce: bool) -> None:
        if (self.home / SQLITE_FILE).exists():
            raise StoreMismatch(
                f"{self.home} has a memory of its own ({SQLITE_FILE}); give a shared memory another"
                " --home"
            )
        with explained(self.place, self._holder), self._connections.one() as db:
            number = schema_number(db, self.place)
            if number == 0 and not create:
                raise NoMemoryYet(self.name)
            make_folder(self.home)
            if number == 0:
                db.script(self._begin)
                number = schema_number(db, self.place)
                if number == 0:
                    self._make(db, simulated=simulated, announce=announce)
        refuse_newer(self.name, number)

    def _make(self, db: Connection, *, simulated: bool, announce: bool) -> None:
        """Under the lock. The keys are on the disk before anything can be sealed with them."""
        known = head.read(self.home)
        if known is not None and known.position > 0:
            raise cut(self.name, known.position, 0)
        (there,) = db.execute(
            "SELECT to_regnamespace(?) IS NOT NULL", (quoted(self.place.schema),)
        ).fetchone()
        if not there:
            db.script(f"CREATE SCHEMA {quoted(self.place.schema)}")
        (tables,) = db.execute(
            "SELECT count(*) FROM information_schema.tables WHERE table_schema = ?",
            (self.place.schema,),
        ).fetchone()
        if tables:
            raise StoreMismatch(
                f"{self.name} is a schema of another program; choose another: ?schema=NAME"
            )
        memory = self.keys.make(uuid.uuid4().hex)
        for statement in postgres_dialect.LOG:
            db.execute(statement)
        for projection in self.projections:
            fold.create(projection, db)
            remember(projection, db)
        db.executemany(
            "INSERT INTO meta VALUES (?, ?)",
            [
                ("schema", str(dialect.SCHEMA_NUMBER)),
                ("memory", memory),
            ],
        )
        self._remember_shape(db)
        view = self._view(db, LastRow(db), "application", None)
        if announce:
            self._announce(view, simulated=simulated)
        self._commit(db, view)

    def _admit(self, *, simulated: bool, check: bool) -> None:
        known = head.read(self.home)  # Before the log is looked at, which others lengthen.
        with self._looking() as db:
            self._hold_against_clock(db, simulated=simulated, check=check)
            if check:
                position, _ = end_of(db)
                if known is not None and known.position > position:
                    raise cut(self.name, known.position, position)
            current = self._is_current(db)
            (memory,) = db.execute("SELECT value FROM meta WHERE key = 'memory'").fetchone()
        self._find_keys(memory)
        self._follow_erasures()
        if check and not current:
            self._migrate()

    def _find_keys(self, memory: str) -> None:
        found = self.keys.memory()
        if found is None:
            self.sealing.missing = (
                f"the texts of {self.name} are sealed, and this home has no key file: copy"
                f" {KEY_FILE} from the home of a machine that shares this memory to"
                f" {self.keys.path}, while no Threadbook is at work there, then try again"
            )
        elif found != memory:
            raise StoreMismatch(
                f"{self.keys.path} belongs to another memory than {self.name}; choose another"
                " --home, or put the key file of this memory there"
            )

    def _follow_erasures(self) -> None:
        """Drop the keys of whatever was erased, here or elsewhere, and say that it was done."""
        if self.sealing.missing is not None:
            return
        applied = self.keys.applied()
        with self._looking() as db:
            found = db.execute(
                "SELECT id, path FROM erasures WHERE id > ? ORDER BY id", (applied,)
            ).fetchall()
            if found:
                applied = found[-1][0]
                self.keys.erase([path for _, path in found], applied=applied)
            if self.machine is None:
                return
            known = db.execute(
                "SELECT applied FROM machines WHERE machine = ?", (self.machine,)
            ).fetchone()
            if known is None or known[0] != applied:
                db.execute(
                    "INSERT INTO machines VALUES (?, ?, ?) ON CONFLICT (machine)"
                    " DO UPDATE SET applied = excluded.applied, seen_ms = excluded.seen_ms",
                    (self.machine, applied, int(self.clock() * 1000)),
                )

    def _channel(self) -> str:
        return quoted(f"threadbook_{postgres_dialect.lock_key(self.place.schema) & (2**63 - 1)}")

    def _holder(self) -> str:
        """Who holds the write lock, in words; empty where the server does not say."""
        with suppress(psycopg.Error, StoreError), self._connections.one() as db:
            found = db.execute(
                postgres_dialect.HOLDER, (postgres_dialect.lock_key(self.place.schema),)
            ).fetchone()
            if found is not None:
                name, where, pid = found
                return f"{name or 'a program'} on {where} (server process {pid})"
        return ""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def schema_number(db: Database, place: Place) -> int:
    """0 where nobody has made the tables."""
    # Asked of the catalogue's tables: `to_regclass` would answer from before we had the lock.
    (tables,) = db.execute(
        "SELECT count(*) FROM pg_tables WHERE schemaname = ? AND tablename IN ('meta', 'events')",
        (place.schema,),
    ).fetchone()
    if tables < 2:
        return 0
    found = db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    if found is None or not found[0].isdecimal():
        raise StoreMismatch(
            f"{place.name} is a schema of another program; choose another: ?schema=NAME"
        )
    return int(found[0])


def definition(projection: ModuleType, db: Database) -> str:
    found = db.execute(postgres_dialect.DEFINITION, (projection.NAME, projection.NAME)).fetchall()
    return sha256(msgspec.json.encode([projection.SCHEMA, found])).hexdigest()


def remember(projection: ModuleType, db: Database) -> None:
    """How the table looks when it has just been made, to be held against it later."""
    db.execute(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (f"table:{projection.NAME}", definition(projection, db)),
    )
