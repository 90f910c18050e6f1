"""Text files below a folder that somebody else keeps: no link followed, nothing without a bound."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ...application.foreign import LeftOut

FILE_BYTES_MAX = 1 << 20
FILES_MAX = 5_000
DEPTH_MAX = 12

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def is_folder(path: Path) -> bool:
    """A folder, and no link to one."""
    return path.is_dir() and not path.is_symlink()


def is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def below(
    folder: Path, left_out: list[LeftOut], *, suffixes: tuple[str, ...] | None = None
) -> Iterator[str]:
    """The regular files, as paths from the folder on, in order of their names. `suffixes` are
    compared without case. Links are passed over; where a bound is reached, that is told."""

    def told(path: str, why: str) -> None:
        left_out.append(LeftOut(what=f"{folder.name}/{path}", why=why))

    if not is_folder(folder):
        return
    count = 0
    waiting: list[tuple[str, int]] = [("", 0)]
    while waiting:
        prefix, depth = waiting.pop()
        with os.scandir(folder / prefix) as entries:
            found = sorted(entries, key=lambda each: each.name)
        folders: list[tuple[str, int]] = []
        for entry in found:
            path = f"{prefix}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if depth < DEPTH_MAX:
                    folders.append((f"{path}/", depth + 1))
                else:
                    told(path, f"it lies more than {DEPTH_MAX} folders deep")
            elif entry.is_file(follow_symlinks=False):
                if suffixes is not None and not path.lower().endswith(suffixes):
                    continue
                count += 1
                if count > FILES_MAX:
                    told(path, f"{FILES_MAX} files stand before it, and no more are read")
                    return
                yield path
        waiting += reversed(folders)


def texts(
    folder: Path, paths: Iterator[str], left_out: list[LeftOut], *, bytes_max: int = FILE_BYTES_MAX
) -> dict[str, str]:
    """Path -> text. What is none, or too long, is told."""
    found = {}
    for path in paths:
        try:
            found[path] = text(folder / path, bytes_max=bytes_max)
        except (OSError, UnicodeDecodeError, ValueError) as error:
            left_out.append(LeftOut(what=path, why=why(error)))
    return found


def text(path: Path, *, bytes_max: int = FILE_BYTES_MAX) -> str:
    """A whole file. Raises `OSError`, `UnicodeDecodeError`, and `ValueError` with the reason."""
    with open(os.open(path, READ), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is no regular file")
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise ValueError(f"it is longer than {bytes_max} bytes")
    if b"\0" in content:
        raise ValueError("it is no text")
    return content.decode("utf-8")


def why(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"it cannot be read ({error.strerror})"
    if isinstance(error, UnicodeDecodeError):
        return "it is no UTF-8 text"
    return str(error)
