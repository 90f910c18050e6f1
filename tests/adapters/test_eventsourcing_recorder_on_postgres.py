"""The library's conformance cases hold for a log in PostgreSQL as they do for the file."""

from eventsourcing.application import Application
from eventsourcing.projection import ProjectionRunner
from threadbook.adapters import eventsourcing_recorder as ours
from threadbook.adapters.store.foreign import open_log

from tests.adapters import test_eventsourcing_recorder as on_the_file
from tests.postgres import server


class OnServer:
    """A schema of the test's own."""

    def setUp(self):
        self.dsn = server().dsn()
        super().setUp()

    def log(self):
        log = open_log(f"{self.folder.name}/home", self.dsn, guarded=False)
        self.addCleanup(log.close)
        return log


class TestAggregateRecorder(OnServer, on_the_file.TestAggregateRecorder):
    pass


class TestApplicationRecorder(OnServer, on_the_file.TestApplicationRecorder):
    pass


class TestApplicationRecorderWithText(OnServer, on_the_file.TestApplicationRecorderWithText):
    pass


class TestNonInterleaving(OnServer, on_the_file.TestNonInterleaving):
    pass


class TestTrackingRecorder(OnServer, on_the_file.TestTrackingRecorder):
    pass


class TestProcessRecorder(OnServer, on_the_file.TestProcessRecorder):
    pass


class TestProcessRecorderWithText(OnServer, on_the_file.TestProcessRecorderWithText):
    pass


class TestFactory(on_the_file.TestFactory):
    def setUp(self):
        super().setUp()
        self.env["THREADBOOK_DATABASE"] = server().dsn()


def test_a_users_projection_follows_their_application_in_our_database(tmp_path):
    env = {
        "PERSISTENCE_MODULE": ours.__name__,
        "THREADBOOK_HOME": str(tmp_path / "home"),
        "THREADBOOK_DATABASE": server().dsn(),
    }
    with ProjectionRunner(
        application_class=Application,
        projection_class=on_the_file.Counting,
        view_class=on_the_file.CountedSoFar,
        env=env,
    ) as runner:
        counter = on_the_file.Counter()
        counter.add()
        counter.add()

        recorded = runner.app.save(counter)

        runner.wait(recorded[-1].notification.id, timeout=10)
        assert runner.projection.view.count == 2
