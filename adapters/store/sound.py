"""The quick answer to a quick question: does every row of the log fit?

`verify.Walk` finds out what is wrong, and pays for that with every row. This asks only whether
anything is; the first doubt ends it without an answer, and the walk begins from the start. So all
that is told about damage is told by one piece of code, and a sound log is checked faster.

A row fits behind the chain that the row before it stores. So a log can be cut into parts that are
checked at the same time, each in a process of its own, where rows and processors are enough.
"""

import os
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import Struct

from . import chain
from .codec import UNREADABLE, Codec

ROWS_EACH = 100_000  # With less to do, another process takes longer to begin than it saves.
ROWS_MEANWHILE = 30_000  # So many are checked here while another process begins.
PROCESSES_MAX = 4


class Sound(Struct, frozen=True):
    """Of rows that all fit."""

    checked: int
    quarantined: list[int]
    unknown: dict[str, int]


class Part(Struct, frozen=True):
    """The rows from `first` to `until`."""

    first: int
    until: int


def whole(db: sqlite3.Connection, codec: Codec) -> Sound | None:
    """Of the log as `db` sees it. None: somebody must look closer."""
    try:
        first, until = db.execute("SELECT min(position), max(position) FROM events").fetchone()
        file: str = db.execute("PRAGMA database_list").fetchone()[2]  # Empty in memory.
    except sqlite3.Error:
        return None
    if first is None:
        return Sound(0, [], {})
    if (first, type(until)) != (1, int):
        return None
    here, *elsewhere = parts(until, processes(codec) if file else 1)
    if not elsewhere:
        return part(db, here, codec)
    from .checkers import checking

    with checking(Path(file), elsewhere) as answers:
        found = part(db, here, codec)
        for other, answer in zip(elsewhere, answers, strict=True):
            if found is None:
                return None
            # Whatever keeps a checker from an answer, it is looked for here as well.
            more = answer() or part(db, other, codec)
            found = None if more is None else together(found, more)
    return found


def parts(until: int, processes: int) -> list[Part]:
    """The first one is this process's, and larger: the others have to begin."""
    number = max(1, min(processes, until // ROWS_EACH))
    each = max(until - ROWS_MEANWHILE, 0) // number
    ends = [until - each * n for n in reversed(range(number))]
    return [Part(before + 1, end) for before, end in zip([0, *ends], ends, strict=False)]


def processes(codec: Codec) -> int:
    """How many may share the work: one where another process could not do the same as this."""
    if codec.upcasts:
        return 1
    # A program with Python inside of it may do anything when it is started anew.
    if getattr(sys, "frozen", False) or not Path(sys.executable or "").name.startswith("python"):
        return 1
    has_affinity = hasattr(os, "sched_getaffinity")
    usable = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return min(usable, PROCESSES_MAX)


def part(db: sqlite3.Connection, part: Part, codec: Codec) -> Sound | None:
    select = f"SELECT {chain.COLUMNS}, chain FROM events WHERE position >= ? ORDER BY position"
    try:
        with closing(db.execute(select, (max(part.first - 1, 1),))) as found:
            before: Any = chain.START
            if part.first > 1:
                row = found.fetchone()
                if row is None:
                    return None
                before = row[8]
            return rows(found, part, before, codec)
    except sqlite3.Error:
        return None


def rows(found: Iterable[tuple[Any, ...]], part: Part, before: bytes, codec: Codec) -> Sound | None:
    """The row behind the part is looked at too, so that nothing can stand between two parts."""
    canonical, decoders, expected = chain.canonical, codec.decoders, part.first
    quarantined: list[int] = []
    unknown: Counter[str] = Counter()
    try:
        # Each column has a name, because the parts of a tuple cost more: a million rows go here.
        for position, stream, version, type_, recorded_at_ms, actor, run_id, data, stored in found:
            if position != expected:
                return None
            if position > part.until:
                break
            columns = (position, stream, version, type_, recorded_at_ms, actor, run_id, data)
            # As in `chain.link`, written out.
            if sha256(before + canonical(columns)).digest() != stored:
                return None
            before = stored
            expected += 1
            decode = decoders.get(type_)
            if decode is None:
                unknown[type_] += 1
                continue
            try:
                decode(data)
            except UNREADABLE:
                quarantined.append(position)
    except (TypeError, UnicodeEncodeError):  # A column of another type, or text that is none.
        return None
    if expected <= part.until:
        return None
    return Sound(part.until - part.first + 1, quarantined, dict(unknown))


def together(a: Sound, b: Sound) -> Sound:
    unknown = Counter(a.unknown)
    unknown.update(b.unknown)
    return Sound(a.checked + b.checked, a.quarantined + b.quarantined, dict(unknown))
