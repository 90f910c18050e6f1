"""Tools: what an agent asks of a memory, `list`, `read`, `search` and `add_ad_hoc_note`.

Names, limits and cursors are Codex's, as arguments and errors are (`questions.py`), so that what a
model has learned of them holds here. Where Codex ends a turn (a file that is no text, an input
error of the disk) we answer with an error that the model can read, and where it shows a megabyte we
show a bounded excerpt and say so. Every question opens the memory anew: an answer is as of its
call, not of a server's start.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Literal

from msgspec import Struct

from ..domain.search import AllWithinLines, Hit, Query, lines_of
from ..domain.truncation import cut_middle, tokens_of
from .questions import (
    QUERIES_BYTES_MAX,
    EmptyQuery,
    InvalidCursor,
    InvalidLineOffset,
    InvalidMatchWindow,
    InvalidMaxLines,
    LineOffsetExceedsFileLength,
    ListAnswer,
    ListArguments,
    Listed,
    Match,
    NoteAnswer,
    NoteArguments,
    QueriesTooLong,
    ReadAnswer,
    ReadArguments,
    SearchAnswer,
    SearchArguments,
    UseAnswer,
    UseArguments,
)
from .reading import (
    InvalidPath,
    NotFile,
    NotFound,
    Reading,
    Unreadable,
    open_reading,
    scope_to_note,
    scope_to_read,
    shown,
)
from .roots import Root
from .surroundings import Surroundings, Tell

LIST_RESULTS_MAX = 2_000
SEARCH_RESULTS_MAX = 200
READ_TOKENS_MAX = 20_000
PAGE_BYTES_MAX = 80_000
SKIPPED_MAX = 20  # As many are named of the files that a search could not read.

# What has become of a file that was listed, and is none any more. Its time was before the question.
GONE = (NotFound, NotFile, InvalidPath)


class Tools:
    """The tools as a session in `cwd` has them. Without a session nothing is recorded as shown.

    Raises `AmbiguousScope` where the folder belongs to no project: then nobody's memory is read.
    """

    def __init__(
        self, around: Surroundings, *, cwd: str, session: str | None = None, actor: str
    ) -> None:
        self.around = around
        self.cwd = cwd
        self.session = session
        self.actor = actor
        self.root: Root | None = None  # Whose memory it was, once it has been opened.

    @contextmanager
    def watched(self, operation: str, asked: Struct) -> Iterator[Tell]:
        with self.around.watch(operation, asked) as tell:
            try:
                yield tell
            finally:
                tell(self)

    def open(self) -> Reading:
        with self.around.store.reading() as view:
            scope = scope_to_read(self.around, view, self.cwd)
            reading = open_reading(self.around, view, scope)
        self.root = reading.root
        return reading

    def list(self, asked: ListArguments) -> ListAnswer:
        with self.watched("list", asked) as tell:
            answer = listed(self.open(), asked)
            tell(answer)
        return answer

    def read(self, asked: ReadArguments) -> ReadAnswer:
        with self.watched("read", asked) as tell:
            reading = self.open()
            answer = read(reading, asked)
            self.shown(reading, "read", [within(asked.path)], [answer.content])
            tell(answer)
        return answer

    def search(self, asked: SearchArguments) -> SearchAnswer:
        with self.watched("search", asked) as tell:
            reading = self.open()
            answer = search(reading, asked)
            if answer.matches:
                self.shown(
                    reading,
                    "search",
                    [match.path for match in answer.matches],
                    [match.content for match in answer.matches],
                )
            tell(answer)
        return answer

    def add_ad_hoc_note(self, asked: NoteArguments, *, via: Literal["mcp", "cli"]) -> NoteAnswer:
        from .notes import add_note

        with self.watched("add_ad_hoc_note", asked) as tell:
            with self.around.store.reading() as view:
                scope = scope_to_note(self.around, view, self.cwd)
            self.root = Root(memory_version=self.around.policy.memory_version, scope=scope)
            kept = add_note(
                self.around,
                scope,
                filename=asked.filename,
                text=asked.note,
                via=via,
                actor=self.actor,
            )
            tell(kept)
        return NoteAnswer(path=kept.path, added=kept.added, secrets_hidden=kept.secrets_hidden)

    def report_use(self, asked: UseArguments) -> UseAnswer:
        """Count each session's memory that this session was shown and has used."""
        from .citing import count_written

        with self.watched("report_use", asked) as tell:
            report = count_written(
                self.around,
                asked.thread_ids,
                session=self.session,
                turn=asked.turn,
                actor=self.actor,
            )
            answer = UseAnswer(counted=report.counted, not_counted=report.not_counted)
            tell(answer)
        return answer

    def shown(
        self,
        reading: Reading,
        via: Literal["read", "search"],
        paths: Iterable[str],
        contents: Iterable[str],
        threads: Iterable[str] = (),
    ) -> None:
        """Record that the session was given these texts, of these files and of these threads."""
        given = list(threads)
        for path in dict.fromkeys(paths):
            with suppress(Unreadable):  # It went away after it was given.
                given += reading.threads_in(path)
        shown(
            self.around,
            reading,
            session=self.session,
            via=via,
            thread_ids=given,
            tokens=sum(map(tokens_of, contents)),
            actor=self.actor,
        )


def listed(reading: Reading, asked: ListArguments) -> ListAnswer:
    """One level of a folder, or the one file that was named."""
    path = found(reading, asked.path)
    if reading.kind(path) == "file":
        entries = [Listed(path=path, entry_type="file")]
    else:
        entries = [Listed(path=each.path, entry_type=each.kind) for each in reading.entries(path)]
    start = place(asked.cursor)
    if start > len(entries):
        raise InvalidCursor(asked.cursor or "", f"is behind the end ({len(entries)} entries)")
    end = start + clamped(asked.max_results, LIST_RESULTS_MAX)
    return ListAnswer(
        path=asked.path,
        entries=entries[start:end],
        next_cursor=str(end) if end < len(entries) else None,
        truncated=end < len(entries),
    )


def read(reading: Reading, asked: ReadArguments) -> ReadAnswer:
    """A file from a line on, cut in the middle where it is over the budget."""
    if asked.line_offset < 1:
        raise InvalidLineOffset(asked.line_offset)
    if asked.max_lines is not None and asked.max_lines < 1:
        raise InvalidMaxLines(asked.max_lines)
    path = found(reading, asked.path)
    if reading.kind(path) != "file":
        raise NotFile(f"path {asked.path!r} is no file; list shows what is in a folder")
    text = reading.text(path)
    lines = text.split("\n")
    if asked.line_offset > len(lines):
        raise LineOffsetExceedsFileLength(asked.path, asked.line_offset, len(lines))
    rest = lines[asked.line_offset - 1 :]
    wanted = "\n".join(rest)
    more = asked.max_lines is not None and asked.max_lines < len(rest)
    if more:
        wanted = "\n".join(rest[: asked.max_lines]) + "\n"
        # A text that ends with a break has no more behind it, though a line may begin there.
        more = rest[asked.max_lines :] != [""]
    content = cut_middle(wanted, tokens=READ_TOKENS_MAX)
    return ReadAnswer(
        path=asked.path,
        start_line_number=asked.line_offset,
        content=content,
        truncated=more or content != wanted,
    )


def search(reading: Reading, asked: SearchArguments) -> SearchAnswer:
    """What is found under a folder or in a file, by path and line, one page of it."""
    query = query_of(asked)
    path = found(reading, asked.path)
    start = place(asked.cursor)
    end = start + clamped(asked.max_results, SEARCH_RESULTS_MAX)
    matches: list[Match] = []
    skipped: list[str] = []
    count = shown_bytes = 0
    for file in files(reading, path):
        try:
            lines = lines_of(reading.text(file))
        except GONE:
            continue
        except Unreadable:
            skipped.append(file)
            continue
        for hit in query.hits(lines):
            if start <= count < end:
                match = match_of(query, file, lines, hit, asked.context_lines)
                told = (match.content, *match.matched_queries)
                shown_bytes += sum(len(text.encode("utf-8", "surrogatepass")) + 4 for text in told)
                if shown_bytes > PAGE_BYTES_MAX:
                    end = count
                else:
                    matches.append(match)
            count += 1
    if start > count:
        raise InvalidCursor(asked.cursor or "", f"is behind the end ({count} matches)")
    return SearchAnswer(
        queries=list(query.texts),
        match_mode=asked.match_mode,
        path=asked.path,
        matches=matches,
        next_cursor=str(end) if end < count else None,
        truncated=end < count,
        skipped=skipped[:SKIPPED_MAX],
    )


def refuse_long(queries: Sequence[str]) -> None:
    """What is asked stands in the answer, beside each line that has it."""
    length = sum(len(text.encode("utf-8", "surrogatepass")) + 1 for text in queries)
    if length > QUERIES_BYTES_MAX:
        raise QueriesTooLong(length)


def query_of(asked: SearchArguments) -> Query:
    query = Query(
        texts=tuple(text.strip() for text in asked.queries),
        mode=asked.match_mode,
        case_sensitive=asked.case_sensitive,
        normalized=asked.normalized,
    )
    if not query.texts:
        raise EmptyQuery("queries is empty")
    refuse_long(query.texts)
    for text in query.texts:
        if not text:
            raise EmptyQuery("queries has a blank text")
        if not query.folded(text):
            raise EmptyQuery(f"queries has {text!r}, which normalized leaves nothing of")
    match query.mode:
        case AllWithinLines(line_count=count) if count < 1:
            raise InvalidMatchWindow(count)
    return query


def match_of(query: Query, path: str, lines: Sequence[str], hit: Hit, context_lines: int) -> Match:
    excerpt = query.excerpt(lines, hit, context_lines=context_lines)
    return Match(
        path=path,
        match_line_number=hit.start + 1,
        content_start_line_number=excerpt.start + 1,
        content=excerpt.content,
        matched_queries=list(hit.matched),
        content_truncated=excerpt.truncated,
    )


def files(reading: Reading, path: str) -> list[str]:
    """The file, or every file under the folder, by path."""
    if reading.kind(path) == "file":
        return [path]
    return sorted(below(reading, path), key=lambda each: each.encode("utf-8", "surrogatepass"))


def below(reading: Reading, path: str) -> Iterator[str]:
    try:
        entries = reading.entries(path)
    except Unreadable:
        return  # The folder was swapped for something else since it was listed.
    for each in entries:
        if each.kind == "file":
            yield each.path
        else:
            yield from below(reading, each.path)


def found(reading: Reading, path: str | None) -> str:
    """A path that is there and that may be read: a file or a folder. `""` is the root."""
    plain = within(path)
    for each in dict.fromkeys(("", plain)):
        match reading.kind(each):
            case "file" | "directory":
                pass
            case "link":
                raise InvalidPath(
                    f"path {path!r} is a symbolic link, which is never followed; name the file"
                    if each
                    else "the memory folder is a symbolic link, which is never followed; a person"
                    " has to put the folder itself there"
                )
            case "other":
                raise NotFile(f"path {path!r} is neither a file nor a folder; list shows those")
            case None:
                raise NotFound(
                    f"path {path!r} does not exist; list shows what there is"
                    if each
                    else "path '' does not exist: there is no memory for this project yet"
                )
    return plain


# What a person or a model writes for a way out, on this system or another.
_DRIVE = re.compile(r"[A-Za-z]:")
_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f]")


def within(path: str | None) -> str:
    """A path as the root knows it. What is hidden looks like what is not there."""
    parts = (path or "").split("/")
    if path and (path[0] == "/" or "\\" in path or _DRIVE.match(path) or ".." in parts):
        raise InvalidPath(
            f"path {path!r} must stay within the memory folder; give it relative to the folder,"
            " with / between names, and without .."
        )
    if path and _UNWRITABLE.search(path):
        raise InvalidPath(f"path {path!r} has a control character; list shows the paths there are")
    names = [name for name in parts if name not in ("", ".")]
    if any(name[0] == "." for name in names):
        raise NotFound(f"path {path!r} does not exist; list shows what there is")
    return "/".join(names)


def place(cursor: str | None) -> int:
    """The offset that a cursor stands for."""
    if cursor is None:
        return 0
    if not re.fullmatch(r"\+?[0-9]{1,19}", cursor):
        raise InvalidCursor(cursor, "is no count")
    return int(cursor)


def clamped(asked: int | None, most: int) -> int:
    return most if asked is None else min(max(asked, 1), most)
