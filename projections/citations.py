"""citations: which turn of which session has already counted as a use of a thread."""

from collections.abc import Sequence
from typing import assert_never

from msgspec import Struct

from ..domain.events import Cited, StoreReset, ThreadForgotten

CitationEvent = Cited | ThreadForgotten | StoreReset

NAME = "citations"
KEY = ("thread_id", "memory_version", "citation_id")
FOLLOWS = CitationEvent

SCHEMA = (
    """
CREATE TABLE citations (
    thread_id      TEXT NOT NULL,
    memory_version TEXT NOT NULL,
    citation_id    TEXT NOT NULL,
    at             INTEGER NOT NULL,
    PRIMARY KEY (thread_id, memory_version, citation_id)
) STRICT
""",
)


# What a session's turns have counted for a thread; the caller looks at the ids again, since a
# session's own id may hold a colon.
OF_SESSION = """
WHERE thread_id = :thread_id AND memory_version = :memory_version
  AND citation_id >= :session || ':' AND citation_id < :session || ';'
ORDER BY citation_id
"""


class Row(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    thread_id: str
    memory_version: str
    citation_id: str
    at: int


def place(event: CitationEvent) -> tuple[str, ...]:
    match event:
        case Cited():
            return event.thread_id, event.memory_version, event.citation_id
        case ThreadForgotten():
            return (event.thread_id,)
        case StoreReset():
            return ()
        case _:
            assert_never(event)


def evolve(rows: Sequence[Row], event: CitationEvent) -> Sequence[Row]:
    match event:
        case Cited():
            return [
                Row(
                    thread_id=event.thread_id,
                    memory_version=event.memory_version,
                    citation_id=event.citation_id,
                    at=event.at,
                )
            ]
        case ThreadForgotten():
            return []
        case StoreReset(memory_version=emptied):
            return [row for row in rows if row.memory_version != emptied]
        case _:
            assert_never(event)
