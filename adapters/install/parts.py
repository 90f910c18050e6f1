"""Parts: the files of an agent that something is put into, and how it is put there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from .draft import Draft
from .entries import Entries


def no_hints(_said: Any) -> tuple[str, ...]:
    return ()


class Part(Struct, frozen=True, kw_only=True):
    """One file. All functions raise CannotEdit where the text is not such that they could."""

    path: Path
    what: str
    add: Callable[[Draft, Entries], None]
    remove: Callable[[str], str]
    parsed: Callable[[str], Any]
    hints: Callable[[Any], tuple[str, ...]] = no_hints


class Place(Struct, frozen=True, kw_only=True):
    """One agent: its folder, which is there when the agent was used, and its files."""

    agent: str
    title: str
    folder: Path
    variable: str
    parts: tuple[Part, ...]
    notes: tuple[str, ...]

    def is_present(self) -> bool:
        return self.folder.is_dir()
