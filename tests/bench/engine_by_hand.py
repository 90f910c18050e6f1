"""The limit of a fold: one loop over the events of `engine_log`, written for exactly that log.

It makes the same rows, and knows what the log does not hold: no reset, no edited folder, no lifted
forgetting, one memory version. The bench holds its rows against the projections' own.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace
from threadbook.domain.events import (
    ArtifactsPublished,
    Cited,
    ConsolidationRequested,
    MemoryModeSet,
    MemoryShown,
    Phase2LeaseClaimed,
    Phase2LeaseRenewed,
    Phase2Succeeded,
    RootRendered,
    Stage1Failed,
    Stage1LeaseClaimed,
    Stage1Succeeded,
    Stage1SucceededNoOutput,
    ThreadChanged,
    ThreadForgotten,
    ThreadPolluted,
    ThreadRegistered,
    ThreadRescoped,
)
from threadbook.projections import (
    artifacts,
    citations,
    jobs,
    progress,
    selection,
    shown,
    spend,
    stage1_outputs,
    threads,
)

STAGE1, PHASE2 = jobs.STAGE1, jobs.PHASE2


def fold_by_hand(log: Iterable[Any]) -> dict[Any, list[Any]]:
    sessions: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    readings: dict[str, Any] = {}
    works: dict[str, Any] = {}
    uses: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    snapshots: dict[str, list[Any]] = {}
    files: dict[str, list[Any]] = {}
    manifests: dict[str, Any] = {}
    seen: dict[tuple[str, str], list[Any]] = {}
    paid: dict[tuple[str, str, str], Any] = {}
    most = 0

    def pay(event: Any, phase: Any) -> None:
        spent = event.tokens
        if spent.calls:
            key = (spend.day(event.at), phase, spent.model)
            row = paid.get(key) or spend.Row(day=key[0], phase=phase, model=spent.model)
            paid[key] = spend.Row(
                day=key[0],
                phase=phase,
                model=spent.model,
                calls=row.calls + spent.calls,
                input=row.input + spent.input,
                cached=row.cached + spent.cached,
                output=row.output + spent.output,
                reasoning=row.reasoning + spent.reasoning,
            )

    for event in log:
        kind = type(event)
        if kind is Cited:
            thread_id = event.thread_id
            if (row := outputs.get(thread_id)) is not None:
                outputs[thread_id] = replace(
                    row, usage_count=event.usage_count, last_usage=event.at
                )
            uses[thread_id][event.citation_id] = citations.Row(
                thread_id=thread_id,
                memory_version="v1",
                citation_id=event.citation_id,
                at=event.at,
            )
        elif kind is ThreadRegistered:
            sessions[event.thread_id] = threads.Row(
                thread_id=event.thread_id,
                registered=1,
                tool=event.tool,
                source=event.source,
                kind=event.kind,
                rollout_path=event.rollout_path,
                cwd=event.cwd,
                git_branch=event.git_branch,
                repository_url=event.repository_url,
                root=event.root,
                scope=event.scope,
                created_at_ms=event.created_at_ms,
                updated_at_ms=event.updated_at_ms,
                preview_ref=event.preview_ref,
                archived=int(event.archived),
                forked_from=event.forked_from,
                mode=event.mode,
                mode_reason=event.mode_reason,
            )
        elif kind is Stage1LeaseClaimed:
            readings[event.thread_id] = jobs.Row(
                kind=STAGE1,
                job_key=event.thread_id,
                memory_version="v1",
                status="running",
                worker_id=event.worker_id,
                ownership_token=event.ownership_token,
                started_at=event.at,
                lease_until=event.lease_until,
                retry_remaining=event.retry_remaining,
                input_watermark=event.input_watermark,
            )
        elif kind is Stage1Succeeded or kind is Stage1SucceededNoOutput:
            readings[event.thread_id] = replace(
                readings[event.thread_id],
                status="done",
                finished_at=event.at,
                lease_until=None,
                last_success_watermark=event.input_watermark,
                extractor=event.extractor,
                outcome="output" if kind is Stage1Succeeded else "no_output",
            )
            if kind is Stage1Succeeded:
                outputs[event.thread_id] = stage1_outputs.Row(
                    thread_id=event.thread_id,
                    memory_version="v1",
                    scope=event.scope,
                    memory_mode=event.memory_mode,
                    source_updated_at=event.source_updated_at,
                    counts_from=event.counts_from,
                    raw_memory_ref=event.raw_memory_ref,
                    rollout_summary_ref=event.rollout_summary_ref,
                    rollout_slug_ref=event.rollout_slug_ref,
                    evidence_ref=event.evidence_ref,
                    extractor=event.extractor,
                    since=event.at,
                    generated_at=event.at,
                )
            pay(event, "phase1")
        elif kind is ConsolidationRequested:
            work = works.get(event.scope)
            works[event.scope] = (
                jobs.Row(
                    kind=PHASE2,
                    job_key=event.scope,
                    memory_version="v1",
                    status="pending",
                    retry_remaining=event.retry_remaining,
                    input_watermark=event.input_watermark,
                    last_success_watermark=0,
                )
                if work is None
                else replace(
                    work,
                    status="running" if work.status == "running" else "pending",
                    retry_remaining=event.retry_remaining,
                    input_watermark=event.input_watermark,
                )
            )
        elif kind is MemoryShown:
            seen[event.session_id, event.scope] = [
                shown.Row(
                    session_id=event.session_id,
                    memory_version="v1",
                    scope=event.scope,
                    thread_id=thread_id,
                    rendered_position=event.rendered_position,
                    via=event.via,
                    at=event.at,
                )
                for thread_id in ("", *event.thread_ids)
            ]
        elif kind is ThreadChanged:
            sessions[event.thread_id] = replace(
                sessions[event.thread_id], updated_at_ms=event.updated_at_ms
            )
        elif kind is Stage1Failed:
            readings[event.thread_id] = replace(
                readings[event.thread_id],
                status="error",
                finished_at=event.at,
                lease_until=None,
                retry_at=event.retry_at,
                retry_remaining=event.retry_remaining,
                last_error=event.reason,
                failure=event.kind,
            )
            pay(event, "phase1")
        elif kind is Phase2LeaseClaimed:
            works[event.scope] = replace(
                works[event.scope],
                status="running",
                worker_id=event.worker_id,
                ownership_token=event.ownership_token,
                started_at=event.at,
                finished_at=None,
                lease_until=event.lease_until,
                retry_at=None,
                retry_remaining=event.retry_remaining,
                last_error=None,
                input_watermark=event.input_watermark,
            )
        elif kind is Phase2LeaseRenewed:
            works[event.scope] = replace(works[event.scope], lease_until=event.lease_until)
        elif kind is ArtifactsPublished:
            files[event.scope] = [
                artifacts.Row(
                    memory_version="v1",
                    scope=event.scope,
                    kind="file",
                    body_ref=body_ref,
                    at=event.at,
                    made_by=event.consolidator,
                )
                for body_ref in event.files
            ]
            pay(event, "phase2")
        elif kind is RootRendered:
            manifests[event.scope] = artifacts.Row(
                memory_version="v1",
                scope=event.scope,
                kind="manifest",
                body_ref=event.manifest_ref,
                at=event.at,
                made_by=event.renderer,
            )
        elif kind is Phase2Succeeded:
            most = max(most, len(event.selected))
            works[event.scope] = replace(
                works[event.scope],
                status="done",
                finished_at=event.at,
                lease_until=None,
                last_error=None,
                last_success_watermark=event.last_success_watermark,
                completed_watermark=event.completed_watermark,
            )
            snapshots[event.scope] = [
                selection.Row(
                    memory_version="v1",
                    scope=event.scope,
                    thread_id=selected.thread_id,
                    source_updated_at=selected.source_updated_at,
                    matched=int(selected.matched),
                    selected_at=event.at,
                )
                for selected in event.selected
            ]
        elif kind is ThreadPolluted or kind is MemoryModeSet:
            mode = "polluted" if kind is ThreadPolluted else event.mode
            sessions[event.thread_id] = replace(
                sessions[event.thread_id],
                mode=mode,
                mode_reason=event.cause if kind is ThreadPolluted else event.reason,
                mode_changed_at=event.at,
            )
            if (row := outputs.get(event.thread_id)) is not None:
                outputs[event.thread_id] = replace(row, memory_mode=mode)
        elif kind is ThreadRescoped:
            sessions[event.thread_id] = replace(sessions[event.thread_id], scope=event.scope)
            if (row := outputs.get(event.thread_id)) is not None:
                outputs[event.thread_id] = replace(row, scope=event.scope)
        elif kind is ThreadForgotten:
            sessions[event.thread_id] = replace(
                sessions[event.thread_id], forgotten=1, forgotten_at=event.at, preview_ref=None
            )
            outputs.pop(event.thread_id, None)
            readings.pop(event.thread_id, None)
            uses.pop(event.thread_id, None)

    def in_order(rows: dict[Any, Any]) -> list[Any]:
        return [rows[key] for key in sorted(rows)]

    return {
        threads: in_order(sessions),
        jobs: in_order(works) + in_order(readings),
        stage1_outputs: in_order(outputs),
        selection: [row for rows in in_order(snapshots) for row in rows],
        artifacts: [
            row
            for scope in sorted(files.keys() | manifests.keys())
            for row in [
                *sorted(files.get(scope, ()), key=lambda row: row.body_ref),
                *([manifests[scope]] if scope in manifests else ()),
            ]
        ],
        progress: [progress.Row(memory_version="v1", max_thread_count=most)] if snapshots else [],
        shown: [row for rows in in_order(seen) for row in rows],
        citations: [row for rows in in_order(uses) for row in in_order(rows)],
        spend: in_order(paid),
    }
