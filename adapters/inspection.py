"""Inspection: one session file as Threadbook reads it, and as a model would be shown it.

Nothing is stored, nothing is sent, and no home is needed.
"""

import time
from pathlib import Path
from typing import Any

from ..application.explain import moment
from ..domain.budget import pieces
from ..domain.evidence import MESSAGE_BYTES, render, token_limit
from ..domain.redaction import redact
from ..domain.scope import scope_of
from ..domain.thread import outside_text
from . import places, rollouts
from .wiring import home_dirs, machine


def rollout(file: Path, *, home: Path, now: float | None) -> dict[str, Any]:
    """One session file as it is read. Raises `RolloutError`.

    The scope is what the files say on this machine as `home` knows it, which need not be there; a
    person's word in a memory, or a remote that a project has had, is not asked for.
    """
    read = rollouts.survey(file, now_ms=int((time.time() if now is None else now) * 1000))
    header = read.header
    seen = places.look(header.cwd)
    scope = scope_of(
        thread_id=header.thread_id,
        cwd=header.cwd,
        repository_url=header.repository_url,
        root=seen.root,
        remote=seen.remote,
        machine_id=machine(home) if (home / "machine").exists() else "",
        home_dirs=home_dirs(),
    )
    return {
        "thread": {
            "thread_id": header.thread_id,
            "source": header.source,
            "kind": header.kind,
            "cwd": header.cwd,
            "scope": scope,
            "started_at": moment(header.created_at_ms),
            "updated_at": moment(header.updated_at_ms),
            "forked_from": header.forked_from,
        },
        "records": read.records,
        "bad_lines": [
            {"line": bad.line, "offset": bad.offset, "reason": bad.reason} for bad in read.bad_lines
        ],
        "skipped": read.skipped,
        "human_messages": [redact(text) for text in read.human_messages],
        "unfinished_tail": read.unfinished_tail,
        "polluting": list(outside_text(read.polluting)),
        "citations": [
            {"turn": each.turn, "ids": list(each.ids), "stood_before": list(each.stood_before)}
            for each in read.citations
        ],
    }


def evidence(file: Path, *, version: str, context_window: int, now: float | None) -> dict[str, Any]:
    """What a model with a window of so many tokens is shown of a session file. `messages` are the
    bytes of the pieces that v2 is sent in, without the words round it. Raises `RolloutError`."""
    shown = rollouts.evidence(file, now_ms=int((time.time() if now is None else now) * 1000))
    rendered = render(shown, version=version, tokens=token_limit(context_window))
    told = pieces(rendered.text, bytes_max=MESSAGE_BYTES) if version == "v2" else [rendered.text]
    return {
        "text": rendered.text,
        "version": version,
        "items": rendered.items,
        "omitted": rendered.omitted,
        "omitted_bytes": rendered.omitted_bytes,
        "messages": [len(each.encode()) for each in told],
    }
