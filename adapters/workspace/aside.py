"""aside: what a person left in a root's folder and cannot stay there, kept beside the root.

Nothing is ever laid over an earlier one, and the same bytes are kept once. It goes as a whole, when
a forgetting or a reset asks for that.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...domain.path import DEPTH_MAX, NAME_BYTES_MAX
from .tree import CREATE, FOLDER, advised, listed, opened


class Aside:
    def __init__(self, path: Path) -> None:
        self.path = path

    def keep(self, names: list[str], content: bytes) -> Path:
        """A file's bytes, under the names of its path."""
        name = "-".join(names)
        while len(name.encode()) > NAME_BYTES_MAX - 8:
            name = name[1:]
        with self._made() as folder:
            return self.path / _kept(folder, name, content)

    def take(self, names: list[str], folder: int) -> Path:
        """Move what stands there, of whatever kind, out of the open folder that it is in."""
        with self._made() as beside:
            kept = _free_name(beside, "-".join(names)[-(NAME_BYTES_MAX // 4) :])
            os.rename(names[-1], kept, src_dir_fd=folder, dst_dir_fd=beside)
        return self.path / kept

    def files(self) -> list[Path]:
        """Oldest first."""
        with advised(self.path):
            if self.path.is_symlink() or not self.path.is_dir():
                return []
            return sorted(path for path in self.path.iterdir() if path.is_file())

    def remove(self) -> int:
        """How many files there were."""
        count = len(self.files())
        with advised(self.path):
            if self.path.is_dir() and not self.path.is_symlink():
                folder = os.open(self.path, FOLDER)
                try:
                    emptied(folder)
                finally:
                    os.close(folder)
                self.path.rmdir()
        return count

    @contextmanager
    def _made(self) -> Iterator[int]:
        with advised(self.path):
            make_private(self.path)
            folder = os.open(self.path, FOLDER)
            try:
                yield folder
            finally:
                os.close(folder)


def make_private(path: Path) -> None:
    """The folder and every missing one above it; `mkdir(parents=True)` would open those to all."""
    if not path.parent.exists():
        make_private(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)


def emptied(root: int) -> int:
    """Remove everything in a folder, of whatever kind and at every depth; how many files."""
    count = 0
    while listed(root):  # What lies too deep for us has come up, and goes with the next round.
        count += _emptied_below(root, root, DEPTH_MAX)
    return count


def _emptied_below(root: int, folder: int, depth: int) -> int:
    count = 0
    for name, seen in listed(folder):
        if not stat.S_ISDIR(seen.st_mode):
            os.unlink(name, dir_fd=folder)
            count += 1
        elif depth == 0:
            os.rename(name, _free_name(root, "deep"), src_dir_fd=folder, dst_dir_fd=root)
        else:
            below = os.open(name, FOLDER, dir_fd=folder)
            try:
                count += _emptied_below(root, below, depth - 1)
            finally:
                os.close(below)
            os.rmdir(name, dir_fd=folder)
    return count


def _kept(folder: int, name: str, content: bytes) -> str:
    there = [each for each, seen in listed(folder) if stat.S_ISREG(seen.st_mode)]
    for each in there:
        if each.partition("-")[2] == name:
            with opened(each, folder) as file:
                if file.read() == content:
                    return each
    number = len(there)
    while True:
        number += 1
        kept = f"{number:04}-{name}"
        try:
            descriptor = os.open(kept, CREATE, 0o600, dir_fd=folder)
        except FileExistsError:
            continue
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            os.unlink(kept, dir_fd=folder)
            raise
        return kept


def _free_name(folder: int, name: str) -> str:
    taken = {each for each, _ in listed(folder)}
    number = len(taken) + 1
    while f"{number:04}-{name}" in taken:
        number += 1
    return f"{number:04}-{name}"
