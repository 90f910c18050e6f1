"""Notes: what somebody asked to remember, kept beside what sessions taught until a run folds it in.

A note is a file of the root's folder, `extensions/ad_hoc/notes/<time>-<words>.md`, whoever wrote
it: a tool, the command line, or a person with an editor. The log has every one, so that a folder
that is lost loses none. The same text in the same scope is one note; another text needs another
name, and only a person in the folder changes one. No secret is kept, and nothing that is longer
than a note.

A note is readable at once. Where a run holds the folder its file comes with that run's end.
"""

import re
from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct

from ..domain.events import STORE_STREAM, BodiesErased, NoteAdded, NoteRemoved
from ..domain.redaction import MARKER, redact, redacted
from ..domain.refusals import Refused
from ..domain.scope import has_root
from ..projections import notes
from .ports import Writing
from .reading import NotFound, Unreadable
from .render import render
from .roots import NOTES, Note, Root, body, left_by_hand, manifest, notes_of
from .surroundings import FolderUnusable, Surroundings, Workspace

BYTES_MAX = 16 * 1024
UNREAD_CHARS_MAX = 64 * BYTES_MAX  # What is longer is no note, and is not looked through.
FILENAME_BYTES_MAX = 128
SLUG_CHARS_MAX = 80
SLUG_CHARS_MADE = 40
LOCK_WAIT_S = 0.2  # A run that writes the folder takes longer; it will write the note, too.
FILENAME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}-([a-z0-9-]{1,80})\.md"
)
SHAPE = "YYYY-MM-DDTHH-MM-SS-<words>.md, where words are 1 to 80 of a-z, 0-9 and -"

Via = Literal["mcp", "cli", "file", "import"]


class InvalidFilename(Refused):
    code = "invalid_filename"

    def __init__(self, filename: str) -> None:
        shown = redact(filename[:FILENAME_BYTES_MAX])
        super().__init__(f"filename {shown!r} is not of the form {SHAPE}; choose such a name")


class EmptyNote(Refused):
    code = "empty_note"

    def __init__(self) -> None:
        super().__init__("the note is empty; write what is to be remembered")


class NoteTooLong(Refused):
    code = "note_too_long"

    def __init__(self, length: int) -> None:
        super().__init__(
            f"the note has {length} bytes, and {BYTES_MAX} is the most; write what matters, or"
            " several notes"
        )


class NoteNotText(Refused):
    code = "note_not_text"

    def __init__(self) -> None:
        super().__init__("the note holds what is no text (a NUL or half a character); leave it out")


class NoteExists(Refused):
    code = "note_exists"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is there already, with another text; choose another filename")


class NoSuchNote(NotFound):
    def __init__(self, path: str, scope: str) -> None:
        super().__init__(f"{scope} has no note {path}; `threadbook list {NOTES}` shows its notes")


class NoScope(Refused):
    code = "no_scope"

    def __init__(self, scope: str) -> None:
        super().__init__(f"{scope} is no project, so nobody would read the note; name a project")


class NoteReceipt(Struct, frozen=True, kw_only=True):
    """`added` False: the same text was there before, and is at `path`."""

    scope: str
    path: str
    added: bool
    secrets_hidden: int = 0
    in_folder: bool = False


def add_note(
    around: Surroundings,
    scope: str,
    *,
    filename: str | None = None,
    text: str,
    via: Via,
    actor: str,
) -> NoteReceipt:
    """Keep a note. Without a filename it is named by the time and its first words."""
    if not has_root(scope):
        raise NoScope(scope)
    if filename is not None and not is_filename(filename):
        raise InvalidFilename(filename)
    text, hidden = checked(text)
    root = Root(memory_version=around.policy.memory_version, scope=scope)
    tree = around.tree(root.memory_version, scope)
    with around.store.writing(actor=actor) as tx:
        kept = left_by_hand(notes_of(tx, root))
        for path, note in kept.items():
            if note.text.strip() == text.strip():
                return NoteReceipt(scope=scope, path=path, added=False, secrets_hidden=hidden)
        taken = {path.rpartition("/")[2] for path in kept}
        name = filename or named(text, taken, now=around.now())
        path = f"{NOTES}/{name}"
        if name in taken or tree.kind(path) is not None:
            raise NoteExists(path)
        record(around, tx, scope, path, text, via=via)
    written = around.tree(root.memory_version, scope).kind("") is not None and write_at_once(
        around.workspace(root.memory_version, scope), path, text, holder=around.worker_id
    )
    return NoteReceipt(scope=scope, path=path, added=True, secrets_hidden=hidden, in_folder=written)


def move_notes(tx: Writing, *, scope_before: str, scope: str) -> None:
    """The notes of a project that is known by another name from now on go with it."""
    for row in tx.find(notes, notes.OF_SCOPE, scope=scope_before):
        moved = NoteAdded(at=row.at, scope=scope, body_ref=row.body_ref, via=row.via)
        tx.append(STORE_STREAM, moved)


def record(around: Surroundings, tx: Writing, scope: str, path: str, text: str, *, via: Via) -> str:
    ref = tx.put(STORE_STREAM, body(path, text))
    tx.append(STORE_STREAM, NoteAdded(at=around.now(), scope=scope, body_ref=ref, via=via))
    return ref


def withdraw(around: Surroundings, tx: Writing, note: Note, *, reason: str) -> None:
    now = around.now()
    tx.append(STORE_STREAM, NoteRemoved(at=now, body_ref=note.body_ref, reason=reason))
    count = tx.erase(refs=[note.body_ref])
    erased = BodiesErased(at=now, owners=(STORE_STREAM,), count=count, reason=reason)
    tx.append(STORE_STREAM, erased)


def write_at_once(workspace: Workspace, path: str, text: str, *, holder: str) -> bool:
    try:
        with workspace.lock(wait_s=LOCK_WAIT_S, holder=holder):
            workspace.write(path, text)
    except FolderUnusable:
        return False  # It is in the log, is read from there, and the next run writes or tells it.
    return True


def remove_note(around: Surroundings, scope: str, path: str, *, reason: str, actor: str) -> None:
    """The note goes, and its words with it, from the folder too. `path` may be the file's name
    alone. A folder that cannot be written is a `FolderUnusable`, and if nobody could begin to write
    it, nothing has gone."""
    if "/" not in path:
        path = f"{NOTES}/{path}"
    root = Root(memory_version=around.policy.memory_version, scope=scope)
    if around.tree(root.memory_version, scope).kind("") is None:
        take_back(around, root, path, reason=reason, actor=actor)
        return
    workspace = around.workspace(root.memory_version, scope)
    with workspace.lock(holder=around.worker_id):
        take_back(around, root, path, reason=reason, actor=actor)
        workspace.remove(path)
        with around.store.reading() as view:
            is_rendered = manifest(view, root) is not None
        if is_rendered:  # The baseline beside it has the words, until it is made anew.
            render(around, root, workspace, run_id=None, actor=actor)


def take_back(around: Surroundings, root: Root, path: str, *, reason: str, actor: str) -> None:
    with around.store.writing(actor=actor) as tx:
        note = left_by_hand(notes_of(tx, root)).get(path)
        if note is None:
            raise NoSuchNote(path, root.scope)
        withdraw(around, tx, note, reason=reason)


def adopt(around: Surroundings, root: Root, workspace: Workspace, *, run_id: str) -> int:
    """Record the notes that somebody wrote or changed with an editor; how many. The caller holds
    the lock. What cannot be a note (too long, no text) stays a file of its author's."""
    tree = around.tree(root.memory_version, root.scope)
    try:
        found = sorted(name for name, kind in tree.names(NOTES) if kind == "file")
    except Unreadable:
        return 0  # Whoever writes the folder says what is wrong with it.
    if not found:
        return 0
    count = 0
    with around.store.reading() as view:
        kept = left_by_hand(notes_of(view, root))
        rendered = manifest(view, root) or {}
    for path in (f"{NOTES}/{name}" for name in found if name.endswith(".md")):
        try:
            written = tree.text(path)
            text, _ = checked(written)
        except Refused:
            continue
        known = kept.get(path)
        if known is None and path in rendered:
            continue  # It was taken back, or went to another project; the next render removes it.
        if known is not None and known.text == written:
            continue
        if known is None and any(note.text.strip() == text.strip() for note in kept.values()):
            continue
        with around.store.writing(actor="file-edit", run_id=run_id) as tx:
            if known is not None:
                withdraw(around, tx, known, reason="edited")
            ref = record(around, tx, root.scope, path, text, via="file")
        kept[path] = Note(body_ref=ref, text=text, at=around.now())
        if text != written:
            workspace.write(path, text)  # What was hidden of it must not stand in the file.
        count += 1
    return count


def is_filename(filename: str) -> bool:
    return (
        len(filename.encode("utf-8", "replace")) <= FILENAME_BYTES_MAX
        and FILENAME.fullmatch(filename) is not None
        and redact(filename) == filename
    )


def checked(text: str) -> tuple[str, int]:
    """The note as it is kept, and how many secrets were hidden in it."""
    text = text.replace("\r\n", "\n")
    if not text.strip():
        raise EmptyNote
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise NoteNotText
    if len(text) > UNREAD_CHARS_MAX:  # However much of it is a secret.
        raise NoteTooLong(len(text.encode()))
    text, hidden = redacted(text)
    if (length := len(text.encode())) > BYTES_MAX:
        raise NoteTooLong(length)
    return text, hidden


def named(text: str, taken: set[str], *, now: int) -> str:
    """A filename of the right shape that nobody has: the second, and the first words."""
    plain = text.replace(MARKER, " ").lower()
    words = re.findall(r"[a-z0-9]+", plain)[:SLUG_CHARS_MADE]
    while words[1:] and len("-".join(words)) > SLUG_CHARS_MADE:
        words.pop()
    slug = "-".join(words)[:SLUG_CHARS_MADE] or "note"
    stem = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%dT%H-%M-%S}-{slug}"
    name, number = f"{stem}.md", 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}.md"
    return name
