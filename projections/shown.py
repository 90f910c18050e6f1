"""shown: which memory a session has had before its eyes, so that what it cites was in reach.

A row without a thread (`''`) says that the root was shown as it stood at a position: in reach is
what that success had selected. A row with a thread says that a read or a search gave it that
thread. Where no rendering was named the position is 0, which no event has.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from ..domain.events import MemoryShown

NAME = "shown"
KEY = ("session_id", "memory_version", "scope", "thread_id", "rendered_position")
FOLLOWS = MemoryShown

SCHEMA = (
    """
CREATE TABLE shown (
    session_id        TEXT NOT NULL,
    memory_version    TEXT NOT NULL,
    scope             TEXT NOT NULL,
    thread_id         TEXT NOT NULL,
    rendered_position INTEGER NOT NULL,
    via               TEXT NOT NULL,
    at                INTEGER NOT NULL,
    PRIMARY KEY (session_id, memory_version, scope, thread_id, rendered_position)
) STRICT
""",
)

# A thread that was given by name, and the renderings whose selection may hold it.
THREAD_GIVEN = """
WHERE session_id = :session_id AND memory_version = :memory_version AND thread_id = :thread_id
ORDER BY scope, rendered_position
"""

RENDERINGS = """
WHERE session_id = :session_id AND memory_version = :memory_version AND thread_id = ''
  AND rendered_position > 0
ORDER BY scope, rendered_position
"""


class Row(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """`via` and `at` are those of the newest showing."""

    session_id: str
    memory_version: str
    scope: str
    thread_id: str
    rendered_position: int
    via: Literal["context", "read", "search"]
    at: int


def place(event: MemoryShown) -> tuple[str, ...]:
    return event.session_id, event.memory_version, event.scope


def evolve(rows: Sequence[Row], event: MemoryShown) -> Sequence[Row]:
    position = event.rendered_position or 0
    seen_now = dict.fromkeys(("", *event.thread_ids))
    seen_before = [
        row for row in rows if row.rendered_position != position or row.thread_id not in seen_now
    ]
    return seen_before + [
        Row(
            session_id=event.session_id,
            memory_version=event.memory_version,
            scope=event.scope,
            thread_id=thread_id,
            rendered_position=position,
            via=event.via,
            at=event.at,
        )
        for thread_id in seen_now
    ]
