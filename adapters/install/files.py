"""Settings files on disk: read whole, replaced whole, and put back when something goes wrong.

A link is followed to its target and stays a link. Mode and owner stay. A file that nobody may
write is not replaced either, although its folder would allow it: whoever took that right away
meant it. Nothing is written before every file has been read and found writable.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from msgspec import Struct

from ...application.ports import Failure
from ...domain.refusals import Refused

SIZE_MAX = 64 * 1024 * 1024
BOM = "\ufeff"


class CannotInstall(Refused):
    """A file, or a folder, that cannot be changed as it is. Nothing was changed."""

    code = "cannot_install"


class Found(Struct, frozen=True, kw_only=True):
    """A file as it was read: where it really is, and None for a file that is not there."""

    path: Path
    target: Path
    content: bytes | None
    mode: int = 0o600
    owner: tuple[int, int] | None = None

    def text(self) -> str:
        """Without its byte order mark, which `encoded` puts back."""
        try:
            return (self.content or b"").decode("utf-8").removeprefix(BOM)
        except UnicodeDecodeError as error:
            raise CannotInstall(
                f"{self.path} is not UTF-8 text; save it as UTF-8, then try again"
            ) from error

    def encoded(self, text: str) -> bytes:
        marked = (self.content or b"").startswith(BOM.encode())
        try:
            return ((BOM if marked else "") + text).encode("utf-8")
        except UnicodeEncodeError as error:
            raise CannotInstall(
                f"{self.path} can only name what is UTF-8, and a path of this program or its home"
                " is not; install it somewhere else"
            ) from error


def read(path: Path) -> Found:
    """Raises `CannotInstall` for whatever could not be replaced later."""
    try:
        target = Path(os.path.realpath(path))
        try:
            info = target.stat()
        except FileNotFoundError:
            _check_folder(path, target.parent)
            return Found(path=path, target=target, content=None)
        if stat.S_ISDIR(info.st_mode):
            raise CannotInstall(f"{path} is a folder; move it away, then try again")
        if not stat.S_ISREG(info.st_mode):
            raise CannotInstall(f"{path} is no plain file; move it away, then try again")
        if info.st_size > SIZE_MAX:
            raise CannotInstall(
                f"{path} is larger than {SIZE_MAX >> 20} MiB; it is no settings file any more:"
                " make it smaller, then try again"
            )
        if not info.st_mode & 0o222 or not os.access(target, os.R_OK | os.W_OK):
            raise CannotInstall(
                f"{path} is read-only for you; give yourself the right (chmod u+rw {target}),"
                " then try again"
            )
        _check_folder(path, target.parent)
        if os.geteuid() not in (0, info.st_uid):
            raise CannotInstall(
                f"{path} belongs to another user, who would lose it; run this as that user"
            )
        return Found(
            path=path,
            target=target,
            content=target.read_bytes(),
            mode=stat.S_IMODE(info.st_mode),
            owner=(info.st_uid, info.st_gid),
        )
    except OSError as error:
        raise CannotInstall(
            f"{path} cannot be read ({error.strerror}); check it, then try again"
        ) from error


def _check_folder(path: Path, folder: Path) -> None:
    if not folder.is_dir():
        raise CannotInstall(f"{path} cannot be made: there is no folder {folder}; make it first")
    if not folder.stat().st_mode & 0o222 or not os.access(folder, os.W_OK | os.X_OK):
        raise CannotInstall(
            f"{path} cannot be replaced, because {folder} is read-only for you; give yourself"
            f" the right (chmod u+w {folder}), then try again"
        )


class Change(Struct, frozen=True):
    """What a file shall become; None: it shall not be there."""

    found: Found
    content: bytes | None


def carry_out(changes: list[Change]) -> None:
    """All of them, or none: what was written is put back when one fails."""
    done: list[Change] = []
    change: Change | None = None
    try:
        for change in changes:
            _check_unchanged(change.found)
            done.append(change)
            _become(change.found, change.content)
    except BaseException as error:
        left = [str(change.found.path) for change in reversed(done) if not _put_back(change)]
        if left:
            raise Failure(
                f"{left[0]} could not be written, nor put back as it was ({error});"
                " make room, and look at it before its agent does"
            ) from error
        if isinstance(error, OSError) and change is not None:
            raise Failure(
                f"{change.found.path} cannot be written ({error.strerror});"
                " nothing was changed: make room, or check the folder, then try again"
            ) from error
        raise


def _check_unchanged(found: Found) -> None:
    try:
        now: bytes | None = found.target.read_bytes()
    except FileNotFoundError:
        now = None
    if now != found.content:
        raise CannotInstall(
            f"{found.path} was changed by somebody else just now; nothing was changed, try again"
        )


def _put_back(change: Change) -> bool:
    try:
        _become(change.found, change.found.content)
    except OSError:
        try:  # It may not have got as far as being replaced.
            return change.found.target.read_bytes() == change.found.content
        except OSError:
            return change.found.content is None and not change.found.target.exists()
    return True


def _become(found: Found, content: bytes | None) -> None:
    if content is None:
        found.target.unlink(missing_ok=True)
        return
    beside = found.target.with_name(f".{found.target.name[:80]}.{uuid4().hex}")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(beside, flags, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            if found.owner is not None and found.owner != (os.geteuid(), os.getegid()):
                os.fchown(file.fileno(), *found.owner)
            os.fchmod(file.fileno(), found.mode)
            os.fsync(file.fileno())
        os.replace(beside, found.target)
    except BaseException:
        with suppress(FileNotFoundError):
            beside.unlink()
        raise
    folder = os.open(found.target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
