"""What is forgotten is in no file of the home, whatever was going on, and does not come back."""

import json
import os
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace
from threadbook.adapters import git
from threadbook.adapters.store import StoreDamaged
from threadbook.adapters.workspace import Workspace
from threadbook.application import forget
from threadbook.application.forget import OnlyAPerson, StillInTheFolder
from threadbook.application.ports import Extracted, ExtractionFailed, Proposal
from threadbook.domain.events import (
    ArtifactsPublished,
    FolderEdited,
    ForgettingLifted,
    Phase2LeaseReleased,
    RootRendered,
    Stage1LeaseClaimed,
    Stage1Succeeded,
    Stage1SucceededNoOutput,
    ThreadForgotten,
)
from threadbook.domain.refusals import NotForgotten

from tests.application.homes import (
    DAY_S,
    FIXTURES,
    HOUR_S,
    MOSS,
    NOON,
    Interrupting,
    Session,
    Telling,
    content,
)
from tests.application.planted import PLANTED, Planted, fork_of, left_in

pytestmark = pytest.mark.usefixtures("database")  # On the file and on a server.
# What is about the bytes of the file, or about a file that came back.
on_the_file = pytest.mark.parametrize("database", ["sqlite"], indirect=True)

LOST = Planted()
KEPT = Session(number=2, says=("please never use tabs in this project, always spaces",))
KEPT_WORDS = "never use tabs"


@pytest.fixture
def planted(home):
    home.write(LOST, KEPT)
    home.run()
    return home


def words(home):
    return "".join(content(home.root()).values())


def is_sound(home):
    verified = home.memory.verify()
    return (verified.ok, home.memory.replay_verify()) == (True, [])


def assert_gone(home, *words_):
    assert left_in(home.path, *words_) == []
    assert is_sound(home)


# What goes.


@on_the_file
def test_the_search_finds_each_word_in_each_kind_of_file(planted):
    into_the_file(planted)

    found = left_in(planted.path)

    for word in PLANTED.values():
        places = " ".join(each for each in found if each.startswith(word))
        for place in (".pack", "MEMORY.md", "raw_memories.md", "rollout_summaries/"):
            assert place in places, (word, place)
        assert "threadbook.sqlite" in places
    assert f"{PLANTED['preview']} in memories" in " ".join(found)
    assert left_in(planted.path, PLANTED["command"].upper() + "XX")


def into_the_file(home):
    """Everything that stands in the write-ahead log comes into the file itself."""
    db = sqlite3.connect(home.path / "threadbook.sqlite")
    busy, *_ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    db.close()
    assert not busy


@pytest.mark.parametrize("checkpointed", [False, True])
def test_no_file_of_the_home_holds_a_word_that_only_the_forgotten_thread_had(planted, checkpointed):
    if checkpointed:
        into_the_file(planted)

    report = planted.memory.forget(LOST.id)

    assert_gone(planted)
    assert (report.already, report.pending) == (False, None)
    assert report.bodies_erased > 0
    assert report.roots == [str(planted.root())]
    assert KEPT_WORDS in words(planted)
    assert planted.selected() == {KEPT.id}
    planted.run()
    assert_gone(planted)
    assert KEPT_WORDS in words(planted)


def test_nothing_that_happens_later_brings_it_back(planted):
    file = planted.file(LOST)
    planted.memory.forget(LOST.id)

    def run_again(**options):
        planted.later(7 * HOUR_S).run(**options)
        assert left_in(planted.path) == []
        assert planted.selected() == {KEPT.id}

    run_again(backfill=-1)
    os.utime(file, (planted.now, planted.now))
    run_again()
    grown = Planted(says=("and from now on always run make lint",), ended_at=int(planted.now))
    file.write_text(grown.text())
    run_again(backfill=-1)
    copy = planted.sessions / "elsewhere" / "copy.jsonl"
    copy.parent.mkdir()
    shutil.copy(file, copy)
    run_again(sessions=[copy, planted.sessions])
    archived = planted.sessions / "archived_sessions" / file.name
    archived.parent.mkdir()
    file.rename(archived)
    run_again()
    run_again(sessions=[archived, copy])
    planted.reopened()
    run_again(backfill=5)
    assert is_sound(planted)


def test_the_last_thread_of_a_folder_leaves_nothing_behind(home):
    home.write(LOST)
    home.run()

    home.memory.forget(LOST.id)

    assert_gone(home)
    assert home.run().phase2[0].status.startswith("succeeded")
    assert_gone(home)
    assert home.run().phase2 == []


def test_one_after_the_other_is_forgotten(planted):
    for session in (KEPT, LOST):
        planted.memory.forget(session.id)

    assert_gone(planted, *PLANTED.values(), KEPT_WORDS)


@pytest.mark.parametrize("recorded", [True, False])
def test_a_persons_edit_that_repeats_it_goes_too(planted, recorded):
    memory_file = planted.root() / "MEMORY.md"
    memory_file.write_text(f"{memory_file.read_text()}\nremember {PLANTED['preference']}\n")
    if recorded:
        planted.run()
        assert planted.events(FolderEdited)
        assert PLANTED["preference"] in " ".join(left_in(planted.path / "memories"))

    planted.memory.forget(LOST.id)

    assert_gone(planted)
    assert not planted.root().with_suffix(".edits").exists()
    planted.run()
    assert_gone(planted)


def test_what_was_published_and_replaced_since_goes_too(planted):
    for hour, other in enumerate((5, 6), start=1):
        wish = (f"from now on always write number {other} first",)
        planted.write(Session(number=other, says=wish, ended_at=NOON + hour * HOUR_S))
        planted.later(8 * HOUR_S).run()
    assert len(planted.events(ArtifactsPublished)) == 3

    planted.memory.forget(LOST.id)

    assert_gone(planted)
    assert "number 5" in words(planted)


@on_the_file
def test_an_output_that_a_later_reading_replaced_goes_too(planted):
    again = Session(number=1, says=("from now on always run make lint",), ended_at=NOON)
    planted.write(again)
    planted.later(12 * HOUR_S).run()
    assert "make lint" in words(planted)
    assert left_in(planted.path)

    planted.memory.forget(LOST.id)

    assert_gone(planted, *PLANTED.values(), "make lint")


@on_the_file
def test_what_a_polluted_or_disabled_thread_had_said_goes_too(planted):
    planted.memory.pollute(LOST.id, "web_search")
    planted.run()
    planted.memory.set_mode(LOST.id, "disabled")
    planted.run()
    assert left_in(planted.path)

    planted.memory.forget(LOST.id)

    assert_gone(planted)


def test_a_reading_that_failed_keeps_nothing(planted):
    planted.write(Planted(says=("thanks",), ended_at=NOON))

    def fail(header, items):
        told = " ".join(str(item) for item in items)
        assert PLANTED["preference"] in told
        raise ExtractionFailed("bad_reply", "not_json")

    planted.later(12 * HOUR_S).run_with(extractor=Telling(**{LOST.id: fail}))
    planted.memory.forget(LOST.id)

    assert_gone(planted)
    planted.later(DAY_S).run()
    assert_gone(planted)


def test_a_file_that_only_the_forgotten_thread_was_told_in_leaves_the_folder(planted):
    class WithASkill(Interrupting):
        def propose(self, task):
            files = dict(super().propose(task).files)
            if any(each.thread_id == LOST.id for each in task.outputs):
                files[f"skills/{PLANTED['file']}/SKILL.md"] = f"run {PLANTED['command']}\n"
            return Proposal(files=files)

    planted.write(Session(number=5, says=("from now on always sort imports",)))
    planted.run_with(consolidator=WithASkill(lambda: None))
    assert (planted.root() / "skills").is_dir()

    planted.memory.forget(LOST.id)

    assert_gone(planted)
    assert not (planted.root() / "skills").exists()


def test_it_goes_from_every_version_and_from_every_root(planted):
    policy = replace(
        planted.memory._around.policy, memory_version="v2", versions=("v2",), scope="global"
    )
    planted.run_with(policy=policy)
    planted.memory.set_scope(LOST.id, "project:moss-00000000")
    planted.run()
    roots = [str(each) for each in (planted.path / "memories").glob("*/*")]
    assert len(roots) == 3
    assert all(left_in(Path(root)) for root in roots if "fern" not in root)

    report = planted.memory.forget(LOST.id)

    assert_gone(planted)
    assert sorted(report.roots) == sorted(roots)
    assert KEPT_WORDS in (planted.path / "memories/v2/global/memory_summary.md").read_text()


# What stays.


def test_a_fork_keeps_its_own_words_and_loses_the_copied_ones(home):
    home.write(LOST)
    own = "in this project please always say linnet"
    (home.sessions / "fork.jsonl").write_text(fork_of(LOST, 3, own))
    home.run()
    assert home.selected() == {LOST.id, Session(number=3).id}

    home.memory.forget(LOST.id)

    assert_gone(home)
    assert "linnet" in words(home)
    home.later(DAY_S).run(backfill=-1)
    assert_gone(home)
    assert "linnet" in words(home)


def test_the_forked_sessions_of_the_open_cases_are_told_apart(home):
    for name in ("forked_parent.jsonl", "forked_child.jsonl"):
        shutil.copy(FIXTURES / "open" / name, home.sessions)
    parent, child = (f"019c0000-0000-7000-8000-00000000000{number}" for number in (4, 5))

    def remember(header, items):
        told = "\n".join(item.text for item in items if hasattr(item, "text"))
        return Extracted(raw_memory=told, rollout_summary=told, rollout_slug=None)

    home.run_with(extractor=Telling(**{parent: remember, child: remember}))
    home.now = 1_772_618_400  # A day after the two sessions.
    home.run_with(extractor=Telling(**{parent: remember, child: remember}))
    assert "PARENT-ONLY-4" in words(home)

    home.memory.forget(parent)

    assert_gone(home, "BIRCH-4", "PARENT-ONLY-4")
    assert "LARCH-4" in words(home)


def test_another_project_is_not_touched(planted):
    other = Session(number=7, says=("from now on always write in past tense",), cwd=MOSS)
    planted.write(other)
    planted.run()
    moss = planted.root(planted.scope_of(other))
    before = {path: path.stat().st_mtime_ns for path in moss.rglob("*")}

    report = planted.memory.forget(LOST.id)

    assert str(moss) not in report.roots
    assert {path: path.stat().st_mtime_ns for path in moss.rglob("*")} == before


# An id, and a person.


def test_an_id_that_was_never_seen_can_be_forgotten_before_its_session_turns_up(home):
    report = home.memory.forget(LOST.id)
    home.write(LOST, KEPT)
    home.run(backfill=-1)

    assert (report.already, report.bodies_erased, report.roots) == (False, 0, [])
    assert_gone(home)
    assert home.selected() == {KEPT.id}


def test_forgetting_twice_is_forgetting_once(planted):
    planted.memory.forget(LOST.id)
    before = planted.position

    report = planted.memory.forget(LOST.id)

    assert report.already
    assert planted.position == before
    assert len(planted.events(ThreadForgotten)) == 1


def test_only_a_person_lets_a_session_be_read_again_and_its_words_come_from_its_file(planted):
    planted.memory.forget(LOST.id)

    with pytest.raises(OnlyAPerson):
        planted.memory.lift(LOST.id)
    for actor in ("application", "agent:cli", "agent:mcp", "pipeline", "model:x", "humane:cli"):
        with pytest.raises(OnlyAPerson):
            forget.lift(planted.memory._around, LOST.id, actor=actor)
    planted.run()
    assert_gone(planted)

    forget.lift(planted.memory._around, LOST.id, actor="human:cli")
    assert_gone(planted)
    assert len(planted.events(ForgettingLifted)) == 1
    planted.run()
    assert planted.selected() == {LOST.id, KEPT.id}
    assert PLANTED["preference"] in words(planted)
    planted.memory.forget(LOST.id)
    assert_gone(planted)


def test_what_was_not_forgotten_cannot_be_lifted(planted):
    with pytest.raises(NotForgotten):
        forget.lift(planted.memory._around, LOST.id, actor="human:cli")


# While others are at work.


@pytest.mark.parametrize("found", ["words", "nothing", "failure"])
def test_forgetting_while_it_is_being_read_discards_the_reading(home, found):
    home.write(LOST, KEPT)

    def forget_then_tell(header, items):
        seen = list(items)
        home.memory.forget(LOST.id)
        if found == "failure":
            raise ExtractionFailed("bad_reply", "not_json")
        if found == "nothing":
            return None
        text = "\n".join(item.text for item in seen if hasattr(item, "text"))
        return Extracted(raw_memory=text, rollout_summary=text, rollout_slug=None)

    report = home.run_with(extractor=Telling(**{LOST.id: forget_then_tell}))

    assert_gone(home)
    assert (report.stage1.succeeded, report.stage1.failed) == (1, 1)
    claimed = home.events(Stage1LeaseClaimed)
    assert {each.thread_id for each in claimed} == {LOST.id, KEPT.id}
    ended = home.events(Stage1Succeeded) + home.events(Stage1SucceededNoOutput)
    assert {each.thread_id for each in ended} == {KEPT.id}
    assert KEPT_WORDS in words(home)
    home.run()
    assert_gone(home)


def test_forgetting_and_lifting_while_it_is_being_read_discards_that_reading(home):
    home.write(LOST)

    def forget_lift_then_tell(header, items):
        home.memory.forget(LOST.id)
        forget.lift(home.memory._around, LOST.id, actor="human:cli")
        return Extracted(raw_memory="stale", rollout_summary="stale", rollout_slug=None)

    report = home.run_with(extractor=Telling(**{LOST.id: forget_lift_then_tell}))

    assert report.stage1.failed == 1
    assert not home.outputs()
    assert home.run().stage1.succeeded == 1


@pytest.mark.parametrize("first", [True, False])
def test_forgetting_while_its_root_is_consolidated_publishes_nothing_of_it(home, first):
    home.write(LOST, KEPT)
    if not first:
        home.run()
        home.write(Session(number=5, says=("from now on always sort imports",)))
    before = home.position

    report = home.run_with(consolidator=Interrupting(lambda: home.memory.forget(LOST.id)))

    assert_gone(home)
    released = home.events(Phase2LeaseReleased, after=before)
    assert [each.reason for each in released] == ["forgotten"]
    assert report.phase2[0].status == "succeeded"
    assert KEPT_WORDS in words(home)


class Overtaken(Workspace):
    """Another thread forgets while this one renders what it has read before."""

    def __init__(self, home, *where, at):
        super().__init__(home.path, *where, git=git)
        self.home = home
        self.at = at
        self.forgetting = None

    def forget(self, now):
        if self.forgetting is None and self.at == now:
            self.forgetting = threading.Thread(target=self.home.memory.forget, args=(LOST.id,))
            before = self.home.position
            self.forgetting.start()
            while ThreadForgotten not in {type(e.event) for e in self.home.log(before)}:
                pass  # It has published, and waits for the lock that we hold.

    def prepare(self):
        self.forget("before")
        return super().prepare()

    def set_aside(self, path, content):
        self.forget("aside")
        return super().set_aside(path, content)

    def reset_baseline(self, now):
        super().reset_baseline(now)
        self.forget("after")


@pytest.mark.parametrize("at", ["before", "aside", "after"])
def test_a_render_that_a_forgetting_overtakes_is_done_again(planted, at):
    memory_file = planted.root() / "MEMORY.md"
    mine = f"{memory_file.read_text()}\nremember {PLANTED['preference']}\n".encode()
    # What is no text cannot be carried, and is laid beside the root.
    memory_file.write_bytes(mine + b"\xff" if at == "aside" else mine)
    planted.write(Session(number=5, says=("from now on always sort imports",)))
    made = []

    def workspace(*where):
        made.append(Overtaken(planted, *where, at=at))
        return made[-1]

    before = planted.position
    planted.run_with(workspace=workspace)
    for each in made:
        if each.forgetting is not None:
            each.forgetting.join()

    assert planted.events(ThreadForgotten)
    assert_gone(planted)
    last = planted.events(ArtifactsPublished, after=before)[-1]
    assert last.consolidator == "forget" or planted.events(RootRendered, after=before)
    planted.run()
    assert_gone(planted)
    assert "sort imports" in words(planted)


@on_the_file
def test_an_old_reader_keeps_the_erasure_pending_and_that_is_told_until_it_has_ended(planted):
    reader = sqlite3.connect(planted.path / "threadbook.sqlite", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM bodies").fetchone()

    report = planted.memory.forget(LOST.id)

    assert report.pending
    assert f"process {os.getpid()}" in report.pending
    assert planted.memory.status()["erasures_pending"]
    left = left_in(planted.path)
    assert left
    assert all("threadbook.sqlite" in each for each in left)
    reader.execute("ROLLBACK")
    reader.close()
    assert planted.memory.status()["erasures_pending"] == []
    assert_gone(planted)


# When it cannot be done.


def test_a_folder_that_cannot_be_written_is_told_and_the_next_run_finishes(planted):
    root = planted.root()
    other = root.with_name("elsewhere")
    root.rename(other)
    root.symlink_to(other)

    with pytest.raises(StillInTheFolder, match=r"is forgotten, but.*symbolic link.*threadbook run"):
        planted.memory.forget(LOST.id)

    assert planted.memory.explain(LOST.id).verdict
    assert not planted.selected() & {LOST.id}
    assert {each.split("/")[1] for each in left_in(planted.path)} == {"v1"}
    assert planted.memory.replay_verify()
    with pytest.raises(StillInTheFolder):
        planted.memory.forget(LOST.id)
    root.unlink()
    other.rename(root)
    planted.run()
    assert_gone(planted)


def test_one_folder_that_cannot_be_written_keeps_no_other_from_it_and_any_run_finishes(planted):
    policy = replace(
        planted.memory._around.policy, memory_version="v2", versions=("v2",), scope="global"
    )
    planted.run_with(policy=policy)
    blocked = planted.path / "memories" / "v2" / "global"
    moved = blocked.rename(planted.folder / "moved")
    blocked.symlink_to(moved)

    with pytest.raises(StillInTheFolder, match="v2/global"):
        planted.memory.forget(LOST.id)

    assert left_in(planted.path / "memories" / "v1") == []
    blocked.unlink()
    moved.rename(blocked)
    assert left_in(blocked)
    planted.run()  # Its own version is another: phase 2 does not come by here.
    assert_gone(planted)


def test_a_first_folder_that_never_came_to_be_is_no_persons_edit(home):
    class Killed(Workspace):
        def reset_baseline(self, now):
            raise KeyboardInterrupt

    home.write(LOST, KEPT)
    with pytest.raises(KeyboardInterrupt):
        home.run_with(workspace=lambda *where: Killed(home.path, *where, git=git))
    assert left_in(home.path / "memories")

    home.memory.forget(LOST.id)

    assert_gone(home)
    assert not home.events(FolderEdited)


# A database from before.


def put_aside(home):
    home.memory.close()
    kept = home.folder / "backup"
    shutil.copytree(home.path, kept)
    home.memory = home.another()
    return kept


def put_back(home, kept, *names):
    home.memory.close()
    for name in names:
        (home.path / f"{name}-wal").unlink(missing_ok=True)
        (home.path / f"{name}-shm").unlink(missing_ok=True)
        for part in kept.glob(f"{name}*"):
            shutil.copy(part, home.path)


@on_the_file
def test_a_database_from_before_the_forgetting_is_refused_and_its_words_reach_no_folder(planted):
    kept = put_aside(planted)
    planted.memory.forget(LOST.id)
    put_back(planted, kept, "threadbook.sqlite")

    with pytest.raises(StoreDamaged, match=r"older copy was restored.*threadbook verify"):
        planted.another()

    with planted.memory.open(
        planted.path, clock=lambda: planted.now, create=False, check=False
    ) as unchecked:
        assert not unchecked.verify().ok
        with pytest.raises(StoreDamaged):
            unchecked.forget("another")
        with pytest.raises(StoreDamaged):
            unchecked.run(sessions=[planted.sessions])
    assert left_in(planted.path / "memories") == []
    acts = [json.loads(line) for line in (planted.path / "erasures.log").read_text().splitlines()]
    assert [(act["act"], act["id"]) for act in acts] == [("forget", LOST.id)]
    planted.memory = planted.memory.open(
        planted.path, clock=lambda: planted.now, create=False, check=False
    )


@on_the_file
def test_a_database_that_came_back_with_its_head_is_made_to_forget_again(planted):
    kept = put_aside(planted)
    planted.memory.forget(LOST.id)
    put_back(planted, kept, "threadbook.sqlite", "head")
    planted.memory = planted.another()
    assert PLANTED["preference"] in " ".join(left_in(planted.path))

    planted.run()

    assert_gone(planted)
    assert planted.selected() == {KEPT.id}
    assert [each.reason for each in planted.events(ThreadForgotten)] == ["asked_before"]
