"""Connections to a PostgreSQL server, each used by one block at a time, and what their ends mean.

A connection that the server has ended while nobody used it (a restart, an idle limit) is replaced
without a word; one that ends inside of a block is an error of that block, because what the block
has read may no longer hold. A child of a fork opens its own. A password stands in no message.
"""

import itertools
import os
import select
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg import sql
from psycopg.adapt import Loader
from psycopg.types.string import StrDumperUnknown, TextLoader

from ...projections.fold import Rows
from .errors import StoreMismatch
from .postgres_dialect import translated
from .postgres_errors import StoreUnreachable, explain_connecting
from .postgres_place import Place

RETRY_S = 0.1


class Connection:
    """psycopg as the store speaks to a database: our statements, our types."""

    def __init__(self, raw: "psycopg.Connection[tuple[Any, ...]]") -> None:
        self.raw = raw

    def execute(self, statement: str, values: Any = (), /) -> Rows:
        return self.raw.execute(translated(statement).encode(), values)

    def executemany(self, statement: str, values: Iterable[Any], /) -> Rows:
        cursor = self.raw.cursor()
        cursor.executemany(translated(statement).encode(), list(values))
        return cursor

    def fill(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """With rows of which none is there yet: by COPY, in less than half of the time."""
        into = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
        with self.raw.cursor().copy(into.encode()) as copy:
            for row in rows:
                copy.write_row(row)

    def script(self, statements: str) -> None:
        """Several statements without values, in one round trip, as PostgreSQL reads them."""
        if statements:
            self.raw.execute(statements.encode())

    def rollback(self) -> None:
        self.raw.execute("ROLLBACK")

    @property
    def in_transaction(self) -> bool:
        return self.raw.info.transaction_status != psycopg.pq.TransactionStatus.IDLE

    @property
    def is_lost(self) -> bool:
        """Whether the server has said something that nobody asked for: it says that it ends."""
        if self.raw.closed:
            return True
        poll = select.poll()
        poll.register(self.raw.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        with suppress(psycopg.Error):
            self.raw.close()


class Paged:
    """The same connection for a SELECT of many rows: they come in pages, and are not all held."""

    def __init__(self, db: Connection) -> None:
        self.raw = db.raw

    def execute(self, statement: str, values: Any = (), /) -> Rows:
        cursor = self.raw.cursor(name=f"page_{next(numbers)}")
        cursor.itersize = 5_000
        cursor.execute(translated(statement).encode(), values)
        return Rest(iter(cursor))

    def executemany(self, statement: str, values: Iterable[Any], /) -> Rows:
        raise AssertionError("pages are for reading")


class Rest:
    """The rows of a paged SELECT that have not been read."""

    rowcount = -1

    def __init__(self, rows: Iterator[Any]) -> None:
        self.rows = rows

    def fetchone(self) -> Any:
        return next(self.rows, None)

    def fetchall(self) -> list[Any]:
        return list(self.rows)

    def __iter__(self) -> Iterator[Any]:
        return self.rows


class Connections:
    def __init__(self, place: Place, *, wait_s: float) -> None:
        self.place = place
        self.wait_s = wait_s
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._closed = False
        self._was_there = False

    @contextmanager
    def one(self, begin: str = "") -> Iterator[Connection]:
        """A connection that nobody else uses, in the transaction that `begin` begins."""
        db, owner = self._begun(begin), os.getpid()
        try:
            yield db
        finally:
            if os.getpid() != owner:
                INHERITED.append(db)  # A fork inside of the block, which the parent will end.
            else:
                self._put_back(db)

    def close(self) -> None:
        self._closed = True
        with self._lock:
            idle, self._idle = self._own(), []
        for db in idle:
            db.close()

    def _begun(self, begin: str) -> Connection:
        while (db := self._taken()) is not None:
            try:
                db.script(begin)
                return db
            except psycopg.Error:
                self._put_back(db)
                if not db.raw.closed:
                    raise
                # It had ended without a word to us. Nothing was done, so that a new one may begin.
        db = self._opened()
        try:
            db.script(begin)
        except BaseException:
            self._put_back(db)
            raise
        return db

    def _taken(self) -> Connection | None:
        with self._lock:
            idle = self._own()
            while idle:
                db = idle.pop()
                if not db.is_lost:
                    return db
                db.close()
        return None

    def _put_back(self, db: Connection) -> None:
        try:
            if not db.raw.closed and db.in_transaction:
                db.rollback()
        except psycopg.Error:
            db.close()
        if db.raw.closed or self._closed:
            db.close()
            return
        with self._lock:
            self._own().append(db)

    def _own(self) -> list[Connection]:
        if self._pid != os.getpid():  # The parent's: ending them here would end them there.
            INHERITED.extend(self._idle)
            self._idle, self._pid = [], os.getpid()
        return self._idle

    def _opened(self) -> Connection:
        """A server that has been there may be starting again: it is waited for."""
        deadline = time.monotonic() + self.wait_s
        while True:
            try:
                db = Connection(connected(self.place))
                self._was_there = True
                return db
            except psycopg.OperationalError as error:
                told = explain_connecting(error, self.place)
                missing = type(told) is not StoreUnreachable
                if missing or not self._was_there or time.monotonic() > deadline:
                    raise told from None  # What psycopg says may quote the DSN.
            time.sleep(RETRY_S)


numbers = itertools.count()
INHERITED: list[Connection] = []  # Kept for ever, so that nobody ends them.


def connected(place: Place) -> "psycopg.Connection[tuple[Any, ...]]":
    given: dict[str, Any] = dict(place.parameters)
    given.setdefault("application_name", f"threadbook {os.getpid()}")
    raw = psycopg.connect(**given, client_encoding="utf8", autocommit=True)
    try:
        raw.adapters.register_dumper(str, Text)
        for name in ("text", "varchar"):
            raw.adapters.register_loader(name, TextBack)
        raw.adapters.register_loader("numeric", Whole)
        raw.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(place.schema)))
        if raw.info.parameter_status("server_encoding") != "UTF8":
            raise StoreMismatch(
                f"{place.name} does not keep text as UTF-8; make the database with ENCODING 'UTF8'"
            )
    except BaseException:
        raw.close()
        raise
    return raw


class Text(StrDumperUnknown):
    """PostgreSQL has no character 0. It and the one that stands for it are written as two, in a
    way that keeps every order."""

    def dump(self, obj: str) -> Any:
        if "\x00" in obj or "\x01" in obj:
            obj = obj.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")
        return super().dump(obj)


class TextBack(TextLoader):
    def load(self, data: Any) -> Any:
        found: str = super().load(data)  # type: ignore[assignment]  # The encoding is UTF-8.
        if "\x01" in found:
            found = found.replace("\x01\x01", "\x00").replace("\x01\x02", "\x01")
        return found


class Whole(Loader):
    """Sums of whole numbers, which PostgreSQL gives as numerics."""

    def load(self, data: Any) -> int:
        return int(bytes(data))
