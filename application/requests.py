"""Asking phase 2 for a root again, in the transaction that changed what the root is made from."""

from ..domain import consolidation
from ..domain.events import ThreadRescoped, consolidation_stream, thread_stream
from ..domain.scope import has_root
from ..projections import selection, stage1_outputs
from . import state
from .ports import Writing
from .surroundings import GLOBAL, Policy


def request(
    tx: Writing,
    memory_version: str,
    scope: str,
    *,
    cause: str,
    thread_id: str | None,
    watermark: int,
    now: int,
) -> None:
    job = state.consolidation(tx, memory_version, scope)
    asked = consolidation.request(
        job, cause=cause, thread_id=thread_id, watermark=watermark, now=now
    )
    tx.append(consolidation_stream(memory_version, scope), asked)


def request_where_selected(tx: Writing, thread_id: str, *, cause: str, now: int) -> list[str]:
    """Every root, of every version, whose last success was made from the thread's output."""
    roots = tx.find(selection, selection.SELECTED, thread_id=thread_id)
    for root in roots:
        request(
            tx,
            root.memory_version,
            root.scope,
            cause=cause,
            thread_id=thread_id,
            watermark=now,
            now=now,
        )
    return [root.scope for root in roots]


def request_root(
    tx: Writing, policy: Policy, thread_id: str, *, cause: str, now: int
) -> str | None:
    """The root that a live output belongs to from now on, in every version that has one."""
    scope = None
    for output in tx.rows(stage1_outputs, (thread_id,)):
        scope = root_of(output.scope, policy)
        if scope is not None:
            request(
                tx,
                output.memory_version,
                scope,
                cause=cause,
                thread_id=thread_id,
                watermark=now,
                now=now,
            )
    return scope


def request_where_it_counts(
    tx: Writing, policy: Policy, thread_id: str, *, cause: str, now: int
) -> None:
    """The roots that read the thread's output, or else the one that would from now on."""
    if not request_where_selected(tx, thread_id, cause=cause, now=now):
        request_root(tx, policy, thread_id, cause=cause, now=now)


def move(tx: Writing, policy: Policy, moved: ThreadRescoped, *, now: int) -> None:
    """Record that a thread has another scope: the root it leaves is asked for, and the one it
    comes to."""
    request_where_selected(tx, moved.thread_id, cause="rescoped", now=now)
    tx.append(thread_stream(moved.thread_id), moved)
    request_root(tx, policy, moved.thread_id, cause="rescoped", now=now)


def root_of(scope: str, policy: Policy) -> str | None:
    """The memory root of a thread's scope; None: it is in quarantine, and read by nobody."""
    if policy.scope == GLOBAL:
        return GLOBAL
    return scope if has_root(scope) else None
