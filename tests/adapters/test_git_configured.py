"""The baseline under a person's own git: whatever their files and environment say, our bytes are
the same, and no program of theirs is started by us or by git's own `status` of the folder."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.test_git import AT, bytes_below

# Each key of theirs that names a program or another place, or that changes bytes.
PROGRAMS = (
    "core.fsmonitor",
    "core.editor",
    "core.pager",
    "core.sshCommand",
    "core.askPass",
    "core.alternateRefsCommand",
    "core.gitProxy",
    "credential.helper",
    "diff.external",
    "diff.shout.textconv",
    "diff.shout.command",
    "filter.shout.clean",
    "filter.shout.smudge",
    "filter.shout.process",
    "gpg.program",
    "interactive.diffFilter",
    "merge.shout.driver",
    "sequence.editor",
    "uploadpack.packObjectsHook",
)
SETTINGS = {
    "core.autocrlf": "true",
    "core.eol": "crlf",
    "core.safecrlf": "true",
    "core.fileMode": "false",
    "core.symlinks": "false",
    "core.ignoreCase": "true",
    "core.trustctime": "true",
    "core.sparseCheckout": "true",
    "core.splitIndex": "true",
    "core.untrackedCache": "true",
    "core.worktree": "/",
    "commit.gpgSign": "true",
    "filter.shout.required": "true",
    "safe.directory": "/elsewhere",
    "status.showUntrackedFiles": "no",
    "status.submoduleSummary": "true",
    "gc.auto": "1",
    "index.version": "4",
    "user.useConfigOnly": "true",
}
# A whole life of a baseline, in a process of its own: its environment is what is tested.
LIFE = f"""
import sys
from pathlib import Path
from threadbook.adapters import git
root = Path(sys.argv[1])
git.reset(root, at={AT})
(root / "MEMORY.md").write_bytes(b"# Task Group: greeter\\r\\n$Id$ and more\\r\\n")
(root / "run").chmod(0o755)
(root / "new.md").write_text("new\\n")
for change in git.changes(root):
    print(change.status, change.path, change.mode_before, change.mode_after, change.after)
git.reset(root, at={AT})
"""

# Two whole runs with an edit between them, on the one folder whose name has no machine in it.
RUNS = """
import sys
from pathlib import Path
from tests.application.homes import Home, Session
home = Home(Path(sys.argv[1]), scope="global")
home.write(Session(number=1), Session(number=2, says=("please never use tabs here",)))
home.run()
path = home.root() / "memory_summary.md"
path.write_text(path.read_text() + "- buy milk\\n")
print(home.later(60).run().phase2[0].modified)
home.memory.close()
"""


class Person:
    """Somebody whose configuration is everywhere that git looks for one."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "person"
        self.xdg = folder / "xdg"
        self.traps = folder / "traps"
        self.decoy = folder / "decoy"
        self.marker = folder / "a-program-ran"
        hooks = self.home / "template" / "hooks"
        for each in (hooks, self.xdg / "git", self.traps, self.decoy):
            each.mkdir(parents=True)
        for name in ("pre-commit", "post-commit", "post-index-change", "post-checkout", "trap"):
            for place in (hooks, self.traps):
                (place / name).write_text(f"#!/bin/sh\necho $0 >> {self.marker}\nexit 1\n")
                (place / name).chmod(0o755)
        (self.home / "attributes").write_text(
            "[attr]shouted text eol=crlf\n* shouted filter=shout diff=shout merge=shout ident\n"
        )
        (self.home / "ignore").write_text("*\n")
        self.written(self.home / ".gitconfig", "includeIf.gitdir:/**.path", str(self.home / "more"))
        self.written(self.home / ".gitconfig", "include.path", str(self.home / "more"))
        for config in (self.home / "more", self.xdg / "git" / "config"):
            for key in PROGRAMS:
                self.written(config, key, str(self.traps / "trap"))
            for key, value in SETTINGS.items():
                self.written(config, key, value)
            self.written(config, "core.hooksPath", str(self.traps))
            self.written(config, "core.excludesFile", str(self.home / "ignore"))
            self.written(config, "core.attributesFile", str(self.home / "attributes"))
            self.written(config, "init.templateDir", str(self.home / "template"))
        subprocess.run(["git", "init", "--quiet", str(self.decoy)], check=True, env=self.plain)

    def written(self, config: Path, key: str, value: str) -> None:
        words = ["git", "config", "--file", str(config), "--add", key, value]
        subprocess.run(words, check=True, env=self.plain)

    @property
    def plain(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": "/nonexistent"}

    @property
    def files(self) -> dict[str, str]:
        return {**self.plain, "HOME": str(self.home), "XDG_CONFIG_HOME": str(self.xdg)}

    @property
    def variables(self) -> dict[str, str]:
        """As a program has them that git itself has started, in another repository."""
        other = self.decoy / ".git"
        return {
            **self.files,
            "GIT_DIR": str(other),
            "GIT_COMMON_DIR": str(other),
            "GIT_WORK_TREE": str(self.decoy),
            "GIT_INDEX_FILE": str(other / "index"),
            "GIT_OBJECT_DIRECTORY": str(other / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(self.decoy),
            "GIT_TEMPLATE_DIR": str(self.home / "template"),
            "GIT_CONFIG_GLOBAL": str(self.home / "more"),
            "GIT_CONFIG_SYSTEM": str(self.home / "more"),
            "GIT_CONFIG_COUNT": "2",
            "GIT_CONFIG_KEY_0": "core.fsmonitor",
            "GIT_CONFIG_VALUE_0": str(self.traps / "trap"),
            "GIT_CONFIG_KEY_1": "core.hooksPath",
            "GIT_CONFIG_VALUE_1": str(self.traps),
            "GIT_EXTERNAL_DIFF": str(self.traps / "trap"),
            "GIT_AUTHOR_NAME": "somebody",
            "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z",
            "GIT_DEFAULT_HASH": "sha256",
            "GIT_NAMESPACE": "other",
            "GIT_CEILING_DIRECTORIES": "/",
        }


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    person = Person(tmp_path)
    yield person
    assert not person.marker.exists(), person.marker.read_text()


def laid(root: Path) -> Path:
    root.mkdir()
    (root / ".gitattributes").write_text("* text eol=crlf filter=shout\n")
    (root / ".gitignore").write_text("*\n")
    (root / "MEMORY.md").write_bytes(b"# Task Group: greeter\r\n$Id$\r\n")
    (root / "run").write_text("#!/bin/sh\n")
    return root


def lived(
    root: Path, env: dict[str, str], *, code: str = LIFE, below: str = "."
) -> tuple[str, dict[str, bytes]]:
    """What it printed, and every byte but the index, which tells inodes and times."""
    done = subprocess.run(
        [sys.executable, "-c", code, str(root)],
        env={**env, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = bytes_below(root / below)
    (index,) = [path for path in found if path.endswith("/.git/index")]
    del found[index]
    return done.stdout, {path.removeprefix(str(root)): text for path, text in found.items()}


@pytest.mark.parametrize("where", ["files", "variables"])
def test_neither_files_nor_variables_of_a_persons_git_change_a_byte_or_start_a_program(
    tmp_path: Path, person: Person, where: str
) -> None:
    decoy = bytes_below(person.decoy)
    told, plain = lived(laid(tmp_path / "plain"), person.plain)

    told_there, there = lived(laid(tmp_path / "there"), getattr(person, where))

    assert (told_there, there) == (told, plain)
    assert [line[:6] for line in told.splitlines()] == ["M MEMO", "A new.", "M run "]
    assert bytes_below(person.decoy) == decoy


@pytest.mark.parametrize("where", ["files", "variables"])
def test_whole_runs_leave_the_same_folder(tmp_path: Path, person: Person, where: str) -> None:
    folder = tmp_path / "all"  # A session's path stands in the files, so it has to be the same.
    folder.mkdir()
    plain = lived(folder, person.plain, code=RUNS, below="home/memories")
    shutil.rmtree(folder)
    folder.mkdir()

    there = lived(folder, getattr(person, where), code=RUNS, below="home/memories")

    assert there == plain
    assert plain[0] == "['memory_summary.md']\n"


def test_gits_own_status_is_clean_under_all_their_files(tmp_path: Path, person: Person) -> None:
    root = laid(tmp_path / "root")
    lived(root, person.files)
    os.utime(root / "run", (1, 1))  # So that it is read again, and the index written.

    for words in (["status", "--porcelain"], ["status", "--porcelain", "--untracked-files=all"]):
        shown = subprocess.run(
            ["git", *words], cwd=root, env=person.files, capture_output=True, text=True, check=False
        )
        assert (shown.returncode, shown.stdout, shown.stderr) == (0, "", "")


def test_the_traps_would_have_been_sprung_by_a_repository_that_answers_nothing(
    tmp_path: Path,
) -> None:
    person = Person(tmp_path)
    (person.decoy / "a.md").write_text("x\n")

    subprocess.run(
        ["git", "add", "--force", "a.md"], cwd=person.decoy, env=person.files, check=False
    )

    assert "trap" in person.marker.read_text()
