"""The store: one SQLite file that holds the log, the texts, and the rows made from the log.

Every write is one `BEGIN IMMEDIATE`: what is read in the block is what is decided on, the events
and the rows that follow from them are committed together, and then the head moves. Reading never
waits for writing. No foreign error leaves here: `errors.py` says what each one means.
"""

import fcntl
import os
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from types import ModuleType

import msgspec

from ...application.ports import View, Writing
from ...domain.events import STORE_STREAM, AnyEvent, StoreOpened
from ...projections import fold
from ...projections.fold import fold_all, plan, replace_all, write
from . import dialect, erasures, files, head, readers
from .codec import Codec, RowUndecodable, Upcast, tag_of
from .connections import Connections
from .errors import (
    StoreDamaged,
    StoreMismatch,
    StoreUnreadable,
    busy,
    explain_os,
    files_of,
    translated,
)
from .verify import Difference, Verified, differences, verify_log
from .views import Follows, LastRow, LogView, PastView, WritingView, damaged, decoded

FILE = "threadbook.sqlite"
FAILED = "verify-failed"  # Stands in the home while the log is known to be damaged.
WAIT_S = 10.0
TRUNCATE_WAIT_S = 0.2
LAST = 2**63 - 1  # Of the positions that SQLite can issue.


class SqliteStore:
    """Open with `SqliteStore.open`. One object serves all threads, and survives a fork."""

    def __init__(
        self,
        home: Path,
        *,
        projections: Sequence[ModuleType],
        clock: Callable[[], float],
        codec: Codec,
        wait_s: float,
    ) -> None:
        self.home = home
        self.path = home / FILE
        self.projections = tuple(projections)
        self.clock = clock
        self.codec = codec
        self._wait_s = wait_s
        self._connections = Connections(self.path, timeout_s=wait_s)
        self._follows = followers(self.projections)
        self._turn = Turn()
        # Named once: every block asks for them, and joining a path costs as much as a SELECT.
        self._failed = str(home / FAILED)
        self._head = home / head.NAME
        self._acts = home / erasures.NAME

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
        began with. `check=False` opens a log that has been cut, for `verify` and `doctor` alone.
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

    # Reading and writing.

    @contextmanager
    def reading(self, what: str = "reading") -> Iterator[View]:
        with (
            translated(self.path, self._writer),
            self._connections.one() as db,
            readers.registered(self.home, what),
        ):
            db.execute(dialect.BEGIN_READING)
            yield LogView(db, self.codec, *end_of(db))

    @contextmanager
    def writing(self, *, actor: str, run_id: str | None = None) -> Iterator[Writing]:
        with self._writing(actor=actor, run_id=run_id) as view:
            yield view

    @contextmanager
    def at(self, position: int) -> Iterator[View]:
        """The log only grows, so a past needs no transaction, and holds up no erasure."""
        with translated(self.path, self._writer), self._connections.one() as db:
            view = PastView(db, self.codec, *end_of(db, until=min(position, LAST)), self._folded)
            try:
                yield view
            finally:
                view.close()

    def position_at(self, time_s: float) -> int:
        """The newest position recorded not later than this; 0 before the first."""
        with translated(self.path, self._writer), self._connections.one() as db:
            low, high = 0, end_of(db)[0]
            while low < high:  # Recorded times never fall, so halving finds it.
                middle = (low + high + 1) // 2
                _, recorded_at_ms = end_of(db, until=middle)
                # The time is not rounded to milliseconds: it may be endless, or no number.
                is_past = recorded_at_ms <= time_s * 1000
                low, high = (middle, high) if is_past else (low, middle - 1)
            return low

    # Checking and repairing.

    def head(self) -> head.Head | None:
        with files_of(self._head):
            return head.read(self.home)

    def verify(self) -> Verified:
        """Hold every row against its chain, and the log against its head.

        What is found stands in the home from then on, and writers refuse until a later run passes.
        """
        known = self.head()  # Before the snapshot: the log may run ahead of it, not back.
        with (
            translated(self.path, self._writer),
            self._connections.one() as db,
            readers.registered(self.home, "verify"),
        ):
            db.execute(dialect.BEGIN_READING)
            found = verify_log(db, known, self.codec)
        with files_of(self.home / FAILED):
            self._mark(found)
        return found

    def replay_verify(self) -> list[Difference]:
        """Fold every table anew from position 0, and name each row that is stored otherwise."""
        with (
            translated(self.path, self._writer),
            self._connections.one() as db,
            readers.registered(self.home, "replay --verify"),
        ):
            db.execute(dialect.BEGIN_READING)
            memory = self._folded(decoded(db, self.codec, end_of(db)[0]))
            try:
                return differences(self.projections, stored=db, replayed=memory)
            finally:
                memory.close()

    def replay_rebuild(self) -> dict[str, int]:
        """Make every table anew from the log, in one transaction; how many rows each has now."""
        with self._writing(actor="application", run_id=None, append_nothing=True) as view:
            return self._rebuild(view._log, view.position)

    def pending_erasures(self) -> list[erasures.PendingErasure]:
        """Erased texts whose bytes are still on the disk, and who holds that up."""
        with translated(self.path, self._writer), self._connections.one() as db:
            if erasures.complete(db, self._wait_s, TRUNCATE_WAIT_S):
                return []
            return erasures.pending(db, tuple(readers.reading_now(self.home, self.path)))

    def forgotten(self) -> list[str]:
        return [
            act.id
            for act in self.erasures().values()
            if (act.kind, act.act) == ("thread", "forget")
        ]

    def erasures(self) -> dict[tuple[str, str], erasures.Act]:
        """The last recorded act on each forgotten (kind, id), also of a log that was cut since."""
        with files_of(self._acts):
            return erasures.acts(self.home)

    # Inside.

    @contextmanager
    def _writing(
        self, *, actor: str, run_id: str | None, append_nothing: bool = False
    ) -> Iterator[WritingView]:
        with (
            translated(self.path, self._writer),
            self._turn.taken(self._wait_s, self.path),
            self._connections.one() as db,
        ):
            self._refuse_damaged()
            db.execute(dialect.BEGIN_WRITING)
            last = LastRow(db)
            self._hold_against_head(db, last)
            view = WritingView(
                db,
                self.codec,
                actor=actor,
                run_id=run_id,
                follows=self._follows,
                now_ms=int(self.clock() * 1000),
                last=last,
            )
            yield view
            assert view.pid == os.getpid(), "a child commits nothing that its parent has begun"
            assert not (append_nothing and view.appended)
            self._commit(db, view)

    def _commit(self, db: sqlite3.Connection, view: WritingView) -> None:
        view.before_commit()
        pending = erasures.any_pending(db) is not None
        with files_of(self._acts):
            written = erasures.ActsWritten(self.home, view.acts) if view.acts else None
        try:
            db.execute("COMMIT")
        except BaseException:
            if written is not None:
                written.withdraw()
            raise
        if written is not None:
            written.keep()
        # From here on it has happened, and nothing that fails may say otherwise.
        if view.appended:
            with suppress(OSError):  # A head that stays behind is sound.
                head.advance(self.home, head.Head(view.position, view.chain))
        if pending:
            with suppress(sqlite3.Error):  # It stays pending, and every later write tries again.
                erasures.complete(db, self._wait_s, TRUNCATE_WAIT_S if view.bodies_erased else 0)

    def _create(self, *, simulated: bool, create: bool, announce: bool) -> None:
        if not create and not self.path.exists():
            raise StoreUnreadable(
                f"there is no memory in {self.home} yet; `threadbook run` makes one"
            )
        if self.path.exists() and self._schema_number() != 0:
            return
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
                db.execute("INSERT INTO meta VALUES ('projections', ?)", (self._shape(),))
                db.execute(f"PRAGMA application_id = {dialect.APPLICATION_ID}")
                db.execute(f"PRAGMA user_version = {dialect.SCHEMA_NUMBER}")
                view = WritingView(
                    db,
                    self.codec,
                    actor="application",
                    run_id=None,
                    follows=self._follows,
                    now_ms=int(self.clock() * 1000),
                    last=LastRow(db),
                )
                if announce:
                    opened = StoreOpened(
                        at=int(self.clock()),
                        schema=dialect.SCHEMA_NUMBER,
                        clock="simulated" if simulated else "real",
                    )
                    view.append(STORE_STREAM, opened, expected_version=0)
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
        if number > dialect.SCHEMA_NUMBER:
            raise StoreMismatch(
                f"{self.path} was written by a newer Threadbook (schema {number}, this one knows"
                f" {dialect.SCHEMA_NUMBER}); update this program"
            )
        return int(number)

    def _admit(self, *, simulated: bool, check: bool) -> None:
        known = head.read(self.home)  # Before the log is looked at, which others lengthen.
        with self._connections.one() as db:
            began = db.execute(
                "SELECT position, type, data FROM events WHERE stream = ? AND type = ?"
                " ORDER BY version DESC LIMIT 1",
                (STORE_STREAM, tag_of(StoreOpened)),
            ).fetchone()
            opened = None
            if began is not None:
                with suppress(*(() if check else (RowUndecodable,))):  # `verify` will name it.
                    opened = self.codec.decode(*began)
            if isinstance(opened, StoreOpened) and (opened.clock == "simulated") != simulated:
                raise StoreMismatch(
                    f"{self.path} keeps simulated time; give --now, or use another --home"
                    if opened.clock == "simulated"
                    else f"{self.path} keeps real time; leave out --now, or use another --home"
                )
            if check:
                position, _ = end_of(db)
                if known is not None and known.position > position:
                    raise cut(self.path, known.position, position)
            stored = db.execute("SELECT value FROM meta WHERE key = 'projections'").fetchone()
            with suppress(sqlite3.Error):  # A reader's folder may be read-only; writers try again.
                erasures.complete(db, self._wait_s, 0)
        if check and (stored is None or stored[0] != self._shape()):
            self._reshape()

    def _reshape(self) -> None:
        """The program's tables have changed since. They are made from the log, so make them."""
        with self._writing(actor="application", run_id=None, append_nothing=True) as view:
            self._rebuild(view._log, view.position)

    def _rebuild(self, db: sqlite3.Connection, until: int) -> dict[str, int]:
        rows = fold_all(self.projections, decoded(db, self.codec, until))
        for projection in self.projections:
            replace_all(projection, rows[projection], db)
        db.execute(
            "INSERT INTO meta VALUES ('projections', ?)"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (self._shape(),),
        )
        return {projection.NAME: len(rows[projection]) for projection in self.projections}

    def _shape(self) -> str:
        statements = [[p.NAME, list(p.KEY), list(p.SCHEMA)] for p in self.projections]
        return sha256(msgspec.json.encode(statements)).hexdigest()

    def _folded(self, log: Iterable[AnyEvent | None]) -> sqlite3.Connection:
        memory = sqlite3.connect(":memory:", isolation_level=None)
        memory.execute("BEGIN")
        for projection, rows in fold_all(self.projections, log).items():
            fold.create(projection, memory)
            write(projection, rows, memory)
        memory.execute("COMMIT")
        return memory

    def _hold_against_head(self, db: sqlite3.Connection, last: LastRow) -> None:
        with files_of(self._head):
            known = head.glance(self.home)
        if known is not None and known.position == last.position and known.chain == last.chain:
            return  # As after every write that ended; a torn glance is not equal by chance.
        known = self.head()
        if known is None:
            return
        if known.position > last.position:
            raise cut(self.path, known.position, last.position)
        there = last.chain
        if known.position < last.position:
            found = db.execute(
                "SELECT chain FROM events WHERE position = ?", (known.position,)
            ).fetchone()
            there = found[0] if found else b""
        if there != known.chain:
            raise StoreDamaged(
                f"{self.path} is not the log that its head knows (position {known.position}):"
                " run `threadbook verify`, and restore the file and its folder from one backup"
            )

    def _refuse_damaged(self) -> None:
        if os.path.exists(self._failed):
            raise StoreDamaged(
                f"{self.path} failed `threadbook verify`, so nothing is written to it; restore"
                " the file from a backup and run `threadbook verify` again"
            )

    def _refuse_lost_file(self) -> None:
        known = head.read(self.home)
        if known is not None and known.position > 0:
            raise cut(self.path, known.position, 0)

    def _mark(self, found: Verified) -> None:
        mark = self.home / FAILED
        if found.ok:
            mark.unlink(missing_ok=True)
            return
        opened = os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(opened, "wb") as file:
            file.write(msgspec.json.encode(found) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        files.sync_folder(self.home)

    def _writer(self) -> str:
        return readers.writing_now(self.path)


class Turn:
    """Threads of one process queue here rather than in SQLite, which would let them starve."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._holder: int | None = None

    @contextmanager
    def taken(self, wait_s: float, path: Path) -> Iterator[None]:
        if self._pid != os.getpid():  # Whoever held it before the fork is not here to give it back.
            self._lock, self._pid, self._holder = threading.Lock(), os.getpid(), None
        assert self._holder != threading.get_ident(), "writing inside of writing waits for itself"
        if not self._lock.acquire(timeout=wait_s):
            raise busy(path, "another thread of this program")
        self._holder = threading.get_ident()
        try:
            yield
        finally:
            self._holder = None
            self._lock.release()


def end_of(db: sqlite3.Connection, *, until: int = LAST) -> tuple[int, int]:
    """The newest position not behind `until`, and when it was recorded; zeros where there is none.

    It is the way to every view, so that a time that is none is found here and not in a sum."""
    found = db.execute(
        "SELECT position, recorded_at_ms FROM events WHERE position <= ?"
        " ORDER BY position DESC LIMIT 1",
        (until,),
    ).fetchone()
    position, recorded_at_ms = found or (0, 0)
    if type(recorded_at_ms) is not int:
        raise damaged(position, "has no time")
    return position, recorded_at_ms


def followers(projections: Sequence[ModuleType]) -> Follows:
    found: defaultdict[type, list[ModuleType]] = defaultdict(list)
    for projection in projections:
        for followed in plan(projection).followed:
            found[followed].append(projection)
    return dict(found)


def make_folder(home: Path) -> None:
    """The folder is for its owner alone; one that others have filled already is left as it is."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not any(home.iterdir()):
        home.chmod(0o700)


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


def cut(path: Path, known: int, found: int) -> StoreDamaged:
    return StoreDamaged(
        f"{path} ends at position {found}, but it had come to {known}: rows are gone, or an older"
        " copy was restored; `threadbook verify` names them: put the newest copy of the whole"
        " folder back, or move the folder away to begin anew"
    )
