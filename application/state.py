"""Rows become the states that commands decide on. Read inside the transaction that appends."""

from msgspec.structs import asdict

from ..domain.consolidation import Consolidation
from ..domain.events import Stage1Succeeded, Stage1SucceededNoOutput, extraction_stream
from ..domain.extraction import Extraction, is_up_to_date, watermark_of
from ..domain.ids import UUID
from ..domain.refusals import SeveralThreads
from ..domain.selection import Output
from ..domain.thread import Thread
from ..projections import jobs, selection, stage1_outputs, threads
from .ports import View


def thread(view: View, thread_id: str) -> Thread:
    rows = view.rows(threads, (thread_id,))
    return thread_of(rows[0]) if rows else Thread(thread_id=thread_id)


START_CHARS_MIN = 6


def as_stored(session: str) -> str:
    """A UUID is one id however it is written, and sessions are known by small letters."""
    plain = session.strip()
    return plain.lower() if UUID.fullmatch(plain) else session


def named(view: View, text: str) -> str:
    """The id that a person means: the whole of it, or so much that only one begins like it."""
    text = as_stored(text)
    if view.rows(threads, (text,)) or len(text) < START_CHARS_MIN:
        return text
    found = [row.thread_id for row in view.find(threads, threads.BEGINNING, start=text)]
    if len(found) > 1:
        raise SeveralThreads(text, found)
    return found[0] if found else text


def thread_of(row: threads.Row) -> Thread:
    held = asdict(row)
    return Thread(
        exists=bool(row.registered),
        forgotten=bool(row.forgotten),
        archived=bool(row.archived),
        tool=row.tool or "codex",
        **{name: held[name] for name in SAME_IN_THREAD},
    )


SAME_IN_THREAD = tuple(
    name
    for name in Thread.__struct_fields__
    if name in threads.Row.__struct_fields__ and name not in ("forgotten", "archived", "tool")
)


def extraction(view: View, memory_version: str, thread_id: str) -> Extraction:
    known = thread(view, thread_id)
    rows = view.rows(jobs, (jobs.STAGE1, thread_id, memory_version))
    job = {name: getattr(rows[0], name) for name in SAME_IN_EXTRACTION} if rows else {}
    outputs = view.rows(stage1_outputs, (thread_id, memory_version))
    if outputs:
        job |= {
            "output_source_updated_at": outputs[0].source_updated_at,
            "usage_count": outputs[0].usage_count,
            "last_usage": outputs[0].last_usage,
            "selected": any(
                row.memory_version == memory_version
                for row in view.find(selection, selection.SELECTED, thread_id=thread_id)
            ),
        }
    return Extraction(
        thread_id=thread_id, memory_version=memory_version, forgotten=known.forgotten, **job
    )


def last_read(
    view: View, memory_version: str, thread_id: str
) -> Stage1Succeeded | Stage1SucceededNoOutput | None:
    """What came of the last reading of a session that came to its end."""
    found = None
    for recorded in view.events(stream=extraction_stream(memory_version, thread_id)):
        if isinstance(recorded.event, Stage1Succeeded | Stage1SucceededNoOutput):
            found = recorded.event
    return found


SAME_IN_EXTRACTION = tuple(
    name
    for name in Extraction.__struct_fields__
    if name in jobs.Row.__struct_fields__ and name != "memory_version"
)


def is_read(
    view: View, memory_version: str, thread: Thread, *, extractor: str, again: bool = False
) -> bool:
    """Whether a thread was read as it is now, by a reader as good. `again`: as if it was not."""
    return is_up_to_date(
        extraction(view, memory_version, thread.thread_id),
        watermark=watermark_of(thread.updated_at_ms),
        extractor=extractor,
        again=again,
    )


def consolidation(view: View, memory_version: str, scope: str) -> Consolidation:
    rows = view.rows(jobs, (jobs.PHASE2, scope, memory_version))
    if not rows:
        return Consolidation(memory_version=memory_version, scope=scope)
    held = {name: getattr(rows[0], name) for name in SAME_IN_CONSOLIDATION}
    held["input_watermark"] = held["input_watermark"] or 0
    held["last_success_watermark"] = held["last_success_watermark"] or 0
    return Consolidation(scope=scope, **held)


SAME_IN_CONSOLIDATION = tuple(
    name for name in Consolidation.__struct_fields__ if name in jobs.Row.__struct_fields__
)


def output_of(row: stage1_outputs.Row, *, selected: bool = False) -> Output:
    return Output(
        thread_id=row.thread_id,
        source_updated_at=row.source_updated_at,
        counts_from=row.counts_from,
        usage_count=row.usage_count,
        last_usage=row.last_usage,
        mode=row.memory_mode,
        selected=selected,
    )
