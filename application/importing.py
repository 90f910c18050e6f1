"""Importing: what another program remembered becomes threads, outputs and notes of ours.

A raw memory with its summary is an output, read by `import:codex`, of a thread that is registered
if nobody knew it: so it is selected, explained, polluted and forgotten as any other. What we know
as well or better stays, a session that taught us nothing is no such knowledge, and what was
forgotten stays out. That reader counts as good as a model:
the session is read again when it goes on, or when a person says so.

Files are kept as notes under `extensions/external_agent_import/`, each project's under a key of
its own, replaced as a whole: what is not there any more goes, its words included. They are source
material and no instructions, and no session is given them unasked. A handbook is made from
sessions, so its `scope.json` names them, and it is read only as long as each of them may be.

Everything passes redaction. Whose a file is, is asked of where its project lies; where nobody can
tell, it is left out, and told.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec
from msgspec import Struct, field

from ..domain import extraction, thread
from ..domain.events import (
    STORE_STREAM,
    NoteAdded,
    ThreadRegistered,
    extraction_stream,
    thread_stream,
)
from ..domain.redaction import redact, redact_names, redacted
from ..domain.refusals import LeaseHeld, Refused
from ..domain.scope import checked as checked_scope
from ..domain.scope import folder_name, has_root
from ..domain.session import Header
from ..projections import notes
from ..projections.folder import is_content
from . import state
from .notes import LOCK_WAIT_S, checked, withdraw
from .places import scope_of
from .ports import Failure, View, Writing
from .reading import Unreadable
from .render import render
from .requests import request, root_of
from .roots import (
    IMPORTS,
    NOTES,
    RESOURCES,
    SCOPE_FILE,
    Note,
    Root,
    ScopeFile,
    body,
    manifest,
    may_stand,
    notes_of,
    split,
)
from .surroundings import GLOBAL, FolderUnusable, Restriction, Seen, Surroundings

ACTOR: Final = "import"
CODEX = "codex"
READER = "import:codex"
INSTRUCTIONS = f"{IMPORTS}/instructions.md"
BATCH = 25  # Threads a transaction: others get the write lock in between.
DAY_S = 86_400
PREVIEW_CHARS_MAX = 200
ID_CHARS_MAX = 200
FILE_BYTES_MAX = 256 * 1024
PROJECT_BYTES_MAX = 8 * 1024 * 1024
NAME_BYTES_MAX = 200
DEPTH_MAX = 10

_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)

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


class LeftOut(Struct, frozen=True, kw_only=True):
    what: str
    why: str


class ForeignThread(Struct, frozen=True, kw_only=True):
    """A session as another program's folder tells it. `updated_at` is in Unix seconds."""

    thread_id: str
    updated_at: int
    rollout_path: str
    cwd: str | None
    git_branch: str | None
    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None


class ForeignProject(Struct, frozen=True, kw_only=True):
    key: str
    cwd: str | None
    files: dict[str, str] = {}
    left_out: tuple[LeftOut, ...] = ()


class CodexFolder(Struct, frozen=True, kw_only=True):
    """`notes` by file name; `files` are the handbook's, by path from the folder on; `projects` are
    what that folder imported itself."""

    path: str
    threads: tuple[ForeignThread, ...] = ()
    notes: dict[str, str] = {}
    files: dict[str, str] = {}
    projects: tuple[ForeignProject, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


class ClaudeFolder(Struct, frozen=True, kw_only=True):
    path: str
    projects: tuple[ForeignProject, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


class ProjectReport(Struct, kw_only=True):
    """Files of one key, as paths from its folder on. With a `failure` nothing of it was changed."""

    key: str
    scope: str | None = None
    added: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unchanged: int = 0
    failure: str | None = None

    @property
    def is_changed(self) -> bool:
        return bool(self.added or self.replaced or self.removed)


class ImportReport(Struct, kw_only=True):
    """`left` says of which threads nothing was taken, by reason; `waiting` which folders follow
    with the next run."""

    program: Literal["codex", "claude"]
    folder: str
    imported: list[str] = field(default_factory=list)
    left: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    notes_known: int = 0
    projects: list[ProjectReport] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    secrets_hidden: int = 0
    scopes: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    dry_run: bool = False

    @property
    def all_failed(self) -> bool:
        return bool(self.projects) and all(each.failure for each in self.projects)


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
    if not raw.strip() or not summary.strip():
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
        raw_memory_ref=tx.put(owner, raw),
        rollout_summary_ref=tx.put(owner, summary),
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
    mode, reason = thread.first_mode(
        header,
        generate_memories=around.policy.generate_memories and restriction.generate_memories,
    )
    title = next(line for line in summary.splitlines() if line.strip())
    preview = title.lstrip("# ").strip()[:PREVIEW_CHARS_MAX] or "imported"
    return thread.register(
        known,
        header=header,
        scope=scope_of(
            around,
            tx,
            known.thread_id,
            cwd=foreign.cwd,
            root=seen.root,
            remote=seen.remote,
        ),
        root=seen.root,
        preview_ref=tx.put(thread_stream(known.thread_id), preview),
        mode=mode,
        mode_reason=reason,
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


def made_from(view: View, thread_id: str) -> "list[Imported]":
    """What is kept of the handbooks that were made from this session among others."""
    there = imported(view)
    keys = {
        path.removesuffix(SCOPE_FILE)
        for path, kept in there.items()
        if path.endswith(f"/{SCOPE_FILE}") and thread_id in scope_file_of(kept).threads
    }
    return [kept for path, kept in there.items() if path.startswith(tuple(keys))]


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


def replaced(
    around: Surroundings,
    tx: Writing,
    key: str,
    scope: str | None,
    files: Mapping[str, str],
    said: ScopeFile | None,
    report: ImportReport,
) -> ProjectReport:
    """Make these files all that there is of the key: what is as it was is left, the rest goes."""
    done = ProjectReport(key=key, scope=scope)
    wanted: dict[str, str] = {}
    if said is not None and files:
        fitting = fitted(files, key, report)
        wanted = {f"{RESOURCES}/{key}/{path}": text for path, text in fitting.items()}
        if wanted:
            wanted[f"{RESOURCES}/{key}/{SCOPE_FILE}"] = msgspec.json.encode(said).decode()
    there = imported(tx, key)
    for path, kept in sorted(there.items()):
        name = path.removeprefix(f"{RESOURCES}/{key}/")
        if kept.scope == scope and wanted.get(path) == kept.text:
            done.unchanged += 1
            del wanted[path]
            continue
        goes = path not in wanted
        withdraw(around, tx, kept.note, reason="import_gone" if goes else "import_replaced")
        (done.removed if goes else done.replaced).append(name)
        touch(report, kept.scope)
    for path, text in wanted.items():
        assert scope is not None, "files without a scope are nobody's"
        keep(tx, scope, path, text, at=around.now())
        touch(report, scope)
        if path not in there:
            done.added.append(path.removeprefix(f"{RESOURCES}/{key}/"))
    return done


def fitted(files: Mapping[str, str], key: str, report: ImportReport) -> dict[str, str]:
    """The files that may be kept, redacted; every other is told."""
    found: dict[str, str] = {}
    taken = {folded(SCOPE_FILE)}
    length = 0
    for path, content in sorted(files.items()):
        text, hidden = redacted(content)
        bytes_long = len(text.encode("utf-8", "replace"))
        why = None
        if not is_portable(path) or redact(path) != path:
            why = "its name cannot be that of a file everywhere"
        elif folded(path) in taken:
            why = "another file has its name, but for case or accents"
        elif not text.strip():
            why = "it is empty"
        elif bytes_long > FILE_BYTES_MAX:
            why = f"it is longer than {FILE_BYTES_MAX} bytes"
        elif length + bytes_long > PROJECT_BYTES_MAX:
            why = f"the project's files are longer than {PROJECT_BYTES_MAX} bytes in all"
        if why is not None:
            report.left_out.append(LeftOut(what=f"{key}/{path}", why=why))
            continue
        taken.add(folded(path))
        length += bytes_long
        report.secrets_hidden += hidden
        found[path] = text
    return found


class Imported(Struct, frozen=True, kw_only=True):
    scope: str
    note: Note

    @property
    def text(self) -> str:
        return self.note.text


def imported(view: View, key: str | None = None) -> dict[str, Imported]:
    """Path -> what is kept of a key, or of all of them, whoever's it is."""
    prefix = f"{RESOURCES}/" if key is None else f"{RESOURCES}/{key}/"
    found = {}
    for row in view.rows(notes, ()):
        if row.via != ACTOR:
            continue
        kept = view.body(row.body_ref)
        path, text = split(kept) if kept is not None else ("", "")
        if path.startswith(prefix):
            note = Note(body_ref=row.body_ref, text=text, at=row.at)
            found[path] = Imported(scope=row.scope, note=note)
    return found


def owned(view: View, source: str) -> set[str]:
    """The keys that were imported from this folder before."""
    return {
        path.removeprefix(f"{RESOURCES}/").partition("/")[0]
        for path, kept in imported(view).items()
        if path.endswith(f"/{SCOPE_FILE}") and scope_file_of(kept).source == source
    }


def scope_file_of(kept: Imported) -> ScopeFile:
    return ScopeFile.read(kept.text)


def keep(tx: Writing, scope: str, path: str, text: str, *, at: int) -> None:
    ref = tx.put(STORE_STREAM, body(path, text))
    tx.append(STORE_STREAM, NoteAdded(at=at, scope=scope, body_ref=ref, via=ACTOR))


def instruct(around: Surroundings, tx: Writing, instructions: str) -> None:
    """Beside the files of every scope lies how to read them; where there are none it goes."""
    wanted = {kept.scope for kept in imported(tx).values()}
    for row in tx.rows(notes, ()):
        kept = tx.body(row.body_ref) if row.via == ACTOR else None
        if kept is None or split(kept)[0] != INSTRUCTIONS:
            continue
        text = split(kept)[1]
        if row.scope in wanted and text == instructions:
            wanted.discard(row.scope)
        else:
            note = Note(body_ref=row.body_ref, text=text, at=row.at)
            withdraw(around, tx, note, reason="import_replaced")
    for scope in sorted(wanted):
        keep(tx, scope, INSTRUCTIONS, instructions, at=around.now())


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


def touch(report: ImportReport, scope: str) -> None:
    if scope not in report.scopes:
        report.scopes.append(scope)


def is_id(thread_id: str) -> bool:
    """What may name a stream, stand in a header line, and be no secret."""
    return (
        0 < len(thread_id) <= ID_CHARS_MAX
        and thread_id.isprintable()
        and "`" not in thread_id
        and thread_id == thread_id.strip()
        and redact(thread_id) == thread_id
    )


def is_key(key: str) -> bool:
    return "/" not in key and is_portable(key)


def is_portable(path: str) -> bool:
    """Whether every system that a folder may travel to takes the path, and reads it as one below
    the folder."""
    names = path.split("/")
    return len(names) <= DEPTH_MAX and all(
        0 < len(name.encode("utf-8", "replace")) <= NAME_BYTES_MAX
        and name[0] not in ".~"
        and name[-1] not in ". "
        and name.isprintable()
        and not set(name) & set('\\:*?"<>|')
        and not _RESERVED.fullmatch(name)
        and is_content(name)
        for name in names
    )


def folded(path: str) -> str:
    return unicodedata.normalize("NFC", path.casefold())
