"""git: the baseline of a memory folder, one commit without parent, in one pack.

The commit is the tree as it was last published; what differs from it is what phase 2 has to look
at. There is no history, so text that was deleted is in no object. The baseline is derived: one that
is missing, broken, somebody else's commit or not all in this place makes every file an addition,
and never passes for content that has been seen.

It is built beside the old one and put in its place by two renames (`.git` to `.git.old`, `.git.new`
to `.git`). Whoever dies in between leaves a lone `.git.old`, which `heal` puts back.

Git itself is not needed, and no setting of it is read: not the person's, not the environment's, not
the repository's. Where git is used on the folder, plain `git status` is clean whatever the person
has configured: the repository's own settings and attributes are stronger than theirs. Paths are as
`os.fsdecode` gives them.
"""

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..domain.path import is_content
from ..projections.workspace_diff import Change

if TYPE_CHECKING:
    from dulwich.objects import Commit, ShaFile

_AUTHOR = b"Threadbook <threadbook@localhost>"
_MESSAGE = b"Memory as it was last published\n"
_BRANCH = "refs/heads/main"
_FILE, _PROGRAM, _LINK, _TREE = 0o100644, 0o100755, 0o120000, 0o040000

# Each line answers a setting of the person's own that would change what is run or shown. What is
# hashed is settled by the attributes, which are stronger than every setting about line ends.
_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tbare = false
\tfilemode = true
\tfsmonitor = false
\thooksPath = /dev/null
\texcludesFile = /dev/null
[status]
\tshowUntrackedFiles = all
"""
_ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding\n"
_EXCLUDE = ".git*\n.DS_Store\n._*\n"
_ELSEWHERE = ("commondir", "objects/info/alternates", "objects/info/http-alternates")


class _Entry(NamedTuple):
    mode: int
    content: bytes
    stat: os.stat_result


def heal(root: Path) -> None:
    """Finish or take back what an interrupted `reset` left."""
    current, old = root / ".git", root / ".git.old"
    _remove(root / ".git.new")
    if os.path.lexists(current):
        _remove(old)
    elif os.path.lexists(old):
        old.rename(current)


def reset(root: Path, *, at: int) -> None:
    """Make the folder as it is now the baseline. `at` is the commit's time in Unix seconds."""
    from dulwich.index import Index, index_entry_from_stat
    from dulwich.object_store import DiskObjectStore
    from dulwich.objects import Blob, Commit

    heal(root)
    entries = dict(_work_files(root))
    blobs = {path: Blob.from_string(entry.content) for path, entry in entries.items()}
    objects: dict[bytes, ShaFile] = {blob.id: blob for blob in blobs.values()}
    commit = Commit()
    commit.tree = _plant({path: (entries[path].mode, blobs[path].id) for path in entries}, objects)
    commit.author = commit.committer = _AUTHOR
    commit.author_time = commit.commit_time = max(at, 0)
    commit.author_timezone = commit.commit_timezone = 0
    commit.message = _MESSAGE
    objects[commit.id] = commit

    new = root / ".git.new"
    _lay_out(new)
    store = DiskObjectStore(str(new / "objects"))
    store.add_objects([(each, None) for each in objects.values()])
    store.close()
    index = Index(str(new / "index"), read=False)
    for path, entry in entries.items():
        index[path] = index_entry_from_stat(entry.stat, blobs[path].id, mode=entry.mode)
    index.write()
    (new / _BRANCH).write_bytes(commit.id + b"\n")

    if os.path.lexists(root / ".git"):
        (root / ".git").rename(root / ".git.old")
    new.rename(root / ".git")
    _remove(root / ".git.old")


def changes(root: Path) -> list[Change]:
    """What differs from the baseline by content or mode, by path. Writes no object."""
    found = dict(_work_files(root))
    published = _published(root, found) or {}
    differing = []
    for path in sorted(found.keys() | published.keys()):
        entry, before = found.get(path), published.get(path)
        if before is not None and before.content is None:
            continue
        differing.append(
            Change(
                path=os.fsdecode(path),
                mode_before=before and before.mode,
                mode_after=entry and entry.mode,
                before=(before and before.content) or b"",
                after=entry.content if entry else b"",
            )
        )
    return differing


class _Published(NamedTuple):
    mode: int
    content: bytes | None  # None where the work file is the same.


def _published(root: Path, found: dict[bytes, _Entry]) -> dict[bytes, _Published] | None:
    """The baseline's files, or None where there is none that can be read to its end."""
    control = root / ".git"
    if not _is_self_contained(control):
        return None
    from dulwich.object_store import DiskObjectStore
    from dulwich.objects import Blob, Commit
    from dulwich.refs import HEADREF, DiskRefsContainer

    store = DiskObjectStore(str(control / "objects"))
    try:
        commit = store[DiskRefsContainer(str(control))[HEADREF]]
        if not isinstance(commit, Commit) or not _is_publication(commit):
            return None
        published = {}
        for path, mode, blob_id in store.iter_tree_contents(commit.tree):
            if path is None or mode is None or blob_id is None:
                return None
            now = found.get(path)
            if now and now.mode == mode and _blob_id(now.content) == blob_id:
                published[path] = _Published(mode, None)
                continue
            blob = store[blob_id]
            if not isinstance(blob, Blob):
                return None
            # Reading an object checks it against its id.
            published[path] = _Published(mode, blob.as_raw_string())
        return published
    except Exception:
        # A broken repository fails in any way that a parser can. None of them is worth telling
        # apart: whatever stands there, nothing of the folder counts as published.
        return None
    finally:
        store.close()


def _is_self_contained(control: Path) -> bool:
    """Whether all of it lies below it. A file or a link points elsewhere, and so do the notes of a
    linked worktree and of borrowed objects; whoever opens a pipe waits for ever."""
    if control.is_symlink() or not control.is_dir():
        return False
    for folder, below, files in os.walk(control):
        for name in (*below, *files):
            mode = os.lstat(os.path.join(folder, name)).st_mode
            if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
                return False
    return not any(os.path.lexists(control / note) for note in _ELSEWHERE)


def _is_publication(commit: "Commit") -> bool:
    """Whether we made it. What a person has committed is not thereby what was published."""
    return (
        not commit.parents
        and commit.author == commit.committer == _AUTHOR
        and commit.message == _MESSAGE
    )


def _blob_id(content: bytes) -> bytes:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest().encode("ascii")


def _work_files(root: Path) -> Iterator[tuple[bytes, _Entry]]:
    """Every file and link below, in no order; empty folders, pipes and sockets have no entry."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield from _walked(descriptor, b"")
    finally:
        os.close(descriptor)


def _walked(folder: int, prefix: bytes) -> Iterator[tuple[bytes, _Entry]]:
    with os.scandir(folder) as listed:
        names = [(entry.name, entry.stat(follow_symlinks=False)) for entry in listed]
    for name, seen in names:
        if not is_content(name):
            continue
        path = prefix + os.fsencode(name)
        try:
            if stat.S_ISLNK(seen.st_mode):
                target = os.fsencode(os.readlink(name, dir_fd=folder))
                yield path, _Entry(_LINK, target, seen)
            elif stat.S_ISDIR(seen.st_mode):
                below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                try:
                    yield from _walked(below, path + b"/")
                finally:
                    os.close(below)
            elif stat.S_ISREG(seen.st_mode):
                with open(_opened(name, folder), "rb") as file:
                    seen = os.fstat(file.fileno())
                    if stat.S_ISREG(seen.st_mode):
                        mode = _PROGRAM if seen.st_mode & 0o111 else _FILE
                        yield path, _Entry(mode, file.read(), seen)
        except FileNotFoundError:
            continue  # It was removed while we looked, so it is not there.


def _opened(name: str, folder: int) -> int:
    return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)


def _plant(files: dict[bytes, tuple[int, bytes]], objects: dict[bytes, "ShaFile"]) -> bytes:
    """The id of the tree with these files; it and the trees below join the objects."""
    from dulwich.objects import ObjectID, Tree

    tree = Tree()
    folders: dict[bytes, dict[bytes, tuple[int, bytes]]] = {}
    for path, (mode, blob_id) in files.items():
        name, slash, rest = path.partition(b"/")
        if slash:
            folders.setdefault(name, {})[rest] = (mode, blob_id)
        else:
            tree.add(name, mode, ObjectID(blob_id))
    for name, below in folders.items():
        tree.add(name, _TREE, ObjectID(_plant(below, objects)))
    objects[tree.id] = tree
    return tree.id


def _lay_out(control: Path) -> None:
    for folder in (".", "info", "objects/info", "objects/pack", "refs/heads", "refs/tags"):
        (control / folder).mkdir(mode=0o700, parents=True)
    (control / "HEAD").write_text(f"ref: {_BRANCH}\n")
    (control / "config").write_text(_CONFIG)
    (control / "info" / "attributes").write_text(_ATTRIBUTES)
    (control / "info" / "exclude").write_text(_EXCLUDE)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
