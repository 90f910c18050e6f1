"""notes: what a person or an agent asked to remember, beside what sessions taught.

A note's body is its path in the folder, LF, and its text. It belongs to no memory version, so
resetting one keeps the row; a note whose body was erased is a row without words.
"""

from collections.abc import Sequence
from typing import Literal, assert_never

from msgspec import Struct

from ..domain.events import NoteAdded, NoteRemoved

NoteEvent = NoteAdded | NoteRemoved

NAME = "notes"
KEY = ("body_ref",)
FOLLOWS = NoteEvent

SCHEMA = (
    """
CREATE TABLE notes (
    body_ref TEXT NOT NULL,
    scope    TEXT NOT NULL,
    via      TEXT NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (body_ref)
) STRICT
""",
    "CREATE INDEX notes_by_scope ON notes (scope, at, body_ref)",
)

OF_SCOPE = "WHERE scope = :scope ORDER BY at, body_ref"

# Of every project that is read in Codex's single folder.
EVERYWHERE = """
WHERE scope = :scope OR scope LIKE 'project:%' ORDER BY at, body_ref
"""


class Row(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    body_ref: str
    scope: str
    via: Literal["mcp", "cli", "file", "import"]
    at: int


def place(event: NoteEvent) -> tuple[str, ...]:
    return (event.body_ref,)


def evolve(rows: Sequence[Row], event: NoteEvent) -> Sequence[Row]:
    match event:
        case NoteAdded():
            return [Row(body_ref=event.body_ref, scope=event.scope, via=event.via, at=event.at)]
        case NoteRemoved():
            return []
        case _:
            assert_never(event)
