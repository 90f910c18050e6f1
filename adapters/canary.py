"""Canary: one made-up session goes the whole way, in a home of its own that is removed again.

It is read, learned from, consolidated, shown to a next session, forgotten, and shown no more.
What breaks on the way is named, so that "nothing is remembered" has a first place to look.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..application.doctor import Finding
from ..application.ports import Failure
from ..domain.refusals import Refused

Opened = Callable[[Path], AbstractContextManager[Any]]  # What `Memory.open` gives.

ENDED_BEFORE_S = 12 * 3600
THREAD_ID = "00000000-0000-4000-8000-00000000cafe"
WORD = "canary-perch"
# What a person may have switched off, and whose defaults the canary goes by.
SWITCHES = ("generate_memories", "use_memories")
MEASURES = (
    "max_rollout_age_days",
    "min_rollout_idle_hours",
    "max_unused_days",
    "max_raw_memories_for_consolidation",
    "context_tokens",
)


def round_trip(folder: Path, opened: Opened, *, now: float) -> Iterator[Finding]:
    """`opened` gives a memory in a home, with the defaults of the `MEASURES`; `folder` is an empty
    one that nobody else uses."""
    project = folder / "project"
    project.mkdir()
    session = folder / "sessions" / f"rollout-{THREAD_ID}.jsonl"
    session.parent.mkdir()
    session.write_text(transcript(project, ended_at=now - ENDED_BEFORE_S), encoding="utf-8")
    try:
        with opened(folder / "home") as memory:
            off = [f"`{key} = false`" for key in SWITCHES if not getattr(memory.settings, key)]
            memory.run(sessions=[session.parent])
            shown = WORD in memory.context(project).text
            memory.forget(THREAD_ID)
            gone = WORD not in memory.context(project).text
    except (Failure, Refused) as error:
        yield Finding(
            level="error",
            what="canary",
            told=f"a made-up session could not go the whole way: {error}",
        )
        return
    if shown and gone:
        yield Finding(
            level="fine",
            what="canary",
            told="a made-up session was learned from, shown to the next one, and forgotten",
        )
    if not shown and off:
        yield Finding(
            level="warning",
            what="canary",
            told=f"your settings say {' and '.join(off)}: what sessions teach is not shown to the"
            " next ones",
        )
    elif not shown:
        yield Finding(
            level="error",
            what="canary",
            told="what a made-up session taught is not shown to the next one; please report this",
        )
    if not gone:
        yield Finding(
            level="error",
            what="canary",
            told="a forgotten made-up session is still shown; please report this",
        )


def transcript(project: Path, *, ended_at: float) -> str:
    stamp = datetime.fromtimestamp(ended_at, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
    meta = {"id": THREAD_ID, "timestamp": stamp, "source": "cli", "cwd": str(project)}
    wish = f"from now on always run {WORD} before you say that something is done"
    content = [{"type": "input_text", "text": wish}]
    payloads = (
        ("session_meta", meta),
        ("response_item", {"type": "message", "role": "user", "content": content}),
    )
    lines = ({"timestamp": stamp, "type": kind, "payload": each} for kind, each in payloads)
    return "".join(f"{json.dumps(line)}\n" for line in lines)
