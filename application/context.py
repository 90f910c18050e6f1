"""Context: what a session is given of its project's memory when it starts.

The summary and the newest notes, cut to a budget, between lines that nothing inside can forge, in a
prompt that says how to use it, with one line that says what it is and what is missing. Where there
is nothing to give, the text says so, and how to leave a note. Nothing of any memory is told where
nobody knows whose it is.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ..domain.artifact import SUMMARY
from ..domain.budget import Fitted, fit, pieces
from ..domain.fence import digest, fenced, neutral, tagged
from ..domain.truncation import BYTES_A_TOKEN, size, tokens_of
from ..domain.withholding import WITHHELD
from .ports import Failure, View
from .reading import (
    AmbiguousScope,
    MemoriesOff,
    NotFound,
    Reading,
    Unreadable,
    open_reading,
    scope_to_read,
    shown,
)
from .roots import Note, left_by_hand, notes_of
from .surroundings import Surroundings

NOTE_DAYS = 30
DAY_S = 86_400
ROOM_TO_SAY_SO = 64  # Bytes that the words around a cut memory may have more.
V2_PIECE_BYTES_MAX = 8_900  # As Codex hands it over.

UNKNOWN_SESSION = (
    "no session is named, so nothing is recorded as shown, and what that session cites will not"
    " count; give its id with --session"
)

Prompt = Callable[[str, Mapping[str, str]], str]  # A prompt's name and what is put into it.


class Manifest(Struct, frozen=True, kw_only=True):
    """What was given. `digest` is the SHA-256 of what stands in the fence, `omitted_*` and `tokens`
    (at four bytes) are of that, too."""

    version: str
    scope: str
    path: str
    rendered_position: int | None
    notes: int
    digest: str
    omitted_lines: int
    omitted_statements: int
    tokens: int
    budget: int


class Context(Struct, frozen=True, kw_only=True):
    """`text` is what a session is given; empty where memory is switched off. `why` says for people
    why there is no more. `pieces` are the text as it is handed over."""

    state: Literal["shown", "empty", "ambiguous", "unreadable", "off"]
    text: str
    scope: str | None = None
    why: str = ""
    manifest: Manifest | None = None
    omitted: int = 0
    tokens: int = 0
    pieces: tuple[str, ...] = ()


def context(
    around: Surroundings,
    cwd: str,
    *,
    session: str | None,
    prompt: Prompt,
    actor: str,
    room: int | None = None,
) -> Context:
    """What a session in `cwd` is given; recorded as shown where the session is known. `room` is
    what the agent takes in all, in bytes of UTF-8: of a longer text it would make what it likes."""
    try:
        with around.store.reading() as view:
            scope = scope_to_read(around, view, cwd)
            reading = open_reading(around, view, scope)
            found = of_reading(around, view, reading, prompt, room=room)
    except MemoriesOff as off:
        return Context(state="off", text="", why=str(off))
    except AmbiguousScope as ambiguous:
        told = tagged(f"No memory is given to this session: {of_a_folder(ambiguous)}.")
        return Context(state="ambiguous", text=told, why=str(ambiguous), pieces=(told,))
    except Unreadable as unreadable:
        told = tagged(f"The memory of this project cannot be read: {of_a_folder(unreadable)}.")
        return Context(state="unreadable", text=told, why=str(unreadable), pieces=(told,))
    if found.state != "shown":
        return found
    if not session:
        return replace(found, why=UNKNOWN_SESSION)
    try:
        shown(
            around,
            reading,
            session=session,
            via="context",
            omitted=found.omitted,
            tokens=found.tokens,
            actor=actor,
        )
    except Failure as error:
        return replace(found, why=f"what was shown may not be recorded: {error}")
    return found


def of_reading(
    around: Surroundings,
    view: View,
    reading: Reading,
    prompt: Prompt,
    *,
    room: int | None = None,
) -> Context:
    scope = reading.root.scope
    summary = summary_of(reading)
    newest = recent(left_by_hand(notes_of(view, reading.root)), now=around.now())
    if not says_something(summary) and not newest:
        empty = nothing(scope, why=f"{scope} has no memory yet", prompt=prompt)
        return replace(empty, scope=scope)
    told = neutral(summary.strip()) if says_something(summary) else ""
    notes = [(day, neutral(text)) for day, text in newest]

    def worded(bytes_max: int) -> tuple[Fitted, Manifest, str]:
        fitted = fit(told, notes, bytes_max=bytes_max)
        manifest = manifest_of(around, reading, fitted, notes=len(notes), bytes_max=bytes_max)
        values = {
            "base_path": neutral(one_line(manifest.path)),
            "manifest": in_words(manifest),
            "memory": fenced(fitted.text),
        }
        return fitted, manifest, tagged(prompt(f"read_{manifest.version}", values).strip())

    budget = around.policy.context_tokens * BYTES_A_TOKEN
    fitted, manifest, text = worded(budget)
    if room is not None and (over := size(text) - room) > 0:
        # What is around the memory stays; the memory is cut by what is too much, and by the line
        # that says so.
        fitted, manifest, text = worded(max(size(fitted.text) - over - ROOM_TO_SAY_SO, 0))
    return Context(
        state="shown",
        text=text,
        scope=scope,
        manifest=manifest,
        omitted=fitted.lines,
        tokens=manifest.tokens,
        pieces=(
            tuple(pieces(text, bytes_max=V2_PIECE_BYTES_MAX))
            if manifest.version == "v2"
            else (text,)
        ),
    )


def nothing(place: str, *, why: str, prompt: Prompt) -> Context:
    """What a session is given where there is nothing yet: how to leave a note."""
    told = tagged(prompt("read_nothing", {"place": neutral(one_line(place))}).strip())
    return Context(state="empty", text=told, why=why, pieces=(told,))


def summary_of(reading: Reading) -> str:
    try:
        return reading.text(SUMMARY)
    except NotFound:
        return ""
    except Unreadable as unreadable:
        return f"(There is a summary, and it cannot be shown: {unreadable})"


def says_something(summary: str) -> bool:
    """Whether there is more than a frame in it."""
    return any(
        line.strip() and not line.startswith("#") and line not in ("v1", WITHHELD)
        for line in summary.split("\n")
    )


def recent(notes: Mapping[str, Note], *, now: int) -> list[tuple[str, str]]:
    """Day and text of the notes that are not old, newest first."""
    fresh = [note for note in notes.values() if note.at > now - NOTE_DAYS * DAY_S]
    return [
        (f"{datetime.fromtimestamp(note.at, UTC):%Y-%m-%d}", note.text)
        for note in sorted(fresh, key=lambda note: -note.at)
    ]


def manifest_of(
    around: Surroundings, reading: Reading, fitted: Fitted, *, notes: int, bytes_max: int
) -> Manifest:
    root = reading.root
    return Manifest(
        version=root.memory_version,
        scope=root.scope,
        path=str(around.tree(root.memory_version, root.scope).path),
        rendered_position=reading.rendered_position,
        notes=notes,
        digest=digest(fitted.text),
        omitted_lines=fitted.lines,
        omitted_statements=fitted.statements,
        tokens=tokens_of(fitted.text),
        budget=bytes_max // BYTES_A_TOKEN,
    )


def in_words(manifest: Manifest) -> str:
    notes = f"{manifest.notes} note{'s' * (manifest.notes != 1)}"
    return (
        f"(Memory of {manifest.scope}: memory_summary.md and {notes}; sha256 {manifest.digest};"
        f" {manifest.omitted_lines} lines left out; {manifest.tokens} of {manifest.budget} tokens.)"
    )


def of_a_folder(error: Exception) -> str:
    """What is told may name a folder, and a folder may be named like a frame."""
    return neutral(one_line(str(error)))


def one_line(path: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in path)
