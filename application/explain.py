"""Explain: why a thread is in or out at a position, in the order in which it is asked.

Gates are reasons against a session. A lease, a cap, a wait and a rest are reasons against now, and
stand apart as `waiting`. At an earlier position, now is the time that position was recorded.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from ..domain import consolidation, eligibility, extraction, selection
from ..domain.events import (
    NO_TOKENS,
    Phase2Succeeded,
    Stage1Succeeded,
    Tokens,
    consolidation_stream,
    extraction_stream,
    thread_stream,
)
from ..domain.refusals import UnknownThread
from ..domain.selection import Ranking, cutoff_at
from ..projections import jobs, spend, stage1_outputs, threads
from ..projections import selection as snapshots
from . import state
from .ports import View
from .reports import Explanation, GateAnswer, LastReading, ThreadLine
from .requests import root_of
from .surroundings import GLOBAL, VERSIONS, Policy


def explain(
    view: View, thread_id: str, policy: Policy, *, extractor: str, now: float
) -> Explanation:
    thread = state.thread(view, thread_id)
    if not thread.exists and not thread.forgotten:
        raise UnknownThread(thread_id)
    version = policy.memory_version
    outputs = view.rows(stage1_outputs, (thread_id, version))
    output = state.output_of(outputs[0]) if outputs else None
    answers = eligibility.gates(thread, output, now=now, limits=policy.limits)
    gates = [GateAnswer(name=gate.name, passed=gate.passed, why=gate.why) for gate in answers]
    scope = root_of(thread.scope, policy) if thread.exists else None
    rank = None
    chosen = False
    if output is not None:
        rank, chosen, why = ranking_of(view, thread_id, scope, policy, now=int(now))
        gates.append(GateAnswer(name="rank", passed=chosen, why=why))
    read_by = selected_by(view, thread_id, version)
    job = view.rows(jobs, (jobs.STAGE1, thread_id, version))
    read_for_nothing = (
        bool(job)
        and job[0].outcome == "no_output"
        and state.is_read(view, version, thread, extractor=extractor)
    )
    if not thread.exists:  # Forgotten before it was ever seen: there is nothing else to ask.
        gates = gates[:1]
    return Explanation(
        thread_id=thread_id,
        position=view.position,
        at=int(now),
        scope=thread.scope or None,
        selected=bool(read_by),
        verdict=verdict(
            gates, read_by=read_by, scope=scope, chosen=chosen, read_for_nothing=read_for_nothing
        ),
        gates=gates,
        rank=rank,
        waiting=waits(view, thread_id, policy, extractor=extractor, scope=scope, now=int(now))
        if all(gate.passed for gate in gates)
        else [],
        events=positions(view, thread_id, version),
        uses=0 if output is None else output.usage_count,
        last_used_at=None if output is None else output.last_usage,
        spent=spent_on(view, thread_id),
        reading=last_reading(view, thread_id, version),
    )


def spent_on(view: View, thread_id: str) -> list[Tokens]:
    """What the thread has cost in every version and whatever came of it, by model."""
    found: dict[str, Tokens] = {}
    for version in VERSIONS:
        for recorded in view.events(stream=extraction_stream(version, thread_id)):
            if isinstance(recorded.event, spend.SpendEvent):
                cost = recorded.event.tokens
                if cost != NO_TOKENS:
                    found[cost.model] = found.get(cost.model, NO_TOKENS) + cost
    return [found[model] for model in sorted(found)]


def last_reading(view: View, thread_id: str, version: str) -> LastReading | None:
    done = state.last_read(view, version, thread_id)
    if done is None:
        return None
    taught = done if isinstance(done, Stage1Succeeded) else None
    evidence = view.body(taught.evidence_ref) if taught and taught.evidence_ref else None
    quotes = Counter(
        quote["found"]
        for quote in msgspec.json.decode(evidence or "[]", type=list[dict[str, Any]])
        if "found" in quote  # The offline model quotes nothing that it has not read.
    )
    return LastReading(
        extractor=done.extractor,
        prompt_digest=done.prompt_digest,
        omitted=done.omitted,
        omitted_bytes=done.omitted_bytes,
        suppressed=taught.suppressed if taught else 0,
        quotes=dict(sorted(quotes.items())),
    )


def ranking_of(
    view: View, thread_id: str, scope: str | None, policy: Policy, *, now: int
) -> tuple[int | None, bool, str]:
    """Its rank, whether that is within the limit, and why."""
    if scope is None:
        return None, False, "its project is not known (quarantine); `threadbook scope` sets it"
    for entry in ranking(view, scope, policy, now=now).entries:
        if entry.output.thread_id == thread_id:
            return entry.rank, entry.chosen, entry.reason
    return None, False, "its memory mode keeps it out of the ranking"


def ranking(view: View, scope: str, policy: Policy, *, now: int) -> Ranking:
    """The whole order of a root, and what of it would be read."""
    version = policy.memory_version
    if scope == GLOBAL:
        rows = view.find(stage1_outputs, stage1_outputs.ENABLED_EVERYWHERE, memory_version=version)
    else:
        rows = view.find(
            stage1_outputs, stage1_outputs.ENABLED, memory_version=version, scope=scope
        )
    return selection.rank(
        (state.output_of(row) for row in rows),
        cutoff=cutoff_at(now, max_unused_days=policy.limits.max_unused_days),
        limit=policy.limits.max_raw_memories_for_consolidation,
    )


def selected_by(view: View, thread_id: str, version: str) -> list[str]:
    """The scopes whose folder was last made from the thread's output as it is."""
    rows = view.find(snapshots, snapshots.SELECTED, thread_id=thread_id)
    return [row.scope for row in rows if row.memory_version == version]


def verdict(
    gates: Sequence[GateAnswer],
    *,
    read_by: Sequence[str],
    scope: str | None,
    chosen: bool,
    read_for_nothing: bool,
) -> str:
    shut = next((gate for gate in gates if not gate.passed), None)
    if read_for_nothing and (shut is None or shut.name in ("archived", "age", "idle")):
        return "out: it was read as it is, and taught nothing"
    if read_by and chosen and scope not in read_by:
        return f"in the folder of {read_by[0]}; the next run moves it to that of {scope}"
    if read_by and chosen:
        return "in: the memory folder was made from it"
    if read_by:
        assert shut is not None, "what is not chosen has a rank that says so"
        return f"in, and out at the next run: {shut.why}"
    if chosen:
        return "out, and in at the next run: it is chosen, and the folder was not yet made from it"
    return f"out: {shut.why}" if shut else "out: nothing was kept from it"


def waits(
    view: View, thread_id: str, policy: Policy, *, extractor: str, scope: str | None, now: int
) -> list[str]:
    """What stands between an eligible thread and its folder just now."""
    found = []
    version = policy.memory_version
    known = state.extraction(view, version, thread_id)
    thread = state.thread(view, thread_id)
    watermark = extraction.watermark_of(thread.updated_at_ms)
    advanced = watermark > (-1 if known.input_watermark is None else known.input_watermark)
    if extraction.is_up_to_date(known, watermark=watermark, extractor=extractor):
        if known.output_source_updated_at is None:
            what = "it taught nothing" if taught_nothing(view, known) else "what it taught aged out"
            found.append(f"read as it is, and {what}; it is read again when it goes on")
    elif extraction.is_held(known, now=now):
        found.append(f"{known.worker_id} is reading it until {clock(known.lease_until)}")
    elif known.retry_remaining <= 0 and not advanced:
        why = known.last_error or "its worker did not come back"
        found.append(
            f"no tries are left ({why}); it is tried again when it goes on, or with"
            " `threadbook run --again`"
        )
    elif known.retry_at is not None and known.retry_at > now and not advanced:
        found.append(f"it failed ({known.last_error}); tried again at {clock(known.retry_at)}")
    else:
        shut = eligibility.failed(eligibility.gates(thread, None, now=now, limits=policy.limits))
        # Only of a session that has an output and went on: the others' gates say it themselves.
        found.append(f"it went on since: {shut.why}" if shut else "the next run reads it")
    if scope is not None:
        job = state.consolidation(view, version, scope)
        rest = consolidation.rest_ends(job)
        if consolidation.is_held(job, now=now):
            found.append(f"{job.worker_id} is at work on {scope} until {clock(job.lease_until)}")
        elif job.retry_at is not None and job.retry_at > now:
            found.append(f"{scope} failed ({job.last_error}); again at {clock(job.retry_at)}")
        elif rest is not None and rest > now and extractor != "offline":
            found.append(f"{scope} rests until {clock(rest)}")
    return found


def taught_nothing(view: View, known: extraction.Extraction) -> bool:
    rows: list[jobs.Row] = view.rows(jobs, (jobs.STAGE1, known.thread_id, known.memory_version))
    return all(row.outcome != "output" for row in rows)


def positions(view: View, thread_id: str, version: str) -> list[int]:
    """The events that made it so: the thread's, its extraction's, the success that read it."""
    found = [
        recorded.position
        for stream in (thread_stream(thread_id), extraction_stream(version, thread_id))
        for recorded in view.events(stream=stream)
    ]
    for row in view.find(snapshots, snapshots.OF_THREAD, thread_id=thread_id):
        deciding = None
        for recorded in view.events(stream=consolidation_stream(row.memory_version, row.scope)):
            if isinstance(recorded.event, Phase2Succeeded):
                deciding = recorded.position
        if deciding is not None:
            found.append(deciding)
    return sorted(set(found))


def thread_lines(
    view: View, policy: Policy, *, extractor: str, now: int, previews: bool = True
) -> list[ThreadLine]:
    """Every thread, newest first, the forgotten ones that were never seen last."""
    version = policy.memory_version
    selected = {
        row.thread_id for row in view.find(snapshots, snapshots.MATCHED, memory_version=version)
    }
    output_rows = {
        row.thread_id: row
        for row in view.find(stage1_outputs, stage1_outputs.OF_VERSION, memory_version=version)
    }
    job_rows = {
        row.job_key: row
        for row in view.find(jobs, jobs.OF_VERSION, kind=jobs.STAGE1, memory_version=version)
    }
    lines = []
    for row in view.find(threads, threads.EVERY):
        lines.append(
            ThreadLine(
                thread_id=row.thread_id,
                source=row.source,
                kind=row.kind,
                scope=row.scope or None,
                memory_mode=row.mode if row.registered else "unknown",
                updated_at=moment(row.updated_at_ms) if row.registered else None,
                stage1=stage1_state(
                    row, job_rows.get(row.thread_id), policy, extractor=extractor, now=now
                ),
                selected=row.thread_id in selected and row.thread_id in output_rows,
                preview=view.body(row.preview_ref) if previews and row.preview_ref else None,
            )
        )
    return lines


def stage1_state(
    row: threads.Row, job: jobs.Row | None, policy: Policy, *, extractor: str, now: int
) -> str:
    """none (a gate is shut), waiting, running, succeeded, no_output, failed or forgotten."""
    if row.forgotten:
        return "forgotten"
    thread = state.thread_of(row)
    watermark = extraction.watermark_of(row.updated_at_ms)
    if job is not None:
        if job.status == "running" and (job.lease_until or 0) > now:
            return "running"
        if job.status == "error":
            return "failed"
        read = extraction.Extraction(
            thread_id=row.thread_id,
            memory_version=job.memory_version,
            last_success_watermark=job.last_success_watermark,
            extractor=job.extractor,
        )
        if extraction.is_up_to_date(read, watermark=watermark, extractor=extractor):
            return "succeeded" if job.outcome == "output" else "no_output"
    shut = eligibility.failed(eligibility.gates(thread, None, now=now, limits=policy.limits))
    if shut is None or shut.name == "idle":
        return "waiting"
    if job is not None and job.outcome is not None:
        return "succeeded" if job.outcome == "output" else "no_output"
    return "none"


def moment(ms: int) -> str:
    return (
        datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    )


def clock(at: int | None) -> str:
    return "-" if at is None else moment(at * 1000)
