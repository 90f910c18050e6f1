"""The folder on disk: whole files, nothing outside, nobody's words lost."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadbook.adapters import git
from threadbook.adapters import workspace as workspace_module
from threadbook.adapters.workspace import Workspace, WorkspaceError, digest

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    workspace = opened(tmp_path)
    workspace.prepare()
    return workspace


def opened(home: Path) -> Workspace:
    return Workspace(home / "home", "v1", "project:greeter-1a2b3c4d", git=git)


def process(code: str, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_the_folder_is_found_by_version_and_scope_and_is_private(tmp_path: Path) -> None:
    workspace = opened(tmp_path)
    umask = os.umask(0o022)

    links = workspace.prepare()

    workspace.write("skills/one/SKILL.md", "x")
    workspace.write("MEMORY.md", "x")
    with workspace.lock():
        os.umask(umask)
    folders = [each for each in (tmp_path / "home").rglob("*") if each.is_dir()]
    assert {each.stat().st_mode & 0o777 for each in [tmp_path / "home", *folders]} == {0o700}
    assert links == []
    assert workspace.path == tmp_path / "home" / "memories" / "v1" / "project-greeter-1a2b3c4d"
    assert (workspace.path / "rollout_summaries").is_dir()
    assert (workspace.path / "MEMORY.md").stat().st_mode & 0o777 == 0o600


def test_a_folder_that_others_could_read_is_closed(workspace: Workspace) -> None:
    workspace.path.chmod(0o755)

    workspace.prepare()

    assert workspace.path.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("scope", ["../x", "a/b", ".git", "a\0b", "..", "project:../../x"])
def test_whatever_the_scope_its_folder_is_right_below_the_version(
    tmp_path: Path, scope: str
) -> None:
    workspace = Workspace(tmp_path, "v1", scope, git=git)

    workspace.prepare()

    assert workspace.path.resolve().parent == tmp_path / "memories" / "v1"


@pytest.mark.parametrize("version", ["../v1", "", ".", "a/b"])
def test_a_version_that_is_no_folder_name_is_refused(tmp_path: Path, version: str) -> None:
    with pytest.raises(WorkspaceError):
        Workspace(tmp_path, version, "global", git=git)


def test_a_root_that_is_a_link_is_refused_with_advice(tmp_path: Path) -> None:
    workspace = opened(tmp_path)
    workspace.path.parent.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    workspace.path.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(WorkspaceError, match="symbolic link; replace it"):
        workspace.prepare()

    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_root_that_is_a_file_is_refused_with_advice(tmp_path: Path) -> None:
    workspace = opened(tmp_path)
    workspace.path.parent.mkdir(parents=True)
    workspace.path.write_text("x")

    with pytest.raises(WorkspaceError, match="move that away"):
        workspace.prepare()


def test_every_link_below_is_removed_and_told_and_nothing_behind_it(
    workspace: Workspace, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "theirs.md").write_text("theirs")
    workspace.reset_baseline(1)
    (workspace.path / "rollout_summaries").rmdir()
    (workspace.path / "rollout_summaries").symlink_to(outside)
    (workspace.path / "skills").mkdir()
    (workspace.path / "skills" / "a.md").symlink_to(outside / "theirs.md")
    (workspace.path / ".git" / "hooks").symlink_to(outside)
    (workspace.path / "loop").symlink_to("loop")

    links = workspace.prepare()

    assert links == [".git/hooks", "loop", "rollout_summaries", "skills/a.md"]
    assert [path.name for path in outside.iterdir()] == ["theirs.md"]
    assert (workspace.path / "rollout_summaries").is_dir()


def test_preparing_removes_what_a_killed_writer_left_and_heals_the_baseline(
    workspace: Workspace,
) -> None:
    workspace.write("MEMORY.md", "x")
    workspace.reset_baseline(1)
    (workspace.path / "rollout_summaries" / ".git.tmp-00").write_text("half")
    (workspace.path / ".git").rename(workspace.path / ".git.old")

    assert list(workspace.files()) == ["MEMORY.md"]
    workspace.prepare()

    assert not (workspace.path / "rollout_summaries" / ".git.tmp-00").exists()
    assert (workspace.path / ".git").is_dir()
    assert workspace.diff() == []


def test_what_is_no_text_is_reported_and_harms_nothing(workspace: Workspace) -> None:
    workspace.write("skills/one/SKILL.md", "ünïcode")
    (workspace.path / "big.md").write_bytes(b"x" * (1024 * 1024 + 1))
    (workspace.path / "largest.md").write_bytes(b"x" * 1024 * 1024)
    (workspace.path / "noise").write_bytes(b"\xff\xfe")
    (workspace.path / "nul").write_bytes(b"\0")
    (workspace.path / os.fsdecode(b"\xff.md")).write_text("x")
    os.mkfifo(workspace.path / "pipe")
    (workspace.path / "link").symlink_to("/etc/passwd")
    (workspace.path / ".gitignore").write_text("*")
    workspace.write_diff("# Memory Workspace Diff\n")

    found = workspace.scan()

    assert set(found.files) == {"largest.md", "skills/one/SKILL.md"}
    assert found.others == {
        "\\udcff.md": "its name is no UTF-8",
        "big.md": "it is larger than 1 MiB",
        "link": "it is no regular file",
        "noise": "it is no UTF-8 text",
        "nul": "it is no text",
        "pipe": "it is no regular file",
    }
    assert workspace.read("noise") == b"\xff\xfe"
    assert workspace.read("pipe") is None
    assert workspace.read("link") is None
    assert workspace.read("skills") is None
    assert workspace.read("MEMORY.md/x") is None


BAD_PATHS = [
    "",
    "/etc/passwd",
    "../x.md",
    "a/../b",
    "a//b",
    "a/",
    "./a",
    "a\\b",
    "..\\x",
    "a\0b",
    "a\nb",
    ".git/config",
    "skills/.GIT/config",
    ".g\u200cit/config",
    "git~1/config",
    ".hidden",
    "~/x",
    "C:/x",
    "c:x",
    "nul",
    "COM1.md",
    "end.",
    "end ",
    "\ud800",
    "\u202eabc",
    "ü" * 128,
    "/".join("a" * 17),
    "phase2_workspace_diff.md",
]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_path_that_could_leave_or_mislead_is_refused(workspace: Workspace, path: str) -> None:
    before = sorted(workspace.path.parent.parent.rglob("*"))

    with pytest.raises(WorkspaceError):
        workspace.write(path, "x")

    assert sorted(workspace.path.parent.parent.rglob("*")) == before


@given(st.text(alphabet=st.sampled_from("./\\~ agit:\0\n\u200c"), max_size=12))
def test_whatever_the_path_nothing_appears_outside(
    tmp_path_factory: pytest.TempPathFactory, path: str
) -> None:
    home = tmp_path_factory.mktemp("paths")
    workspace = opened(home)
    workspace.prepare()

    try:
        workspace.write(path, "x")
    except WorkspaceError:
        made = 0
    else:
        made = 1
        assert workspace.files() == {path: b"x"}

    files = [each for each in home.rglob("*") if each.is_file()]
    assert len(files) == made
    assert all(workspace.path in each.parents for each in files)


def test_a_link_on_the_way_is_never_followed(workspace: Workspace, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "theirs.md").write_text("theirs")
    (workspace.path / "skills").symlink_to(outside)
    (workspace.path / "MEMORY.md").symlink_to(outside / "theirs.md")

    with pytest.raises(WorkspaceError, match="or a link"):
        workspace.write("skills/new.md", "x")
    assert workspace.remove("skills/theirs.md") is False
    assert workspace.read("skills/theirs.md") is None
    workspace.write("MEMORY.md", "ours")

    assert [path.name for path in outside.iterdir()] == ["theirs.md"]
    assert (outside / "theirs.md").read_text() == "theirs"
    assert not (workspace.path / "MEMORY.md").is_symlink()


SWAPPER = """
import os, shutil, sys
os.chdir(sys.argv[1])
print("ready", flush=True)
while True:
    try:
        os.rename("skills", "aside")
        os.symlink(sys.argv[2], "skills")
        os.unlink("skills")
        os.rename("aside", "skills")
    except OSError:
        # The writer has made the folder anew in the moment when there was none.
        shutil.rmtree("aside", ignore_errors=True)
        os.makedirs("skills", exist_ok=True)
"""


def test_somebody_who_swaps_a_folder_for_a_link_all_the_time_plants_nothing(
    workspace: Workspace, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    workspace.write("skills/a.md", "x")
    swapper = process(SWAPPER, str(workspace.path), str(outside))
    assert swapper.stdout
    swapper.stdout.readline()

    written = refused = 0
    until = time.monotonic() + 10
    while time.monotonic() < until and (written < 50 or refused < 50):
        try:
            workspace.write("skills/planted.md", "x", flushed=False)
            written += 1
        except WorkspaceError:
            refused += 1
    swapper.kill()
    swapper.communicate()

    assert written
    assert refused
    assert list(outside.iterdir()) == []


def test_removing_leaves_no_empty_folder_but_the_one_for_summaries(workspace: Workspace) -> None:
    workspace.write("skills/one/SKILL.md", "x")
    workspace.write("skills/two/SKILL.md", "x")
    workspace.write("rollout_summaries/a.md", "x")

    removed = [
        workspace.remove(path)
        for path in ("skills/one/SKILL.md", "rollout_summaries/a.md", "not/there.md")
    ]

    assert removed == [True, True, False]
    assert not (workspace.path / "skills" / "one").exists()
    assert list(workspace.files()) == ["skills/two/SKILL.md"]
    assert (workspace.path / "rollout_summaries").is_dir()


def test_what_a_person_left_is_kept_beside_the_root_and_never_overwritten(
    workspace: Workspace,
) -> None:
    first = workspace.set_aside("MEMORY.md", b"one")
    again = workspace.set_aside("MEMORY.md", b"one")
    second = workspace.set_aside("MEMORY.md", b"two \xff")
    nested = workspace.set_aside(f"skills/{'ü' * 120}.md", b"three")

    assert again == first
    assert [path.name for path in (first, second)] == ["0001-MEMORY.md", "0002-MEMORY.md"]
    assert first.parent == workspace.path.with_name("project-greeter-1a2b3c4d.edits")
    assert (first.read_bytes(), second.read_bytes()) == (b"one", b"two \xff")
    assert nested.name.startswith("0003-")
    assert workspace.edits() == [first, second, nested]
    assert first.stat().st_mode & 0o777 == 0o600
    assert workspace.remove_edits() == 3
    assert workspace.edits() == []


def test_the_page_of_changes_is_no_change(workspace: Workspace) -> None:
    workspace.write("MEMORY.md", "x")
    workspace.write_diff("page")

    first = workspace.diff()
    workspace.write_diff("page")
    workspace.reset_baseline(1.5)

    assert [(change.status, change.path) for change in first] == [("A", "MEMORY.md")]
    assert workspace.diff() == []
    assert not (workspace.path / "phase2_workspace_diff.md").exists()


def test_a_second_publisher_waits_and_is_told_who_holds_the_folder(workspace: Workspace) -> None:
    other = opened(workspace.path.parents[3])

    with (
        workspace.lock(holder="threadbook run"),
        pytest.raises(
            WorkspaceError, match=rf"by threadbook run, process {os.getpid()}; try again"
        ),
        other.lock(wait_s=0),
    ):
        raise AssertionError("two publishers at once")

    with other.lock(wait_s=0):
        held = workspace.path.parents[2] / "locks" / "v1-project-greeter-1a2b3c4d.lock"
        assert held.stat().st_mode & 0o777 == 0o600


HOLDER = """
import sys, time
from pathlib import Path
from threadbook.adapters import git
from threadbook.adapters.workspace import Workspace
with Workspace(Path(sys.argv[1]), "v1", "global", git=git).lock():
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_lock_of_a_killed_holder_is_free(tmp_path: Path) -> None:
    holder = process(HOLDER, str(tmp_path))
    assert holder.stdout
    assert holder.stdout.readline() == "held\n"
    workspace = Workspace(tmp_path, "v1", "global", git=git)
    with pytest.raises(WorkspaceError, match=f"process {holder.pid}"), workspace.lock(wait_s=0):
        raise AssertionError("two publishers at once")

    holder.send_signal(signal.SIGKILL)
    holder.communicate()

    with workspace.lock(wait_s=5):
        pass


def test_inputs_are_written_first_and_the_summary_that_readers_open_last(tmp_path: Path) -> None:
    order = ["raw_memories.md", "rollout_summaries/z.md", "MEMORY.md", "skills/a/SKILL.md"]
    order.append("memory_summary.md")
    written = []

    class Watched(Workspace):
        def write(self, path: str, text: str, *, flushed: bool = True) -> str:
            written.append(path)
            return super().write(path, text, flushed=flushed)

    workspace = Watched(tmp_path / "home", "v1", "global", git=git)
    workspace.prepare()

    workspace.render(dict.fromkeys(sorted(order), "v1\n"))

    assert written == order


def test_rendering_writes_what_differs_and_removes_what_was_ours(workspace: Workspace) -> None:
    manifest = workspace.render(
        {"MEMORY.md": "one", "skills/a.md": "x", "rollout_summaries/a.md": "a"},
    )
    (workspace.path / "rollout_summaries" / "foreign\\ .md").write_text("foreign")
    (workspace.path / "rollout_summaries" / "notes.txt").write_text("kept")
    (workspace.path / "stray.md").write_text("a person's")
    unchanged = (workspace.path / "MEMORY.md").stat()

    again = workspace.render({"MEMORY.md": "one", "memory_summary.md": "v1\n"}, previous=manifest)

    assert again == {"MEMORY.md": digest(b"one"), "memory_summary.md": digest(b"v1\n")}
    assert set(workspace.files()) == {
        "MEMORY.md",
        "memory_summary.md",
        "rollout_summaries/notes.txt",
        "stray.md",
    }
    assert (workspace.path / "MEMORY.md").stat().st_ino == unchanged.st_ino


def test_an_edit_is_told_before_it_is_replaced_and_an_input_is_just_restored(
    workspace: Workspace,
) -> None:
    wanted = {"MEMORY.md": "one", "gone.md": "x", "raw_memories.md": "raw"}
    manifest = workspace.render(wanted)
    (workspace.path / "MEMORY.md").write_text("a person's")
    (workspace.path / "gone.md").write_bytes(b"a person's too \xff")
    (workspace.path / "raw_memories.md").write_text("touched")
    told = []

    def on_edit(path: str, content: bytes) -> None:
        told.append((path, content))
        assert workspace.read(path) == content

    workspace.render(
        {"MEMORY.md": "two", "raw_memories.md": "raw"},
        previous=manifest,
        on_edit=on_edit,
    )

    assert told == [("gone.md", b"a person's too \xff"), ("MEMORY.md", b"a person's")]
    assert workspace.files() == {"MEMORY.md": b"two", "raw_memories.md": b"raw"}


RENDERER = """
import sys
from pathlib import Path
from threadbook.adapters import git
from threadbook.adapters.workspace import Workspace
workspace = Workspace(Path(sys.argv[1]), "v1", "global", git=git)
workspace.prepare()
turn = 0
while True:
    turn += 1
    text = f"{turn % 2}" * 50_000
    workspace.render({f"rollout_summaries/{n}.md": text for n in range(3)} | {"MEMORY.md": text})
    workspace.reset_baseline(turn)
    if turn == 1:
        print("ready", flush=True)
"""


@pytest.mark.parametrize("delay_s", [0.0, 0.011, 0.023, 0.037, 0.052, 0.071])
def test_a_kill_at_any_moment_leaves_whole_files_and_a_baseline(
    tmp_path: Path, delay_s: float
) -> None:
    renderer = process(RENDERER, str(tmp_path))
    assert renderer.stdout
    renderer.stdout.readline()
    time.sleep(delay_s)  # What is tested is a kill at an arbitrary moment.

    renderer.send_signal(signal.SIGKILL)
    renderer.communicate()

    workspace = Workspace(tmp_path, "v1", "global", git=git)
    workspace.prepare()
    changes = workspace.diff()
    assert set(workspace.files().values()) <= {b"0" * 50_000, b"1" * 50_000}
    assert len(workspace.files()) == 4
    assert {change.status for change in changes} <= {"M"}
    assert [path.name for path in workspace.path.rglob(".git*")] == [".git"]


def test_a_folder_without_permission_is_an_error_with_advice(workspace: Workspace) -> None:
    code = """
import os, sys
from pathlib import Path
from threadbook.adapters import git
from threadbook.adapters.workspace import Workspace, WorkspaceError
workspace = Workspace(Path(sys.argv[1]), "v1", "project:greeter-1a2b3c4d", git=git)
if os.geteuid() == 0:
    os.seteuid(65534)  # Root may do anything; nobody may not.
for act in (lambda: workspace.write("MEMORY.md", "x"), workspace.prepare, workspace.diff):
    try:
        act()
    except WorkspaceError as error:
        print(error)
"""
    workspace.path.chmod(0o000)

    said, _ = process(code, str(workspace.path.parents[2])).communicate()

    workspace.path.chmod(0o700)
    assert len(said.splitlines()) == 3
    assert all("may not be used; make it" in line for line in said.splitlines())


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "free some and run again"),
        (errno.EDQUOT, "free some and run again"),
        (errno.EROFS, "choose another --home"),
        (errno.EISDIR, "move that away"),
        (errno.ENOENT, "made by the next run"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_every_failure_of_the_disk_says_what_to_do(number: int, advice: str) -> None:
    with (
        pytest.raises(WorkspaceError, match=advice),
        workspace_module.advised(Path("/home/dev/MEMORY.md")),
    ):
        raise OSError(number, os.strerror(number))


def test_a_full_disk_is_an_error_with_advice_and_the_old_file_stays(tmp_path: Path) -> None:
    code = """
import resource, signal, sys
from pathlib import Path
from threadbook.adapters import git
from threadbook.adapters.workspace import Workspace, WorkspaceError
workspace = Workspace(Path(sys.argv[1]), "v1", "global", git=git)
workspace.prepare()
workspace.write("MEMORY.md", "old")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    workspace.write("MEMORY.md", "x" * 5000)
except WorkspaceError as error:
    print(error)
print(workspace.files())
print(sorted(path.name for path in workspace.path.iterdir()))
"""

    said, _ = process(code, str(tmp_path)).communicate()

    first, files, names = said.splitlines()
    assert "MEMORY.md" in first
    assert files == "{'MEMORY.md': b'old'}"
    assert names == "['MEMORY.md', 'rollout_summaries']"


def test_what_is_in_the_way_is_moved_aside_under_a_name_of_its_own_each_time(workspace):
    workspace.prepare()
    for _ in range(2):
        (workspace.path / "a.md").mkdir()
        (workspace.path / "folder").write_text("a file where a folder belongs")
        moved = workspace.make_way(["a.md", "folder/below/b.md", "c.md"])

    assert workspace.in_the_way(["a.md", "folder/below/b.md", "c.md"]) == []
    assert [path.name for path in moved] == ["0003-a.md", "0004-folder"]
    assert len(list(workspace.aside.path.iterdir())) == 4


def test_a_folder_that_is_asked_for_as_a_file_leaves_nothing_open(workspace):
    workspace.prepare()
    (workspace.path / "skills").mkdir()
    before = len(os.listdir("/dev/fd"))

    found = [workspace.read("skills") for _ in range(20)]

    assert found == [None] * 20
    assert len(os.listdir("/dev/fd")) == before
