"""The folder between two runs: a person's edits are kept, inputs are restored, the rest is told."""

import shutil
import subprocess
from pathlib import Path

import pytest
from dulwich.repo import Repo
from msgspec.structs import replace
from threadbook.adapters import git
from threadbook.adapters.workspace import Workspace, WorkspaceError
from threadbook.application.forget import StillInTheFolder, forget
from threadbook.domain.events import FolderEdited, Phase2LeaseClaimed, RootRendered

from tests.application.homes import HOUR_S, NOON, Home, Session, bytes_of, content

A = Session(number=1)
B = Session(number=2, says=("please never use tabs in this project, always spaces",))
LATER = A.ended_at + 60


@pytest.fixture
def made(home):
    home.write(A, B)
    home.run()
    home.first = content(home.root())
    home.quiet_at = home.position
    return home


def assert_quiet(home):
    before = home.position, bytes_of(home.root())
    assert home.later(60).run().phase2 == []
    assert (home.position, bytes_of(home.root())) == before


def body_of(home, event):
    with home.memory.store.reading() as view:
        return view.body(event.body_ref)


def test_an_edit_of_an_artifact_is_recorded_told_and_stays(made):
    mine = made.first["MEMORY.md"] + "- my own line\n"
    (made.root() / "MEMORY.md").write_text(mine)

    (root,) = made.run().phase2

    (edited,) = [each for each in made.log(made.quiet_at) if isinstance(each.event, FolderEdited)]
    assert edited.actor == "file-edit"
    assert body_of(made, edited.event) == f"MEMORY.md\n{mine}"
    assert root.edits == ["MEMORY.md"]
    assert content(made.root()) == made.first | {"MEMORY.md": mine}
    assert (root.added, root.modified, root.deleted) == ([], ["MEMORY.md"], [])
    assert made.memory.replay_verify() == []
    assert_quiet(made)


def test_a_line_that_a_person_added_stays_until_they_remove_it(made):
    path = made.root() / "MEMORY.md"
    path.write_text(path.read_text() + "- my own line\n")
    made.run()
    for number in (7, 8):
        made.write(
            Session(number=number, says=(f"always sing song {number}",), ended_at=rested(made))
        )
        made.later(8 * HOUR_S).run()
        assert "- my own line\n" in path.read_text()

    path.write_text(path.read_text().replace("- my own line\n", ""))
    made.run()

    assert "song 7" in path.read_text()
    assert "my own line" not in path.read_text()
    assert made.memory.replay_verify() == []
    assert_quiet(made)


def test_a_line_that_a_person_removed_stays_out(made):
    path = made.root() / "MEMORY.md"
    (line,) = [each for each in path.read_text().split("\n") if "tabs" in each and "wrote" in each]
    path.write_text(path.read_text().replace(f"{line}\n", ""))
    made.run()
    # Of a lower id, so that every task has another number.
    made.later(8 * HOUR_S)
    made.write(Session(number=0, says=("always sing song 7",), ended_at=rested(made)))

    made.run()

    assert "song 7" in path.read_text()
    assert 'wrote "please never use tabs' not in path.read_text()
    assert made.memory.replay_verify() == []
    assert_quiet(made)


def test_a_kept_line_goes_with_the_session_that_says_it_too(made):
    path = made.root() / "MEMORY.md"
    path.write_text(path.read_text() + "- tabs are never to be used here\n- buy milk\n")
    made.run()

    made.memory.forget(B.id)

    assert "tabs" not in path.read_text()
    assert "- buy milk\n" in path.read_text()
    made.run()
    assert "- buy milk\n" in path.read_text()
    assert made.memory.replay_verify() == []


def test_what_takes_the_place_of_the_summary_s_first_line_stands_behind_it(made):
    path = made.root() / "memory_summary.md"
    path.write_text(path.read_text().replace("v1\n", "version 2\n", 1))

    (root,) = made.run().phase2

    assert root.edits == ["memory_summary.md"]
    assert path.read_text() == made.first["memory_summary.md"].replace("v1\n", "v1\nversion 2\n", 1)
    assert_quiet(made)


def test_an_edit_that_makes_a_file_no_memory_is_laid_beside_the_root(tmp_path):
    home = Home(tmp_path, version="v2")
    home.write(A, B)
    home.run()
    first = content(home.root())
    path = home.root() / "memory_summary.md"
    path.write_text(path.read_text() + "- my own line\n" * 700)

    (root,) = home.run().phase2

    told, kept = root.edits
    assert told == "memory_summary.md"
    assert kept.startswith(f"{home.root()}.edits/")
    assert Path(kept).read_text().count("my own line") == 700
    assert content(home.root()) == first
    assert_quiet(home)
    home.memory.close()


def test_an_edit_that_a_killed_run_has_published_is_not_taken_for_another(made):
    path = made.root() / "memory_summary.md"
    path.write_text(path.read_text() + "- my own line\n")
    with pytest.raises(WorkspaceError, match="the render was stopped"):
        made.run_with(workspace=unfinished(made))

    (root,) = made.run().phase2

    assert root.edits == []
    assert path.read_text().count("- my own line\n") == 1
    assert len(made.events(FolderEdited)) == 1
    assert_quiet(made)


def test_an_edit_is_kept_as_well_when_the_folder_changes_in_the_same_run(made):
    (made.root() / "memory_summary.md").write_text("v1\nmine\n")
    made.memory.pollute(A.id, "web_search")

    (root,) = made.run().phase2

    assert len(root.edits) == 1
    assert "memory_summary.md" in root.modified
    assert "mine" in content(made.root())["memory_summary.md"]
    assert_quiet(made)


def test_the_same_file_laid_aside_twice_is_kept_once_and_told_twice(made):
    for _ in range(2):
        (made.root() / "MEMORY.md").write_bytes(b"\xffmine\n")
        (root,) = made.later(60).run().phase2
        assert len(root.edits) == 1

    assert len(made.events(FolderEdited)) == 2
    assert len(list(made.root().with_name(f"{made.root().name}.edits").iterdir())) == 1


def test_a_removed_artifact_is_recorded_and_comes_back(made):
    (made.root() / "memory_summary.md").unlink()

    (root,) = made.run().phase2

    (edited,) = made.events(FolderEdited)
    assert edited.deleted
    assert body_of(made, edited) == "memory_summary.md\n"
    assert root.edits == ["memory_summary.md (deleted)"]
    assert content(made.root()) == made.first
    assert_quiet(made)


def test_an_edit_that_is_no_text_is_kept_by_its_bytes(made):
    (made.root() / "MEMORY.md").write_bytes(b"\xff\x00mine")

    (root,) = made.run().phase2

    with open(root.edits[0], "rb") as kept:
        assert kept.read() == b"\xff\x00mine"
    assert content(made.root()) == made.first


def test_a_secret_in_an_edit_does_not_reach_the_log(made):
    secret = "ghp_" + "a1B2" * 9
    (made.root() / "MEMORY.md").write_text(f"token {secret}\n")

    made.run()

    (edited,) = made.events(FolderEdited)
    assert secret not in body_of(made, edited)


def touch(root):
    (root / "raw_memories.md").write_text("mine\n")


def remove(root):
    next((root / "rollout_summaries").iterdir()).unlink()


def add(root):
    (root / "rollout_summaries" / "mine.md").write_text("mine\n")


def link(root):
    (root / "link").symlink_to("/etc/passwd")


def remove_all(root):
    shutil.rmtree(root / "rollout_summaries")


@pytest.mark.parametrize("act", [touch, remove, add, link, remove_all])
def test_touched_inputs_are_restored_without_a_word(made, act):
    act(made.root())

    report = made.run()

    assert report.phase2 == []
    assert made.position == made.quiet_at
    assert content(made.root()) == made.first
    assert not (made.root() / "link").is_symlink()
    assert_quiet(made)


def test_a_stray_file_stays_starts_one_run_and_then_is_known(made):
    (made.root() / "mine.txt").write_text("mine\n")

    (root,) = made.run().phase2

    assert root.status == "succeeded"
    assert root.added == ["mine.txt"]
    assert root.edits == []
    assert (made.root() / "mine.txt").read_text() == "mine\n"
    assert len(made.events(Phase2LeaseClaimed, made.quiet_at)) == 1
    assert_quiet(made)

    (made.root() / "mine.txt").write_text("more\n")
    (root,) = made.run().phase2
    assert root.modified == ["mine.txt"]
    assert_quiet(made)


def test_a_persons_own_file_outlives_later_runs_and_a_forgetting(made):
    stray = made.root() / "skills" / "mine" / "SKILL.md"
    stray.parent.mkdir(parents=True)
    stray.write_text("what I do by hand\n")
    made.later(HOUR_S).run()

    for number in (7, 8):
        made.later(8 * HOUR_S)
        made.write(
            Session(number=number, says=(f"always sing song {number}",), ended_at=rested(made))
        )
        made.run()
    made.memory.forget(Session(number=7).id)

    assert stray.read_text() == "what I do by hand\n"


def test_a_line_that_no_run_has_taken_in_outlives_a_forgetting_and_a_removed_one_stays_out(made):
    made.write(Session(number=7, says=("always sing song 7",), ended_at=rested(made)))
    made.run()
    memory_file = made.root() / "MEMORY.md"
    out = next(line for line in memory_file.read_text().split("\n") if "tabs" in line)
    memory_file.write_text(f"{memory_file.read_text().replace(out, '')}\n- ask Ann first\n")

    made.memory.forget(Session(number=7).id)

    assert "- ask Ann first" in memory_file.read_text()
    assert out not in memory_file.read_text()
    assert "song 7" not in memory_file.read_text()
    made.later(HOUR_S).run()
    assert "- ask Ann first" in memory_file.read_text()


def rested(home):
    return int(home.now) - 7 * HOUR_S


def test_without_its_git_folder_everything_is_new(made):
    shutil.rmtree(made.root() / ".git")

    (root,) = made.run().phase2

    assert set(root.added) == set(made.first)
    assert content(made.root()) == made.first
    assert_quiet(made)


def test_a_folder_that_is_gone_is_written_again(made):
    shutil.rmtree(made.root())

    (root,) = made.run().phase2

    assert content(made.root()) == made.first
    assert set(root.added) == set(made.first)
    assert_quiet(made)


def test_the_baseline_is_one_commit_and_git_finds_nothing_to_say(made):
    made.memory.pollute(A.id, "web_search")
    made.run()

    repository = Repo(str(made.root()))
    walked = list(repository.get_walker())
    repository.close()

    assert len(walked) == 1
    git = shutil.which("git")
    if git:
        told = subprocess.run(
            [git, "status", "--porcelain"], cwd=made.root(), capture_output=True, text=True
        )
        assert (told.returncode, told.stdout) == (0, "")


class Unfinished(Workspace):
    """A render that ends before the summary, which is its last file."""

    def write(self, path, text, *, flushed=True):
        if path == "memory_summary.md":
            raise WorkspaceError("the render was stopped")
        return super().write(path, text, flushed=flushed)


def unfinished(home):
    return lambda *where: Unfinished(home.path, *where, git=git)


def a_folder(place):
    if place.exists():
        place.unlink()
    place.mkdir()
    (place / "mine.md").write_text("make check, I wrote")


def a_file(place):
    shutil.rmtree(place)
    place.write_text("make check, I wrote")


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("MEMORY.md", a_folder),
        ("memory_summary.md", a_folder),
        ("raw_memories.md", a_folder),
        ("phase2_workspace_diff.md", a_folder),
        ("rollout_summaries", a_file),
    ],
)
@pytest.mark.parametrize("meanwhile", ["nothing", "something"])
def test_what_is_of_another_kind_is_moved_beside_the_root_and_told(made, name, make, meanwhile):
    make(made.root() / name)
    if meanwhile == "something":
        made.memory.set_mode(B.id, "disabled")

    (root,) = made.run().phase2

    (kept,) = [Path(each) for each in root.edits if each.endswith(name)]
    assert kept.parent == made.root().with_name(f"{made.root().name}.edits")
    words = (kept / "mine.md" if kept.is_dir() else kept).read_text()
    assert words == "make check, I wrote"
    assert (content(made.root()) == made.first) == (meanwhile == "nothing")
    assert made.memory.replay_verify() == []
    assert_quiet(made)
    made.memory.forget(A.id)
    assert not kept.exists()
    assert b"make check" not in b"".join(bytes_of(made.path).values())


@pytest.fixture
def two(home):
    """Two projects, of which the first has a link for its folder: nobody may write there."""
    here = replace(A, cwd="/home/ann/here")
    there = replace(B, cwd="/home/ann/there")
    home.write(here, there)
    home.run()
    home.here, home.there = (home.root(home.scope_of(each)) for each in (here, there))
    home.here.rename(home.folder / "elsewhere")
    home.here.symlink_to(home.folder / "elsewhere")
    home.write(replace(there, says=(*there.says, "never ever use zip files"), ended_at=LATER))
    home.write(replace(here, says=(*here.says, "never ever use zip files"), ended_at=LATER))
    return home


def test_a_folder_that_cannot_be_used_keeps_no_other_project_from_its_memory(two):
    with pytest.raises(WorkspaceError, match="symbolic link"):
        two.run()

    assert "zip files" in content(two.there)["MEMORY.md"]
    two.here.unlink()
    two.run()
    assert "zip files" in content(two.here)["MEMORY.md"]


def test_nor_does_one_from_which_a_forgotten_session_has_still_to_go(two):
    with pytest.raises(StillInTheFolder, match="symbolic link"):
        two.memory.forget(A.id)

    with pytest.raises(WorkspaceError, match="symbolic link"):
        two.run()

    assert "zip files" in content(two.there)["MEMORY.md"]


class Partial(Workspace):
    """A file in the middle that the system does not let us replace."""

    def write(self, path, text, *, flushed=True):
        if path == "MEMORY.md":
            raise WorkspaceError("MEMORY.md may not be used")
        return super().write(path, text, flushed=flushed)


def test_a_file_that_cannot_be_written_keeps_no_forgotten_words_in_the_others(made):
    def workspace(*where):
        return Partial(made.path, *where, git=git)

    around = replace(made.memory._around, workspace=workspace)
    with pytest.raises(StillInTheFolder, match="may not be used"):
        forget(around, A.id, reason="asked", actor="application")

    left = {path for path, text in content(made.root()).items() if "make check" in text}
    assert left == {"MEMORY.md"}


def test_a_render_that_was_stopped_is_finished_and_nothing_of_it_is_called_an_edit(made):
    made.memory.set_mode(A.id, "disabled")
    with pytest.raises(WorkspaceError, match="stopped"):
        made.run_with(workspace=unfinished(made))
    half = content(made.root())

    made.memory.set_mode(A.id, "enabled")
    made.memory.set_mode(B.id, "disabled")
    (root,) = made.run().phase2

    assert "make check" not in half["MEMORY.md"]
    assert [edit for edit in root.edits if "MEMORY" in edit] == []
    assert not [e for e in made.events(FolderEdited) if not e.deleted]
    assert "make check" in content(made.root())["MEMORY.md"]
    assert "spaces" not in content(made.root())["MEMORY.md"]
    assert made.memory.replay_verify() == []
    assert_quiet(made)


def test_what_was_published_before_a_crash_is_rendered_by_the_next_run(made):
    made.memory.set_mode(A.id, "disabled")
    with pytest.raises(WorkspaceError):
        made.run_with(workspace=unfinished(made))
    differs = made.memory.replay_verify()

    (root,) = made.run().phase2

    assert "is not as it was rendered" in " ".join(differs)
    assert "make check" not in "".join(content(made.root()).values())
    assert root.edits == []
    assert made.memory.replay_verify() == []
    assert_quiet(made)


def test_an_earlier_render_put_back_is_stale_and_not_an_edit(made):
    made.memory.set_mode(A.id, "disabled")
    made.run()
    (made.root() / "MEMORY.md").write_text(made.first["MEMORY.md"])

    (root,) = made.run().phase2

    assert root.edits == []
    assert made.events(FolderEdited) == []
    assert "make check" not in content(made.root())["MEMORY.md"]


def test_a_folder_that_a_person_made_first_is_kept(home):
    home.write(A)
    home.run()
    place = home.root()
    other = Home(home.folder / "other" if (home.folder / "other").mkdir() is None else None)
    mine = other.path / "memories" / "v1" / "project-fern"
    mine.mkdir(parents=True)
    (mine / "MEMORY.md").write_text("by hand\n")
    other.write(Session(number=1, ended_at=NOON - 7 * HOUR_S))
    other.memory.ingest([other.sessions])
    other.memory.set_scope(A.id, "project:fern")

    (root,) = other.run().phase2

    assert Path(root.edits[0]).read_text() == "by hand\n"
    assert "make check" in (mine / "MEMORY.md").read_text()
    assert place.exists()
    other.memory.close()


def test_replay_verify_names_the_file_that_is_not_as_rendered_and_changes_nothing(made):
    (made.root() / "MEMORY.md").write_text("mine\n")

    told = made.memory.replay_verify()

    assert len(told) == 1
    assert "MEMORY.md" in told[0]
    assert "threadbook run" in told[0]
    assert (made.root() / "MEMORY.md").read_text() == "mine\n"
    assert made.position == made.quiet_at


def test_each_render_is_recorded_once(made):
    made.memory.pollute(A.id, "web_search")
    made.run()

    assert len(made.events(RootRendered)) == 2


def test_files_are_private(made):
    private = {
        oct(path.stat().st_mode & 0o077)
        for path in [made.path, *made.path.rglob("*")]
        if ".git" not in path.parts
    }

    assert private == {"0o0"}


def test_export_writes_what_the_log_holds_whatever_lies_in_the_folder(made, tmp_path):
    (made.root() / "MEMORY.md").write_text("mine\n")

    written = made.memory.export(tmp_path / "out")

    assert written == {made.scope_of(A): tmp_path / "out"}
    assert content(tmp_path / "out") == made.first


def test_export_of_two_roots_has_a_folder_for_each(home, tmp_path):
    home.write(A, Session(number=3, cwd="/srv/moss"))
    home.run()

    written = home.memory.export(tmp_path / "out")

    assert len(written) == 2
    for scope, folder in written.items():
        assert content(folder) == content(home.root(scope))


def test_an_export_is_for_its_owner_alone(home, tmp_path):
    home.write(A, Session(number=3, cwd="/srv/moss"))
    home.run()

    home.memory.export(tmp_path / "new" / "out")

    made = [tmp_path / "new", *(tmp_path / "new").rglob("*")]
    assert {path.stat().st_mode & 0o077 for path in made} == {0}
