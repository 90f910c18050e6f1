"""The log as the eventsourcing library's recorders, so that its applications run on our file.

    PERSISTENCE_MODULE=threadbook.adapters.eventsourcing_recorder
    THREADBOOK_HOME=<folder>           where threadbook.sqlite lies
    THREADBOOK_DATABASE=<DSN>          where the log is in PostgreSQL
    ORIGINATOR_ID_TYPE=uuid | text     text to read our own streams, whose ids are no UUIDs

A stored event is a row: originator id = stream, topic = type, state = data, notification id =
position. Appends to our own streams are refused; reading and following them is what this is for.
`data` is text: a cipher or compressor whose output is not UTF-8 is refused with a DataError. Which
store it is, is decided by topic, as the library decides everything: no adapter imports another.

`ThreadbookLog` is our own log as an application of the library, for projections of what our
commands decided: each event comes as `domain/events.py` has it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread
from typing import Any, ClassVar, NoReturn, Protocol, TypeVar
from uuid import UUID

from eventsourcing.application import Application
from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    DataError,
    InfrastructureFactory,
    IntegrityError,
    ListenNotifySubscription,
    Mapper,
    Notification,
    NotSupportedError,
    OperationalError,
    ProcessRecorder,
    StoredEvent,
    Subscription,
    Tracking,
    TrackingRecorder,
)
from eventsourcing.utils import Environment, EnvType, resolve_topic

from ..application.ports import Conflict, Failure

POLL_S = 0.02
STORE_TOPIC = "threadbook.adapters.store.foreign:open_log"


Written = tuple[str, int, str, str]


class Log(Protocol):
    """What a recorder needs; the store's `ForeignLog` is one."""

    def insert(
        self, rows: Sequence[Written], *, tracking: tuple[str, int] | None = None
    ) -> list[int]: ...

    def stream(
        self, stream: str, *, gt: int | None, lte: int | None, desc: bool, limit: int | None
    ) -> Sequence[tuple[int, str, int, str, str]]: ...

    def positions(
        self, *, first: int, last: int | None, types: Sequence[str], limit: int, without_ours: bool
    ) -> Sequence[tuple[int, str, int, str, str]]: ...

    def last_position(self) -> int | None: ...

    def create_snapshots(self) -> None: ...

    def insert_snapshots(self, rows: Sequence[Written]) -> None: ...

    def snapshots(
        self, stream: str, *, gt: int | None, lte: int | None, desc: bool, limit: int | None
    ) -> Sequence[tuple[int, str, int, str, str]]: ...

    def create_tracking(self) -> None: ...

    def track(self, application: str, position: int) -> None: ...

    def tracked(self, application: str) -> int | None: ...

    def watching(self) -> AbstractContextManager[Callable[[], bool]]: ...

    def event(self, position: int, type_: str, data: str) -> Any: ...

    def close(self) -> None: ...


class Recorder:
    def __init__(self, log: Log, *, ids: type[UUID] | type[str] = UUID) -> None:
        self.log = log
        self.ids = ids

    def _stored(self, row: tuple[int, str, int, str, str]) -> StoredEvent:
        _, stream, version, topic, data = row
        return StoredEvent(self.ids(stream), version, topic, data.encode())


R = TypeVar("R", bound=Recorder)


class ThreadbookAggregateRecorder(Recorder, AggregateRecorder):
    """Sequences without positions, in a table of their own: the library's snapshots."""

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> None:
        with library_errors():
            self.log.insert_snapshots([written(event) for event in stored_events])

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        with library_errors():
            found = self.log.snapshots(str(originator_id), gt=gt, lte=lte, desc=desc, limit=limit)
            return [self._stored(row) for row in found]


class ThreadbookApplicationRecorder(Recorder, ApplicationRecorder):
    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        tracking: Tracking | None = kwargs.get("tracking")
        with library_errors():
            return self.log.insert(
                [written(event) for event in stored_events],
                tracking=(tracking.application_name, tracking.notification_id)
                if tracking is not None
                else None,
            )

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        with library_errors():
            found = self.log.stream(str(originator_id), gt=gt, lte=lte, desc=desc, limit=limit)
            return [self._stored(row) for row in found]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        with library_errors():
            found = self.log.positions(
                first=(start or 0) + (0 if inclusive_of_start else 1),
                last=stop,
                types=topics,
                limit=limit,
                without_ours=self.ids is UUID,
            )
            return [
                Notification(self.ids(stream), version, topic, data.encode(), id=position)
                for position, stream, version, topic, data in found
            ]

    def max_notification_id(self) -> int | None:
        with library_errors():
            return self.log.last_position()

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        return ThreadbookSubscription(recorder=self, gt=gt, topics=topics)


class ThreadbookSubscription(ListenNotifySubscription[ThreadbookApplicationRecorder]):
    """Follows the log, other processes' appends included: SQLite counts commits, and we ask it."""

    def __init__(
        self,
        recorder: ThreadbookApplicationRecorder,
        gt: int | None = None,
        topics: Sequence[str] = (),
    ) -> None:
        super().__init__(recorder=recorder, gt=gt, topics=topics)
        self._stopped = Event()
        self._watch_thread = Thread(target=self._watch, daemon=True)
        self._watch_thread.start()

    def stop(self) -> None:
        super().stop()
        self._stopped.set()

    def __exit__(self, *args: object, **kwargs: Any) -> None:
        try:
            super().__exit__(*args, **kwargs)
        finally:
            self._stopped.set()
            self._watch_thread.join()

    def _watch(self) -> None:
        try:
            with self._recorder.log.watching() as changed:
                while not self._stopped.wait(POLL_S):
                    if changed():
                        self._has_been_notified.set()
        except BaseException as error:
            self._thread_error = error  # The reader is told, when it next asks.
            self.stop()


class ThreadbookTrackingRecorder(Recorder, TrackingRecorder):
    def insert_tracking(self, tracking: Tracking) -> None:
        with library_errors():
            self.log.track(tracking.application_name, tracking.notification_id)

    def max_tracking_id(self, application_name: str) -> int | None:
        with library_errors():
            return self.log.tracked(application_name)


class ThreadbookProcessRecorder(
    ThreadbookTrackingRecorder, ThreadbookApplicationRecorder, ProcessRecorder
):
    """Events and how far their causes were read, in one transaction."""


class Factory(InfrastructureFactory[ThreadbookTrackingRecorder]):
    HOME = "THREADBOOK_HOME"
    DATABASE = "THREADBOOK_DATABASE"
    STORE_TOPIC = "THREADBOOK_STORE_TOPIC"
    ORIGINATOR_ID_TYPE = "ORIGINATOR_ID_TYPE"

    def __init__(self, env: Environment | EnvType | None) -> None:
        super().__init__(env)
        home = self.env.get(self.HOME)
        if not home:
            raise OSError(f"{self.HOME} must name the folder of the store")
        named = self.env.get(self.ORIGINATOR_ID_TYPE) or "uuid"
        if named not in ("uuid", "text"):
            raise OSError(f"{self.ORIGINATOR_ID_TYPE} is uuid or text, not {named}")
        self.ids: type[UUID] | type[str] = UUID if named == "uuid" else str
        database = self.env.get(self.DATABASE)
        places = (home, database) if database else (home,)
        opened: Log = resolve_topic(self.env.get(self.STORE_TOPIC) or STORE_TOPIC)(*places)
        self.log = opened

    def close(self) -> None:
        self.log.close()

    def aggregate_recorder(self, purpose: str = "events") -> AggregateRecorder:
        self.log.create_snapshots()
        return ThreadbookAggregateRecorder(self.log, ids=self.ids)

    def application_recorder(self) -> ApplicationRecorder:
        chosen = self._chosen(self.APPLICATION_RECORDER_TOPIC, ThreadbookApplicationRecorder)
        return chosen(self.log, ids=self.ids)

    def tracking_recorder(
        self, tracking_recorder_class: type[ThreadbookTrackingRecorder] | None = None
    ) -> ThreadbookTrackingRecorder:
        self.log.create_tracking()
        chosen = tracking_recorder_class or self._chosen(
            self.TRACKING_RECORDER_TOPIC, ThreadbookTrackingRecorder
        )
        return chosen(self.log, ids=self.ids)

    def process_recorder(self) -> ProcessRecorder:
        self.log.create_tracking()
        chosen = self._chosen(self.PROCESS_RECORDER_TOPIC, ThreadbookProcessRecorder)
        return chosen(self.log, ids=self.ids)

    def _chosen(self, name: str, ours: type[R]) -> type[R]:
        topic = self.env.get(name)
        chosen: type[R] = resolve_topic(topic) if topic else ours
        if not issubclass(chosen, ours):
            raise OSError(f"{name} must name a subclass of {ours.__name__}")
        return chosen


class OurEvents(Mapper[str]):
    """Reads a row as our event; one that we do not know, another application's too, is None."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def to_domain_event(self, stored_event: StoredEvent) -> Any:
        position = stored_event.id if isinstance(stored_event, Notification) else 0
        with library_errors():
            return self.log.event(position, stored_event.topic, stored_event.state.decode())

    def to_stored_event(self, domain_event: object) -> NoReturn:
        raise NotSupportedError("our events are written by our own commands: use threadbook.Memory")


class ThreadbookLog(Application[str]):
    """Needs THREADBOOK_HOME only. A view is kept where PERSISTENCE_MODULE says, not always here."""

    env: ClassVar[dict[str, str]] = {
        "THREADBOOKLOG_PERSISTENCE_MODULE": __name__,
        "THREADBOOKLOG_ORIGINATOR_ID_TYPE": "text",
    }

    def construct_mapper(self) -> Mapper[str]:
        assert isinstance(self.factory, Factory)
        return OurEvents(self.factory.log)


def written(event: StoredEvent) -> Written:
    try:
        data = event.state.decode()
    except UnicodeDecodeError as error:
        raise DataError(
            "the log keeps text: use neither a cipher nor a compressor for it"
        ) from error
    return str(event.originator_id), event.originator_version, event.topic, data


@contextmanager
def library_errors() -> Iterator[None]:
    try:
        yield
    except Conflict as error:
        raise IntegrityError(str(error)) from error
    except (UnicodeEncodeError, OverflowError) as error:
        # Half a character in an id or a topic, a number of more than 63 bits.
        raise DataError(str(error)) from error
    except PermissionError as error:
        raise NotSupportedError(str(error)) from error
    except Failure as error:
        if isinstance(error.__cause__, UnicodeEncodeError):
            raise DataError(str(error)) from error
        raise OperationalError(str(error)) from error
