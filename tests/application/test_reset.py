"""What was learned goes at once; sessions, their modes and notes stay; folders follow."""

from contextlib import contextmanager

import pytest
from msgspec.structs import replace
from threadbook.application import reset
from threadbook.application.reset import NotEmptied
from threadbook.domain.events import (
    STORE_STREAM,
    BodiesErased,
    NoteAdded,
    NoteRemoved,
    StoreReset,
)
from threadbook.projections import notes

from tests.application.homes import FERN, MOSS, Interrupting, Session, Telling, content
from tests.application.planted import PLANTED, Planted, left_in

pytestmark = pytest.mark.usefixtures("database")  # On the file and on a server.

LOST = Planted(cwd=FERN)
OTHER = Session(number=2, cwd=MOSS)
LEARNED = [word for what, word in PLANTED.items() if what != "preview"]


@pytest.fixture
def learned(home):
    home.write(LOST, OTHER)
    home.run()
    return home


def is_sound(home):
    return home.memory.verify().ok and home.memory.replay_verify() == []


def note_of(home, words):
    with home.memory.store.writing(actor="application") as tx:
        ref = tx.put(STORE_STREAM, f"extensions/ad_hoc/notes/2026-11-29T12-00-00-a.md\n{words}")
        added = NoteAdded(at=int(home.now), scope="project:a", body_ref=ref, via="cli")
        tx.append(STORE_STREAM, added)


def noted(home):
    with home.memory.store.reading() as view:
        return [view.body(row.body_ref) for row in view.rows(notes, ())]


def test_every_word_that_was_learned_leaves_the_home_and_the_sessions_stay(learned):
    folders = learned.roots()
    assert left_in(learned.path, *LEARNED) != []

    report = learned.memory.reset()

    assert (report.outputs, report.jobs, report.notes, report.read_again) == (2, 4, 0, 2)
    assert left_in(learned.path, *LEARNED) == []
    assert [list(folder.iterdir()) for folder in folders] == [[], []]
    assert [line.thread_id for line in learned.memory.threads()] == [OTHER.id, LOST.id]
    assert is_sound(learned)


def test_what_a_reset_will_do_is_told_and_nothing_of_it_is_done(learned):
    before = learned.position

    plan = learned.memory.reset(dry_run=True)

    assert (plan.outputs, plan.read_again, plan.bodies_erased) == (2, 2, 0)
    assert sorted(plan.folders) == sorted(map(str, learned.roots()))
    assert learned.position == before
    assert left_in(learned.path, *LEARNED) != []


def test_the_next_run_learns_again_from_what_is_still_enabled(learned):
    folder = {path.name: content(path) for path in learned.roots()}
    learned.memory.set_mode(OTHER.id, "disabled")
    learned.memory.reset()

    learned.run()

    kept = learned.root(learned.scope_of(LOST))
    assert content(kept) == folder[kept.name]
    assert [row.thread_id for row in learned.outputs()] == [LOST.id]
    assert content(learned.root(learned.scope_of(OTHER))) == {}
    assert is_sound(learned)


def test_what_was_forgotten_stays_forgotten(learned):
    learned.memory.forget(LOST.id)
    learned.memory.reset()

    learned.run()

    assert [row.thread_id for row in learned.outputs()] == [OTHER.id]
    assert left_in(learned.path, *PLANTED.values()) == []


def test_notes_stay_unless_they_are_named(learned):
    note_of(learned, "the harbour master wants tea")

    learned.memory.reset()
    kept = noted(learned)
    report = learned.memory.reset(notes=True)

    assert ["harbour" in each for each in kept] == [True]
    assert (noted(learned), report.notes) == ([], 1)
    assert left_in(learned.path, "harbour master") == []
    assert [each.reason for each in learned.events(NoteRemoved)] == ["reset"]


def test_a_persons_own_files_and_what_was_set_aside_go_too(learned):
    folder = learned.root(learned.scope_of(LOST))
    (folder / "MEMORY.md").write_text("a stork lives here\n")
    learned.run()  # The change is set aside.
    (folder / "own.md").write_text("a heron lives here\n")

    learned.memory.reset()

    assert left_in(learned.path, "a stork lives", "a heron lives") == []


def test_a_reset_of_nothing_says_so_and_is_recorded(home):
    report = home.memory.reset()

    assert (report.outputs, report.jobs, report.folders, report.bodies_erased) == (0, 0, [], 0)
    assert len(home.events(StoreReset)) == 1
    assert home.events(BodiesErased) == []


def test_a_folder_that_cannot_be_emptied_is_told_and_emptied_by_the_next_run(learned):
    folder = learned.root(learned.scope_of(LOST))
    moved = folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(moved)

    with pytest.raises(NotEmptied, match="replace it by the folder it points to"):
        learned.memory.reset()

    folder.unlink()
    moved.rename(folder)
    learned.memory.set_mode(LOST.id, "disabled")
    learned.run()
    assert content(folder) == {}
    assert left_in(learned.path, *LEARNED) == []


def test_a_killed_reset_is_finished_by_the_next_run(learned, monkeypatch):
    folder = learned.root(learned.scope_of(LOST))
    with monkeypatch.context() as patch:
        patch.setattr(reset, "finish", lambda around: [])  # As if it was killed before.
        learned.memory.reset()
    assert content(folder) != {}
    learned.memory.set_mode(LOST.id, "disabled")

    learned.run()

    assert content(folder) == {}


def test_a_run_that_was_consolidating_publishes_nothing_of_before(learned):
    learned.write(
        Session(number=3, cwd=FERN, says=("hello", "from now on always sing a storkish song"))
    )

    learned.run_with(consolidator=Interrupting(learned.another().reset))

    after = learned.events(StoreReset)[0]
    texts = {p.name: content(p) for p in learned.roots()}
    assert after.outputs_removed == 3
    assert is_sound(learned)
    assert all(LOST.id not in text for files in texts.values() for text in files.values())


def test_a_folder_that_was_being_written_is_written_again_without_what_was_reset(learned):
    learned.write(
        Session(number=3, cwd=FERN, says=("hello", "from now on always sing a storkish song"))
    )
    given, done = learned.memory._around.workspace, []

    def workspace(version, name):
        found = given(version, name)
        render = found.render

        def overtaken(files, **more):
            if "storkish" in str(files) and not done:
                done.append(name)
                with pytest.MonkeyPatch.context() as patch:  # It waits for the folder, as it must.
                    patch.setattr(reset, "finish", lambda around: [])
                    learned.another().reset()
            return render(files, **more)

        found.render = overtaken
        return found

    (learned.root(learned.scope_of(LOST)) / "own.md").write_text("a heron lives here\n")

    learned.run_with(workspace=workspace)

    assert len(done) == 1
    assert left_in(learned.path, *LEARNED, "storkish", "a heron lives") == []
    assert is_sound(learned)


def test_a_run_that_goes_on_after_a_killed_reset_writes_into_an_empty_folder(learned):
    folder = learned.root(learned.scope_of(LOST))
    (folder / "own.md").write_text("a heron lives here\n")
    (folder / "MEMORY.md").write_text("a stork lives here\n")
    says = ("hello", "from now on always sing a storkish song")
    learned.write(*(Session(number=n, cwd=FERN, says=says) for n in (3, 4)))

    class Resetting(Telling):
        def extract(self, material):
            if not self.read:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(reset, "finish", lambda around: [])
                    learned.another().reset()
            return super().extract(material)

    learned.run_with(extractor=Resetting())

    assert "storkish" in str(content(folder))
    assert left_in(learned.path, "a heron lives", "a stork lives", *LEARNED) == []


def test_what_is_learned_while_the_log_is_read_goes_with_the_rest(learned):
    late = Session(number=3, cwd=FERN, says=("hello", "from now on always sing a storkish song"))

    class Between:
        """The store, and a run by somebody else right after it was first read."""

        def __init__(self, store):
            self.store, self.been = store, False

        def __getattr__(self, name):
            return getattr(self.store, name)

        @contextmanager
        def reading(self):
            with self.store.reading() as view:
                yield view
            if not self.been:
                self.been = True
                learned.write(late)
                learned.another().run(sessions=[learned.sessions])

    around = learned.memory._around

    report = reset.reset(replace(around, store=Between(around.store)), actor="application")

    assert report.outputs == 3
    assert left_in(learned.path, "sing a storkish") == []
