"""progress: how many threads one successful consolidation has covered, at most, in each version."""

from collections.abc import Sequence
from typing import assert_never

from msgspec import Struct

from ..domain.events import Phase2Succeeded, StoreReset

ProgressEvent = Phase2Succeeded | StoreReset

NAME = "progress"
KEY = ("memory_version",)
FOLLOWS = ProgressEvent

SCHEMA = (
    """
CREATE TABLE progress (
    memory_version   TEXT NOT NULL,
    max_thread_count INTEGER NOT NULL,
    PRIMARY KEY (memory_version)
) STRICT
""",
)

# A version without a success has no row, and has covered none.
MAX_THREAD_COUNT = """
SELECT coalesce(max(max_thread_count), 0) FROM progress WHERE memory_version = :memory_version
"""


class Row(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    memory_version: str
    max_thread_count: int


def place(event: ProgressEvent) -> tuple[str, ...]:
    return (event.memory_version,)


def evolve(rows: Sequence[Row], event: ProgressEvent) -> Sequence[Row]:
    match event:
        case Phase2Succeeded():
            covered = len({selected.thread_id for selected in event.selected})
            most = max([covered, *(row.max_thread_count for row in rows)])
            return [Row(memory_version=event.memory_version, max_thread_count=most)]
        case StoreReset():
            return []
        case _:
            assert_never(event)
