"""Every byte under a home, in pieces: what a certificate of a forgetting looks through.

Files are read in pieces that overlap, so that nothing is held whole and nothing is cut at a seam.
What lies compressed in a file (git objects, loose or in a pack, gzip, zip, bzip2, xz, zstd) is
given beside its bytes, wherever in the file it begins, but not what is packed in that once more;
UTF-16 is given as UTF-8. Names are given too. No link is followed, and what cannot be read is told.
"""

import os
import re
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from ...application.certificate import Kind, Piece, Searched
from .inside import COMPRESSED, Inside
from .opened import DATABASE, Opened, release

OVERLAP_BYTES = 256  # More than any run or id that is looked for.
UTF_16 = re.compile(rb"(?:[\x20-\x7e]\x00){8}")
BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
FULL_TEXT_INDEX = re.compile(rb"using\s+fts[345]", re.IGNORECASE)


class Sweep:
    def __init__(self, home: Path) -> None:
        self.home = home.absolute()
        self.searched = Searched()

    def schemas(self) -> Iterator[str]:
        """How the tables are defined in SQLite's files: words that are the programs' own."""
        for path, kind in self._walk():
            if kind != "file" or not DATABASE.fullmatch(path.name) or "-" in path.suffix:
                continue
            with suppress(sqlite3.Error):  # Whatever it is, then it is swept without them.
                with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
                    found = db.execute("SELECT sql FROM sqlite_master").fetchall()
                yield from (sql for (sql,) in found if isinstance(sql, str))

    def pieces(self) -> Iterator[Piece]:
        release()
        for path, kind in self._walk():
            name = os.fsencode(path.relative_to(self.home))
            yield self._piece(path, "name", 0, name)
            try:
                if kind == "link":
                    yield self._piece(path, "name", 0, os.fsencode(os.readlink(path)))
                elif kind == "file":
                    yield from self._content(path)
            except FileNotFoundError:
                continue  # It was removed while we looked, so it is not there.
            except OSError as error:
                self._unread(path, error)

    def _walk(self) -> Iterator[tuple[Path, str]]:
        waiting = [self.home]  # And not `os.walk`, which a folder that is deep enough brings down.
        while waiting:
            folder = waiting.pop()
            try:
                names = sorted(os.listdir(folder))
            except OSError as error:
                self._unlisted(error)
                continue
            below: list[Path] = []
            for name in names:
                path = folder / name
                try:
                    mode = os.lstat(path).st_mode
                except FileNotFoundError:
                    continue
                except OSError as error:
                    self._unread(path, error)
                    continue
                if stat.S_ISDIR(mode):
                    below.append(path)
                kinds = ((stat.S_ISLNK, "link"), (stat.S_ISREG, "file"))
                yield path, next((kind for is_it, kind in kinds if is_it(mode)), "other")
            waiting += reversed(below)

    def _content(self, path: Path) -> Iterator[Piece]:
        with Opened(path) as file:
            self.searched.files += 1
            place = path.relative_to(self.home).parts[0]
            self.searched.places[place] = self.searched.places.get(place, 0) + 1
            kind: Kind = "file"
            if file.is_database:
                kind = "index" if is_index(path) else "database"
            encoding = BYTE_ORDER_MARKS.get(file.read(0, 2))
            streams = 0  # Up to where what lies compressed has been given.
            for at, content in overlapping(self._counted(file)):
                yield from self._forms(path, kind, at, content, encoding)
                if file.is_database:
                    continue
                for begins in COMPRESSED.finditer(content):
                    if (head := at + begins.start()) < streams:
                        continue
                    inside = Inside(file, head, begins[0])
                    for where, plain in overlapping(inside.in_order()):
                        yield from self._forms(path, kind, where, plain, None, inside=head)
                    self.searched.inflated += inside.is_whole
                    streams = inside.end if inside.is_whole else head + 1

    def _counted(self, file: "Opened") -> Iterator[bytes]:
        for part in file.in_order():
            self.searched.bytes += len(part)
            yield part

    def _forms(
        self,
        path: Path,
        kind: Kind,
        at: int,
        content: bytes,
        encoding: str | None,
        inside: int | None = None,
    ) -> Iterator[Piece]:
        yield self._piece(path, kind, at, content, inside)
        if encoding is not None:
            decoded = content.decode(encoding, "ignore").encode("utf-8", "ignore")
            yield self._piece(path, kind, at, decoded, inside)
        elif kind == "file" and UTF_16.search(content):
            yield self._piece(path, kind, at, content.replace(b"\0", b""), inside)

    def _piece(
        self, path: Path, kind: Kind, at: int, content: bytes, inside: int | None = None
    ) -> Piece:
        shown = os.fsencode(path.relative_to(self.home)).decode("utf-8", "backslashreplace")
        return Piece(file=shown, kind=kind, at=at, content=content, inside=inside)

    def _unlisted(self, error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            self._unread(Path(error.filename), error)

    def _unread(self, path: Path, error: OSError) -> None:
        told = f"{path}: {error.strerror}"
        if told not in self.searched.unreadable:
            self.searched.unreadable.append(told)


def is_index(path: Path) -> bool:
    """Whether it, or its write-ahead log, defines a full-text index: there, words stand alone."""
    base = re.sub(r"-(wal|shm|journal)$", "", str(path))
    for name in (base, f"{base}-wal"):
        with suppress(FileNotFoundError), Opened(Path(name)) as file:
            if any(FULL_TEXT_INDEX.search(part) for _, part in overlapping(file.in_order())):
                return True
    return False


def overlapping(parts: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    """Each part behind the end of the one before it, and where that begins. Parts of zeros, as
    erasing leaves them, are passed over."""
    at, before = 0, b""
    for part in parts:
        content = before + part
        if content.strip(b"\0"):
            yield at - len(before), content
        at += len(part)
        before = content[-OVERLAP_BYTES:]
