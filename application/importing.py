"""Importing: what another program remembered becomes threads, outputs and notes of ours.

A raw memory with its summary is an output, read by `import:codex`, of a thread that is registered
if nobody knew it: so it is selected, explained, polluted and forgotten as any other. What we know
as well or better stays, a session that taught us nothing is no such knowledge, and what was
forgotten stays out. That reader counts as good as a model:
the session is read again when it goes on, or when a person says so.

Files are kept beside a project's memory (`imported.py`), each project's under a key of its own.
They are source material and no instructions, and no session is given them unasked. A handbook is
read only as long as each of the sessions that it was made from may be.

Everything passes redaction. Whose a file is, is asked of where its project lies; where nobody can
tell, it is left out, and told.
"""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from ..domain import extraction, thread
from ..domain.events import (
    ThreadRegistered,
    extraction_stream,
    thread_stream,
)
from ..domain.redaction import redact, redact_names, redacted
from ..domain.refusals import LeaseHeld, Refused
from ..domain.scope import checked as checked_scope
from ..domain.scope import folder_name, has_root
from ..domain.session import Header
from . import state
from .foreign import ClaudeFolder, CodexFolder, ForeignProject, ForeignThread, LeftOut
from .imported import (
    ACTOR,
    imported,
    instruct,
    is_key,
    is_portable,
    keep,
    owned,
    replaced,
    scope_file_of,
    touch,
)
from .ingest import registration
from .kept import kept
from .notes import LOCK_WAIT_S, checked
from .places import scope_of
from .ports import Extracted, Failure, Writing
from .reading import Unreadable
from .render import render
from .reports import ImportReport, ProjectReport
from .requests import request, root_of
from .roots import (
    NOTES,
    SCOPE_FILE,
    Root,
    ScopeFile,
    manifest,
    may_stand,
    notes_of,
)
from .surroundings import GLOBAL, FolderUnusable, Restriction, Seen, Surroundings

CODEX = "codex"
READER = "import:codex"
BATCH = 25  # Threads a transaction: others get the write lock in between.
DAY_S = 86_400
PREVIEW_CHARS_MAX = 200
ID_CHARS_MAX = 200

_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d")

# Why a thread is left as it is.
LEFT = {
    "known": "known as they are, or better",
    "forgotten": "forgotten, and stay so",
    "being_read": "being read by a run; import again when it has ended",
    "no_words": "without words",
    "project_file": "of a project whose .threadbook.toml cannot be used",
    "bad_id": "with an id that no session has",
    "in_future": "of a time that is not yet; check the clock",
}


class InvalidKey(Refused):
    code = "invalid_key"

    def __init__(self, key: str) -> None:
        super().__init__(
            f"{redact(key)!r} is no key of a project; give the name of one folder in projects/"
        )


class NoSuchScope(Refused):
    code = "no_scope"

    def __init__(self, scope: str) -> None:
        super().__init__(f"{scope} is no project; name one, as `project:<name>`")


class Rehearsed(Exception):
    """A dry run has decided everything, and nothing of it is kept."""


def import_codex(
    around: Surroundings,
    folder: CodexFolder,
    *,
    instructions: str,
    scope: str | None = None,
    dry_run: bool = False,
) -> ImportReport:
    """`scope` is whose the notes and the handbook are where the folder mixes projects."""
    asked = None if scope is None else checked_scope(scope)
    if asked is not None and not has_root(asked):
        raise NoSuchScope(asked)
    if asked == GLOBAL != around.policy.scope:
        raise NoSuchScope(asked)  # Nobody reads that one.
    report = ImportReport(program="codex", folder=folder.path, dry_run=dry_run)
    report.left_out += folder.left_out
    scopes: set[str] = set()
    places: dict[str | None, tuple[Seen, Restriction | None]] = {}
    for cwd in {foreign.cwd for foreign in folder.threads}:
        seen = around.look(cwd)
        try:
            places[cwd] = seen, around.restriction(seen)
        except Failure as error:
            places[cwd] = seen, None
            report.left_out.append(LeftOut(what=cwd or "", why=str(error)))
    for start in range(0, len(folder.threads), BATCH):
        with writing(around, dry_run=dry_run) as tx:
            for foreign in folder.threads[start : start + BATCH]:
                seen, restriction = places[foreign.cwd]
                left = import_thread(around, tx, foreign, seen, restriction, scopes, report)
                if left is None:
                    report.imported.append(foreign.thread_id)
                else:
                    report.left.setdefault(left, []).append(foreign.thread_id)
    whose = asked or (GLOBAL if around.policy.scope == GLOBAL else None)
    if whose is None and len(scopes) == 1 and has_root(min(scopes)):
        whose = min(scopes)
    if whose is None:
        why = (
            f"it is of {len(scopes)} projects at once" if scopes else "nobody can tell whose it is"
        )
        why += "; --scope project:<name> says whose it shall be"
        report.left_out += [LeftOut(what=f"{NOTES}/{name}", why=why) for name in folder.notes]
        report.left_out += [LeftOut(what=path, why=why) for path in folder.files]
    else:
        with writing(around, dry_run=dry_run) as tx, asking(around, tx, report):
            for name, text in folder.notes.items():
                import_note(around, tx, whose, name, text, report)
            import_handbook(around, tx, folder, whose, report)
            instruct(around, tx, instructions)
    for project in folder.projects:
        one_project(around, project.key, project, folder.path, instructions, report)
    finish(around, report)
    return report


def import_thread(
    around: Surroundings,
    tx: Writing,
    foreign: ForeignThread,
    seen: Seen,
    restriction: Restriction | None,
    scopes: set[str],
    report: ImportReport,
) -> str | None:
    """Record one session's output; the reason where it is left as it is."""
    thread_id = state.as_stored(foreign.thread_id)
    if not is_id(thread_id):
        return "bad_id"
    now, version = around.now(), around.policy.memory_version
    known = state.thread(tx, thread_id)
    if known.forgotten:
        return "forgotten"
    if known.exists:
        scopes.add(known.scope)
    if foreign.updated_at > now + DAY_S:
        return "in_future"  # It would be the newest for ever, and never be read again.
    job = state.extraction(tx, version, thread_id)
    # What we have read ourselves we can show the source of. Where it taught us nothing, and a
    # model something, there is nothing to show.
    reader = READER if job.output_source_updated_at is None else extraction.OFFLINE
    if extraction.is_up_to_date(job, watermark=foreign.updated_at, extractor=reader):
        return "known"
    raw, hidden_in_raw = redacted(foreign.raw_memory)
    summary, hidden_in_summary = redacted(foreign.rollout_summary)
    found = Extracted(raw_memory=raw, rollout_summary=summary, rollout_slug=None)
    output = kept(found, version)
    if output is None:
        return "no_words"
    if restriction is None:
        return "project_file"
    try:
        claimed = extraction.claim(
            job,
            watermark=foreign.updated_at,
            extractor=READER,
            worker_id=around.worker_id,
            ownership_token=around.new_id(),
            running_elsewhere=0,  # No session is read for it: no cap applies, and no earlier
            running_cap=1,  # failure to read one, which `again` takes back.
            again=True,
            now=now,
        )
    except LeaseHeld:
        return "being_read"
    owner, stream = thread_stream(thread_id), extraction_stream(version, thread_id)
    if not known.exists:
        registered = first_sight(around, tx, known, foreign, seen, restriction, summary)
        tx.append(owner, registered)
        known = thread.evolve(known, registered)
        scopes.add(known.scope)
    report.secrets_hidden += hidden_in_raw + hidden_in_summary
    slug = redact(foreign.rollout_slug).strip() if foreign.rollout_slug else ""
    done = extraction.succeed(
        extraction.evolve(job, claimed),
        ownership_token=claimed.ownership_token,
        raw_memory_ref=tx.put(owner, output.raw_memory),
        rollout_summary_ref=tx.put(owner, output.rollout_summary),
        rollout_slug_ref=tx.put(owner, slug) if slug else None,
        memory_mode=known.mode,
        scope=known.scope,
        extractor=READER,
        # As in a backfill: it would be too old on the day that it comes.
        counts_from=max(now, foreign.updated_at),
        now=now,
    )
    tx.append(stream, claimed, done)
    root = root_of(known.scope, around.policy)
    if root is not None:
        request(
            tx,
            version,
            root,
            cause=ACTOR,
            thread_id=thread_id,
            watermark=foreign.updated_at,
            now=now,
        )
        touch(report, root)
    return None


def first_sight(
    around: Surroundings,
    tx: Writing,
    known: thread.Thread,
    foreign: ForeignThread,
    seen: Seen,
    restriction: Restriction,
    summary: str,
) -> ThreadRegistered:
    """Codex keeps a memory only of what a person led, so that is what the session was. On whose
    disk its file lies nobody says."""
    header = redact_names(
        Header(
            thread_id=known.thread_id,
            tool="claude" if "/.claude/" in foreign.rollout_path.replace("\\", "/") else "codex",
            source='{"import":"codex"}',
            kind="interactive",
            rollout_path=foreign.rollout_path,
            cwd=foreign.cwd,
            git_branch=foreign.git_branch,
            repository_url=None,
            created_at_ms=foreign.updated_at * 1000,
            updated_at_ms=foreign.updated_at * 1000,
        )
    )
    title = next(line for line in summary.splitlines() if line.strip())
    return registration(
        around,
        tx,
        known,
        header,
        seen=seen,
        restriction=restriction,
        preview=title.lstrip("# ").strip()[:PREVIEW_CHARS_MAX] or "imported",
        machine_id=None,
        now=around.now(),
    )


def import_note(
    around: Surroundings, tx: Writing, scope: str, name: str, text: str, report: ImportReport
) -> None:
    """A note keeps its name, and the day that its name says."""
    path = f"{NOTES}/{name}"
    root = Root(memory_version=around.policy.memory_version, scope=scope)
    try:
        text, hidden = checked(text)
    except Refused as refused:
        report.left_out.append(LeftOut(what=path, why=str(refused)))
        return
    kept = {at: note for at, note in notes_of(tx, root).items() if at.startswith(f"{NOTES}/")}
    if any(note.text.strip() == text.strip() for note in kept.values()):
        report.notes_known += 1
    elif "/" in name or not is_portable(path):
        why = "its name cannot be that of a note everywhere; name it otherwise"
        report.left_out.append(LeftOut(what=path, why=why))
    elif path in kept:
        why = "there is another note of that name; rename one of them"
        report.left_out.append(LeftOut(what=path, why=why))
    else:
        keep(tx, scope, path, text, at=day_of(name, now=around.now()))
        report.secrets_hidden += hidden
        report.notes.append(path)
        touch(report, scope)


def day_of(name: str, *, now: int) -> int:
    stamp = _STAMP.match(name)
    if stamp is None:
        return now
    try:
        written = datetime.strptime(stamp[0], "%Y-%m-%dT%H-%M-%S").replace(tzinfo=UTC)
    except ValueError:
        return now
    return max(0, min(int(written.timestamp()), now))


def import_handbook(
    around: Surroundings, tx: Writing, folder: CodexFolder, scope: str, report: ImportReport
) -> None:
    """What the other program made of its sessions, as long as we know of no reason against one."""
    if not folder.files:
        return
    ids = tuple(sorted({state.as_stored(foreign.thread_id) for foreign in folder.threads}))
    root = Root(memory_version=around.policy.memory_version, scope=scope)
    # A dry run has not registered the new ones, so that nobody can be asked about them.
    new = {state.as_stored(each) for each in report.imported} if report.dry_run else set()
    new = {each for each in new if not state.thread(tx, each).exists}
    out = [each for each in ids if each not in new and not may_stand(tx, root, [each])]
    if out:
        why = "a session that it was made from is forgotten, kept out, or another project's"
        report.left_out += [LeftOut(what=path, why=why) for path in folder.files]
        return
    report.projects.append(
        replaced(
            around,
            tx,
            key_of_handbook(scope),
            scope,
            folder.files,
            ScopeFile(source=folder.path, threads=ids),
            report,
        )
    )


def key_of_handbook(scope: str) -> str:
    """Of its own for each scope: one more project's handbook replaces no other's."""
    return CODEX if scope == GLOBAL else f"{CODEX}-{folder_name(scope)}"


def import_claude(
    around: Surroundings,
    folder: ClaudeFolder,
    *,
    instructions: str,
    keys: Collection[str] = (),
    dry_run: bool = False,
) -> ImportReport:
    """Each project by itself: one that cannot be imported keeps none of the others from it.

    `keys` are the projects that are meant; without any, all that are there and all that were
    imported from this folder before."""
    for key in keys:
        if not is_key(key):
            raise InvalidKey(key)
    report = ImportReport(program="claude", folder=folder.path, dry_run=dry_run)
    report.left_out += folder.left_out
    here = {project.key: project for project in folder.projects}
    with around.store.reading() as view:
        before = owned(view, folder.path)
    for key in dict.fromkeys(keys) if keys else sorted({*here, *before}):
        one_project(around, key, here.get(key), folder.path, instructions, report)
    finish(around, report)
    return report


def one_project(
    around: Surroundings,
    key: str,
    project: ForeignProject | None,
    source: str,
    instructions: str,
    report: ImportReport,
) -> None:
    with writing(around, dry_run=report.dry_run) as tx, asking(around, tx, report):
        done = import_project(around, tx, key, project, source, report)
        report.projects.append(done)
        if done.is_changed:
            instruct(around, tx, instructions)


def import_project(
    around: Surroundings,
    tx: Writing,
    key: str,
    project: ForeignProject | None,
    source: str,
    report: ImportReport,
) -> ProjectReport:
    there = imported(tx, key)
    if project is None:
        if not there:
            why = f"there is no memory of {key} in {source}; check the name"
            return ProjectReport(key=key, failure=why)
        if not any(scope_file_of(each).source == source for each in there.values()):
            why = f"what is kept of {key} was imported from another folder; it stays"
            return ProjectReport(key=key, failure=why)
        return replaced(around, tx, key, None, {}, None, report)
    if not is_key(key):
        return ProjectReport(key=key, failure=f"{key!r} cannot be the name of a folder everywhere")
    if project.cwd is None:
        if there and not any(path.endswith(f"/{SCOPE_FILE}") for path in there):
            return replaced(around, tx, key, None, {}, None, report)
        why = f"no session in {key} says where the project lies (no reliable cwd)"
        stays = "; what was imported before stays" if there else ""
        return ProjectReport(key=key, failure=f"{why}{stays}")
    seen = around.look(project.cwd)
    try:
        restriction = around.restriction(seen)
    except Failure as error:
        return ProjectReport(key=key, failure=str(error))
    if not restriction.generate_memories:
        why = f"generate_memories is false in a .threadbook.toml of {project.cwd}"
        return ProjectReport(key=key, failure=why)
    scope = scope_of(around, tx, key, cwd=project.cwd, root=seen.root, remote=seen.remote)
    if not has_root(scope):
        if around.policy.scope != GLOBAL:
            why = f"{project.cwd} belongs to no project (a home folder, or the root of a disk)"
            return ProjectReport(key=key, failure=why)
        scope = GLOBAL
    report.left_out += [
        LeftOut(what=f"{key}/{each.what}", why=each.why) for each in project.left_out
    ]
    said = ScopeFile(cwd=project.cwd, source=source)
    return replaced(around, tx, key, scope, project.files, said, report)


@contextmanager
def asking(around: Surroundings, tx: Writing, report: ImportReport) -> Iterator[None]:
    """Phase 2 is asked, once an import, for each root that something in the block touched."""
    before = roots_of(around, report)
    yield
    now = around.now()
    for root in sorted(roots_of(around, report) - before):
        request(
            tx,
            around.policy.memory_version,
            root,
            cause=ACTOR,
            thread_id=None,
            watermark=now,
            now=now,
        )


def roots_of(around: Surroundings, report: ImportReport) -> set[str]:
    return {root for each in report.scopes if (root := root_of(each, around.policy)) is not None}


def finish(around: Surroundings, report: ImportReport) -> None:
    """Folders that were written before follow at once: what is gone must not be read there."""
    if report.dry_run:
        return
    version = around.policy.memory_version
    for scope in sorted(roots_of(around, report)):
        root = Root(memory_version=version, scope=scope)
        with around.store.reading() as view:
            is_rendered = manifest(view, root) is not None
        try:
            if not is_rendered or around.tree(version, scope).kind("") is None:
                continue
            workspace = around.workspace(version, scope)
            with workspace.lock(wait_s=LOCK_WAIT_S, holder=around.worker_id):
                render(around, root, workspace, run_id=None, actor=ACTOR)
        except (FolderUnusable, Unreadable) as error:
            report.waiting.append(str(error))


@contextmanager
def writing(around: Surroundings, *, dry_run: bool) -> Iterator[Writing]:
    """A transaction; in a dry run nothing of it is kept."""
    try:
        with around.store.writing(actor=ACTOR) as tx:
            yield tx
            if dry_run:
                raise Rehearsed
    except Rehearsed:
        pass


def is_id(thread_id: str) -> bool:
    """What may name a stream, stand in a header line, and be no secret."""
    return (
        0 < len(thread_id) <= ID_CHARS_MAX
        and thread_id.isprintable()
        and "`" not in thread_id
        and thread_id == thread_id.strip()
        and redact(thread_id) == thread_id
    )
