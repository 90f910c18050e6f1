"""workspace: one memory root on disk, of one version and one scope. `tree` is for who only reads,
`aside` keeps what cannot stay in it.

Promises. Nothing is read or written outside the folder, whoever swaps folders for links meanwhile:
each step below the root opens one name relative to the folder before it and follows no link. A
file is whole at every moment, the old or the new one. What a person left is never overwritten by
`set_aside`. Every failure is a `WorkspaceError` that says what to do.

Hold `lock()` around everything that writes, and `prepare()` first thing inside. The lock file stays
where it is: removing it would let two programs each hold a lock of that name. Within another
system user's reach nothing is private, so files are 0600 and folders 0700; a program that runs as
the same person can of course write here too, which is what the digests of the last render are for.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ...domain.artifact import SUMMARIES
from ...domain.path import DEPTH_MAX, is_content
from ...projections.folder import WORKSPACE_DIFF, digest, is_input
from .aside import Aside, emptied, make_private
from .tree import (
    CREATE,
    FOLDER,
    TEXT_BYTES_MAX,
    Place,
    WorkspaceError,
    advice,
    advised,
    checked,
    listed,
    opened,
    step,
)

if TYPE_CHECKING:
    from ...projections.workspace_diff import Change

_TEMPORARY = ".git.tmp-"  # Named as nobody's content, so that no reader takes one for memory.
_POLL_S = 0.05


class Baseline(Protocol):
    """What was last published; the module `git` beside this one is it."""

    def heal(self, root: Path) -> None: ...
    def reset(self, root: Path, *, at: int) -> None: ...
    def changes(self, root: Path) -> "list[Change]": ...


class Found(NamedTuple):
    """What lies in the folder. `others` says of each path why it is not among the texts."""

    files: dict[str, bytes]
    others: dict[str, str]


class Workspace:
    def __init__(self, home: Path, memory_version: str, scope: str, *, git: Baseline) -> None:
        place = Place(home, memory_version, scope)
        self.path = place.path
        self.aside = Aside(self.path.with_name(f"{self.path.name}.edits"))
        self._lock_path = place.lock_path
        self._place = place
        self._git = git

    @contextmanager
    def lock(self, *, wait_s: float = 10.0, holder: str = "threadbook") -> Iterator[None]:
        """One publisher a root, also across processes. A killed holder's lock is free at once."""
        with advised(self._lock_path):
            make_private(self._lock_path.parent)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self._lock_path, flags, 0o600)
        try:
            with advised(self._lock_path):
                self._take(descriptor, wait_s)
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"{holder}, process {os.getpid()}".encode(), 0)
            yield
        finally:
            os.close(descriptor)

    def _take(self, descriptor: int, wait_s: float) -> None:
        until = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= until:
                    who = os.pread(descriptor, 200, 0).decode("utf-8", "replace") or "a program"
                    raise WorkspaceError(
                        f"{self.path} is being written by {who}; try again when it has ended"
                    ) from None
                time.sleep(min(_POLL_S, max(wait_s, 0.001)))

    def prepare(self) -> list[str]:
        """Create or repair the folder; the paths of the links that were in it, now removed."""
        with advised(self.path):
            make_private(self.path.parent)
            self._refuse_a_link()
            self.path.mkdir(mode=0o700, exist_ok=True)
            with self._root() as root:
                if os.fstat(root).st_mode & 0o077:
                    os.fchmod(root, 0o700)
                links = sorted(_swept(root, ""))
                with _made(root, SUMMARIES):
                    pass
            self._git.heal(self.path)
        return links

    def _refuse_a_link(self) -> None:
        if self.path.is_symlink():
            raise WorkspaceError(
                f"{self.path} is a symbolic link; replace it by the folder it points to,"
                " or move the link away"
            )

    def in_the_way(self, paths: Collection[str]) -> list[str]:
        """What is of another kind than these files and their folders need: a folder where a file
        belongs, a file where a folder does."""
        kinds = {SUMMARIES: stat.S_ISDIR, WORKSPACE_DIFF: _no_folder}
        for path in paths:
            *parents, _ = checked(path)
            kinds |= {"/".join(parents[: n + 1]): stat.S_ISDIR for n in range(len(parents))}
            kinds[path] = _no_folder
        found: list[str] = []
        for place, is_right in sorted(kinds.items()):
            try:
                if not is_right(os.lstat(self.path / place).st_mode):
                    found.append(place)
            except (FileNotFoundError, NotADirectoryError):
                continue  # Nothing is there, or what is in the way stands further up.
            except OSError as error:
                raise WorkspaceError(advice(self.path / place, error)) from error
        return found

    def make_way(self, paths: Collection[str]) -> list[Path]:
        """Move what is in the way beside the root, as an edit is kept; where it is now."""
        moved = []
        for place in self.in_the_way(paths):
            names = checked(place)
            with advised(self.path / place), self._folder(names[:-1]) as folder:
                moved.append(self.aside.take(names, folder))
        return moved

    def scan(self) -> Found:
        """Every content file up to 1 MiB of UTF-8, and the rest by path and reason."""
        found = Found({}, {})
        with advised(self.path), self._root() as root:
            for path, name, folder in _content(root, ""):
                if path == WORKSPACE_DIFF:
                    continue
                shown = path.encode("utf-8", "backslashreplace").decode("utf-8")
                try:
                    content, why = _text(name, folder)
                except FileNotFoundError:
                    continue  # It was removed while we looked, so it is not there.
                except PermissionError:
                    content, why = b"", "it may not be read"
                if why:
                    found.others[shown] = why
                elif shown != path:
                    found.others[shown] = "its name is no UTF-8"
                else:
                    found.files[path] = content
        return found

    def files(self) -> dict[str, bytes]:
        return self.scan().files

    def read(self, path: str) -> bytes | None:
        """A regular file's bytes, of whatever size and kind, or None where there is none."""
        *parents, name = checked(path)
        with advised(self.path / path):
            try:
                with self._folder(parents) as folder, opened(name, folder) as file:
                    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                        return file.read()
                    return None
            except (FileNotFoundError, NotADirectoryError):
                return None
            except OSError as error:
                if error.errno in (errno.EISDIR, errno.ELOOP, errno.ENXIO):
                    return None  # A folder, a link or a socket, none of which is a file of ours.
                raise

    def write(self, path: str, text: str, *, flushed: bool = True) -> str:
        """Replace a file as a whole; its digest. `flushed`: also through a power cut."""
        *parents, name = checked(path)
        if path == WORKSPACE_DIFF:
            raise WorkspaceError(f"{path} is made by Threadbook; choose another name")
        return self._write(parents, name, text, flushed=flushed)

    def remove(self, path: str) -> bool:
        """Remove a file and the folders it leaves empty; whether there was one."""
        *parents, name = checked(path)
        with advised(self.path / path):
            try:
                with self._folder(parents) as folder:
                    os.unlink(name, dir_fd=folder)
            except (FileNotFoundError, NotADirectoryError):
                return False
            except OSError as error:
                if error.errno == errno.ELOOP:
                    return False  # What lies behind a link is not in this folder.
                raise
            while parents and parents != [SUMMARIES]:
                *parents, name = parents
                with self._folder(parents) as folder:
                    try:
                        os.rmdir(name, dir_fd=folder)
                    except OSError:
                        break  # Something is left in it, so it stays.
        return True

    def prune_summaries(self, keep: Collection[str]) -> list[str]:
        """Remove every `.md` of `rollout_summaries/` but these paths, whatever its name; which."""
        removed = []
        with advised(self.path / SUMMARIES), self._folder([SUMMARIES], made=True) as folder:
            for name, seen in listed(folder):
                path = f"{SUMMARIES}/{name}"
                if path not in keep and path.endswith(".md") and not stat.S_ISDIR(seen.st_mode):
                    os.unlink(name, dir_fd=folder)
                    removed.append(path)
        return removed

    def set_aside(self, path: str, content: bytes) -> Path:
        """Keep what a person left, beside the root. The same bytes are kept once."""
        return self.aside.keep(checked(path), content)

    def edits(self) -> list[Path]:
        """What was set aside, oldest first."""
        return self.aside.files()

    def remove_edits(self) -> int:
        """Erase what was set aside, as forgetting must; how many files there were."""
        return self.aside.remove()

    def clear(self) -> int:
        """Empty the folder, a person's own files and the baseline included, and what was set aside
        beside it; how many files there were. The folder itself stays."""
        if not self.path.exists() and not self.path.is_symlink():
            return self.remove_edits()
        self._refuse_a_link()
        with advised(self.path), self._root() as root:
            count = emptied(root)
        return count + self.remove_edits()

    def render(
        self,
        wanted: Mapping[str, str],
        *,
        previous: Mapping[str, str] | None = None,
        on_edit: Callable[[str, bytes], None] | None = None,
    ) -> dict[str, str]:
        """Make the folder hold what is wanted, file by file; path -> digest of all of it.

        Only files that differ are written, inputs first and the summary, which readers open, last.
        `previous` is the manifest of the last render: its paths that are no longer wanted are
        removed, as is every `.md` in `rollout_summaries/` that is not wanted. A file that is
        neither wanted nor previous is a person's, and stays. Of an artifact that a person changed,
        `on_edit` is told right before it is replaced or removed, with the bytes that would be
        lost; inputs are restored. A file that cannot be written keeps none of the others from it.
        """
        previous = previous or {}
        manifest = {}
        failure: WorkspaceError | None = None
        self.prune_summaries(wanted.keys())
        stale = sorted(path for path in previous if path not in wanted)
        for path in [*stale, *sorted(wanted, key=_rank)]:
            text = wanted.get(path)
            try:
                there = self.read(path)
                if text is not None and there == text.encode("utf-8", "surrogatepass"):
                    manifest[path] = digest(there)
                    continue
                ours = there is None or digest(there) == previous.get(path) or is_input(path)
                if there is not None and not ours and on_edit:
                    on_edit(path, there)
                if text is None:
                    self.remove(path)
                else:
                    manifest[path] = self.write(path, text, flushed=not is_input(path))
            except WorkspaceError as error:
                failure = failure or error  # Forgotten words may stand in the files behind it.
        if failure:
            raise failure
        return manifest

    def rendered_at(self) -> int | None:
        """The position of the log that this folder was last rendered at; None: nobody knows."""
        return self._place.rendered_at()

    def note_rendered(self, position: int) -> None:
        """A cut-off note is no number, and then nobody knows; whoever writes holds the lock."""
        with advised(self._place.rendered_path):
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self._place.rendered_path, flags, 0o600)
            try:
                os.write(descriptor, b"%d\n" % position)
            finally:
                os.close(descriptor)

    def has_baseline(self) -> bool:
        """Whether there seems to be one; whether it is sound is only known to `diff`."""
        return (self.path / ".git" / "HEAD").is_file()

    def diff(self) -> "list[Change]":
        """What changed since the baseline. An earlier page of changes is removed, not compared."""
        self.remove_diff()
        with advised(self.path):
            self._git.heal(self.path)
            return self._git.changes(self.path)

    def write_diff(self, text: str) -> None:
        self._write([], WORKSPACE_DIFF, text, flushed=False)

    def remove_diff(self) -> None:
        self.remove(WORKSPACE_DIFF)

    def reset_baseline(self, now: float) -> None:
        self.remove_diff()
        with advised(self.path):
            self._git.reset(self.path, at=int(now))

    def _write(self, parents: list[str], name: str, text: str, *, flushed: bool) -> str:
        try:
            content = text.encode()
        except UnicodeEncodeError as error:
            raise WorkspaceError(f"the text of {name} is no Unicode: {error.reason}") from error
        with advised(self.path.joinpath(*parents, name)), self._folder(parents, made=True) as into:
            temporary = f"{_TEMPORARY}{os.urandom(8).hex()}"
            try:
                with open(os.open(temporary, CREATE, 0o600, dir_fd=into), "wb") as file:
                    file.write(content)
                    if flushed:
                        file.flush()
                        os.fsync(file.fileno())
                os.rename(temporary, name, src_dir_fd=into, dst_dir_fd=into)
            except BaseException:
                with _ignored(FileNotFoundError):  # It had not come to be.
                    os.unlink(temporary, dir_fd=into)
                raise
            if flushed:
                os.fsync(into)
        return digest(content)

    @contextmanager
    def _root(self) -> Iterator[int]:
        descriptor = os.open(self.path, FOLDER)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def _folder(self, parents: list[str], *, made: bool = False) -> Iterator[int]:
        with self._root() as root:
            folder = os.dup(root)
            try:
                for name in parents:
                    below = step(folder, name, made=made)
                    os.close(folder)
                    folder = below
                yield folder
            finally:
                os.close(folder)


def _rank(path: str) -> tuple[int, str]:
    if is_input(path):
        return 0, path
    return 2 if path == "memory_summary.md" else 1, path


@contextmanager
def _made(folder: int, name: str) -> Iterator[int]:
    descriptor = step(folder, name, made=True)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _swept(folder: int, prefix: str) -> Iterator[str]:
    """Remove links and our own temporary files, at every depth, `.git` included; the links."""
    for name, seen in listed(folder):
        if stat.S_ISLNK(seen.st_mode):
            os.unlink(name, dir_fd=folder)
            yield f"{prefix}{name}"
        elif stat.S_ISDIR(seen.st_mode):
            if prefix.count("/") >= DEPTH_MAX:
                raise WorkspaceError(
                    f"{prefix.partition('/')[0]} in a memory folder is more than {DEPTH_MAX}"
                    " folders deep, which nothing of a memory is; move it away and run again"
                )
            below = os.open(name, FOLDER, dir_fd=folder)
            try:
                yield from _swept(below, f"{prefix}{name}/")
            finally:
                os.close(below)
        elif name.startswith(_TEMPORARY):
            os.unlink(name, dir_fd=folder)


def _content(folder: int, prefix: str) -> Iterator[tuple[str, str, int]]:
    for name, seen in listed(folder):
        if not is_content(name):
            continue
        if stat.S_ISDIR(seen.st_mode) and prefix.count("/") < DEPTH_MAX:
            try:
                below = os.open(name, FOLDER, dir_fd=folder)
            except PermissionError:
                yield f"{prefix}{name}", name, folder
                continue
            try:
                yield from _content(below, f"{prefix}{name}/")
            finally:
                os.close(below)
        else:
            yield f"{prefix}{name}", name, folder


def _text(name: str, folder: int) -> tuple[bytes, str]:
    """A file's bytes and no reason, or no bytes and the reason why it is no text of ours."""
    seen = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISREG(seen.st_mode):
        return b"", "it is no regular file"
    with opened(name, folder) as file:
        content = file.read(TEXT_BYTES_MAX + 1)
    if len(content) > TEXT_BYTES_MAX:
        return b"", "it is larger than 1 MiB"
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return b"", "it is no UTF-8 text"
    return (b"", "it is no text") if "\0" in text else (content, "")


def _no_folder(mode: int) -> bool:
    return not stat.S_ISDIR(mode)


@contextmanager
def _ignored(expected: type[OSError]) -> Iterator[None]:
    try:
        yield
    except expected:
        return
