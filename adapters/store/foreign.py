"""The log as other programs' event libraries see it: rows of text, and positions.

Foreign events lie in the same log, under the same chain and lock; no projection of ours follows
them. What is ours is read here and never written: an event of ours that was not decided by a
command would be a belief without a reason. Where each of these programs is with its reading
(tracking), and its snapshots, are tables of theirs beside the log.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ...application.ports import Conflict
from ...domain.events import STORE_STREAM, AnyEvent
from ...projections.fold import Database
from .base import LogStore
from .sqlite import SqliteStore

OURS = ("thread:", "extraction:", "consolidation:", "belief:", "tombstones:", "place:", "session:")
WITHOUT_OURS = " AND instr(stream, ':') = 0 AND stream <> :ours"


class NotYours(PermissionError):
    """An append to a stream, or of a type, that only our own commands write."""


class ForeignRow(NamedTuple):
    position: int
    stream: str
    version: int
    type: str
    data: str


class ForeignLog:
    """`guarded=False` lets anything be appended: for a library's own test cases, nothing else."""

    def __init__(self, store: LogStore, *, guarded: bool = True) -> None:
        self.store = store
        self.guarded = guarded

    def insert(
        self, rows: Sequence[tuple[str, int, str, str]], *, tracking: tuple[str, int] | None = None
    ) -> list[int]:
        """Append (stream, version, type, data), all or none; `Conflict` where one is there."""
        if self.guarded:
            for stream, _, type_, _ in rows:
                self._refuse_ours(stream, type_)
        with self.store._writing(actor="application", run_id=None) as view:
            positions = [view.record(*row) for row in rows]
            if tracking is not None:
                track(view._log, *tracking)
        return positions

    def stream(
        self, stream: str, *, gt: int | None, lte: int | None, desc: bool, limit: int | None
    ) -> list[ForeignRow]:
        return self._sequence("events", stream, gt, lte, desc, limit)

    def positions(
        self, *, first: int, last: int | None, types: Sequence[str], limit: int, without_ours: bool
    ) -> list[ForeignRow]:
        names = {f"type{n}": type_ for n, type_ in enumerate(types)}
        among = ", ".join(f":{name}" for name in names)
        return self._select(
            "events",
            "position >= :first"
            f"{'' if last is None else ' AND position <= :last'}"
            f"{f' AND type IN ({among})' if names else ''}"
            f"{WITHOUT_OURS if without_ours else ''}"
            " ORDER BY position",
            limit,
            first=first, last=last, ours=STORE_STREAM, **names,
        )  # fmt: skip

    def last_position(self) -> int | None:
        with self.store._looking() as db:
            found: int | None = db.execute("SELECT max(position) FROM events").fetchone()[0]
            return found

    # Beside the log: snapshots (or any aggregate sequence without positions) and tracking.

    def create_snapshots(self) -> None:
        with self.store._writing(actor="application", run_id=None) as view:
            view._log.execute(SNAPSHOTS)

    def insert_snapshots(self, rows: Sequence[tuple[str, int, str, str]]) -> None:
        with self.store._writing(actor="application", run_id=None) as view:
            view._log.executemany(
                "INSERT INTO foreign_snapshots (stream, version, type, data) VALUES (?, ?, ?, ?)",
                rows,
            )

    def snapshots(
        self, stream: str, *, gt: int | None, lte: int | None, desc: bool, limit: int | None
    ) -> list[ForeignRow]:
        return self._sequence("foreign_snapshots", stream, gt, lte, desc, limit)

    def create_tracking(self) -> None:
        with self.store._writing(actor="application", run_id=None) as view:
            view._log.execute(TRACKING)

    def track(self, application: str, position: int) -> None:
        """`Conflict` where this or a later position has been tracked already."""
        with self.store._writing(actor="application", run_id=None) as view:
            track(view._log, application, position)

    def tracked(self, application: str) -> int | None:
        with self.store._looking() as db:
            found = db.execute(
                "SELECT position FROM foreign_tracking WHERE application = ?", (application,)
            ).fetchone()
            return None if found is None else int(found[0])

    @contextmanager
    def watching(self) -> Iterator[Callable[[], bool]]:
        """A function that says whether anybody has committed since it was last asked."""
        with self.store._watching() as changed:
            yield changed

    def event(self, position: int, type_: str, data: str) -> AnyEvent | None:
        """A row as the event of ours that it is, brought up to date where it is an old one."""
        return self.store.codec.decode(position, type_, data)

    def close(self) -> None:
        self.store.close()

    def _sequence(
        self,
        table: str,
        stream: str,
        gt: int | None,
        lte: int | None,
        desc: bool,
        limit: int | None,
    ) -> list[ForeignRow]:
        return self._select(
            table,
            "stream = :stream"
            f"{'' if gt is None else ' AND version > :gt'}"
            f"{'' if lte is None else ' AND version <= :lte'}"
            f" ORDER BY version {'DESC' if desc else 'ASC'}",
            limit,
            stream=stream, gt=gt, lte=lte,
        )  # fmt: skip

    def _select(
        self, table: str, where: str, limit: int | None, **values: object
    ) -> list[ForeignRow]:
        position = "position" if table == "events" else "0"
        with self.store._looking() as db:
            return [
                ForeignRow(*row)
                for row in db.execute(
                    f"SELECT {position}, stream, version, type, data FROM {table} WHERE {where}"
                    f"{'' if limit is None else ' LIMIT :limit'}",
                    {**values, "limit": limit},
                ).fetchall()
            ]

    def _refuse_ours(self, stream: str, type_: str) -> None:
        if stream == STORE_STREAM or stream.startswith(OURS) or self.store.codec.knows(type_):
            raise NotYours(
                f"{stream} ({type_}) is written by Threadbook's own commands only;"
                " use threadbook.Memory, or another originator id and topic"
            )


SNAPSHOTS = """
CREATE TABLE IF NOT EXISTS foreign_snapshots (
    stream  TEXT NOT NULL,
    version INTEGER NOT NULL,
    type    TEXT NOT NULL,
    data    TEXT NOT NULL,
    PRIMARY KEY (stream, version)
) STRICT
"""

TRACKING = """
CREATE TABLE IF NOT EXISTS foreign_tracking (
    application TEXT PRIMARY KEY,
    position    INTEGER NOT NULL
) STRICT
"""


def track(db: Database, application: str, position: int) -> None:
    moved = db.execute(
        "INSERT INTO foreign_tracking (application, position) VALUES (:application, :position)"
        " ON CONFLICT (application) DO UPDATE SET position = excluded.position"
        " WHERE foreign_tracking.position < excluded.position",
        {"application": application, "position": position},
    ).rowcount
    if moved != 1:
        raise Conflict(f"{application} has already come to position {position}")


def open_log(home: str, database: str = "", *, guarded: bool = True) -> ForeignLog:
    """The log of a home, or of a DSN with that home, as a library's factory opens it by name."""
    import time

    from ...projections.catalog import SYNCHRONOUS

    given: Any = {"projections": SYNCHRONOUS, "clock": time.time, "announce": guarded}
    store: LogStore
    if database:
        from .postgres import PostgresStore

        store = PostgresStore.open(database, Path(home), **given)
    else:
        store = SqliteStore.open(Path(home), **given)
    return ForeignLog(store, guarded=guarded)
