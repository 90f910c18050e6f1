"""Reading: one memory root as a reader may see it; every read surface goes through here.

The folder on this machine is read where it was rendered as of the root's newest publication, so
that what a person changed in it counts; else, or where there is no folder, the log's own texts.
Either way a reader sees the same paths, and nothing of what is withheld: from the commit on that
takes a session out of memory, its summary is not there and no line is that only it supports.

A `Reading` holds no transaction. Open one for each question; what it costs is one row each of what
decides, and the files that are asked for.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import groupby
from typing import Literal

import msgspec
from msgspec import Struct

from ..domain.artifact import MEMORY, SUMMARIES, SUMMARY
from ..domain.events import (
    ArtifactsPublished,
    MemoryShown,
    Phase2Succeeded,
    RootRendered,
    consolidation_stream,
    session_stream,
)
from ..domain.refusals import Refused
from ..domain.scope import has_root
from ..domain.withholding import Gone, thread_of, withheld
from ..projections import artifacts
from . import state
from .places import scope_of, scope_of_thread
from .ports import Busy, View
from .roots import Root, gone, imports_are_as_rendered, manifest, notes_of, published, wanted
from .surroundings import GLOBAL, Files, Kind, Seen, Surroundings

LOCK_WAIT_S = 0.05


class Unreadable(Refused):
    """What cannot be read, in words that a model can act on."""

    code = "unreadable"


class InvalidPath(Unreadable):
    code = "invalid_path"


class NotFound(Unreadable):
    code = "not_found"


class NotFile(Unreadable):
    code = "not_file"


class NotText(Unreadable):
    code = "not_text"


class TooBig(Unreadable):
    code = "too_big"


class AmbiguousScope(Refused):
    code = "ambiguous_scope"

    def __init__(self, cwd: str) -> None:
        super().__init__(
            f"{cwd} belongs to no project (a home folder, or the root of a disk), so no memory is"
            " read there; work in the project's own folder, or name it with --cwd"
        )


class FolderGone(Refused):
    code = "folder_gone"

    def __init__(self) -> None:
        super().__init__(
            "the folder that this works in is not there any more, so nobody knows whose memory is"
            " meant; go to the project's own folder, or name it with --cwd"
        )


class MemoriesOff(Refused):
    code = "memories_off"

    def __init__(self, why: str) -> None:
        super().__init__(f"memory is switched off: {why}; take that out to have it again")


class Entry(Struct, frozen=True, kw_only=True):
    path: str
    kind: Literal["file", "directory"]


class Reading(Struct, frozen=True, kw_only=True):
    """One memory root at one moment, as a reader may see it."""

    root: Root
    position: int  # Of the log, when this was opened.
    rendered_position: int | None  # Which success it shows: the last one at or before it.
    files: Files

    def kind(self, path: str) -> Kind | None:
        """Of a root-relative path; `""` is the root, None is nothing. Raises `InvalidPath` for a
        link or a file on the way."""
        return self.files.kind(path)

    def entries(self, path: str) -> list[Entry]:
        """One level, in byte order of the names. Links and special files are not among them."""
        prefix = f"{path}/" if path else ""
        found = [
            Entry(path=f"{prefix}{name}", kind=kind)
            for name, kind in self.files.names(path)
            if kind == "file" or kind == "directory"
        ]
        return sorted(found, key=lambda each: each.path.encode("utf-8", "surrogatepass"))

    def text(self, path: str) -> str:
        """A whole file. Raises `NotFound`, `NotFile`, `NotText`, `TooBig`, `InvalidPath`."""
        return self.files.text(path)

    def threads_in(self, path: str) -> tuple[str, ...]:
        """The threads that somebody has been given who has read the file: a summary is of one."""
        if not path.startswith(f"{SUMMARIES}/"):
            return ()
        thread_id = thread_of(self.text(path))
        return (thread_id,) if thread_id else ()


class Visible:
    """What is there for a reader, where some sessions are out of the memory. `published` are the
    files of the newest success, which say whose a statement is that somebody has since changed."""

    def __init__(self, files: Files, gone: Gone, published: Mapping[str, str]) -> None:
        self.files = files
        self.gone = gone
        self.published = published

    def kind(self, path: str) -> Kind | None:
        kind = self.files.kind(path)
        return None if kind == "file" and self.is_withheld(path) else kind

    def names(self, path: str) -> Iterable[tuple[str, Kind]]:
        found = self.files.names(path)
        if path != SUMMARIES:
            return found
        return [each for each in found if not self.is_withheld(f"{path}/{each[0]}", each[1])]

    def text(self, path: str) -> str:
        if self.is_withheld(path):
            raise NotFound(f"there is no {path}; list shows what there is")
        text = self.files.text(path)
        return withheld(
            path,
            text,
            self.gone,
            handbook=self.handbook() if path == SUMMARY else "",
            published=self.published,
        )

    def handbook(self) -> str:
        try:
            return self.files.text(MEMORY)
        except Unreadable:
            return ""

    def is_withheld(self, path: str, kind: Kind = "file") -> bool:
        """A summary by its name; one that somebody has named otherwise, by what it says."""
        if kind != "file" or not path.startswith(f"{SUMMARIES}/"):
            return False
        if self.gone.is_summary(path, ""):
            return True
        try:
            return self.gone.is_summary(path, self.files.text(path))
        except Unreadable:
            return False  # Whoever asks for it is told why.


class Texts:
    """The texts of the log, as the folder would have them."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts
        self.folders: dict[str, dict[str, Kind]] = {"": {}}
        for path in texts:
            parent, _, name = path.rpartition("/")
            self.folders.setdefault(parent, {})[name] = "file"
            while parent:
                above, _, name = parent.rpartition("/")
                self.folders.setdefault(above, {})[name] = "directory"
                parent = above

    def kind(self, path: str) -> Kind | None:
        if path in self.folders:
            return "directory"
        above = path
        while above:
            above = above.rpartition("/")[0]
            if above in self.texts:
                raise InvalidPath(f"{above} is a file, no folder; list the folder above it")
        return "file" if path in self.texts else None

    def names(self, path: str) -> Iterable[tuple[str, Kind]]:
        return self.folders.get(path, {}).items()

    def text(self, path: str) -> str:
        if self.kind(path) == "directory":
            raise NotFile(f"{path or 'the root'} is a folder; list it, and read a file of it")
        if path not in self.texts:
            raise NotFound(f"there is no {path}; list shows what there is")
        return self.texts[path]


def scope_to_read(around: Surroundings, view: View, cwd: str) -> str:
    """The scope whose memory a session in `cwd` may read; else `AmbiguousScope`,
    `MemoriesOff`."""
    seen = around.look(cwd)
    if not around.policy.use_memories:
        raise MemoriesOff("use_memories is false in the settings")
    if not around.restriction(seen).use_memories:
        raise MemoriesOff("use_memories is false in a .threadbook.toml of this project")
    return scope_of_session(around, view, cwd, seen)


def scope_to_note(around: Surroundings, view: View, cwd: str) -> str:
    """The scope that a note left in `cwd` is for; raises `AmbiguousScope`."""
    return scope_of_session(around, view, cwd, around.look(cwd))


def scope_of_session(around: Surroundings, view: View, cwd: str, seen: Seen) -> str:
    if around.policy.scope == GLOBAL:
        return GLOBAL
    scope = scope_of(around, view, "a session", cwd=cwd, root=seen.root, remote=seen.remote)
    if not has_root(scope):
        raise AmbiguousScope(cwd)
    return scope


def open_reading(around: Surroundings, view: View, scope: str) -> Reading:
    """What a reader of this scope may see now. Raises `InvalidPath` where the folder is a link."""
    root = Root(memory_version=around.policy.memory_version, scope=scope)
    tree = around.tree(root.memory_version, scope)
    rendered_at = tree.rendered_at()
    is_there = tree.kind("") is not None
    if rendered_at is None or not is_there or not is_as_rendered(view, root, rendered_at):
        return reading_of_log(view, root)
    kept = notes_of(view, root)
    if not imports_are_as_rendered(kept, manifest(view, root) or {}) or any(
        tree.kind(path) is None for path in kept
    ):
        return reading_of_log(view, root)  # Whoever holds the folder will write it.
    return reading_of(view, root, tree, rendered_at)


def reading_of_log(view: View, root: Root) -> Reading:
    """The root as the log has it, whatever lies on any disk."""
    return reading_of(view, root, Texts(wanted(view, root)), last_change(view, root))


def texts_of(reading: Reading, path: str = "") -> dict[str, str]:
    """Every file that may be read, by path."""
    found: dict[str, str] = {}
    for entry in reading.entries(path):
        if entry.kind == "directory":
            found |= texts_of(reading, entry.path)
        else:
            found[entry.path] = reading.text(entry.path)
    return found


def reading_of(view: View, root: Root, files: Files, rendered_position: int | None) -> Reading:
    out = gone(view, root)
    return Reading(
        root=root,
        position=view.position,
        rendered_position=rendered_position,
        files=Visible(files, out, published(view, root)) if out else files,
    )


def is_as_rendered(view: View, root: Root, rendered_at: int) -> bool:
    """Whether a folder that was rendered at this position holds the newest that was published."""
    if rendered_at > view.position:
        return False  # From another log than this one, which was put back.
    kinds = {row.kind for row in view.rows(artifacts, (root.memory_version, root.scope))}
    return {"file", "manifest"} <= kinds and last_change(view, root, after=rendered_at) is None


def last_change(view: View, root: Root, *, after: int = 0) -> int | None:
    """The position of the newest event that says what the folder should hold."""
    found = None
    stream = consolidation_stream(root.memory_version, root.scope)
    for recorded in view.events(stream=stream, after=after):
        if isinstance(recorded.event, ArtifactsPublished | Phase2Succeeded | RootRendered):
            found = recorded.position
    return found


class Shown(Struct, frozen=True, kw_only=True):
    """As a line of the spool."""

    actor: str
    event: MemoryShown


def shown(
    around: Surroundings,
    reading: Reading,
    *,
    session: str | None,
    via: Literal["context", "read", "search"],
    thread_ids: Iterable[str] = (),
    omitted: int = 0,
    tokens: int = 0,
    actor: str = "application",
) -> bool:
    """Record what a session was shown; False where no session is known, and nothing is recorded.

    The texts say which threads they are of, and anybody may have written them: only threads of this
    root are recorded, and no word of a file comes into the log. Nobody waits for this: while
    another program writes it is left beside the log for the next one.
    """
    if not session:
        return False
    session = state.as_stored(session)
    named = tuple(dict.fromkeys(thread_ids))
    if named:
        with around.store.reading() as view:
            named = tuple(each for each in named if is_of(view, reading.root, each))
    event = MemoryShown(
        at=around.now(),
        session_id=session,
        via=via,
        memory_version=reading.root.memory_version,
        scope=reading.root.scope,
        rendered_position=reading.rendered_position,
        thread_ids=named,
        omitted=omitted,
        tokens=tokens,
    )
    try:
        with around.store.writing(actor=actor, wait_s=LOCK_WAIT_S) as tx:
            tx.append(session_stream(session), event)
    except Busy:
        around.spool.leave(msgspec.json.encode(Shown(actor=actor, event=event)))
        return True
    with suppress(Busy):  # Whoever writes now records it after us.
        record_left(around, wait_s=LOCK_WAIT_S)
    return True


def is_of(view: View, root: Root, thread_id: str) -> bool:
    scope = scope_of_thread(view, thread_id)
    return scope is not None and root.scope in (GLOBAL, scope)


def record_left(around: Surroundings, *, wait_s: float | None = None) -> int:
    """Record what sessions were shown while somebody else wrote; how many showings."""
    with around.spool.taking() as lines:
        left = list(filter(None, map(understood, lines)))
        count = 0
        for actor, showings in groupby(left, key=lambda each: each.actor):
            with around.store.writing(actor=actor, wait_s=wait_s) as tx:
                for event in (each.event for each in showings):
                    stream = session_stream(event.session_id)
                    # Whoever took them before us may have been killed after the commit.
                    if all(known.event != event for known in tx.events(stream=stream)):
                        tx.append(stream, event)
                        count += 1
        return count


def understood(line: bytes) -> Shown | None:
    """A line that its writer did not finish says nothing, and keeps no other from being read."""
    try:
        return msgspec.json.decode(line, type=Shown)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
