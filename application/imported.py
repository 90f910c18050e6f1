"""Imported: the files of another program that are kept beside a project's memory, by their keys.

They are notes under `extensions/external_agent_import/`, each key's replaced as a whole: what is
not there any more goes, its words included. They are redacted, bounded, and named as every system
can name a file. A handbook is made from sessions, so that its `scope.json` names them.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from ..domain.events import STORE_STREAM, NoteAdded
from ..domain.path import BadName, folded, names_of
from ..domain.redaction import redact, redacted
from ..projections import notes
from .foreign import LeftOut
from .notes import withdraw
from .ports import View, Writing
from .reports import ImportReport, ProjectReport
from .roots import IMPORTS, RESOURCES, SCOPE_FILE, Note, ScopeFile, body, split
from .surroundings import Surroundings

ACTOR: Final = "import"
INSTRUCTIONS = f"{IMPORTS}/instructions.md"
FILE_BYTES_MAX = 256 * 1024
PROJECT_BYTES_MAX = 8 * 1024 * 1024
NAME_BYTES_MAX = 200
DEPTH_MAX = 10


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


def made_from(view: View, thread_id: str) -> "list[Imported]":
    """What is kept of the handbooks that were made from this session among others."""
    there = imported(view)
    keys = {
        path.removesuffix(SCOPE_FILE)
        for path, kept in there.items()
        if path.endswith(f"/{SCOPE_FILE}") and thread_id in scope_file_of(kept).threads
    }
    return [kept for path, kept in there.items() if path.startswith(tuple(keys))]


def owned(view: View, source: str) -> set[str]:
    """The keys that were imported from this folder before."""
    return {
        path.removeprefix(f"{RESOURCES}/").partition("/")[0]
        for path, kept in imported(view).items()
        if path.endswith(f"/{SCOPE_FILE}") and scope_file_of(kept).source == source
    }


def scope_file_of(kept: Imported) -> ScopeFile:
    return ScopeFile.read(kept.text)


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


def touch(report: ImportReport, scope: str) -> None:
    if scope not in report.scopes:
        report.scopes.append(scope)


def is_key(key: str) -> bool:
    return "/" not in key and is_portable(key)


def is_portable(path: str) -> bool:
    """Whether it may be a memory's, with room for the folder that it is put in, and is a name that
    Windows can write."""
    try:
        names = names_of(path)
    except BadName:
        return False
    return len(names) <= DEPTH_MAX and all(
        len(name.encode()) <= NAME_BYTES_MAX
        and name.isprintable()
        and not set(name) & set('*?"<>|')
        for name in names
    )
