"""The baseline, judged by git's own program under a hostile configuration."""

import os
import shutil
import subprocess
import zlib
from hashlib import sha1
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadbook.adapters import git
from threadbook.projections.workspace_diff import Change

AT = 1_795_960_179
FILE, PROGRAM, LINK = 0o100644, 0o100755, 0o120000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "rollout_summaries").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "MEMORY.md").write_bytes(b"# Task Group: greeter\r\n$Id$\r\n")
    (root / "rollout_summaries" / "one.md").write_text("thread_id: 1\n")
    return root


@pytest.fixture
def hostile(tmp_path: Path) -> dict[str, str]:
    """The environment of a person whose git does everything differently."""
    home = tmp_path / "person"
    (home / "template" / "hooks").mkdir(parents=True)
    for hook in ("pre-commit", "post-index-change", "post-checkout"):
        for folder in ("template/hooks", "."):
            path = home / folder / hook
            path.write_text(f"#!/bin/sh\ntouch {home}/hook-ran\nexit 1\n")
            path.chmod(0o755)
    (home / "attributes").write_text("*.md text eol=crlf ident filter=shout diff=none\n")
    (home / "ignore").write_text("*\n")
    (home / ".gitconfig").write_text(
        f"[core]\nautocrlf = true\nsafecrlf = true\neol = crlf\nhooksPath = {home}\n"
        f"excludesFile = {home}/ignore\nattributesFile = {home}/attributes\nfileMode = false\n"
        f"fsmonitor = {home}/pre-commit\nuntrackedCache = true\nsplitIndex = true\n"
        "quotePath = true\nignoreCase = true\nsymlinks = false\n"
        "[commit]\ngpgSign = true\n[tag]\ngpgSign = true\n[log]\nshowSignature = true\n"
        f"[init]\ntemplateDir = {home}/template\ndefaultBranch = trunk\n"
        '[filter "shout"]\nclean = tr a-z A-Z\nrequired = true\n'
        "[status]\nshowUntrackedFiles = no\n[safe]\ndirectory = /elsewhere\n"
        "[index]\nversion = 4\n[feature]\nmanyFiles = true\n"
        "[fsck]\nmissingEmail = error\n[transfer]\nfsckObjects = true\n"
    )
    return {"HOME": str(home), "PATH": os.environ["PATH"], "LC_ALL": "C"}


def asked(root: Path, env: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=root, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def told(changes: list[Change]) -> list[tuple[str, str]]:
    return [(change.status, change.path) for change in changes]


def objects(root: Path) -> bytes:
    """Everything that lies in `.git`, with each compressed object unpacked wherever it begins."""
    found = []
    for path in (root / ".git").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            found.append(content)
            for start in range(len(content)):
                if content[start : start + 1] == b"\x78":
                    try:
                        found.append(zlib.decompressobj().decompress(content[start:]))
                    except zlib.error:
                        continue  # Not the beginning of an object.
    return b"\n".join(found)


def bytes_below(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def times_below(folder: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mtime_ns for path in (folder, *folder.rglob("*"))}


def test_git_finds_one_clean_sound_commit_whatever_the_person_configured(
    root: Path, hostile: dict[str, str]
) -> None:
    (root / ".gitattributes").write_text("* text eol=crlf filter=shout\n")
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o700)
    (root / 'a name\n"ü"\\').write_text("x")
    (root / "link").symlink_to("MEMORY.md")

    git.reset(root, at=AT)
    os.utime(root / "run", (1, 1))  # So that `git status` writes its index, which calls a hook.

    assert asked(root, hostile, "status", "--porcelain") == ""
    assert asked(root, hostile, "status", "--porcelain", "--untracked-files=all") == ""
    assert asked(root, hostile, "fsck", "--strict", "--full", "--no-dangling") == ""
    assert asked(root, hostile, "log", "--format=%an <%ae> %at %P", "--all").splitlines() == [
        f"Threadbook <threadbook@localhost> {AT} "
    ]
    assert asked(root, hostile, "symbolic-ref", "HEAD") == "refs/heads/main\n"
    assert asked(root, hostile, "show", "HEAD:MEMORY.md").encode().count(b"\n") == 2
    assert len(list((root / ".git" / "objects" / "pack").glob("*.pack"))) == 1
    assert not (Path(hostile["HOME"]) / "hook-ran").exists()


def test_git_shows_what_we_show(root: Path, hostile: dict[str, str]) -> None:
    (root / "run").write_text("x")
    git.reset(root, at=AT)
    (root / "MEMORY.md").write_text("# other\n")
    (root / "new.md").write_text("new\n")
    (root / "run").chmod(0o755)
    (root / "rollout_summaries" / "one.md").unlink()

    shown = asked(root, hostile, "status", "--porcelain")

    assert shown.splitlines() == [
        " M MEMORY.md",
        " D rollout_summaries/one.md",
        " M run",
        "?? new.md",
    ]
    assert told(git.changes(root)) == [
        ("M", "MEMORY.md"),
        ("A", "new.md"),
        ("D", "rollout_summaries/one.md"),
        ("M", "run"),
    ]


def test_text_that_was_deleted_is_in_no_object(root: Path) -> None:
    (root / "secret.md").write_text("the phrase only this thread had, " * 9)
    git.reset(root, at=AT)
    assert b"the phrase only this thread had" in objects(root)

    (root / "secret.md").unlink()
    git.changes(root)
    git.reset(root, at=AT + 1)

    assert b"the phrase only this thread had" not in objects(root)
    assert sorted(path.name for path in root.glob(".git*")) == [".git"]


def test_a_change_says_both_contents_and_both_modes(root: Path) -> None:
    (root / "link").symlink_to("MEMORY.md")
    (root / "run").write_text("x")
    git.reset(root, at=AT)

    (root / "link").unlink()
    (root / "link").symlink_to("elsewhere")
    (root / "run").chmod(0o755)
    (root / "MEMORY.md").unlink()
    (root / "a.md").write_text("new")

    assert git.changes(root) == [
        Change(
            path="MEMORY.md",
            mode_before=FILE,
            mode_after=None,
            before=b"# Task Group: greeter\r\n$Id$\r\n",
        ),
        Change(path="a.md", mode_before=None, mode_after=FILE, after=b"new"),
        Change(
            path="link", mode_before=LINK, mode_after=LINK, before=b"MEMORY.md", after=b"elsewhere"
        ),
        Change(path="run", mode_before=FILE, mode_after=PROGRAM, before=b"x", after=b"x"),
    ]


def test_looking_for_changes_writes_nothing(root: Path) -> None:
    (root / "run").write_text("x")
    git.reset(root, at=AT)
    (root / "new.md").write_text("new")
    (root / "run").chmod(0o755)
    (root / "rollout_summaries" / "one.md").unlink()
    before = times_below(root), bytes_below(root)

    git.changes(root)

    assert (times_below(root), bytes_below(root)) == before


def test_pipes_and_git_folders_below_are_nobodys_content(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "sub" / ".git").mkdir(parents=True)
    (root / "sub" / ".git" / "HEAD").write_text("x")
    (root / "git~1").write_text("x")
    (root / ".g\u200cit").write_text("x")

    changes = git.changes(root)

    assert told(changes) == [("A", "MEMORY.md"), ("A", "rollout_summaries/one.md")]


def no_git(root: Path) -> None:
    shutil.rmtree(root / ".git")


def empty_git(root: Path) -> None:
    shutil.rmtree(root / ".git")
    (root / ".git").mkdir()


def unborn(root: Path) -> None:
    (root / ".git" / "refs" / "heads" / "main").unlink()


def head_of_nothing(root: Path) -> None:
    (root / ".git" / "refs" / "heads" / "main").write_text("1" * 40 + "\n")


def head_of_a_blob(root: Path) -> None:
    content = git._blob_id((root / "MEMORY.md").read_bytes())
    (root / ".git" / "refs" / "heads" / "main").write_bytes(content + b"\n")


def pack_cut(root: Path) -> None:
    pack = next((root / ".git" / "objects" / "pack").glob("*.pack"))
    pack.chmod(0o600)
    pack.write_bytes(pack.read_bytes()[: pack.stat().st_size // 2])


def pack_gone(root: Path) -> None:
    next((root / ".git" / "objects" / "pack").glob("*.pack")).unlink()


def pack_of_noise(root: Path) -> None:
    pack = next((root / ".git" / "objects" / "pack").glob("*.pack"))
    pack.chmod(0o600)
    pack.write_bytes(pack.read_bytes()[:12] + b"\xa5" * (pack.stat().st_size - 12))


def elsewhere(root: Path) -> Path:
    return root.parent / "elsewhere"


def git_is_a_file(root: Path) -> None:
    (root / ".git").rename(elsewhere(root))
    (root / ".git").write_text(f"gitdir: {elsewhere(root)}\n")


def git_is_a_link(root: Path) -> None:
    (root / ".git").rename(elsewhere(root))
    (root / ".git").symlink_to(elsewhere(root))


def head_is_a_pipe(root: Path) -> None:
    (root / ".git" / "HEAD").unlink()
    os.mkfifo(root / ".git" / "HEAD")


def objects_are_a_link(root: Path) -> None:
    elsewhere(root).mkdir()
    (root / ".git" / "objects").rename(elsewhere(root) / "objects")
    (root / ".git" / "objects").symlink_to(elsewhere(root) / "objects")


def objects_are_borrowed(root: Path) -> None:
    (root / ".git" / "objects").rename(elsewhere(root))
    (root / ".git" / "objects" / "info").mkdir(parents=True)
    (root / ".git" / "objects" / "info" / "alternates").write_text(f"{elsewhere(root)}\n")


def worktree_of_another(root: Path) -> None:
    shutil.copytree(root / ".git", elsewhere(root))
    (root / ".git" / "commondir").write_text(f"{elsewhere(root)}\n")


@pytest.mark.parametrize(
    "breaking",
    [
        no_git,
        empty_git,
        unborn,
        head_of_nothing,
        head_of_a_blob,
        pack_cut,
        pack_gone,
        pack_of_noise,
        git_is_a_file,
        git_is_a_link,
        head_is_a_pipe,
        objects_are_a_link,
        objects_are_borrowed,
        worktree_of_another,
    ],
)
def test_without_a_sound_baseline_everything_is_an_addition_until_the_next(
    root: Path, breaking: object, hostile: dict[str, str]
) -> None:
    git.reset(root, at=AT)
    (root / "MEMORY.md").write_text("changed\n")
    assert callable(breaking)
    breaking(root)
    there = bytes_below(elsewhere(root))

    before = told(git.changes(root))
    git.reset(root, at=AT)

    assert before == [("A", "MEMORY.md"), ("A", "rollout_summaries/one.md")]
    assert git.changes(root) == []
    assert asked(root, hostile, "status", "--porcelain") == ""
    assert not (root / ".git").is_symlink()
    assert bytes_below(elsewhere(root)) == there


PERSON = ("-c", "user.name=Ann", "-c", "user.email=ann@localhost", "-c", "commit.gpgSign=false")


@pytest.mark.parametrize("amend", [(), ("--amend",)])
def test_what_a_person_commits_is_not_thereby_published(
    root: Path, hostile: dict[str, str], amend: tuple[str, ...]
) -> None:
    git.reset(root, at=AT)
    (root / "MEMORY.md").write_text("what Ann wrote and committed\n")
    asked(root, hostile, *PERSON, "commit", "--all", "--message", "mine", *amend)

    changes = told(git.changes(root))
    git.reset(root, at=AT + 1)

    assert changes == [("A", "MEMORY.md"), ("A", "rollout_summaries/one.md")]
    assert asked(root, hostile, "log", "--format=%an %P", "--all") == "Threadbook \n"
    assert not (root / ".git" / "logs").exists()
    assert git.changes(root) == []


def test_a_config_of_noise_leads_nowhere_and_goes_with_the_next_baseline(
    root: Path, hostile: dict[str, str]
) -> None:
    git.reset(root, at=AT)
    (root / "MEMORY.md").write_text("changed\n")
    pipe = root.parent / "pipe"
    os.mkfifo(pipe)
    (root / ".git" / "config").write_text(
        f"[include]\npath = {pipe}\n[core]\nworktree = /\n[extensions]\nobjectFormat = x\n[core\n"
    )

    changes = told(git.changes(root))
    git.reset(root, at=AT)

    assert changes == [("M", "MEMORY.md")]
    assert asked(root, hostile, "status", "--porcelain") == ""


@pytest.mark.parametrize("lock", ["index.lock", "HEAD.lock", "refs/heads/main.lock"])
def test_what_git_left_locked_keeps_nobody_waiting(
    root: Path, hostile: dict[str, str], lock: str
) -> None:
    git.reset(root, at=AT)
    (root / ".git" / lock).write_bytes(b"")
    (root / "MEMORY.md").write_text("changed\n")

    changes = told(git.changes(root))
    git.reset(root, at=AT)

    assert changes == [("M", "MEMORY.md")]
    assert not (root / ".git" / lock).exists()
    assert asked(root, hostile, "status", "--porcelain") == ""


def test_hundreds_of_files_in_one_pack_and_what_git_packs_itself_are_a_baseline(
    root: Path, hostile: dict[str, str]
) -> None:
    for number in range(600):
        (root / "rollout_summaries" / f"{number:03}.md").write_text(f"session {number}\n")
    git.reset(root, at=AT)
    (root / "rollout_summaries" / "123.md").write_text("another\n")
    (root / "rollout_summaries" / "599.md").unlink()
    expected = [("M", "rollout_summaries/123.md"), ("D", "rollout_summaries/599.md")]

    first = told(git.changes(root))
    asked(root, hostile, "gc", "--quiet")
    again = told(git.changes(root))

    assert first == again == expected
    assert len(list((root / ".git" / "objects" / "pack").glob("*.pack"))) == 1
    assert not (root / ".git" / "refs" / "heads" / "main").exists()  # It was packed, too.


def test_a_blob_changed_inside_the_pack_is_no_baseline(root: Path) -> None:
    git.reset(root, at=AT)
    pack = next((root / ".git" / "objects" / "pack").glob("*.pack"))
    old = zlib.compress(b"thread_id: 1\n")
    new = zlib.compress(b"thread_id: 2\n")
    assert old in pack.read_bytes()
    assert len(old) == len(new)
    table = pack.with_suffix(".idx")
    pack.chmod(0o600)
    table.chmod(0o600)
    body = pack.read_bytes()[:-20].replace(old, new)
    pack.write_bytes(body + sha1(body).digest())
    listed = table.read_bytes()[:-40] + sha1(body).digest()
    table.write_bytes(listed + sha1(listed).digest())
    (root / "rollout_summaries" / "one.md").write_text("thread_id: 3\n")

    changes = git.changes(root)

    assert told(changes) == [("A", "MEMORY.md"), ("A", "rollout_summaries/one.md")]


def test_whoever_dies_between_the_two_renames_keeps_the_old_baseline(root: Path) -> None:
    git.reset(root, at=AT)
    (root / "new.md").write_text("new")
    (root / ".git").rename(root / ".git.old")
    (root / ".git.new").mkdir()

    git.heal(root)

    assert sorted(path.name for path in root.glob(".git*")) == [".git"]
    assert told(git.changes(root)) == [("A", "new.md")]


def test_what_a_finished_reset_left_is_removed(root: Path) -> None:
    git.reset(root, at=AT)
    shutil.copytree(root / ".git", root / ".git.old")

    git.heal(root)

    assert sorted(path.name for path in root.glob(".git*")) == [".git"]
    assert git.changes(root) == []


def test_an_empty_folder_has_a_baseline_too(tmp_path: Path, hostile: dict[str, str]) -> None:
    root = tmp_path / "root"
    root.mkdir()

    git.reset(root, at=-5)

    assert asked(root, hostile, "fsck", "--strict") == ""
    assert git.changes(root) == []
    (root / "one.md").write_text("1")
    assert told(git.changes(root)) == [("A", "one.md")]


PATHS = st.lists(st.sampled_from(["a", "b", "c d", "ü", "a.b", "a-b"]), min_size=1, max_size=3)
TREES = st.dictionaries(
    PATHS.map("/".join), st.tuples(st.sampled_from([b"", b"x", b"y\n"]), st.booleans()), max_size=6
)


def lay(root: Path, tree: dict[str, tuple[bytes, bool]]) -> dict[str, tuple[bytes, int]]:
    """Write a tree; what of it there is: a name that is already a folder or a file stays that."""
    if root.exists():
        for path in root.iterdir():
            if path.name != ".git":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    written = {}
    for path, (content, program) in sorted(tree.items()):
        target = root / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        except OSError:
            continue  # The tree asks for a file and a folder of one name.
        target.chmod(0o700 if program else 0o600)
        written[path] = content, PROGRAM if program else FILE
    return written


@settings(max_examples=40, deadline=None)
@given(before=TREES, after=TREES)
def test_changes_are_the_difference_of_the_two_trees(
    before: dict[str, tuple[bytes, bool]],
    after: dict[str, tuple[bytes, bool]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    root = tmp_path_factory.mktemp("trees") / "root"
    root.mkdir()
    old = lay(root, before)
    git.reset(root, at=AT)
    new = lay(root, after)

    changes = git.changes(root)

    differing = [path for path in old.keys() | new.keys() if old.get(path) != new.get(path)]
    assert [change.path for change in changes] == sorted(differing, key=str.encode)
    for change in changes:
        assert (change.before, change.mode_before) == old.get(change.path, (b"", None))
        assert (change.after, change.mode_after) == new.get(change.path, (b"", None))
