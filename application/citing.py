"""Citing: a reply names sessions, and each whose memory was in reach counts as used.

It counts once a thread, session and turn, and only where the thread has a live output. In reach is
what the citing session had before its eyes: a thread that a recorded read or search gave it, one of
those that a memory it was shown had been made from, or one whose id stood earlier in its
transcript, which only ingest can know. What does not count is told with a reason.

A turn is the ordinal of the message that a person typed, from 1. A caller who counts otherwise
loses nothing: what ingest finds in the transcript counts no session's turns twice (`surplus`).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

from ..domain import extraction
from ..domain.citation import parse, usage_ids
from ..domain.events import Phase2Succeeded, consolidation_stream, extraction_stream
from ..domain.session import CitedReply
from ..projections import citations, selection, shown, stage1_outputs
from . import state
from .ports import View, Writing
from .reading import record_left
from .reports import CiteReport
from .surroundings import Surroundings


def cite(
    around: Surroundings, reply: str, *, session: str | None, turn: int, actor: str
) -> CiteReport:
    """Read a whole reply and count what it used. Without a session nothing counts."""
    citation = parse(reply)
    report = count_written(around, citation.ids_raw, session=session, turn=turn, actor=actor)
    report.visible = citation.visible
    return report


def count_written(
    around: Surroundings, written: Sequence[str], *, session: str | None, turn: int, actor: str
) -> CiteReport:
    """Count a use of each thread that a model named, which may have written anything."""
    ids = usage_ids(tuple(written))
    report = CiteReport()
    others = [each for each in written if each.lower() not in ids]
    report.not_counted |= dict.fromkeys(others, "not_an_id")
    if session:
        count(around, ids, session=session, turn=turn, actor=actor, report=report)
    else:
        report.not_counted |= dict.fromkeys(ids, "no_session")
    return report


def cited(around: Surroundings, ids: Iterable[str], *, session: str, turn: int, actor: str) -> int:
    """Count a use of each thread; how many uses were new."""
    report = CiteReport()
    count(around, ids, session=session, turn=turn, actor=actor, report=report)
    return len(report.counted)


def count(
    around: Surroundings,
    ids: Iterable[str],
    *,
    session: str,
    turn: int,
    actor: str,
    report: CiteReport,
) -> None:
    version = around.policy.memory_version
    session = state.as_stored(session)
    named = dict.fromkeys(state.as_stored(thread_id) for thread_id in ids if is_text(thread_id))
    if not named:
        return
    record_left(around)
    with around.store.writing(actor=actor) as tx:
        out = {each: why_not(tx, version, each, session=session) for each in named}
        live = [thread_id for thread_id, why in out.items() if why is None]
        reach = in_reach(tx, version, session, live)
        for thread_id, why in out.items():
            if why is None and thread_id not in reach:
                why = "not_in_reach"
            if why is None and not use(
                tx, version, thread_id, citation_id=citation_id(session, turn), now=around.now()
            ):
                why = "counted_before"
            if why is None:
                report.counted.append(thread_id)
            else:
                report.not_counted[thread_id] = why


def why_not(view: View, version: str, thread_id: str, *, session: str) -> str | None:
    """What keeps a use of the thread from counting, whoever was shown what."""
    if thread_id == session:
        return "itself"
    thread = state.thread(view, thread_id)
    if thread.forgotten:
        return "forgotten"
    if not thread.exists:
        return "unknown"
    if thread.mode != "enabled":
        return thread.mode
    return None if view.rows(stage1_outputs, (thread_id, version)) else "no_output"


def found(
    around: Surroundings,
    transcripts: Iterable[tuple[str, Sequence[CitedReply]]],
    *,
    actor: str,
    run_id: str | None,
) -> int:
    """Count what sessions cite in their transcripts and was not counted when it happened; how many
    uses were new. However often a transcript is read, and however it grew, a turn counts once."""
    count = 0
    version = around.policy.memory_version
    with around.store.reading() as view:  # Nobody waits for a lock where nothing is new.
        new = [each for each in transcripts if any(uncounted(view, version, *each))]
    for session, replies in new:
        with around.store.writing(actor=actor, run_id=run_id) as tx:
            now = around.now()
            for thread_id, cited_as, used_at in list(uncounted(tx, version, session, replies)):
                count += use(tx, version, thread_id, citation_id=cited_as, used_at=used_at, now=now)
    return count


def uncounted(
    view: View, version: str, session: str, replies: Sequence[CitedReply]
) -> Iterator[tuple[str, str, int | None]]:
    """(thread, citation id, when) of the uses in reach that are still to be counted."""
    if state.thread(view, session).forgotten:
        return
    live = [
        thread_id
        for thread_id in dict.fromkeys(cited for reply in replies for cited in reply.ids)
        if why_not(view, version, thread_id, session=session) is None
    ]
    if not live:
        return
    reach = in_reach(view, version, session, live)
    for thread_id in live:
        turns = {
            citation_id(session, reply.turn): reply.at_ms
            for reply in replies
            if thread_id in (reply.ids if thread_id in reach else reply.stood_before)
        }
        for cited_as in surplus(turns, counted_of(view, version, thread_id, session)):
            at_ms = turns[cited_as]
            yield thread_id, cited_as, None if at_ms is None else at_ms // 1000


def surplus(turns: Iterable[str], counted: Collection[str]) -> list[str]:
    """Of the turns that a transcript cites in, those beyond what has counted: where somebody
    counted turns otherwise than we do, as many more as the transcript has."""
    turns = list(turns)
    room = max(len(turns) - len(counted), 0)
    return [turn for turn in turns if turn not in counted][:room]


def counted_of(view: View, version: str, thread_id: str, session: str) -> set[str]:
    rows = view.find(
        citations,
        citations.OF_SESSION,
        thread_id=thread_id,
        memory_version=version,
        session=session,
    )
    return {row.citation_id for row in rows if row.citation_id.rpartition(":")[0] == session}


def use(
    tx: Writing,
    version: str,
    thread_id: str,
    *,
    citation_id: str,
    used_at: int | None = None,
    now: int,
) -> bool:
    """Record one use; False where this session and turn has counted already."""
    used = extraction.cite(
        state.extraction(tx, version, thread_id),
        citation_id=citation_id,
        counted_before=bool(tx.rows(citations, (thread_id, version, citation_id))),
        used_at=used_at,
        now=now,
    )
    if used is None:
        return False
    tx.append(extraction_stream(version, thread_id), used)
    return True


def in_reach(view: View, version: str, session: str, ids: Collection[str]) -> set[str]:
    """Which of the threads the session was shown, by a read or search or in a memory."""
    of_session = {"session_id": session, "memory_version": version}
    found = {
        thread_id
        for thread_id in ids
        if view.find(shown, shown.THREAD_GIVEN, thread_id=thread_id, **of_session)
    }
    wanted = set(ids) - found
    if not wanted:
        return found
    showings: dict[str, list[shown.Row]] = {}
    for row in view.find(shown, shown.RENDERINGS, **of_session):
        showings.setdefault(row.scope, []).append(row)
    for scope, rows in showings.items():
        found |= wanted & made_from_now(view, version, scope, rows)
        if not wanted <= found:
            positions = sorted(row.rendered_position for row in rows)
            found |= wanted & made_from_then(view, version, scope, positions)
    return found


def made_from_now(view: View, version: str, scope: str, rows: Iterable[shown.Row]) -> set[str]:
    """The last success's threads, where it was over before the memory was shown: the usual case,
    which needs no look into the log."""
    newest = max(row.at for row in rows)
    snapshot = view.rows(selection, (version, scope))
    return {row.thread_id for row in snapshot if row.selected_at < newest}


def made_from_then(view: View, version: str, scope: str, positions: list[int]) -> set[str]:
    """The threads of the success that stood at each of the positions, which ascend."""
    found: set[str] = set()
    standing: set[str] = set()
    at = 0
    for recorded in view.events(stream=consolidation_stream(version, scope)):
        while at < len(positions) and positions[at] < recorded.position:
            found |= standing
            at += 1
        if at == len(positions):
            return found
        if isinstance(recorded.event, Phase2Succeeded):
            standing = {each.thread_id for each in recorded.event.selected}
    return found | standing


def citation_id(session: str, turn: int) -> str:
    return f"{session}:{turn}"


def is_text(cited: object) -> bool:
    """What a reply cites is anything at all; it must not keep the ids beside it from counting."""
    return isinstance(cited, str) and not any("\ud800" <= c <= "\udfff" for c in cited)
