"""resolver: a path's file below one folder, whoever swaps folders for links meanwhile.

Promises. Each step opens one name relative to the open folder before it and follows no link, so
nothing outside is read or written. A file is read only where it is a regular one under a single
name (another name of it may lie anywhere). A file is written beside its place under a hidden name
and moved there as a whole: what an attacker has laid there is replaced, never written through.
A pipe stops nobody. Two names that some file system takes for one are refused.

All of that rests on opening relative to an open folder (Linux, macOS). Where a system has none,
`Resolver` refuses to begin, because a walk by text can be overtaken between its look and its act.
Not covered: a program of the same user that moves an open *real* folder somewhere else while a
call is in it. It could write there by itself as well.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple, Self

from ...application.ports import Failure
from ...domain.path import DEPTH_MAX, folded, told
from ...domain.refusals import Refused

HAS_AT = {os.open, os.mkdir, os.stat, os.unlink, os.rmdir, os.rename} <= os.supports_dir_fd and (
    os.scandir in os.supports_fd
)

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK a pipe laid in place of a file would stop us for ever.
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

Kind = Literal["file", "folder", "other"]


class NoSuchFile(Refused):
    code = "not_found"


class NotAFile(Refused):
    """A folder, a link, a pipe, or a file that has a second name."""

    code = "not_file"


class SameName(Refused):
    code = "same_name"


class TooBig(Refused):
    code = "too_big"


class Entry(NamedTuple):
    name: str
    kind: Kind
    size: int


class Resolver:
    """Files below `root` by the names that `names_of` gives. Raises refusals, and `OSError` where
    the disk itself fails."""

    def __init__(self, root: Path) -> None:
        if not HAS_AT:
            raise Failure(
                "this system cannot open files relative to an open folder, so a model cannot be"
                " kept inside of one; run it under Linux, macOS or WSL, or use the offline model"
            )
        try:
            self._root = os.open(root, FOLDER)
        except OSError as error:
            raise Failure(
                f"the staging folder {root} cannot be opened ({error.strerror}); run it again,"
                " a run makes a new one"
            ) from error

    def close(self) -> None:
        os.close(self._root)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def kind(self, names: Sequence[str]) -> Kind | None:
        """What is there; None where nothing is. `[]` is the folder itself."""
        if not names:
            return "folder"
        try:
            with self._folder(names[:-1]) as folder:
                return kind_of(os.stat(names[-1], dir_fd=folder, follow_symlinks=False))
        except (FileNotFoundError, NoSuchFile):
            return None

    def entries(self, names: Sequence[str]) -> list[Entry]:
        """What lies in a folder, by name, whatever it is."""
        with self._folder(names) as folder:
            return entries_of(folder)

    def files(self, names: Sequence[str] = ()) -> Iterator[tuple[tuple[str, ...], Entry]]:
        """Everything below a folder but folders and what is hidden, each by its names. No deeper
        than a path goes: of what lies there, the folder is given as `other`."""
        below: list[str] = []
        try:
            entries = self.entries(names)
        except (NoSuchFile, NotAFile):
            return  # It was removed or swapped since it was listed.
        except PermissionError:
            yield tuple(names), Entry(names[-1] if names else "", "other", 0)
            return
        for entry in entries:
            if entry.name[0] == ".":
                continue
            if entry.kind != "folder":
                yield (*names, entry.name), entry
            elif len(names) + 1 < DEPTH_MAX:
                below.append(entry.name)
            else:
                yield (*names, entry.name), Entry(entry.name, "other", 0)
        for name in below:
            yield from self.files((*names, name))

    def read(self, names: Sequence[str], most: int) -> bytes:
        """A file's bytes. Raises `TooBig` for one of more than `most`."""
        path = "/".join(names)
        with self._folder(names[:-1]) as folder:
            return read_regular(folder, names[-1], most, path)

    def size(self, names: Sequence[str]) -> int | None:
        """A file's size; None where there is none. Raises `NotAFile` for anything else there."""
        try:
            with self._folder(names[:-1]) as folder:
                return _standing(folder, names)
        except NoSuchFile:
            return None

    def write(self, names: Sequence[str], content: bytes) -> bool:
        """Make a file hold this, whole; whether it is a new one. Folders are made as needed."""
        with self._folder(names[:-1], made=True) as folder:
            _refuse_same(folder, names, len(names) - 1)
            is_new = _standing(folder, names) is None
            temporary = f".new-{secrets.token_hex(8)}"
            try:
                with open(os.open(temporary, CREATE, 0o600, dir_fd=folder), "wb") as file:
                    file.write(content)
                os.rename(temporary, names[-1], src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=folder)
                raise
        return is_new

    def move(self, names: Sequence[str], to: Sequence[str]) -> None:
        """Give a file another place, where nothing stands yet."""
        with self._folder(names[:-1]) as folder:
            if _standing(folder, names) is None:
                raise NoSuchFile(_missing(names))
            moved = os.stat(names[-1], dir_fd=folder, follow_symlinks=False)
            with self._folder(to[:-1], made=True) as target:
                _refuse_same(target, to, len(to) - 1, but=names)
                if _is_another(target, to[-1], moved):
                    raise SameName(
                        f"there is already {'/'.join(to)}; delete it first, or choose another name"
                    )
                os.rename(names[-1], to[-1], src_dir_fd=folder, dst_dir_fd=target)
        self._tidy(names[:-1])

    def delete(self, names: Sequence[str]) -> None:
        """Remove a file, and the folders that it leaves empty."""
        with self._folder(names[:-1]) as folder:
            if _standing(folder, names) is None:
                raise NoSuchFile(_missing(names))
            os.unlink(names[-1], dir_fd=folder)
        self._tidy(names[:-1])

    def _tidy(self, parents: Sequence[str]) -> None:
        while parents:
            *above, name = parents
            try:
                with self._folder(above) as folder:
                    os.rmdir(name, dir_fd=folder)
            except (OSError, Refused):
                return  # Something is left in it, so it stays.
            parents = above

    @contextmanager
    def _folder(self, names: Sequence[str], *, made: bool = False) -> Iterator[int]:
        folder = os.dup(self._root)
        try:
            for at in range(len(names)):
                below = _step(folder, names, at, made=made)
                os.close(folder)
                folder = below
            yield folder
        finally:
            os.close(folder)


def _step(folder: int, names: Sequence[str], at: int, *, made: bool) -> int:
    path = "/".join(names[: at + 1])
    if made:
        _refuse_same(folder, names, at)
        with suppress(FileExistsError):  # What exists is looked at when it is opened.
            os.mkdir(names[at], 0o700, dir_fd=folder)
    try:
        return os.open(names[at], FOLDER, dir_fd=folder)
    except FileNotFoundError:
        raise NoSuchFile(f"there is no folder {told(path)}; list shows what there is") from None
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        raise NotAFile(
            f"{told(path)} is no folder but a file or a link, and links are not followed;"
            " choose another folder"
        ) from error


def entries_of(folder: int) -> list[Entry]:
    found = []
    with os.scandir(folder) as entries:
        for each in entries:
            with suppress(FileNotFoundError):  # It was removed while we looked.
                seen = each.stat(follow_symlinks=False)
                found.append(Entry(each.name, kind_of(seen), seen.st_size))
    return sorted(found)


def kind_of(seen: os.stat_result) -> Kind:
    if stat.S_ISDIR(seen.st_mode):
        return "folder"
    return "file" if stat.S_ISREG(seen.st_mode) and seen.st_nlink == 1 else "other"


def read_regular(folder: int, name: str, most: int, path: str) -> bytes:
    try:
        descriptor = os.open(name, READ, dir_fd=folder)
    except FileNotFoundError:
        raise NoSuchFile(_missing(path.split("/"))) from None
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EMLINK, errno.ENXIO, errno.EOPNOTSUPP):
            raise
        raise NotAFile(_no_file(path)) from error
    try:
        if kind_of(os.fstat(descriptor)) != "file":
            raise NotAFile(_no_file(path))
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(most + 1)
    finally:
        os.close(descriptor)
    if len(content) > most:
        raise TooBig(f"{told(path)} is larger than {most:,} bytes and cannot be used")
    return content


def _standing(folder: int, names: Sequence[str]) -> int | None:
    """The size of the plain file of that name, None without one. Anything else is refused."""
    try:
        seen = os.stat(names[-1], dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if kind_of(seen) != "file":
        raise NotAFile(_no_file("/".join(names)))
    return seen.st_size


def _is_another(folder: int, name: str, moved: os.stat_result) -> bool:
    """Whether the name is taken, and not by what is moved itself, in another case."""
    try:
        return not os.path.samestat(os.stat(name, dir_fd=folder, follow_symlinks=False), moved)
    except FileNotFoundError:
        return False


def _refuse_same(folder: int, names: Sequence[str], at: int, but: Sequence[str] = ()) -> None:
    """Refuse a name that another one in the folder would be on some file system."""
    name = names[at]
    wanted = folded(name)
    for there in os.listdir(folder):
        # A file that is moved may change its own case.
        is_itself = [*names[:at], there] == list(but)
        if there != name and not is_itself and folded(there) == wanted:
            raise SameName(
                f"{told('/'.join(names[: at + 1]))} differs from"
                f" {told('/'.join([*names[:at], there]))}, which is there, only in upper case or"
                " accents, and would be the same file on other systems; use that one, or choose"
                " another name"
            )


def _missing(names: Sequence[str]) -> str:
    return f"there is no file {told('/'.join(names))}; list shows what there is"


def _no_file(path: str) -> str:
    return (
        f"{told(path)} is no plain file (a folder, a link, a pipe, or a file that has a second"
        " name elsewhere) and is left alone; list shows what can be used"
    )
