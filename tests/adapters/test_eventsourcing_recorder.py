"""The library's own conformance cases hold for our log, and its applications run on it."""

import time
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from uuid import UUID, uuid4

import pytest
from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event
from eventsourcing.persistence import DataError, NotSupportedError, StoredEvent
from eventsourcing.projection import Projection, ProjectionRunner
from eventsourcing.tests import persistence as library
from eventsourcing.utils import Environment, get_topic
from threadbook.adapters import eventsourcing_recorder as ours
from threadbook.adapters.store import SqliteStore
from threadbook.adapters.store.foreign import ForeignLog, open_log
from threadbook.domain.events import ThreadPolluted
from threadbook.projections.catalog import SYNCHRONOUS

from tests.adapters.stores import dsn_beside


class OnOurLog:
    """A bare log, without our first event and without the guard: nobody's but the test's."""

    ids = UUID

    def setUp(self):
        super().setUp()
        self.folder = TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def log(self):
        log = open_log(f"{self.folder.name}/home", guarded=False)
        self.addCleanup(log.close)
        return log


class Text:
    ids = str

    def new_originator_id(self):
        return f"sequence-{uuid4()}"


class TestAggregateRecorder(OnOurLog, library.AggregateRecorderTestCase):
    def create_recorder(self):
        log = self.log()
        log.create_snapshots()
        return ours.ThreadbookAggregateRecorder(log, ids=self.ids)


class TestAggregateRecorderWithText(Text, TestAggregateRecorder):
    pass


class TestApplicationRecorder(OnOurLog, library.ApplicationRecorderTestCase):
    def create_recorder(self):
        return ours.ThreadbookApplicationRecorder(self.log(), ids=self.ids)

    def test_insert_subscribe(self):
        self.optional_test_insert_subscribe()


class TestApplicationRecorderWithText(Text, TestApplicationRecorder):
    pass


class TestNonInterleaving(OnOurLog, library.NonInterleavingNotificationIDsBaseCase):
    def create_recorder(self):
        return ours.ThreadbookApplicationRecorder(self.log(), ids=self.ids)


class TestTrackingRecorder(OnOurLog, library.TrackingRecorderTestCase):
    def create_recorder(self):
        log = self.log()
        log.create_tracking()
        return ours.ThreadbookTrackingRecorder(log, ids=self.ids)


class TestProcessRecorder(OnOurLog, library.ProcessRecorderTestCase):
    def create_recorder(self):
        log = self.log()
        log.create_tracking()
        return ours.ThreadbookProcessRecorder(log, ids=self.ids)


class TestProcessRecorderWithText(Text, TestProcessRecorder):
    pass


class AnotherTrackingRecorder(ours.ThreadbookTrackingRecorder):
    pass


class TestFactory(OnOurLog, library.InfrastructureFactoryTestCase):
    def setUp(self):
        self.folder = TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.env = Environment("Any")
        self.env["PERSISTENCE_MODULE"] = ours.__name__
        self.env["THREADBOOK_HOME"] = f"{self.folder.name}/home"
        library.InfrastructureFactoryTestCase.setUp(self)

    def expected_factory_class(self):
        return ours.Factory

    def expected_aggregate_recorder_class(self):
        return ours.ThreadbookAggregateRecorder

    def expected_application_recorder_class(self):
        return ours.ThreadbookApplicationRecorder

    def expected_tracking_recorder_class(self):
        return ours.ThreadbookTrackingRecorder

    def tracking_recorder_subclass(self):
        return AnotherTrackingRecorder

    def expected_process_recorder_class(self):
        return ours.ThreadbookProcessRecorder


@pytest.fixture
def store(tmp_path):
    opened = SqliteStore.open(tmp_path / "home", projections=SYNCHRONOUS, clock=time.time)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("stream", "topic"),
    [("thread:t1", "theirs"), ("store", "theirs"), ("theirs", "thread.polluted")],
)
def test_what_is_ours_is_not_appended_from_outside(store, stream, topic):
    recorder = ours.ThreadbookApplicationRecorder(ForeignLog(store), ids=str)

    with pytest.raises(NotSupportedError, match="own commands"):
        recorder.insert_events([StoredEvent(stream, 1, topic, b"{}")])

    assert recorder.max_notification_id() == 1  # Our StoreOpened, and nothing else.


def test_a_compressed_state_is_refused_because_the_log_keeps_text(store):
    recorder = ours.ThreadbookApplicationRecorder(ForeignLog(store), ids=str)

    with pytest.raises(DataError, match="neither a cipher nor a compressor"):
        recorder.insert_events([StoredEvent("theirs", 1, "topic", b"\x78\x9c\xff")])


@pytest.mark.parametrize(
    ("stream", "version", "topic"),
    [("half \ud800", 1, "topic"), ("theirs", 1, "half \ud800"), ("theirs", 2**63, "topic")],
)
def test_what_the_file_cannot_hold_is_the_library_s_data_error(store, stream, version, topic):
    recorder = ours.ThreadbookApplicationRecorder(ForeignLog(store), ids=str)

    with pytest.raises(DataError):
        recorder.insert_events([StoredEvent(stream, version, topic, b"{}")])

    assert recorder.max_notification_id() == 1
    assert store.verify().ok


def test_foreign_events_lie_under_the_same_chain_and_change_no_table(store):
    recorder = ours.ThreadbookApplicationRecorder(ForeignLog(store), ids=str)

    recorder.insert_events([StoredEvent("theirs", 1, "their.topic", b"{}")])

    found = store.verify()
    assert (found.ok, found.checked, found.unknown) == (True, 2, {"their.topic": 1})
    assert store.replay_verify() == []


def test_a_subscription_follows_what_our_own_commands_append(store):
    recorder = ours.ThreadbookApplicationRecorder(ForeignLog(store), ids=str)
    polluted = ThreadPolluted(at=1, thread_id="t1", cause="web", mode_before="enabled")

    with recorder.subscribe(gt=1) as subscription:
        with store.writing(actor="pipeline") as writing:
            writing.append("thread:t1", polluted)
        first = next(subscription)

    assert (first.id, first.originator_id, first.topic) == (2, "thread:t1", "thread.polluted")


class Counter(Aggregate):
    @event("Started")
    def __init__(self):
        self.count = 0

    @event("Counted")
    def add(self):
        self.count += 1


class CountedSoFar(ours.ThreadbookTrackingRecorder):
    """A view: how far it has come is tracked in our file, what it shows is its own business."""

    count = 0


class Counting(Projection[CountedSoFar]):
    topics = (get_topic(Counter.Counted),)

    def process_event(self, domain_event, tracking):
        self.view.count += 1
        self.view.insert_tracking(tracking)


def test_a_users_projection_follows_their_application_on_our_file(tmp_path):
    env = {"PERSISTENCE_MODULE": ours.__name__, "THREADBOOK_HOME": str(tmp_path / "home")}
    with ProjectionRunner(
        application_class=Application,
        projection_class=Counting,
        view_class=CountedSoFar,
        env=env,
    ) as runner:
        counter = Counter()
        counter.add()
        counter.add()

        recorded = runner.app.save(counter)

        runner.wait(recorded[-1].notification.id, timeout=10)
        assert runner.projection.view.count == 2


class Seen(ours.ThreadbookTrackingRecorder):
    """Where it has come to is in our file too."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.events = []


class Seeing(Projection[Seen]):
    def process_event(self, domain_event, tracking):
        self.view.events.append(domain_event)
        self.view.insert_tracking(tracking)


@pytest.mark.usefixtures("database")
def test_a_users_projection_follows_what_our_own_commands_decided(tmp_path):
    home = tmp_path / "home"
    env = {"PERSISTENCE_MODULE": ours.__name__, "THREADBOOK_HOME": str(home)}
    env |= {"THREADBOOK_DATABASE": dsn} if (dsn := dsn_beside(home)) else {}
    polluted = ThreadPolluted(at=1, thread_id="t1", cause="web", mode_before="enabled")
    with ProjectionRunner(
        application_class=ours.ThreadbookLog, projection_class=Seeing, view_class=Seen, env=env
    ) as runner:
        log = runner.app.factory.log
        log.insert([("theirs", 1, "their.topic", "{}")])
        with log.store.writing(actor="pipeline") as writing:
            writing.append("thread:t1", polluted)

        runner.wait(3, timeout=10)

        opened, theirs, ours_again = runner.view.events
        assert (opened.clock, theirs, ours_again) == ("real", None, polluted)
    with ProjectionRunner(
        application_class=ours.ThreadbookLog, projection_class=Seeing, view_class=Seen, env=env
    ) as again:
        assert again.view.max_tracking_id("ThreadbookLog") == 3


def test_our_log_as_an_application_saves_nothing(tmp_path):
    app = ours.ThreadbookLog(env={"THREADBOOK_HOME": str(tmp_path / "home")})

    with pytest.raises(NotSupportedError, match="own commands"):
        app.save(Counter())

    assert app.recorder.max_notification_id() == 1
    app.close()


@dataclass
class Counters:
    home: str

    def open(self):
        return Application[object](
            env={"PERSISTENCE_MODULE": ours.__name__, "THREADBOOK_HOME": self.home}
        )


def test_a_users_application_keeps_its_aggregates_in_our_file(tmp_path):
    counters = Counters(str(tmp_path / "home"))
    app = counters.open()
    counter = Counter()
    counter.add()
    app.save(counter)
    app.close()

    again = counters.open()
    found = again.repository.get(counter.id)

    assert found.count == 1
    assert [n.originator_id for n in again.recorder.select_notifications(1, 10)] == [counter.id] * 2
    assert get_topic(Counter.Counted) in {
        n.topic for n in again.recorder.select_notifications(1, 10)
    }
    again.close()
