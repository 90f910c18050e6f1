"""Eligibility: why a session may be read, and its output selected, or why not.

`gates` answers for one thread in a fixed order, each gate with a sentence. It knows nothing of
leases, caps and waits: those are not reasons against a session, only against now. Bounds are
inclusive and compared in milliseconds, as Codex compares them.
"""

from typing import Literal

import msgspec
from msgspec import Struct

from .refusals import clock
from .selection import Output, cutoff_at, last_needed
from .thread import Thread

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
CODEX_SOURCES = ("cli", "vscode", "atlas", "chatgpt")

GateName = Literal[
    "not_forgotten",
    "memory_mode",
    "source_kind",
    "human_message",
    "archived",
    "age",
    "idle",
    "live_output",
    "recent",
]


class Limits(Struct, frozen=True, kw_only=True):
    """Codex's limits with its defaults, and ours: `running_cap` is apart from the batch."""

    max_rollouts_per_startup: int = 2
    running_cap: int = 2
    max_rollout_age_days: int = 10
    min_rollout_idle_hours: int = 6
    max_raw_memories_for_consolidation: int = 256
    max_unused_days: int = 30
    scan_limit: int = 5_000
    prune_batch: int = 200
    allowed_sources: tuple[str, ...] = CODEX_SOURCES  # Empty: every interactive one.


RANGES = {
    "max_rollouts_per_startup": (1, 128),
    "running_cap": (1, 128),
    "max_rollout_age_days": (0, 90),
    "min_rollout_idle_hours": (1, 48),
    "max_raw_memories_for_consolidation": (1, 4_096),
    "max_unused_days": (0, 365),
}


def clamp(name: str, value: int) -> int:
    """A value outside the range of its setting acts as the nearer end of it."""
    lowest, highest = RANGES[name]
    return max(lowest, min(value, highest))


def clamped(limits: Limits) -> Limits:
    return msgspec.structs.replace(
        limits, **{name: clamp(name, getattr(limits, name)) for name in RANGES}
    )


class Gate(Struct, frozen=True, kw_only=True):
    name: GateName
    passed: bool
    why: str


def gates(
    thread: Thread,
    output: Output | None,
    *,
    now: float,
    limits: Limits,
    current_thread: str | None = None,
    unfinished_mtime_ms: int | None = None,
    backfill: bool = False,
) -> tuple[Gate, ...]:
    """Without an output: may the session be read? With one: may the output be selected?

    To ask whether a session that has an output may be read again, pass None. `current_thread` is
    the session that asks; `unfinished_mtime_ms` is the mtime of a file whose last line is half
    written, None when it is whole.
    """
    always = (
        not_forgotten(thread),
        memory_mode(thread),
        source_kind(thread, limits),
        human(thread),
    )
    if output is not None:
        return (*always, live_output(output), recent(output, now=now, limits=limits))
    now_ms = int(now * 1000)
    return (
        *always,
        archived(thread),
        age(thread, now_ms=now_ms, limits=limits, backfill=backfill),
        idle(
            thread,
            now_ms=now_ms,
            limits=limits,
            current_thread=current_thread,
            unfinished_mtime_ms=unfinished_mtime_ms,
        ),
    )


def failed(answers: tuple[Gate, ...]) -> Gate | None:
    """The first gate that is shut, or None: the way is free."""
    return next((gate for gate in answers if not gate.passed), None)


def window_ms(*, now: float, limits: Limits, backfill: bool = False) -> tuple[int, int]:
    """The oldest and the newest updated_at_ms that the gates age and idle let through."""
    now_ms = int(now * 1000)
    oldest = 0 if backfill else now_ms - limits.max_rollout_age_days * DAY_MS
    return oldest, now_ms - limits.min_rollout_idle_hours * HOUR_MS


def not_forgotten(thread: Thread) -> Gate:
    why = "it was forgotten, and stays so" if thread.forgotten else "nobody asked to forget it"
    return Gate(name="not_forgotten", passed=not thread.forgotten, why=why)


def memory_mode(thread: Thread) -> Gate:
    passed = thread.mode == "enabled"
    reason = f" ({thread.mode_reason})" if thread.mode_reason and not passed else ""
    advice = "" if passed else f"; `threadbook mode {thread.thread_id} enabled` changes it"
    why = f"memory mode is {thread.mode}{reason}{advice}"
    return Gate(name="memory_mode", passed=passed, why=why)


def source_kind(thread: Thread, limits: Limits) -> Gate:
    """Only a session that a person led teaches what a person wants."""
    source = parsed_source(thread.source)
    if thread.kind != "interactive":
        why = f"a session of kind {thread.kind} ({thread.source}); only interactive ones are read"
        return Gate(name="source_kind", passed=False, why=why)
    allowed = limits.allowed_sources
    if thread.tool == "codex" and allowed and source and source not in allowed:
        why = f"its source is {source}; read are {', '.join(allowed)}"
        return Gate(name="source_kind", passed=False, why=why)
    return Gate(name="source_kind", passed=True, why=f"an interactive session ({thread.source})")


def human(thread: Thread) -> Gate:
    passed = thread.preview_ref is not None
    why = "a person typed in it" if passed else "no message that a person typed was found in it"
    if thread.forgotten:
        why = "what a person typed in it was erased"
    return Gate(name="human_message", passed=passed, why=why)


def archived(thread: Thread) -> Gate:
    why = "it is archived; archived sessions are not read" if thread.archived else "not archived"
    return Gate(name="archived", passed=not thread.archived, why=why)


def age(thread: Thread, *, now_ms: int, limits: Limits, backfill: bool) -> Gate:
    old = span(now_ms - thread.updated_at_ms)
    most = limits.max_rollout_age_days
    if backfill:
        return Gate(name="age", passed=True, why=f"last active {old} ago; a backfill reads all")
    passed = thread.updated_at_ms >= now_ms - most * DAY_MS
    why = f"last active {old} ago; at most {most} d are read" + (
        "" if passed else " (`threadbook run --backfill` reads older ones)"
    )
    return Gate(name="age", passed=passed, why=why)


def idle(
    thread: Thread,
    *,
    now_ms: int,
    limits: Limits,
    current_thread: str | None,
    unfinished_mtime_ms: int | None,
) -> Gate:
    needs = limits.min_rollout_idle_hours
    since = now_ms - needs * HOUR_MS
    if thread.thread_id == current_thread:
        return Gate(name="idle", passed=False, why="it is the session that asks, and still open")
    # A time after now says nothing about when the file was written.
    if unfinished_mtime_ms is not None and since < unfinished_mtime_ms <= now_ms:
        written = span(now_ms - unfinished_mtime_ms)
        why = f"its last line is half written, {written} ago; needs {needs} h without a write"
        return Gate(name="idle", passed=False, why=why)
    passed = thread.updated_at_ms <= since
    why = f"idle for {span(now_ms - thread.updated_at_ms)}; needs {needs} h"
    return Gate(name="idle", passed=passed, why=why)


def live_output(output: Output) -> Gate:
    why = f"it has an output, read as the session was at {clock(output.source_updated_at)}"
    return Gate(name="live_output", passed=True, why=why)


def recent(output: Output, *, now: float, limits: Limits) -> Gate:
    cutoff = cutoff_at(int(now), max_unused_days=limits.max_unused_days)
    needed = last_needed(output)
    verb = "not cited yet, counts from" if output.last_usage is None else "last cited"
    ago = span((int(now) - needed) * 1000)
    why = f"{verb} {ago} ago; at most {limits.max_unused_days} d are selected"
    return Gate(name="recent", passed=needed >= cutoff, why=why)


def parsed_source(source: str) -> str | None:
    """Codex's word for where a session came from: `cli`, or the name of a custom source.

    None where the word names a structure that is no custom source, or nothing at all.
    """
    if not source.startswith("{"):
        return source or None
    try:
        parsed = msgspec.json.decode(source)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    custom = parsed.get("custom")
    return custom if isinstance(custom, str) else None


def span(ms: int) -> str:
    """A length of time as a person says it, in its largest whole unit and rounded down."""
    if ms < 0:
        return "0 min"
    minutes = ms // 60_000
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        hours, rest = divmod(minutes, 60)
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    return f"{minutes // (24 * 60)} d"
