"""What was put where, so that taking it out gives the very bytes back.

A record holds digests and our own words, and nothing of the person's: settings hold keys and
prompts, which have no business in a second place. Cutting our words out of the file that we left
gives the file that was there, and its digest proves it.
"""

import hashlib
from pathlib import Path

import msgspec
from msgspec import Struct

from .draft import Splice


class Left(Struct, kw_only=True):
    """One file as we left it. With `original` known `ours` is all that we put in, and where; else
    it is what stood there when the file had not been edited yet."""

    path: str
    existed: bool
    left: str
    original: str | None = None
    ours: tuple[Splice, ...] = ()


class Record(Struct, kw_only=True):
    agent: str
    files: tuple[Left, ...] = ()

    def of(self, path: Path) -> Left | None:
        return next((left for left in self.files if left.path == str(path)), None)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def file_of(home: Path, agent: str) -> Path:
    return home / "install" / f"{agent}.json"


def decoded(content: bytes | None, agent: str) -> Record:
    """A record that is damaged knows nothing: what is ours is then known by what it says."""
    if content is not None:
        try:
            return msgspec.json.decode(content, type=Record)
        except (msgspec.DecodeError, UnicodeError):
            pass
    return Record(agent=agent)


def encoded(record: Record) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
