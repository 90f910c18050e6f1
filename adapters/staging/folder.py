"""folder: the staging folder: made for one consolidation, filled with texts, read back, removed.

It lies in `<home>/staging/`, is of this user alone (0700), and is named by chance and by whoever
works in it. What is read back is whatever lies there as plain text files; links, pipes, files with
a second name, what is no text and what is too large are told and never followed. It is removed
however the work ended, also where a command left folders that cannot be entered; what a killed
run left is removed by `sweep`.

A command of the user's can write anywhere that the user can, and nothing here prevents that: the
promise is about what is read back.
"""

import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from ...application.ports import Failure
from ...domain.path import folded, names_of
from ...domain.refusals import Refused
from .resolver import FOLDER, Entry, Resolver, TooBig

FILES_MAX = 20_000
BYTES_FILE_MAX = 64 * 1024 * 1024
BYTES_MAX = 256 * 1024 * 1024
REMOVE_S = 20.0  # Somebody may still be writing while it is removed, but not for ever.
LEVELS = 16  # So many folders are open at once while it is removed.


class Found(NamedTuple):
    """Path -> text, and path -> why it is not among the texts."""

    files: dict[str, str]
    refused: dict[str, str]


class Staging:
    """A folder to work in, until the end of its `with` block (`staged`)."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self, files: Mapping[str, str]) -> dict[str, str]:
        """Put texts in; of each path that no consolidator could use, why it was left out."""
        left_out: dict[str, str] = {}
        with Resolver(self.path) as resolver:
            for path, text in files.items():
                try:
                    resolver.write(names_of(path), text.encode())
                except Refused as refused:
                    left_out[path] = str(refused)
                except UnicodeEncodeError:
                    left_out[path] = "its text has half of a character"
        return left_out

    def files(
        self,
        *,
        bytes_file: int = BYTES_FILE_MAX,
        bytes_total: int = BYTES_MAX,
        files: int = FILES_MAX,
    ) -> Found:
        """What lies there now. Hidden names are nobody's memory, and are passed over."""
        found = Found({}, {})
        taken: dict[tuple[str, ...], str] = {}
        left = bytes_total
        with Resolver(self.path) as resolver:
            for count, (names, entry) in enumerate(resolver.files()):
                path = "/".join(names).encode("utf-8", "backslashreplace").decode()
                if count >= files:
                    found.refused[path] = f"there are more than {files} files"
                    break
                same = _same(taken, [_plain(name) for name in names])
                text, why = _text(resolver, names, entry, bytes_file)
                size = len(text.encode())
                if same:
                    found.refused[path] = f"it is the same as {same} on other systems"
                elif why:
                    found.refused[path] = why
                elif size > left:
                    found.refused[path] = f"all files are larger than {bytes_total:,} bytes"
                    break
                else:
                    found.files[path] = text
                    left -= size
        return found


@contextmanager
def staged(
    home: Path, files: Mapping[str, str], *, owner: str
) -> Iterator[tuple[Staging, dict[str, str]]]:
    """A fresh folder with these texts, and which of them were left out. `owner` is the worker.

    Raises `Failure` where it cannot be made, or cannot be removed.
    """
    folder = home / "staging"
    path = folder / f"{secrets.token_hex(16)}.{owner}"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        refuse_link(folder)
        path.mkdir(mode=0o700)
    except OSError as error:
        raise Failure(
            f"{error.filename or path} cannot be made ({error.strerror}); check the folder, or"
            " make room, and run it again"
        ) from error
    try:
        staging = Staging(path)
        try:
            left_out = staging.fill(files)
        except OSError as error:
            raise Failure(
                f"the staging folder {path} cannot be filled ({error.strerror}); make room, and"
                " run it again"
            ) from error
        yield staging, left_out
    finally:
        remove(path)


def sweep(home: Path, is_alive: Callable[[str], bool]) -> list[str]:
    """Remove what runs left that are no longer alive, by their owner; the names that went."""
    folder = home / "staging"
    try:
        refuse_link(folder)
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    gone = []
    failure: Failure | None = None
    for name in names:
        _, _, owner = name.partition(".")
        if owner and is_alive(owner):
            continue
        try:
            remove(folder / name)
            gone.append(name)
        except Failure as error:
            failure = failure or error  # It keeps none of the others from going.
    if failure:
        raise failure
    return gone


def refuse_link(folder: Path) -> None:
    if folder.is_symlink():
        raise Failure(
            f"{folder} is a symbolic link, and what a model works in must lie in the home itself;"
            " move the link away and run it again"
        )


def remove(path: Path) -> None:
    """Remove a folder with all that is in it, whatever its modes. Raises `Failure`."""
    until = time.monotonic() + REMOVE_S
    try:
        parent = os.open(path.parent, FOLDER)
    except FileNotFoundError:
        return
    try:
        while _removed(path.name, parent) and time.monotonic() < until:
            continue
        os.stat(path.name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return
    finally:
        os.close(parent)
    raise Failure(
        f"{path} cannot be removed; end what still works in it, and remove it by hand, because it"
        " holds a copy of your memory"
    )


def _removed(name: str, parent: int, top: int | None = None, level: int = 0) -> int:
    """Remove what is there, as far as it goes; how many things went or came nearer to the top.

    What lies too deep for as many open folders is moved up, and goes with a later round.
    """
    try:
        if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=parent)
            return 1
        folder = _entered(name, parent)
    except OSError:
        return (
            0  # It went meanwhile, or cannot be removed; whoever asked looks whether it is there.
        )
    try:
        if level >= LEVELS and top is not None:
            moved = f"deep-{secrets.token_hex(8)}"
            with suppress(OSError):
                os.rename(name, moved, src_dir_fd=parent, dst_dir_fd=top)
                return 1
            return 0
        above = folder if top is None else top
        count = sum(_removed(each, folder, above, level + 1) for each in os.listdir(folder))
    finally:
        os.close(folder)
    with suppress(OSError):
        os.rmdir(name, dir_fd=parent)
        count += 1
    return count


def _entered(name: str, parent: int) -> int:
    """A folder of ours, open, with the rights to empty it. No link is followed, nor changed."""
    try:
        folder = os.open(name, FOLDER, dir_fd=parent)
    except PermissionError:
        _given_rights(name, parent)
        folder = os.open(name, FOLDER, dir_fd=parent)
    if os.fstat(folder).st_mode & 0o700 != 0o700:
        os.fchmod(folder, 0o700)
    return folder


def _given_rights(name: str, parent: int) -> None:
    if not hasattr(os, "O_PATH"):
        os.chmod(name, 0o700, dir_fd=parent, follow_symlinks=False)
        return
    # Linux changes no rights without following; a descriptor that is only a place cannot lead off.
    place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{place}", 0o700)
    finally:
        os.close(place)


def _same(taken: dict[tuple[str, ...], str], names: list[str]) -> str:
    """What was met before and would be this file, or a folder of it, where case is not told."""
    for end in range(1, len(names) + 1):
        path = "/".join(names[:end])
        before = taken.setdefault(tuple(folded(name) for name in names[:end]), path)
        if before != path:
            return before
    return ""


def _plain(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


def _text(resolver: Resolver, names: tuple[str, ...], entry: Entry, most: int) -> tuple[str, str]:
    """A file's text and no reason, or no text and the reason why there is none."""
    if entry.kind != "file":
        return "", "it is no plain file (a link, a pipe, one with a second name, or too deep)"
    try:
        names_of("/".join(names))
        text = resolver.read(names, most).decode()
    except TooBig:
        return "", f"it is larger than {most:,} bytes"
    except Refused as refused:
        return "", str(refused)
    except UnicodeDecodeError:
        return "", "it is no UTF-8 text"
    except OSError as error:
        return "", f"it cannot be read ({error.strerror})"
    return ("", "it is no text") if "\0" in text else (text, "")
