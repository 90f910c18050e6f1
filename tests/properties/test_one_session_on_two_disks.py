"""However two machines' files of one session grow, move and get lost, they do not take turns."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from threadbook.adapters import rollouts
from threadbook.application import claims, ingest
from threadbook.domain.events import ThreadChanged
from threadbook.projections import threads

from tests.application.homes import HOUR_S, NOON, Home, Session

MACHINES = ("ann", "ben")
LIVE, ARCHIVED = "sessions", "archived_sessions"
GROWS, COPIES = ["grow"] * 3, ["copy"] * 2
ACTS = st.tuples(
    st.sampled_from(MACHINES),
    st.sampled_from([*GROWS, *COPIES, "archive", "double", "cut", "lose"]),
    st.sets(st.sampled_from(MACHINES)),  # Who reads then.
)
BEGINNING = [("ann", "grow", {"ann"}), ("ben", "copy", {"ben"})]


def text_at(level):
    """The session as it was after so many words of its person."""
    says = tuple(f"from now on always do {n}" for n in range(level))
    return Session(number=1, says=says, ended_at=NOON - 9 * HOUR_S + level).text()


class Disk:
    """One machine's files. What lies there is seen only while the machine is at work."""

    def __init__(self, home, name, mount):
        around = home.memory._around
        self.home, self.mount = home, mount
        self.folder = home.folder / f"{name}'s disk"
        self.around = replace(around, machine_id=name)
        for part in (LIVE, ARCHIVED):
            (self.folder / part).mkdir(parents=True)

    @contextmanager
    def at_work(self):
        self.folder.rename(self.mount)
        try:
            yield
        finally:
            self.mount.rename(self.folder)

    def files(self):
        return [path for part in (LIVE, ARCHIVED) for path in (self.folder / part).iterdir()]

    def levels(self):
        return {path.parent.name: level_of(path) for path in self.files()}

    def write(self, part, level):
        (self.folder / part / "rollout-1.jsonl").write_text(text_at(level))

    def act(self, what, other):
        held = self.levels()
        match what:
            case "grow":
                for part, level in (held or {LIVE: 0}).items():
                    self.write(part, level + 1)
            case "cut":
                for part, level in held.items():
                    self.write(part, max(1, level - 1))
            case "copy" if other.levels():
                self.act("lose", other)
                for part, level in other.levels().items():
                    self.write(part, level)
            case "archive" if LIVE in held:
                os.replace(self.folder / LIVE / "rollout-1.jsonl", self.archived)
            case "double" if LIVE in held:
                shutil.copy(self.folder / LIVE / "rollout-1.jsonl", self.archived)
            case "lose":
                for path in self.files():
                    path.unlink()

    @property
    def archived(self):
        return self.folder / ARCHIVED / "rollout-1.jsonl"

    def read(self):
        """What is new to the log."""
        before = self.home.position
        with self.at_work():
            found, _ = ingest.survey(self.around, [self.mount])
            ingest.record(self.around, found, actor="pipeline", run_id=None)
        return self.home.log(after=before)

    def source(self):
        """What the log knows, whether that file is here, and how far the one goes that is read."""
        with self.at_work(), self.home.memory.store.reading() as view:
            found, _ = ingest.survey(self.around, [self.mount])
            for known in view.rows(threads, ()):
                sighting = ingest.by_thread(found).get(known.thread_id)
                path = claims.source_of(self.around, known, sighting)
                is_here = os.path.exists(known.rollout_path)
                return known, is_here, None if path is None else level_of(path)
        return None, False, None


def level_of(path):
    return len(list(rollouts.survey(path, now_ms=NOON * 1000).human_messages))


@settings(max_examples=40)
@given(acts=st.lists(ACTS, min_size=1, max_size=8), same_path=st.booleans())
def test_machines_with_files_of_one_session_come_to_rest(acts, same_path):
    with TemporaryDirectory() as folder:
        home = Home(Path(folder))
        disks = {
            name: Disk(home, name, home.folder / ("disk" if same_path else f"{name}-disk"))
            for name in MACHINES
        }
        for name, what, readers in BEGINNING + acts:
            (other,) = (disks[each] for each in MACHINES if each != name)
            disks[name].act(what, other)
            for reader in sorted(readers):
                disks[reader].read()
        event(f"changes while they worked: {min(3, len(home.events(ThreadChanged)))}")

        rounds = [[disk.read() for disk in disks.values()] for _ in range(4)]

        assert rounds[2:] == [[[], []]] * 2
        event(f"rounds with something new: {sum(any(each) for each in rounds[:2])}")
        for name, disk in disks.items():
            known, is_here, level = disk.source()
            if known is None:
                continue
            event(f"read here: {level is not None}, known elsewhere: {known.machine_id != name}")
            if level is not None:
                assert known.updated_at_ms == (NOON - 9 * HOUR_S + level) * 1000
            held = disk.levels().values()
            if held and known.machine_id == name:
                assert level == max(held)
                assert is_here
        home.memory.close()
