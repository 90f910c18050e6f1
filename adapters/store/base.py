"""What a store does whatever database it is in: look back, check, rebuild, and refuse a cut log.

The log, its chain, its tables and what is kept beside it in the home are the same on SQLite and on
PostgreSQL. A store of one of them says how to get a connection that sees one moment, how to write,
and what a damaged table looks like there; the rest stands here once.
"""

import os
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from ...application.ports import Left, View, Writing
from ...domain.events import STORE_STREAM, AnyEvent, StoreOpened
from ...projections import fold
from ...projections.fold import Database, fold_all, plan, replace_all, write
from . import dialect, erasures, files, head
from .codec import Codec, RowUndecodable, tag_of
from .errors import StoreDamaged, StoreMismatch, busy, files_of
from .verify import Difference, Verified, differences
from .views import Bodies, Follows, LastRow, LogView, PastView, WritingView, damaged, decoded

FAILED = "verify-failed"  # Stands in the home while the log is known to be damaged.
WAIT_S = 10.0
LAST = 2**63 - 1  # Of the positions that can be issued.


class LogStore(ABC):
    """One object serves all threads, and survives a fork."""

    def __init__(
        self,
        home: Path,
        name: str,
        *,
        projections: Sequence[ModuleType],
        clock: Callable[[], float],
        codec: Codec,
        wait_s: float,
        bodies: Bodies,
    ) -> None:
        self.home = home
        self.name = name  # As messages call it.
        self.projections = tuple(projections)
        self.clock = clock
        self.codec = codec
        self.bodies = bodies
        self._wait_s = wait_s
        self._follows = followers(self.projections)
        self._turn = Turn()
        self._restoring = False
        # Named once: every block asks for them, and joining a path costs as much as a SELECT.
        self._failed = str(home / FAILED)
        self._head = home / head.NAME
        self._acts = home / erasures.NAME

    # What each database does in its own way.

    @abstractmethod
    def close(self) -> None:
        """Close what this thread opened."""

    @abstractmethod
    def _snapshot(self, what: str) -> AbstractContextManager[Database]:
        """A connection that sees one moment until the end of the block."""

    @abstractmethod
    def _looking(self) -> AbstractContextManager[Database]:
        """A connection whose every statement sees what is committed by then."""

    @abstractmethod
    def _watching(self) -> AbstractContextManager[Callable[[], bool]]:
        """A function that says whether anybody may have committed since it was last asked."""

    @abstractmethod
    def _writing(
        self,
        *,
        actor: str,
        run_id: str | None,
        append_nothing: bool = False,
        migrating: bool = False,
        restoring: bool = False,
        wait_s: float | None = None,
    ) -> AbstractContextManager[WritingView]:
        """A transaction with the write lock, on a log that is held against its head.

        Only a migration writes to tables of another schema than this program's, and only who
        accepts a restored log to one that its head does not know.
        """

    @abstractmethod
    def _schema_of(self, db: Database) -> int:
        """The number of the schema that the tables have."""

    @abstractmethod
    def _set_schema(self, db: Database) -> None: ...

    @abstractmethod
    def _back_up(self, schema: int, view: WritingView) -> None:
        """Keep what is there before its tables are changed, or refuse."""

    @abstractmethod
    def _clean(self, db: Database) -> None:
        """Away with what an older program may have left of erased texts."""

    @abstractmethod
    def tidy(self) -> None:
        """Give back what erased texts have left behind, where that takes room."""

    def backups(self) -> Sequence[Any]:
        """The copies made before migrations, each in words."""
        return ()

    @abstractmethod
    def _verified(self, db: Database, known: head.Head | None) -> Verified: ...

    @abstractmethod
    def _shapes(
        self, projection: ModuleType, stored: Database, replayed: sqlite3.Connection
    ) -> tuple[list[Any], list[Any]]:
        """How the projection's table is defined, and how it should be; empty: it cannot be read."""

    @abstractmethod
    def pending_erasures(self) -> Sequence[Any]:
        """Erased texts that could still be read somewhere, each in words, and who holds that up."""

    @abstractmethod
    def left(self, owner: str) -> Left:
        """What is still stored, or could still be opened, of the texts that a stream owned."""

    @abstractmethod
    def sealed(self) -> str | None:
        """Why the texts cannot be read from this home and what to do; None: they can."""

    # Reading and writing.

    @contextmanager
    def reading(self, what: str = "reading") -> Iterator[View]:
        with self._snapshot(what) as db:
            yield LogView(db, self.codec, *end_of(db), bodies=self.bodies)

    @contextmanager
    def writing(
        self, *, actor: str, run_id: str | None = None, wait_s: float | None = None
    ) -> Iterator[Writing]:
        with self._writing(actor=actor, run_id=run_id, wait_s=wait_s) as view:
            yield view

    def begin_if_empty(self, *, simulated: bool) -> None:
        """An import that was killed, or that brought nothing, leaves a log without a beginning."""
        with self._looking() as db:
            position, _ = end_of(db)
        if position == 0:
            self.begin(simulated=simulated)

    def begin(self, *, simulated: bool) -> None:
        """The first event of our own, in a log that was made without one and is still empty."""
        with self._writing(actor="application", run_id=None) as view:
            if view.position == 0:
                self._announce(view, simulated=simulated)

    @contextmanager
    def importing(self) -> Iterator[WritingView]:
        """A transaction that another log is written into; its tables are made at the end."""
        with self._writing(actor="import", run_id=None) as view:
            yield view
            view.write()
            self._rebuild(view._log, view.position)

    @contextmanager
    def at(self, position: int) -> Iterator[View]:
        """The log only grows, so a past needs no transaction, and holds up no erasure."""
        with self._looking() as db:
            view = PastView(
                db,
                self.codec,
                *end_of(db, until=min(position, LAST)),
                self._folded,
                bodies=self.bodies,
            )
            try:
                yield view
            finally:
                view.close()

    def position_at(self, time_s: float) -> int:
        """The newest position recorded not later than this; 0 before the first."""
        with self._looking() as db:
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
        with self._snapshot("verify") as db:
            found = self._verified(db, known)
        with files_of(self.home / FAILED):
            self._mark(found)
        return found

    @contextmanager
    def restored(self, *, actor: str, before: Callable[[View], None]) -> Iterator[tuple[int, int]]:
        """Take a log for the true one although its head knows another: the position that the head
        had, and the log's own. It is sound in itself, or refused; what it accepts is recorded.

        `before` is what has to be done first. Until the end of the block every other program is
        refused, so that who is killed anywhere in it does it once more.
        """
        known = self.head()
        with self._writing(actor=actor, run_id=None, restoring=True) as view:
            if not self._verified(view._log, None).ok:
                raise StoreDamaged(
                    f"{self.name} was changed, not only restored from an earlier day: its rows do"
                    " not fit one another (`threadbook verify` names them); put back a whole backup"
                )
            opened = self._opened(view._log)
            came_to, position = known.position if known else 0, view.position
            before(view)
            view.append(
                STORE_STREAM,
                StoreOpened(
                    at=int(self.clock()),
                    schema=self._schema_of(view._log),
                    clock=opened.clock if opened else "real",
                    restored_from=came_to,
                ),
            )
            current = self._is_current(view._log)
        self._restoring = True
        try:
            if not current:
                self._migrate()
            yield came_to, position
            with self._looking() as db, files_of(self._head):
                head.renew(self.home, head.Head(*last_link(db)))
        finally:
            self._restoring = False
        with files_of(self.home / FAILED):
            (self.home / FAILED).unlink(missing_ok=True)

    def replay_verify(self) -> list[Difference]:
        """Fold every table anew from position 0, and name each row that is stored otherwise."""
        with self._snapshot("replay --verify") as db:
            memory = self._folded(decoded(db, self.codec, end_of(db)[0]))
            try:
                return differences(
                    self.projections, stored=self._paged(db), replayed=memory, shapes=self._shapes
                )
            finally:
                memory.close()

    def replay_rebuild(self) -> dict[str, int]:
        """Make every table anew from the log, in one transaction; how many rows each has now."""
        with self._writing(actor="application", run_id=None, append_nothing=True) as view:
            return self._rebuild(view._log, view.position)

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

    def _texts_of(self, owner: str) -> int:
        with self._looking() as db:
            found = db.execute("SELECT count(*) FROM bodies WHERE owner = ?", (owner,))
            return int(found.fetchone()[0])

    def _view(self, db: Database, last: LastRow, actor: str, run_id: str | None) -> WritingView:
        return WritingView(
            db,
            self.codec,
            actor=actor,
            run_id=run_id,
            follows=self._follows,
            now_ms=int(self.clock() * 1000),
            last=last,
            bodies=self.bodies,
        )

    def _end(self, db: Database, view: WritingView) -> None:
        """Commit. What was forgotten stands in the home before, how far the log came after."""
        with files_of(self._acts):
            written = erasures.ActsWritten(self.home, view.acts) if view.acts else None
        try:
            db.execute("COMMIT")
        except BaseException as error:
            if written is not None and self._may_stand(error):
                written.keep()  # An act that is done twice does no harm; one that is lost does.
            elif written is not None:
                written.withdraw()
            raise
        if written is not None:
            written.keep()
        # From here on it has happened, and nothing that fails may say otherwise.
        if view.appended:
            with suppress(OSError):  # A head that stays behind is sound.
                head.advance(self.home, head.Head(view.position, view.chain))

    def _may_stand(self, error: BaseException) -> bool:
        """Whether a commit that ended in this error may have been kept."""
        return False

    def _announce(self, view: WritingView, *, simulated: bool) -> None:
        opened = StoreOpened(
            at=int(self.clock()),
            schema=dialect.SCHEMA_NUMBER,
            clock="simulated" if simulated else "real",
        )
        view.append(STORE_STREAM, opened)

    def _hold_against_clock(self, db: Database, *, simulated: bool, check: bool) -> None:
        opened = self._opened(db, check=check)
        if opened is not None and (opened.clock == "simulated") != simulated:
            raise StoreMismatch(
                f"{self.name} keeps simulated time; give --now, or use another --home"
                if opened.clock == "simulated"
                else f"{self.name} keeps real time; leave out --now, or use another --home"
            )

    def _opened(self, db: Database, *, check: bool = True) -> StoreOpened | None:
        """The last of its kind; a log that other programs began has none."""
        began = db.execute(
            "SELECT position, type, data FROM events WHERE stream = ? AND type = ?"
            " ORDER BY version DESC LIMIT 1",
            (STORE_STREAM, tag_of(StoreOpened)),
        ).fetchone()
        opened = None
        if began is not None:
            with suppress(*(() if check else (RowUndecodable,))):  # `verify` will name it.
                opened = self.codec.decode(*began)
        return opened if isinstance(opened, StoreOpened) else None

    def _migrate(self) -> None:
        """The program's tables have changed since. They are made from the log, so make them, in
        one transaction: whoever is killed here leaves what was there before."""
        with self._writing(actor="application", run_id=None, migrating=True) as view:
            db = view._log
            if self._is_current(db):
                return  # Somebody else was first.
            schema = self._schema_of(db)
            refuse_newer(self.name, schema)
            self._back_up(schema, view)
            self._clean(db)
            self._rebuild(db, view.position)
            self._set_schema(db)
            opened = self._opened(db)
            if opened is not None:
                self._announce(view, simulated=opened.clock == "simulated")

    def _rebuild(self, db: Database, until: int) -> dict[str, int]:
        rows = fold_all(self.projections, decoded(db, self.codec, until))
        self._drop_tables_of_old(db)
        for projection in self.projections:
            self._replace(projection, rows[projection], db)
        self._remember_shape(db)
        return {projection.NAME: len(rows[projection]) for projection in self.projections}

    def _refuse_migrated(self, db: Database) -> None:
        """This program began before another one changed the tables."""
        schema = self._schema_of(db)
        if schema != dialect.SCHEMA_NUMBER:
            raise StoreMismatch(
                f"another Threadbook changed the tables of {self.name} (to schema {schema}, this"
                f" one knows {dialect.SCHEMA_NUMBER}) while this program was running; nothing was"
                " stored: end this program, update it, and start it again"
            )

    def _drop_tables_of_old(self, db: Database) -> None:
        """Those that an older program made, and this one has no use for."""
        known = db.execute("SELECT value FROM meta WHERE key = 'tables'").fetchone()
        names = {projection.NAME for projection in self.projections}
        for name in [] if known is None else msgspec.json.decode(known[0], type=list[str]):
            if name not in names:
                db.execute(f"DROP TABLE IF EXISTS {name}")
                db.execute("DELETE FROM meta WHERE key = ?", (f"table:{name}",))

    def _remember_shape(self, db: Database) -> None:
        names = msgspec.json.encode([projection.NAME for projection in self.projections]).decode()
        db.executemany(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            [("projections", self._shape()), ("tables", names)],
        )

    def _paged(self, db: Database) -> Database:
        """The same connection, for a SELECT of a whole table: its rows are not all held at once."""
        return db

    def _replace(self, projection: ModuleType, rows: Sequence[Any], db: Database) -> None:
        replace_all(projection, rows, db)

    def _is_current(self, db: Database) -> bool:
        """Whether the tables are this program's: by their number, and as they are defined."""
        if self._schema_of(db) != dialect.SCHEMA_NUMBER:
            return False
        stored = db.execute("SELECT value FROM meta WHERE key = 'projections'").fetchone()
        return stored is not None and stored[0] == self._shape()

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

    def _hold_against_head(self, db: Database, last: LastRow) -> None:
        with files_of(self._head):
            known = head.glance(self.home)
        if known is not None and known.position == last.position and known.chain == last.chain:
            return  # As after every write that ended; a torn glance is not equal by chance.
        known = self.head()
        if known is None:
            return
        if known.position > last.position:
            raise cut(self.name, known.position, last.position)
        there = last.chain
        if known.position < last.position:
            found = db.execute(
                "SELECT chain FROM events WHERE position = ?", (known.position,)
            ).fetchone()
            there = found[0] if found else b""
        if there != known.chain:
            raise StoreDamaged(
                f"{self.name} is not the log that its head knows (position {known.position}):"
                " run `threadbook verify`, and restore the file and its folder from one backup"
            )

    def _refuse_damaged(self) -> None:
        if os.path.exists(self._failed):
            raise StoreDamaged(
                f"{self.name} failed `threadbook verify`, so nothing is written to it; restore"
                " the file from a backup and run `threadbook verify` again"
            )

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


class Turn:
    """Threads of one process queue here rather than in the database, which would starve some."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._holder: int | None = None

    @contextmanager
    def taken(self, wait_s: float, name: str) -> Iterator[None]:
        if self._pid != os.getpid():  # Whoever held it before the fork is not here to give it back.
            self._lock, self._pid, self._holder = threading.Lock(), os.getpid(), None
        assert self._holder != threading.get_ident(), "writing inside of writing waits for itself"
        if not self._lock.acquire(timeout=wait_s):
            raise busy(name, "another thread of this program")
        self._holder = threading.get_ident()
        try:
            yield
        finally:
            self._holder = None
            self._lock.release()


def end_of(db: Database, *, until: int = LAST) -> tuple[int, int]:
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


def last_link(db: Database) -> tuple[int, bytes]:
    found = db.execute(
        "SELECT position, chain FROM events ORDER BY position DESC LIMIT 1"
    ).fetchone()
    return int(found[0]), bytes(found[1])


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


def refuse_newer(name: str, schema: int) -> None:
    if schema > dialect.SCHEMA_NUMBER:
        raise StoreMismatch(
            f"{name} was written by a newer Threadbook (schema {schema}, this one knows"
            f" {dialect.SCHEMA_NUMBER}); update this program"
        )


def cut(name: str, known: int, found: int) -> StoreDamaged:
    return StoreDamaged(
        f"{name} ends at position {found}, but it had come to {known}: rows are gone, or an older"
        " copy was restored; `threadbook verify` names them: put the newest copy of the whole"
        " folder back, or, if this is the newest, `threadbook doctor --accept-restore`"
    )
