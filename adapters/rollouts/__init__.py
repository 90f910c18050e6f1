"""The door to session transcripts: Codex and Claude Code files in, the normal form out.

`survey` and `items` read a file once from end to end and hold no more than its longest line;
`head` reads only the first records, for listing. A damaged line costs that line. Every failure
is a `RolloutError` whose text says what to do.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ...domain.session import AnyItem, CitedReply, Header, Human, Survey
from . import citing, claude, codex
from .base import Head, Reader
from .discover import candidates, default_sources
from .echo import without_own
from .errors import NotASession, RolloutError, Unreadable
from .harness import MEMORY_FENCE
from .lines import LINE_LIMIT_BYTES, Found, Lines

if TYPE_CHECKING:
    from ...domain.evidence import Exhibit

__all__ = [
    "LINE_LIMIT_BYTES",
    "MEMORY_FENCE",
    "Head",
    "NotASession",
    "RolloutError",
    "Unreadable",
    "default_sources",
    "discover",
    "evidence",
    "head",
    "items",
    "survey",
]

# Claude Code opens a file with bookkeeping; behind this much of it no session is looked for.
_OPENING_RECORDS_MAX = 256
_HEAD_BYTES_MAX = 4 * 1024 * 1024


def survey(path: Path, *, now_ms: int, line_limit: int = LINE_LIMIT_BYTES) -> Survey:
    """One reading of the whole file, without its items. Raises `RolloutError`."""
    human_messages: list[str] = []
    turns = citing.Turns()
    with Lines(path, line_limit=line_limit) as lines:
        reader, records = _recognised(path, lines, now_ms)
        for found in records:
            for item in reader.read(found):
                if isinstance(item, Human) and not item.inherited:
                    human_messages.append(item.text)
                turns.see(item)
            if reader.noted:
                for noted in reader.noted:
                    turns.note(noted)
                reader.noted.clear()
        header = reader.header(mtime_ms=lines.mtime_ms, now_ms=now_ms)
        skipped = dict(sorted(reader.skipped.items()))
        if lines.oversized:
            skipped["oversized"] = lines.oversized
        if lines.bad_lines_unlisted:
            skipped["bad lines not listed"] = lines.bad_lines_unlisted
        return Survey(
            header=header,
            records=lines.records,
            bad_lines=tuple(lines.bad_lines),
            skipped=skipped,
            human_messages=tuple(human_messages),
            unfinished_tail=lines.unfinished_tail,
            resume_offset=lines.resume_offset,
            polluting=tuple(reader.polluting),
            citations=_citations(path, turns, header, line_limit=line_limit),
            limits=reader.limits,
        )


def _citations(
    path: Path, turns: citing.Turns, header: Header, *, line_limit: int
) -> tuple[CitedReply, ...]:
    """Another agent's session, or the program's own, uses nothing for a person."""
    turns.end()
    if not turns.replies or header.kind in ("subagent", "internal"):
        return ()
    sought = citing.Sought(turns.replies)
    given = codex.given if header.tool == "codex" else claude.given
    with Lines(path, line_limit=line_limit, holding=sought.holding) as lines:
        found = sought.read(lines, given)
    return tuple(citing.told(turns.replies, found))


def items(path: Path, *, now_ms: int, line_limit: int = LINE_LIMIT_BYTES) -> Iterator[AnyItem]:
    """The items in file order, read as they are asked for. Raises `RolloutError`."""
    with Lines(path, line_limit=line_limit) as lines:
        reader, records = _recognised(path, lines, now_ms)
        read = chain.from_iterable(reader.read(found) for found in records)
        yield from without_own(read)


def evidence(path: Path, *, now_ms: int, line_limit: int = LINE_LIMIT_BYTES) -> "Iterator[Exhibit]":
    """What a model may be shown of the session, in file order. Raises `RolloutError`."""
    from . import showing

    with Lines(path, line_limit=line_limit) as lines:
        reader, records = _recognised(path, lines, now_ms)
        if not isinstance(reader, codex.CodexReader):
            read = chain.from_iterable(reader.read(found) for found in records)
            yield from showing.of_items(without_own(read))
            return
        if _was_taken_back(path, line_limit=line_limit):
            all_items = items(path, now_ms=now_ms, line_limit=line_limit)
            records = showing.kept(records, showing.taken_back(all_items))
        yield from showing.Shower(path, now_ms=now_ms).shown(records)


def _was_taken_back(path: Path, *, line_limit: int) -> bool:
    """Whether the file speaks of turns that were taken back. Few do, and the rest are read once."""
    with Lines(path, line_limit=line_limit, holding=(b"thread_rolled_back",)) as lines:
        return any(True for _ in lines)


def head(path: Path) -> Head | None:
    """What the first records say, or None where they name no session. Raises `Unreadable`."""
    with Lines(path, line_limit=_HEAD_BYTES_MAX, stop_after=2 * _HEAD_BYTES_MAX) as lines:
        recognised = _recognise(path, lines, 0)
        if recognised is None:
            return None
        reader, opening, _ = recognised
        for found in opening:
            for _ in reader.read(found):
                pass
        return reader.head()


def discover(paths: Sequence[Path]) -> Iterator[Path]:
    """The session files among files and folders. A file that was named is always handed on, so
    that reading it says what is wrong; in a folder, what neither is a session nor is called
    one is passed over. Raises `Unreadable` for a path that is not there."""
    for file, named in candidates(paths):
        if named:
            yield file
            continue
        try:
            is_session = file.name.startswith("rollout-") or head(file) is not None
        except Unreadable:
            is_session = True
        if is_session:
            yield file


def _recognised(path: Path, lines: Lines, now_ms: int) -> tuple[Reader, Iterator[Found]]:
    recognised = _recognise(path, lines, now_ms)
    if recognised is None:
        why = "it is empty" if not lines.records and not lines.bad_lines else "it holds no session"
        if not lines.records and lines.bad_lines:
            why = "it holds no line of JSON"
        raise NotASession(path, why)
    reader, opening, rest = recognised
    return reader, chain(opening, rest)


def _recognise(
    path: Path, lines: Lines, now_ms: int
) -> tuple[Reader, list[Found], Iterable[Found]] | None:
    """The reader whose format the first telling record has, and the records read to find it."""
    opening: list[Found] = []
    rest = iter(lines)
    is_codex = False
    spoken_for: Found | None = None
    for found in rest:
        opening.append(found)
        is_codex = is_codex or (spoken_for is None and codex.recognises(found.value))
        if is_codex:
            if codex.names_thread(found.value):
                return codex.CodexReader(path, now_ms=now_ms), opening, rest
        elif claude.recognises(found.value):
            spoken_for = spoken_for or found
            if claude.is_conversation(found.value):
                return _claude(path, lines, found, now_ms), opening, rest
        if len(opening) >= _OPENING_RECORDS_MAX or lines.resume_offset > _HEAD_BYTES_MAX:
            break
    if spoken_for is not None:
        return _claude(path, lines, spoken_for, now_ms), opening, rest
    # The record that names the session may be damaged; then the file's name has to do.
    if is_codex and (reader := codex.CodexReader(path, now_ms=now_ms)).thread_id:
        return reader, opening, rest
    return None


def _claude(path: Path, lines: Lines, found: Found, now_ms: int) -> Reader:
    return claude.ClaudeReader(path, found.value, now_ms=now_ms, stop_after=lines.stop_after)
