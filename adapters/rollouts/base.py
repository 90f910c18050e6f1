"""What the two readers share: how a session names itself, and the folded facts of one reading."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from ...domain.events import Kind, Tool
from ...domain.guard import RateLimits
from ...domain.ids import UUID
from ...domain.session import AnyItem, Change, Header
from .lines import Found

IMAGE = "[Image]"
LEVELS_MAX = 64  # Of a record; what any program was seen to write has a dozen.
TOO_DEEP = "[nested too deep]"

_IDENTITY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
_HALF_SURROGATE = re.compile("[\ud800-\udfff]")
_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+(?:;[\w=.+-]+)*;base64,[A-Za-z0-9+/=_-]+")


class Head(Struct, frozen=True, kw_only=True):
    """What the first records say: enough to list a session, read without the rest of the file."""

    thread_id: str
    tool: Tool
    source: str
    kind: Kind
    rollout_path: str
    cwd: str | None
    created_at_ms: int | None
    forked_from: str | None = None
    parent: str | None = None
    archived: bool = False


class Preview:
    """The first thing a person sent. A placeholder gives way to text of the same message only."""

    def __init__(self) -> None:
        self.text: str | None = None
        self._line = 0

    def show(self, text: str, line: int) -> None:
        waiting = self.text is not None and self.text in (IMAGE, "[Audio]", "[File]")
        if text and (self.text is None or (waiting and line == self._line)):
            self.text, self._line = text, line


class Noted(Struct, frozen=True, kw_only=True):
    """What a reply cites: read in its text, or noted beside it by a program that took it out."""

    ids: tuple[str, ...]
    final: bool | None
    line: int
    at_ms: int | None


class Reader(Protocol):
    """One format's rules, fed with records in file order."""

    skipped: Counter[str]
    polluting: dict[str, None]
    noted: list[Noted]
    limits: tuple[int, RateLimits] | None

    def read(self, found: Found) -> Iterator[AnyItem]:
        """The items of one record; what it says of the session is kept for `header`."""

    def head(self) -> Head: ...

    def header(self, *, mtime_ms: int, now_ms: int) -> Header: ...


def clean(text: str) -> str:
    """Text as the rest of the program may hold it: no NUL, no half surrogates, no pictures."""
    if "\x00" in text:
        text = text.replace("\x00", "")
    if not text.isascii():
        text = _HALF_SURROGATE.sub("\ufffd", text)
    if ";base64," in text:
        text = _DATA_URL.sub(IMAGE, text)
    return text


def string(value: object) -> str | None:
    return clean(value) if isinstance(value, str) else None


def filled(value: object) -> str | None:
    """A string that says something, else None."""
    return clean(value) if isinstance(value, str) and value.strip() else None


def identity(value: object) -> str | None:
    """A session's id. It becomes a name elsewhere, so that a text that could be no name, or a
    path, is no id. A UUID is one id however it is written, and citations write it small: what was
    forgotten does not come back in capitals."""
    if not isinstance(value, str) or not _IDENTITY.fullmatch(value):
        return None
    return value.lower() if UUID.fullmatch(value) else value


def table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def entries(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def compact_json(value: object) -> str:
    if value is None:
        return ""
    try:
        return clean(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    except RecursionError:
        return ""  # Nested beyond reason: no tool takes such arguments.


def shallow(value: Any, levels: int = LEVELS_MAX) -> Any:
    """The value without what lies deeper than anybody looks: Python itself gives up a few hundred
    levels down, and with it whoever walks such a tree."""
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return TOO_DEEP
    if isinstance(value, dict):
        return {key: shallow(each, levels - 1) for key, each in value.items()}
    return [shallow(each, levels - 1) for each in value]


def kind_name(value: object, otherwise: str) -> str:
    """How an unknown kind is counted. A name from a file is data: short and printable."""
    name = filled(value)
    return otherwise if name is None else "".join(c for c in name[:80] if c.isprintable())


def digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()


def updated_at(newest_ms: int | None, created_ms: int | None, mtime_ms: int, now_ms: int) -> int:
    """The newest record time that the clock has reached, else the file's. A file time after now
    says nothing, so that the start of the session stands in for it."""
    if newest_ms is not None:
        return newest_ms
    if mtime_ms <= now_ms or created_ms is None or created_ms > now_ms:
        return min(mtime_ms, now_ms)
    return created_ms


def is_archived(path: Path) -> bool:
    return "archived_sessions" in path.parts[:-1]


# Up to the last character of the line that is no blank: a lazy match would try each blank in turn.
_PATCH_LINE = re.compile(
    r"^\*\*\* (Add File|Update File|Delete File|Move to): (.*\S)", re.MULTILINE
)


def patched(patch: str) -> tuple[Change, ...]:
    """The files that a patch in Codex's format touches. A move takes one name and makes another."""
    if "*** Begin Patch" not in patch:
        return ()
    changes: list[Change] = []
    for found in _PATCH_LINE.finditer(patch, patch.index("*** Begin Patch")):
        what, path = found[1], found[2]
        if what == "Move to":
            if changes:
                changes[-1] = Change(path=changes[-1].path, how="delete")
            changes.append(Change(path=path, how="add"))
        elif what == "Add File":
            changes.append(Change(path=path, how="add"))
        elif what == "Delete File":
            changes.append(Change(path=path, how="delete"))
        else:
            changes.append(Change(path=path, how="update"))
    return tuple(changes)
