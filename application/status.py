"""Status: what is stored, what is stuck and since when, and what was spent."""

from datetime import timedelta
from typing import Any, get_args

from ..domain.address import shown
from ..domain.artifact import problems
from ..domain.consolidation import is_held, rest_ends
from ..domain.events import AnyEvent
from ..projections import jobs, progress, spend
from . import state
from .consent import needed
from .explain import clock, thread_lines
from .folder import differing
from .ports import View
from .purse import spent_today
from .roots import (
    Root,
    all_roots,
    by_version,
    chosen,
    chosen_inputs,
    is_unchanged,
    published,
    roots,
    snapshot,
)
from .surroundings import Policy, Surroundings

READY_THREADS = 20  # Codex's: from so many threads in one consolidation on, a memory is warm.
KNOWN = {event.__struct_config__.tag for event in get_args(AnyEvent)}


def status(around: Surroundings, view: View) -> dict[str, Any]:
    now = around.now()
    lines = thread_lines(
        view, around.policy, extractor=around.extractor.name, now=now, previews=False
    )
    counts: dict[str, int] = {}
    for line in lines:
        counts[line.stage1] = counts.get(line.stage1, 0) + 1
    return {
        "events": view.position,
        "unknown_events": sum(n for type_, n in view.types().items() if type_ not in KNOWN),
        "threads": {"all": len(lines), **dict(sorted(counts.items()))},
        "roots": [
            root_status(around, view, root, now=now) for root in all_roots(view, around.policy)
        ],
        "versions": [
            version_status(view, one, is_read=one.memory_version == around.policy.memory_version)
            for one in by_version(around.policy)
        ],
        "stuck": stuck(view, now=now),
        "spend": [
            f"{row.day} {row.phase} {row.model}: {row.input + row.output} tokens, {row.calls} calls"
            for row in view.rows(spend, ())
        ],
        "budget": budget(around, view),
    }


def budget(around: Surroundings, view: View) -> dict[str, Any] | None:
    """What may still be spent at the provider; None where nobody is paid."""
    provider = around.policy.provider
    if provider is None:
        return None
    spent = spent_today(around, view)
    limit = provider.max_tokens_per_day
    asked = needed(around, view)
    return {
        "base_url": shown(provider.base_url),
        "models": sorted({provider.extract_model, provider.consolidation_model}),
        "consented": asked is None,
        "spent_today": spent,
        "left_today": max(0, limit - spent) if limit else None,
        "max_tokens_per_run": provider.max_tokens_per_run or None,
    }


def version_status(view: View, policy: Policy, *, is_read: bool) -> dict[str, Any]:
    """Whether a version is fit to be read: its largest consolidation covered enough threads, and
    every summary that was published can be read as one. Nothing is switched by it."""
    version = policy.memory_version
    covered = view.value(progress.MAX_THREAD_COUNT, memory_version=version)
    summaries = [files for root in roots(view, policy) if (files := published(view, root))]
    sound = bool(summaries) and not any(
        problems(files, version=version, grammar=False) for files in summaries
    )
    return {
        "version": version,
        "read": is_read,
        "written": version in policy.versions,
        "consolidated_threads": covered,
        "ready": covered >= READY_THREADS and sound,
    }


def root_status(around: Surroundings, view: View, root: Root, *, now: int) -> dict[str, Any]:
    """A root and whether its folder is what it would be made from today."""
    job = state.consolidation(view, root.memory_version, root.scope)
    before = snapshot(view, root)
    same = is_unchanged(chosen_inputs(chosen(view, root, around.policy, now=now)), before)
    rest = rest_ends(job) if around.consolidator.kind != "offline" else None
    if is_held(job, now=now):
        told = f"being consolidated by {job.worker_id} until {clock(job.lease_until)}"
    elif job.retry_at is not None and job.retry_at > now:
        told = f"failed ({job.last_error}); tried again at {clock(job.retry_at)}"
    elif not published(view, root):
        told = "not consolidated yet; the next run does it"
    elif same:
        told = "up to date"
    elif rest is not None and rest > now:
        told = f"behind, and rests until {clock(rest)}; `threadbook run --consolidate` does it now"
    else:
        told = "the next run brings it up to date"
    return {
        "version": root.memory_version,
        "scope": root.scope,
        "selected": len(before),
        "state": told,
        "path": str(around.workspace(root.memory_version, root.scope).path),
    }


def stuck(view: View, *, now: int) -> list[str]:
    """Every job that does not go on by itself just now, with its age and what to do."""
    found = []
    for job in view.rows(jobs, ()):
        what = f"{'thread' if job.kind == jobs.STAGE1 else 'phase 2 of'} {job.job_key}"
        why = job.last_error or "its worker did not come back"
        since = job.finished_at or job.started_at
        ago = "" if since is None else f" {timedelta(seconds=now - since)} ago"
        if job.status == "running" and job.lease_until is not None and job.lease_until <= now:
            late = timedelta(seconds=now - job.lease_until)
            found.append(
                f"{what}: its worker has not come back for {late}; the next run takes over"
            )
        elif job.status in ("error", "pending") and is_closed(job):
            found.append(
                f"{what}: {why}{ago}, and no tries are left; it is read again when the session goes"
                " on, or with `threadbook run --again`"
            )
        elif job.status == "error":
            found.append(f"{what}: {why}{ago}; tried again at {clock(job.retry_at)}")
    return found


def is_closed(job: jobs.Row) -> bool:
    """Phase 2 tries for ever, an hour apart; a session does not."""
    return job.kind == jobs.STAGE1 and job.retry_remaining <= 0


def folder_differences(around: Surroundings) -> list[str]:
    """The folders that are not as they were rendered last, each with the files that differ."""
    with around.store.reading() as view:
        known = [root for root in all_roots(view, around.policy) if published(view, root)]
    found = []
    for root in known:
        workspace = around.workspace(root.memory_version, root.scope)
        with workspace.lock(holder=around.worker_id), around.store.reading() as view:
            changed = differing(view, root, workspace)
        if changed is None:
            what = "was not rendered since it was published"
        elif changed:
            what = f"is not as it was rendered: {', '.join(changed)}"
        else:
            continue
        found.append(
            f"{workspace.path} {what}; `threadbook run` writes it again and keeps what a person"
            " changed"
        )
    return found
