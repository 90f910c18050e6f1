"""places: which local roots and which remote a project is known by."""

from collections.abc import Sequence

from msgspec import Struct

from ..domain.events import ProjectLinked

NAME = "places"
KEY = ("scope", "root")
FOLLOWS = ProjectLinked

SCHEMA = (
    """
CREATE TABLE places (
    scope     TEXT NOT NULL,
    root      TEXT NOT NULL,
    remote    TEXT NOT NULL,
    linked_at INTEGER NOT NULL,
    PRIMARY KEY (scope, root)
) STRICT
""",
    "CREATE INDEX places_by_root ON places (root, scope)",
)

OF_ROOT = "WHERE root = :root ORDER BY linked_at, scope"


class Row(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    scope: str
    root: str
    remote: str
    linked_at: int


def place(event: ProjectLinked) -> tuple[str, ...]:
    return event.scope, event.root


def evolve(rows: Sequence[Row], event: ProjectLinked) -> Sequence[Row]:
    return [Row(scope=event.scope, root=event.root, remote=event.remote, linked_at=event.at)]
