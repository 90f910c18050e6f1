"""tree: what lies in one memory root's folder, for whoever only reads; and how a path is stepped.

Each step below the root opens one name relative to the folder before it and follows no link, so
that nothing outside is read, whoever swaps folders for links meanwhile. Of what is hidden (a name
with a dot in front, git's and ours) nobody learns here that it is there. Nothing is locked, written
or mended, and nothing of git is loaded.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ...application.reading import InvalidPath, NotFile, NotFound, NotText, TooBig, Unreadable
from ...application.surroundings import FolderUnusable, Kind
from ...domain.path import DEPTH_MAX, NAME_BYTES_MAX, BadName, has_unseen, is_content, names_of
from ...domain.scope import folder_name
from ...projections.folder import WORKSPACE_DIFF

TEXT_BYTES_MAX = 1024 * 1024

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK a pipe laid in place of a file would stop us for ever.
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class WorkspaceError(FolderUnusable):
    """The folder cannot be used as it is. The message says what holds and what to do."""


class Place:
    """Where a root lies, and what stands beside it."""

    def __init__(self, home: Path, memory_version: str, scope: str) -> None:
        folder = folder_name(scope)
        for part in (memory_version, folder):
            if "/" in part or part.startswith("."):
                raise WorkspaceError(f"{part!r} cannot be the name of a folder")
            checked(part)
        self.path = home / "memories" / memory_version / folder
        self.lock_path = home / "locks" / f"{memory_version}-{folder}.lock"
        self.rendered_path = self.lock_path.with_suffix(".rendered")

    def rendered_at(self) -> int | None:
        try:
            return int(self.rendered_path.read_bytes())
        except (FileNotFoundError, ValueError):
            return None


class Tree:
    """A root's folder by root-relative paths; `""` is the root. Raises `Unreadable`."""

    def __init__(self, home: Path, memory_version: str, scope: str) -> None:
        self._place = Place(home, memory_version, scope)
        self.path = self._place.path

    def rendered_at(self) -> int | None:
        return self._place.rendered_at()

    def kind(self, path: str) -> Kind | None:
        names = readable(path)
        with self._reached(names) as folder:
            if folder is None or names is None:
                return None
            if not names:
                return "directory"
            try:
                seen = os.stat(names[-1], dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                return None
            return kind_of(seen.st_mode)

    def names(self, path: str) -> list[tuple[str, Kind]]:
        names = readable(path)
        with self._reached(names) as above:
            if above is None or names is None:
                return []
            try:
                folder = step(above, names[-1], made=False) if names else os.dup(above)
            except (FileNotFoundError, NotADirectoryError):
                return []
            try:
                return [
                    (name, kind_of(seen.st_mode))
                    for name, seen in listed(folder)
                    if may_be_seen(name) and (names or name != WORKSPACE_DIFF)
                ]
            finally:
                os.close(folder)

    def text(self, path: str) -> str:
        names = readable(path)
        with self._reached(names) as folder:
            if folder is None or names is None:
                raise no_such(path)
            content = b"" if not names else regular(path, names[-1], folder)
        if not names:
            raise NotFile("this is the memory folder itself; list it, and read a file of it")
        if len(content) > TEXT_BYTES_MAX:
            raise TooBig(f"{path} is larger than 1 MiB; nothing that Threadbook writes is")
        try:
            text = content.decode()
        except UnicodeDecodeError:
            raise NotText(f"{path} is no UTF-8 text, so it cannot be read here") from None
        if "\0" in text:
            raise NotText(f"{path} is no text, so it cannot be read here")
        return text

    @contextmanager
    def _reached(self, names: list[str] | None) -> Iterator[int | None]:
        """The folder that the last name stands in; None where there is none, or it is hidden."""
        try:
            folder = None if names is None else self._walked(names[:-1])
            try:
                yield folder
            finally:
                if folder is not None:
                    os.close(folder)
        except OSError as error:
            raise Unreadable(advice(self.path, error)) from error

    def _walked(self, parents: list[str]) -> int | None:
        try:
            folder = os.open(self.path, FOLDER)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in IN_THE_WAY:
                raise InvalidPath(
                    f"the memory folder {self.path} is a link or a file, and is not read;"
                    " replace it by the folder itself, or move it away"
                ) from error
            raise
        for at, name in enumerate(parents, 1):
            try:
                below = step(folder, name, made=False)
            except FileNotFoundError:
                return None
            except OSError as error:
                if error.errno in IN_THE_WAY:
                    raise InvalidPath(
                        f"{'/'.join(parents[:at])} is a link or a file, no folder;"
                        " links are not followed"
                    ) from error
                raise
            finally:
                os.close(folder)
            folder = below
        return folder


def regular(path: str, name: str, folder: int) -> bytes:
    """A file's bytes, up to one more than may be read."""
    try:
        with opened(name, folder) as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return file.read(TEXT_BYTES_MAX + 1)
    except FileNotFoundError:
        raise no_such(path) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InvalidPath(f"{path} is a link, and links are not followed") from error
        if error.errno not in (errno.EISDIR, errno.ENXIO):
            raise
    raise NotFile(f"{path} is no regular file; list it if it is a folder")


def no_such(path: str) -> NotFound:
    return NotFound(f"there is no {path or 'memory folder'}; list shows what there is")


IN_THE_WAY = (errno.ELOOP, errno.ENOTDIR)


def readable(path: str) -> list[str] | None:
    """The names of a path to read; None where nobody may learn whether it is there."""
    names = path.split("/") if path else []
    for name in names:
        if name in ("", "..") or "\0" in name:
            raise InvalidPath(f"{path!r} leads out of the memory folder; give a path below it")
    if not all(map(may_be_seen, names)) or names == [WORKSPACE_DIFF]:
        return None
    if any(len(os.fsencode(name)) > NAME_BYTES_MAX for name in names):
        return None  # No file system would have it.
    if len(names) > DEPTH_MAX:
        return None  # Nothing of a memory lies there, and nobody walks on without end.
    return names


def may_be_seen(name: str) -> bool:
    """Whether a reader is shown a name: nothing hidden, of git's, or that a terminal would obey."""
    return name[0] != "." and is_content(name) and not has_unseen(name) and "\\" not in name


def kind_of(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def checked(path: str) -> list[str]:
    """The names of a path that may be written to."""
    try:
        return names_of(path)
    except BadName as refused:
        raise WorkspaceError(str(refused)) from refused


def step(folder: int, name: str, *, made: bool) -> int:
    if made:
        with suppress(FileExistsError):  # What exists is looked at when it is opened.
            os.mkdir(name, 0o700, dir_fd=folder)
    return os.open(name, FOLDER, dir_fd=folder)


def opened(name: str, folder: int) -> BinaryIO:
    """To read from. A folder is refused without a descriptor of it being left open."""
    descriptor = os.open(name, READ, dir_fd=folder)
    try:
        return os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise


def listed(folder: int) -> list[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        return sorted(
            ((each.name, each.stat(follow_symlinks=False)) for each in entries),
            key=lambda each: each[0],
        )


@contextmanager
def advised(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WorkspaceError(advice(path, error)) from error


def advice(path: Path, error: OSError) -> str:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return f"no space is left for {path}; free some and run again, nothing was lost"
        case errno.EACCES | errno.EPERM:
            return (
                f"{path} may not be used; make it and what is in it your own (chown, chmod u+rwX)"
            )
        case errno.EROFS:
            return f"{path} lies on a read-only file system; choose another --home"
        case errno.ENOTDIR | errno.EEXIST | errno.EISDIR | errno.ELOOP | errno.ENOTEMPTY:
            return (
                f"{path} or a folder on the way to it is of another kind than needed (a file for a"
                " folder, a folder for a file, or a link); move that away and run again"
            )
        case errno.ENOENT:
            return f"{path} is not there; it is made by the next run"
        case _:
            return f"{path} cannot be used: {error.strerror or error}"
