"""Ingest: session files become threads. Files are only read, and a missing one deletes nothing.

Surveying is slow and needs no lock; recording is quick and decides on what is stored at that
moment. So two runs may read the same file at once, and the thread is still registered once.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import UNSET, Struct, UnsetType

from ..domain import scope, thread
from ..domain.events import (
    Event,
    MemoryModeSet,
    ProjectLinked,
    ThreadChanged,
    ThreadPolluted,
    ThreadRegistered,
    place_stream,
    thread_stream,
)
from ..domain.guard import RateLimits
from ..domain.redaction import redact, redact_names
from ..domain.session import CitedReply, Header
from ..projections import places, threads
from . import citing, state
from .notes import move_notes
from .places import scope_of
from .ports import Failure, Progress, Writing
from .reports import IngestReport
from .requests import move, request_where_it_counts, request_where_selected
from .surroundings import Restriction, Seen, Surroundings

BAD_LINE = "bad line"  # What is wrong with it is for `inspect rollout` to say.
NAME_CHARS_MAX = 80
TRIGGERS_TOLD_MAX = 20
BATCH = 100  # Threads a transaction: others get the write lock in between.


class Sighting(Struct, frozen=True, kw_only=True):
    """What one reading of a session found. A tail still being written has the file's mtime."""

    header: Header
    records: int
    polluting: tuple[str, ...]
    unfinished_mtime_ms: int | None
    root: str | None
    remote: str | None
    restriction: Restriction = Restriction()  # The project's own.
    citations: tuple[CitedReply, ...] = ()
    limits: tuple[int, RateLimits] | None = None  # The newest that its program was told of.


def survey(
    around: Surroundings, paths: Sequence[Path], *, progress: Progress | None = None
) -> tuple[list[Sighting], IngestReport]:
    """Every session under the paths, once: of two files with one id, the longer valid one."""
    report = IngestReport()
    found: dict[str, Sighting] = {}
    files = list(around.rollouts.discover(paths))
    seen: dict[str | None, tuple[Seen, Restriction | None]] = {}
    now_ms = int(around.clock() * 1000)
    for done, path in enumerate(files, start=1):
        if progress:
            progress("reading", done, len(files))
        try:
            read = around.rollouts.survey(path, now_ms=now_ms)
            mtime_ms = path.stat().st_mtime_ns // 1_000_000 if read.unfinished_tail else None
        except Failure as error:
            report.unreadable.append(str(error))
            continue
        except OSError as error:
            report.unreadable.append(f"{path}: {error.strerror}; it is left as it is")
            continue
        for kind, count in read.skipped.items():
            report.skipped_lines[kind] = report.skipped_lines.get(kind, 0) + count
        if read.bad_lines:
            count = report.skipped_lines.get(BAD_LINE, 0)
            report.skipped_lines[BAD_LINE] = count + len(read.bad_lines)
        cwd = read.header.cwd
        if cwd not in seen:
            seen[cwd] = look(around, cwd, report)
        place, restriction = seen[cwd]
        if restriction is None:
            continue
        sighting = Sighting(
            header=redact_names(read.header),
            records=read.records,
            polluting=read.polluting,
            unfinished_mtime_ms=mtime_ms,
            root=place.root,
            remote=place.remote,
            restriction=restriction,
            citations=read.citations,
            limits=read.limits,
        )
        known = found.get(read.header.thread_id)
        if known is None or length(sighting) > length(known):
            found[read.header.thread_id] = sighting
    report.sessions = len(found)
    return list(found.values()), report


def look(
    around: Surroundings, cwd: str | None, report: IngestReport
) -> tuple[Seen, Restriction | None]:
    """Where a session worked. Without a restriction its project says something that cannot be
    understood: until somebody mends that, its sessions wait."""
    place = around.look(cwd)
    try:
        return place, around.restriction(place)
    except Failure as error:
        told = f"{error}; until then the sessions of that project are not read"
        if told not in report.unreadable:
            report.unreadable.append(told)
        return place, None


def length(sighting: Sighting) -> tuple[int, int, str]:
    return sighting.records, sighting.header.updated_at_ms, sighting.header.rollout_path


def record(
    around: Surroundings, sightings: Sequence[Sighting], *, actor: str, run_id: str | None
) -> int:
    """Register and change threads, and count what they used; how many had something new to say.
    A use that only a transcript tells is known before anything unused is pruned."""
    changed = 0
    with around.watch("ingest", {}) as tell:
        for start in range(0, len(sightings), BATCH):
            with around.store.writing(actor=actor, run_id=run_id) as tx:
                changed += sum(
                    record_one(around, tx, each) for each in sightings[start : start + BATCH]
                )
        tell(changed)
    count_uses(around, sightings, actor=actor, run_id=run_id)
    return changed


def count_uses(
    around: Surroundings, sightings: Iterable[Sighting], *, actor: str, run_id: str | None
) -> int:
    """What the sessions' own replies cite. Asked again when more has an output; how many uses were
    new."""
    citing_ones = [
        (sighting.header.thread_id, sighting.citations)
        for sighting in sightings
        if sighting.citations
    ]
    if not citing_ones:
        return 0
    with around.watch("count_uses", {}) as tell:
        count = citing.found(around, citing_ones, actor=actor, run_id=run_id)
        tell(count)
        return count


def record_one(around: Surroundings, tx: Writing, sighting: Sighting) -> bool:
    known = state.thread(tx, sighting.header.thread_id)
    if known.forgotten:
        return False
    elsewhere = is_elsewhere(around, known, sighting.header)
    if elsewhere and sighting.header.updated_at_ms < known.updated_at_ms:
        return False  # A copy that says less, such as a backup, takes nothing back.
    now = around.now()
    events: list[Event] = []
    if known.exists:
        events += changes(around, tx, known, sighting, elsewhere=elsewhere, now=now)
    else:
        events += first_sight(around, tx, known, sighting, now=now)
    if events:
        tx.append(thread_stream(known.thread_id), *events)
    if any(isinstance(event, ThreadChanged) for event in events):
        follow_facts(around, tx, known, now=now)
    for event in events:
        match event:
            case ThreadPolluted():
                request_where_selected(tx, known.thread_id, cause="polluted", now=now)
            case MemoryModeSet():
                request_where_it_counts(
                    tx, around.policy, known.thread_id, cause="memory_mode", now=now
                )
    linked = link(around, tx, sighting, now=now)
    return bool(events) or linked


def is_elsewhere(around: Surroundings, known: thread.Thread, header: Header) -> bool:
    """Another file of the session than the one that the log knows, which is another machine's, or
    still lies where it was. What is not there any more on this machine has moved."""
    if not known.exists:
        return False
    if known.machine_id not in (None, around.machine_id):
        return True
    return header.rollout_path != known.rollout_path and Path(known.rollout_path).exists()


def first_sight(
    around: Surroundings, tx: Writing, known: thread.Thread, sighting: Sighting, *, now: int
) -> list[Event]:
    header = sighting.header
    registered = registration(
        around,
        tx,
        known,
        header,
        seen=Seen(root=sighting.root, remote=sighting.remote),
        restriction=sighting.restriction,
        preview=redact(header.preview).strip() if header.preview else "",
        machine_id=around.machine_id,
        now=now,
    )
    triggers = outside_text(around, sighting)
    if not triggers:
        return [registered]
    asked = pollution(thread.evolve(known, registered), triggers, now=now)
    return [registered] if asked is None else [registered, asked]


def registration(
    around: Surroundings,
    tx: Writing,
    known: thread.Thread,
    header: Header,
    *,
    seen: Seen,
    restriction: Restriction,
    preview: str,
    machine_id: str | None,
    now: int,
) -> ThreadRegistered:
    """A thread that was never seen, in the project and the mode that these facts give it."""
    mode, reason = thread.first_mode(
        header,
        generate_memories=around.policy.generate_memories and restriction.generate_memories,
    )
    return thread.register(
        known,
        header=header,
        scope=scope_of(
            around,
            tx,
            known.thread_id,
            cwd=header.cwd,
            repository_url=header.repository_url,
            root=seen.root,
            remote=seen.remote,
        ),
        root=seen.root,
        preview_ref=tx.put(thread_stream(known.thread_id), preview) if preview else None,
        mode=mode,
        mode_reason=reason,
        machine_id=machine_id,
        now=now,
    )


def follow_facts(around: Surroundings, tx: Writing, before: thread.Thread, *, now: int) -> None:
    """A thread whose facts have only now become known moves to where they put it.

    One that a person put somewhere, or that had the key of its facts already, stays.
    """

    def derived(known: thread.Thread) -> str:
        return scope_of(
            around,
            tx,
            known.thread_id,
            cwd=known.cwd,
            repository_url=known.repository_url,
            root=known.root,
        )

    after = state.thread(tx, before.thread_id)
    if before.scope != derived(before):
        return
    moved = thread.rescope(after, scope=derived(after), reason="facts", now=now)
    if moved is not None:
        move(tx, around.policy, moved, now=now)


def changes(
    around: Surroundings,
    tx: Writing,
    known: thread.Thread,
    sighting: Sighting,
    *,
    elsewhere: bool,
    now: int,
) -> list[Event]:
    header = sighting.header
    preview_ref: str | UnsetType = UNSET
    if header.preview and (header.updated_at_ms != known.updated_at_ms or not known.preview_ref):
        preview = redact(header.preview).strip()
        before = tx.body(known.preview_ref) if known.preview_ref else None
        if preview and preview != before:
            preview_ref = tx.put(thread_stream(known.thread_id), preview)
    read = thread.change(
        known,
        header=header,
        root=sighting.root,
        preview_ref=preview_ref,
        machine_id=around.machine_id,
        elsewhere=elsewhere,
        now=now,
    )
    asked = thread.follow_transcript(known, memory_mode=header.memory_mode, now=now)
    # Outside text counts when it comes in. What a person enabled stays so until more comes; a
    # session that grew is judged whole.
    triggers = outside_text(around, sighting)
    if asked is None and triggers and (read is not None or known.mode_reason != "asked"):
        asked = pollution(known, triggers, now=now)
    return [event for event in (read, asked) if event is not None]


def outside_text(around: Surroundings, sighting: Sighting) -> tuple[str, ...]:
    """What brought text from outside into the session, where the stricter word of the user's
    settings and of the project's own says that it pollutes."""
    own = sighting.restriction.disable_on_external_context
    if not (own or around.policy.disable_on_external_context):
        return ()
    return thread.outside_text(sighting.polluting, trusted=around.policy.trusted_mcp_servers)


def pollution(known: thread.Thread, triggers: Sequence[str], *, now: int) -> ThreadPolluted | None:
    """The first trigger is the cause, and all are told. Their names come from a file."""
    told = [redact(each)[:NAME_CHARS_MAX] for each in triggers[:TRIGGERS_TOLD_MAX]]
    return thread.pollute(known, cause=told[0], detail=", ".join(told), now=now)


def link(around: Surroundings, tx: Writing, sighting: Sighting, *, now: int) -> bool:
    """A root's first remote takes the root's threads along, in the same transaction."""
    if not sighting.root or not sighting.remote:
        return False
    known = tx.find(places, places.OF_ROOT, root=sighting.root)
    if known:
        return False
    rows = tx.find(threads, threads.OF_ROOT, root=sighting.root)
    events = scope.link(
        root=sighting.root,
        remote=sighting.remote,
        known_remote=None,
        threads=[state.thread_of(row) for row in rows],
        machine_id=around.machine_id,
        now=now,
    )
    for event in events:
        if isinstance(event, ProjectLinked):
            tx.append(place_stream(event.scope), event)
            here = scope.project_of_root(sighting.root, machine_id=around.machine_id)
            move_notes(tx, scope_before=here, scope=event.scope)
        else:
            move(tx, around.policy, event, now=now)
    return bool(events)


def by_thread(sightings: Iterable[Sighting]) -> dict[str, Sighting]:
    return {sighting.header.thread_id: sighting for sighting in sightings}
