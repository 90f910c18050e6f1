"""What a block of reading or writing sees: one position, and everything as it is there."""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, Protocol

from ...application.ports import Conflict, Recorded
from ...domain.events import AnyEvent, Event, ForgettingLifted, ThreadForgotten
from ...projections.fold import Database, Table, plan, read, rows_from
from . import chain, dialect
from .codec import UNREADABLE, Codec, tag_of
from .erasures import Act, note_pending
from .errors import StoreDamaged

PAGE = 1_000

Follows = dict[type, list[ModuleType]]


class Bodies(Protocol):
    """How texts lie in the database: as they are, or sealed."""

    def put(self, db: Database, owner: str, text: str) -> str: ...

    def keep(self, db: Database, ref: str, owner: str, text: str) -> None: ...

    def get(self, db: Database, ref: str) -> str | None: ...

    def erase(self, db: Database, owners: Iterable[str], refs: Iterable[str]) -> int: ...


class LogView:
    """The log up to one position. `tables` holds the rows there: the file itself, or a past."""

    def __init__(
        self,
        log: Database,
        codec: Codec,
        position: int,
        recorded_at_ms: int,
        *,
        bodies: Bodies,
    ) -> None:
        self._bodies = bodies
        self._log = log
        self._codec = codec
        self._position = position
        self._recorded_at_ms = recorded_at_ms

    @property
    def _tables(self) -> Database:
        return self._log

    @property
    def position(self) -> int:
        return self._position

    @property
    def recorded_at_ms(self) -> int:
        return self._recorded_at_ms

    def rows(self, projection: ModuleType, place: tuple[str, ...]) -> list[Any]:
        return read(projection, place, self._tables)

    def find(self, projection: ModuleType, rest: str, /, **values: Any) -> list[Any]:
        return rows_from(
            projection, self._tables.execute(f"{plan(projection).select} {rest}", values)
        )

    def value(self, query: str, /, **values: Any) -> Any:
        found = self._tables.execute(query, values).fetchone()
        return None if found is None else found[0]

    def version(self, stream: str) -> int:
        found = self._log.execute(
            "SELECT version FROM events WHERE stream = ? AND position <= ?"
            " ORDER BY version DESC LIMIT 1",
            (stream, self.position),
        ).fetchone()
        return 0 if found is None else int(found[0])

    def types(self) -> dict[str, int]:
        counted = self._log.execute(
            "SELECT type, count(*) FROM events WHERE position <= ? GROUP BY type", (self.position,)
        )
        return dict(counted.fetchall())

    def events(self, *, stream: str | None = None, after: int = 0) -> Iterator[Recorded]:
        # In pages, fetched whole: a caller who stops half-way leaves no cursor open.
        until = self.position
        select = (
            f"SELECT {chain.COLUMNS} FROM events WHERE position > ? AND position <= ?"
            f"{'' if stream is None else ' AND stream = ?'} ORDER BY position LIMIT {PAGE}"
        )
        after = max(after, 0)
        while after < until:
            values = (after, until) if stream is None else (after, until, stream)
            page = self._log.execute(select, values).fetchall()
            for row in page:
                yield self._recorded(row)
            if len(page) < PAGE:
                return
            after = page[-1][0]

    def bodies(self) -> Iterator[tuple[str, str, str]]:
        """Ref, owner and words of every text that is not erased, in the order of their refs."""
        after = ""
        while page := self._log.execute(
            "SELECT ref, owner FROM bodies WHERE ref > ? AND owner <> '' ORDER BY ref"
            f" LIMIT {PAGE}",
            (after,),
        ).fetchall():
            for ref, owner in page:
                text = self._bodies.get(self._log, ref)
                if text is not None:
                    yield ref, owner, text
            after = page[-1][0]

    def chain_at(self, position: int) -> bytes:
        found = self._log.execute(
            "SELECT chain FROM events WHERE position = ?", (position,)
        ).fetchone()
        return bytes(found[0]) if found else chain.START

    def _recorded(self, row: chain.Columns) -> Recorded:
        position, stream, version, type_, recorded_at_ms, actor, run_id, data = row
        return Recorded(
            position=position,
            stream=stream,
            version=version,
            type=type_,
            recorded_at_ms=recorded_at_ms,
            actor=actor,
            run_id=run_id,
            data=data,
            event=self._codec.decode(position, type_, data),
        )

    def body(self, ref: str) -> str | None:
        return self._bodies.get(self._log, ref)


class PastView(LogView):
    """A past position. The tables are folded when they are first asked for; most looks never do."""

    def __init__(
        self,
        log: Database,
        codec: Codec,
        position: int,
        recorded_at_ms: int,
        folded: Callable[[Iterable[AnyEvent | None]], sqlite3.Connection],
        *,
        bodies: Bodies,
    ) -> None:
        super().__init__(log, codec, position, recorded_at_ms, bodies=bodies)
        self._folded = folded
        self._memory: sqlite3.Connection | None = None

    @property
    def _tables(self) -> Database:
        if self._memory is None:
            self._memory = self._folded(decoded(self._log, self._codec, self.position))
        return self._memory

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()


class WritingView(LogView):
    """A transaction with the write lock. Nothing of it is seen by others until it has committed."""

    def __init__(
        self,
        log: Database,
        codec: Codec,
        *,
        actor: str,
        run_id: str | None,
        follows: Follows,
        now_ms: int,
        last: "LastRow",
        bodies: Bodies,
    ) -> None:
        # Time never runs backward in the log, so that "as it was at noon" is one position.
        super().__init__(log, codec, last.position, last.recorded_at_ms, bodies=bodies)
        self.actor = actor
        self.run_id = run_id
        self.chain = last.chain
        self.appended = False
        self.pid = os.getpid()
        self.acts: list[Act] = []
        self.bodies_erased = 0
        self._follows = follows
        self._now_ms = max(now_ms, last.recorded_at_ms)
        # What is recorded goes to the file when somebody reads there, or at the end: a hundred
        # rows by one statement cost half of what they cost one by one.
        self._unwritten: list[tuple[Any, ...]] = []
        self._kept: dict[ModuleType, Table] = {}
        self._versions: dict[str, int] = {}

    @property
    def _tables(self) -> Database:
        self.write()
        return self._log

    def rows(self, projection: ModuleType, place: tuple[str, ...]) -> list[Any]:
        if len(place) < len(projection.KEY):
            return super().rows(projection, place)
        # What a command reads is what its events change, so it is read once for both.
        row = self._table(projection).row(place)
        return [] if row is None else [row]

    def version(self, stream: str) -> int:
        found = self._versions.get(stream)
        if found is None:
            found = self._versions[stream] = super().version(stream)
        return found

    def append(self, stream: str, *events: Event, expected_version: int | None = None) -> int:
        version = self.version(stream)
        if expected_version is not None and expected_version != version:
            raise Conflict(
                f"{stream} is at version {version}, not {expected_version}; read it again"
            )
        for event in events:
            version += 1
            self._seal(stream, version, tag_of(type(event)), self._codec.encode(event))
            self._versions[stream] = version
            self._note(event)
            for projection in self._follows.get(type(event), ()):
                self._table(projection).follow(event)
        return self.position

    def record(self, stream: str, version: int, type_: str, data: str) -> int:
        """One row as it is, for the recorder adapter's foreign events."""
        self._seal(stream, version, type_, data)
        self._versions.pop(stream, None)
        self.write()
        return self._position

    def copy_row(
        self,
        stream: str,
        version: int,
        type_: str,
        data: str,
        *,
        recorded_at_ms: int,
        actor: str,
        run_id: str | None,
    ) -> AnyEvent | None:
        """One row of another log as it was recorded there. No table follows it: rebuild them."""
        self._now_ms, self.actor, self.run_id = recorded_at_ms, actor, run_id
        self._seal(stream, version, type_, data)
        event = self._codec.decode(self._position, type_, data)
        if event is not None:
            self._note(event)
        return event

    def keep(self, ref: str, owner: str, text: str) -> None:
        """A text of another log, under the ref that its events have."""
        self._bodies.keep(self._log, ref, owner, text)

    def write(self) -> None:
        """Bring what was recorded so far into the file."""
        if self._unwritten:
            rows, self._unwritten = self._unwritten, []
            self._log.executemany(dialect.INSERT_EVENT, rows)
        for table in self._kept.values():
            table.write()

    def _seal(self, stream: str, version: int, type_: str, data: str) -> None:
        position = self._position + 1
        columns = (
            position, stream, version, type_, self._now_ms, self.actor, self.run_id, data
        )  # fmt: skip
        self.chain = chain.link(self.chain, columns)
        self._unwritten.append((*columns, self.chain))
        self._position, self._recorded_at_ms = position, self._now_ms
        self.appended = True
        if len(self._unwritten) >= PAGE:
            self.write()

    def _table(self, projection: ModuleType) -> Table:
        table = self._kept.get(projection)
        if table is None:
            table = self._kept[projection] = Table(projection, self._log)
        return table

    def put(self, owner: str, text: str) -> str:
        return self._bodies.put(self._log, owner, text)

    def erase(self, *, owners: Iterable[str] = (), refs: Iterable[str] = ()) -> int:
        erased = self._bodies.erase(self._log, owners, refs)
        self.bodies_erased += erased
        return erased

    def record_erasure(self, act: Act) -> None:
        """A line for `erasures.log`, written with the commit."""
        self.acts.append(act)

    def events(self, *, stream: str | None = None, after: int = 0) -> Iterator[Recorded]:
        """Each row is held against its chain first: here, decisions are taken on it."""
        self.write()
        for recorded in super().events(stream=stream, after=after):
            check_link(self._log, recorded.position)
            yield recorded

    def before_commit(self) -> None:
        self.write()
        if self.bodies_erased:
            note_pending(
                self._log,
                position=self.position,
                since_ms=self._now_ms,
                bodies=self.bodies_erased,
            )

    def _note(self, event: Event) -> None:
        match event:
            case ThreadForgotten(thread_id=thread_id):
                act = Act(act="forget", kind="thread", id=thread_id, position=self.position)
            case ForgettingLifted(thread_id=thread_id):
                act = Act(act="lift", kind="thread", id=thread_id, position=self.position)
            case _:
                return
        self.record_erasure(act)


class LastRow:
    """The end of the log, held against the row before it and against the positions issued."""

    __slots__ = ("chain", "position", "recorded_at_ms")

    def __init__(self, db: Database) -> None:
        rows = db.execute(
            f"SELECT {chain.COLUMNS}, chain FROM events ORDER BY position DESC LIMIT 2"
        ).fetchall()
        issued = db.execute(dialect.LAST_POSITION_ISSUED).fetchone()
        self.position: int = rows[0][0] if rows else 0
        self.recorded_at_ms: int = rows[0][4] if rows else 0
        self.chain: bytes = rows[0][8] if rows else chain.START
        before = rows[1][8] if len(rows) > 1 else chain.START
        if issued is not None and issued[0] != self.position:
            raise damaged(self.position + 1, "is gone")
        if len(rows) > 1 and rows[1][0] != self.position - 1:
            raise damaged(self.position - 1, "is gone")
        if rows and not chain.fits(before, rows[0][:8], self.chain):
            raise damaged(self.position, "is not what was recorded")


def check_link(db: Database, position: int) -> None:
    rows = db.execute(
        f"SELECT {chain.COLUMNS}, chain FROM events WHERE position IN (?, ?) ORDER BY position",
        (position - 1, position),
    ).fetchall()
    before = rows[0][8] if len(rows) > 1 else chain.START
    if len(rows) != min(position, 2) or not chain.fits(before, rows[-1][:8], rows[-1][8]):
        raise damaged(position, "is not what was recorded")


def decoded(log: Database, codec: Codec, until: int, after: int = 0) -> Iterator[AnyEvent | None]:
    """Only the events, as a fold wants them; a third faster than with their envelopes."""
    decoders: Mapping[str, Callable[[str], Any]] = codec.decoders
    while True:
        page = log.execute(
            "SELECT position, type, data FROM events WHERE position > ? AND position <= ?"
            f" ORDER BY position LIMIT {PAGE}",
            (after, until),
        ).fetchall()
        for position, type_, data in page:
            decode = decoders.get(type_)
            try:
                # As in `Codec.decode`, written out: a million events go through here.
                event = None if decode is None else decode(data)
            except UNREADABLE:
                event = codec.decode(position, type_, data)  # It fails again, with a name.
            yield event
        if len(page) < PAGE:
            return
        after = page[-1][0]


def damaged(position: int, what: str) -> StoreDamaged:
    return StoreDamaged(
        f"the event at position {position} {what}; nothing was stored:"
        " run `threadbook verify` for the whole log, and restore the file from a backup"
    )
