"""threads: every session we know of: what it is, its memory mode, its scope, and whether it ended.

One row a thread, for as long as the store lives. Forgetting keeps the row, because the id must
stay dead, and drops what pointed to words. A thread can be forgotten before it was ever seen:
then `registered` is 0, and only the id and the forgetting mean something. Flags are 0 or 1, as
SQLite keeps them, so that a row read from the table and a row folded in memory are the same bytes.
"""

from collections.abc import Sequence
from typing import TypeVar, assert_never

from msgspec import Struct, UnsetType
from msgspec.structs import replace

from ..domain.events import (
    ForgettingLifted,
    Kind,
    MemoryModeSet,
    Mode,
    ThreadChanged,
    ThreadEvent,
    ThreadForgotten,
    ThreadPolluted,
    ThreadRegistered,
    ThreadRescoped,
    Tool,
)

Value = TypeVar("Value")

NAME = "threads"
KEY = ("thread_id",)
FOLLOWS = ThreadEvent

SCHEMA = (
    """
CREATE TABLE threads (
    thread_id       TEXT NOT NULL,
    registered      INTEGER NOT NULL,
    tool            TEXT,
    source          TEXT NOT NULL,
    kind            TEXT NOT NULL,
    rollout_path    TEXT NOT NULL,
    machine_id      TEXT,
    cwd             TEXT,
    git_branch      TEXT,
    repository_url  TEXT,
    root            TEXT,
    scope           TEXT NOT NULL,
    created_at_ms   INTEGER NOT NULL,
    updated_at_ms   INTEGER NOT NULL,
    preview_ref     TEXT,
    archived        INTEGER NOT NULL,
    forked_from     TEXT,
    mode            TEXT NOT NULL,
    mode_reason     TEXT NOT NULL,
    mode_changed_at INTEGER,
    forgotten       INTEGER NOT NULL,
    forgotten_at    INTEGER,
    PRIMARY KEY (thread_id)
) STRICT
""",
    # Phase 1 walks the newest of these at every start; SQLite takes a partial index only for a
    # query that repeats its condition word for word.
    """
CREATE INDEX threads_readable ON threads (updated_at_ms DESC, thread_id DESC)
    WHERE registered = 1 AND forgotten = 0 AND archived = 0 AND preview_ref IS NOT NULL
      AND kind = 'interactive' AND mode = 'enabled'
""",
    "CREATE INDEX threads_by_scope ON threads (scope, thread_id)",
)

# Both bounds of the window are inside. A NULL `current_thread_id` leaves nobody out.
STARTUP_CANDIDATES = """
WHERE registered = 1 AND forgotten = 0 AND archived = 0 AND preview_ref IS NOT NULL
  AND kind = 'interactive' AND mode = 'enabled'
  AND thread_id IS NOT :current_thread_id
  AND updated_at_ms >= :oldest_ms
  AND updated_at_ms <= :newest_ms
ORDER BY updated_at_ms DESC, thread_id DESC
LIMIT :scan_limit
"""

OF_SCOPE = "WHERE scope = :scope AND registered = 1 ORDER BY thread_id"

OF_ROOT = "WHERE root = :root AND registered = 1 ORDER BY thread_id"

# The ids that begin like this; no more than are worth telling.
BEGINNING = """
WHERE registered = 1 AND thread_id >= :start AND substr(thread_id, 1, length(:start)) = :start
ORDER BY thread_id
LIMIT 9
"""

EVERY = "ORDER BY registered DESC, updated_at_ms DESC, thread_id DESC"

NEWEST_FIRST = "WHERE registered = 1 ORDER BY updated_at_ms DESC, thread_id DESC"


class Row(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    thread_id: str
    registered: int = 0
    tool: Tool | None = None
    source: str = ""
    kind: Kind = "unknown"
    rollout_path: str = ""
    machine_id: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    repository_url: str | None = None
    root: str | None = None
    scope: str = ""
    created_at_ms: int = 0
    updated_at_ms: int = 0
    preview_ref: str | None = None
    archived: int = 0
    forked_from: str | None = None
    mode: Mode = "disabled"
    mode_reason: str = ""
    mode_changed_at: int | None = None
    forgotten: int = 0
    forgotten_at: int | None = None


def place(event: ThreadEvent) -> tuple[str, ...]:
    return (event.thread_id,)


def evolve(rows: Sequence[Row], event: ThreadEvent) -> Sequence[Row]:
    match event:
        case ThreadRegistered():
            return [registered(row, event) for row in rows or [Row(thread_id=event.thread_id)]]
        case ThreadChanged():
            return [changed(row, event) for row in rows]
        case MemoryModeSet(at=at, mode=mode, reason=reason):
            return [replace(row, mode=mode, mode_reason=reason, mode_changed_at=at) for row in rows]
        case ThreadPolluted(at=at, cause=cause):
            return [
                replace(row, mode="polluted", mode_reason=cause, mode_changed_at=at) for row in rows
            ]
        case ThreadRescoped(scope=scope):
            return [replace(row, scope=scope) for row in rows]
        case ThreadForgotten(at=at):
            return [
                replace(row, forgotten=1, forgotten_at=at, preview_ref=None)
                for row in rows or [Row(thread_id=event.thread_id)]
            ]
        case ForgettingLifted():
            # Of a thread never seen nothing is left to say.
            return [replace(row, forgotten=0, forgotten_at=None) for row in rows if row.registered]
        case _:
            assert_never(event)


def registered(row: Row, event: ThreadRegistered) -> Row:
    return replace(
        row,
        registered=1,
        tool=event.tool,
        source=event.source,
        kind=event.kind,
        rollout_path=event.rollout_path,
        machine_id=event.machine_id,
        cwd=event.cwd,
        git_branch=event.git_branch,
        repository_url=event.repository_url,
        root=event.root,
        scope=event.scope,
        created_at_ms=event.created_at_ms,
        updated_at_ms=event.updated_at_ms,
        preview_ref=None if row.forgotten else event.preview_ref,
        archived=int(event.archived),
        forked_from=event.forked_from,
        mode=event.mode,
        mode_reason=event.mode_reason,
    )


def changed(row: Row, event: ThreadChanged) -> Row:
    preview_ref = kept(event.preview_ref, row.preview_ref)
    return replace(
        row,
        source=kept(event.source, row.source),
        kind=kept(event.kind, row.kind),
        rollout_path=kept(event.rollout_path, row.rollout_path),
        machine_id=kept(event.machine_id, row.machine_id),
        cwd=kept(event.cwd, row.cwd),
        git_branch=kept(event.git_branch, row.git_branch),
        repository_url=kept(event.repository_url, row.repository_url),
        root=kept(event.root, row.root),
        updated_at_ms=kept(event.updated_at_ms, row.updated_at_ms),
        preview_ref=None if row.forgotten else preview_ref,
        archived=int(kept(event.archived, row.archived)),
        forked_from=kept(event.forked_from, row.forked_from),
    )


def kept(new: Value | UnsetType, old: Value) -> Value:
    return old if isinstance(new, UnsetType) else new
