"""The eventsourcing library doing the same work: its SQLite recorder, its mapper, its runner.

Everything is the library's own and as its documentation has it: JSON states with a transcoding for
each of our events, one file, the default pool. Two things it needs. Its SQLite recorder has no
`subscribe`, so it gets one that looks once at what is there. And its views write the same rows by
the same functions as ours do, so that what is compared is the way and not the tables.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import singledispatchmethod
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event
from eventsourcing.persistence import (
    EventStore,
    InfrastructureFactory,
    ListenNotifySubscription,
    StoredEvent,
    Tracking,
    Transcoder,
    Transcoding,
)
from eventsourcing.projection import Projection, ProjectionRunner
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteCursor, SQLiteTrackingRecorder
from eventsourcing.utils import Environment, get_topic
from msgspec import convert, to_builtins
from threadbook.domain.events import AnyEvent
from threadbook.projections.catalog import SYNCHRONOUS
from threadbook.projections.fold import fold_all, follow, plan

from tests.bench.engine_log import Told

PAGE = 500


@dataclass(frozen=True)
class Happened:
    """One of our events as the library wants one. Its own base class takes UUIDs only."""

    originator_id: str
    originator_version: int
    timestamp: datetime
    fact: Any


class AsJson(Transcoding):
    def __init__(self, fact: type) -> None:
        self.type = fact
        self.name = str(fact.__struct_config__.tag)

    def encode(self, obj: Any) -> Any:
        return to_builtins(obj)

    def decode(self, data: Any) -> Any:
        return convert(data, self.type)


def rows_of(cursor: SQLiteCursor) -> sqlite3.Cursor:
    """A cursor in the same transaction that gives plain tuples, as our functions expect them."""
    plain = cursor.sqlite_cursor.connection.cursor()
    plain.row_factory = None
    return plain


FOLLOWS: dict[type, list[ModuleType]] = defaultdict(list)
for projection in SYNCHRONOUS:
    for followed in plan(projection).followed:
        FOLLOWS[followed].append(projection)


def follow_all(fact: Any, cursor: SQLiteCursor) -> None:
    db: Any = rows_of(cursor)
    for projection in FOLLOWS.get(type(fact), ()):
        follow(projection, fact, db)


TABLES = [statement for projection in SYNCHRONOUS for statement in projection.SCHEMA]


class WatchedRecorder(SQLiteApplicationRecorder):
    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> Any:
        return ListenNotifySubscription(recorder=self, gt=gt, topics=topics)


class HookedRecorder(SQLiteApplicationRecorder):
    """The rows in the transaction of the events: the hook that the library leaves for it."""

    def construct_create_table_statements(self) -> list[str]:
        return super().construct_create_table_statements() + TABLES

    def _insert_events(
        self, c: SQLiteCursor, stored_events: Sequence[StoredEvent], *, facts: Any = (), **_: Any
    ) -> Any:
        ids = super()._insert_events(c, stored_events)
        for fact in facts:
            follow_all(fact, c)
        return ids


class Tables(SQLiteTrackingRecorder):
    def construct_create_table_statements(self) -> list[str]:
        return super().construct_create_table_statements() + TABLES

    def take(self, fact: Any, tracking: Tracking) -> None:
        with self.datastore.transaction(commit=True) as cursor:
            follow_all(fact, cursor)
            self._insert_tracking(cursor, tracking)


class EveryTable(Projection[Tables]):
    name = "every"
    topics = ()

    @singledispatchmethod
    def process_event(self, domain_event: Any, tracking: Tracking) -> None:
        self.view.take(domain_event.fact, tracking)


class Log(Application[str]):
    is_snapshotting_enabled = False

    def register_transcodings(self, transcoder: Transcoder) -> None:
        super().register_transcodings(transcoder)
        for fact in get_args(AnyEvent):
            transcoder.register(AsJson(fact))


def environment(folder: Path, recorder: type) -> dict[str, str]:
    return {
        "PERSISTENCE_MODULE": "eventsourcing.sqlite",
        "ORIGINATOR_ID_TYPE": "text",
        "SQLITE_DBNAME": str(folder / "library.sqlite"),
        "EVERY_SQLITE_DBNAME": str(folder / "views.sqlite"),
        "APPLICATION_RECORDER_TOPIC": get_topic(recorder),
    }


class Library:
    """A store of the library in a folder. `hooked`: rows go with the events, else by its view."""

    def __init__(self, folder: Path, *, hooked: bool = False, views: bool = True) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        recorder = HookedRecorder if hooked else WatchedRecorder
        self.env = environment(folder, recorder)
        self.application = Log(self.env)
        self.events: EventStore[str] = self.application.events
        self.versions: defaultdict[str, int] = defaultdict(int)
        self.hooked = hooked
        self.view = None
        if views and not hooked:
            self.views = InfrastructureFactory.construct(Environment("EVERY", self.env))
            self.view = self.views.tracking_recorder(Tables)

    def append(self, batch: Sequence[Told]) -> None:
        facts = [fact for _, fact in batch]
        kwargs = {"facts": facts} if self.hooked else {}
        recordings = self.events.put(list(map(self.happened, batch)), **kwargs)
        if self.view is not None:
            for recording in recordings:
                tracking = Tracking("LOG", recording.notification.id)
                self.view.take(recording.domain_event.fact, tracking)

    def happened(self, told: Told) -> Happened:
        stream, fact = told
        self.versions[stream] += 1
        return Happened(
            originator_id=stream,
            originator_version=self.versions[stream],
            timestamp=datetime_of(fact.at),
            fact=fact,
        )

    def replay(self) -> dict[ModuleType, list[Any]]:
        """Every row from the library's notifications, in its own pages, folded as ours are."""
        return fold_all(SYNCHRONOUS, self.facts())

    def facts(self) -> Any:
        recorder, decode = self.application.recorder, self.application.mapper.to_domain_event
        start = 0
        while page := recorder.select_notifications(start, PAGE, inclusive_of_start=False):
            for notification in page:
                yield decode(notification).fact
            start = page[-1].id

    def run(self) -> None:
        """The whole log through the library's own runner, into tables made anew."""
        last = self.application.recorder.max_notification_id()
        Path(self.env["EVERY_SQLITE_DBNAME"]).unlink(missing_ok=True)
        with ProjectionRunner(
            application_class=Log, projection_class=EveryTable, view_class=Tables, env=self.env
        ) as runner:
            runner.wait(last, timeout=3600)

    def close(self) -> None:
        if self.view is not None:
            self.views.close()
        self.application.close()


def datetime_of(at: int) -> datetime:
    return datetime.fromtimestamp(at, UTC)


class Output(Aggregate):
    """An output that is cited, as the library's documentation writes an aggregate."""

    @event("Began")
    def __init__(self) -> None:
        self.usage_count = 0
        self.last_usage: int | None = None

    @event("Cited")
    def cite(self, at: int, citation_id: str, usage_count: int) -> None:
        self.usage_count = usage_count
        self.last_usage = at


def outputs(folder: Path, count: int) -> tuple[Application, Any]:
    """An application with one aggregate that was cited so often, and its id."""
    folder.mkdir(parents=True, exist_ok=True)
    application: Application = Application(
        {
            "PERSISTENCE_MODULE": "eventsourcing.sqlite",
            "SQLITE_DBNAME": str(folder / "aggregate.sqlite"),
        }
    )
    output = Output()
    for turn in range(count - 1):
        output.cite(at=turn, citation_id=f"s:{turn}", usage_count=turn + 1)
    application.save(output)
    return application, output.id
