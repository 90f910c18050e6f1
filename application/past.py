"""Everything as it was at a position, folded anew from the log, for people and for programs."""

from typing import Any

from msgspec.structs import asdict

from ..projections import jobs, selection, stage1_outputs, threads
from .explain import moment, ranking
from .ports import View
from .roots import by_version, roots
from .surroundings import Policy

ERASED = "[erased]"


def as_it_was(view: View, policy: Policy, *, now: int) -> dict[str, Any]:
    """threads, jobs, outputs with their words, and the selection with rank and reason of each.

    Where a success recorded what it selected, `recorded` shows that; the ranking is what today's
    limits say of that moment.
    """
    return {
        "position": view.position,
        "at": moment(view.recorded_at_ms) if view.position else None,
        "threads": [asdict(row) for row in view.rows(threads, ())],
        "jobs": [asdict(row) for row in view.rows(jobs, ())],
        "outputs": [output(view, row) for row in view.rows(stage1_outputs, ())],
        "selection": ranked(view, policy, now=now),
        "recorded": [asdict(row) for row in view.rows(selection, ())],
    }


def output(view: View, row: stage1_outputs.Row) -> dict[str, Any]:
    """The row, and its texts beside the refs; what was erased since says so."""

    def text(ref: str | None) -> str | None:
        if ref is None:
            return None
        kept = view.body(ref)
        return ERASED if kept is None else kept

    return asdict(row) | {
        "raw_memory": text(row.raw_memory_ref),
        "rollout_summary": text(row.rollout_summary_ref),
        "rollout_slug": text(row.rollout_slug_ref),
    }


def ranked(view: View, policy: Policy, *, now: int) -> list[dict[str, Any]]:
    return [
        {
            "memory_version": root.memory_version,
            "scope": root.scope,
            "thread_id": entry.output.thread_id,
            "rank": entry.rank,
            "selected": entry.chosen,
            "reason": entry.reason,
            "source_updated_at": entry.output.source_updated_at,
            "usage_count": entry.output.usage_count,
            "last_usage": entry.output.last_usage,
        }
        for one in by_version(policy)
        for root in roots(view, one)
        for entry in ranking(view, root.scope, one, now=now).entries
    ]
