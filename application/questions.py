"""Questions: what an agent may ask of a memory, how it is answered, and how it is refused.

Names, arguments and errors of the first four are Codex's. An error is text for a model: it names
the argument and says what to do.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import fields

from ..domain.search import AnyOf, MatchMode
from .reading import Unreadable

QUERIES_BYTES_MAX = 16_000  # No line of a memory that is worth a query has more.

Count = Annotated[int, Meta(ge=0)]


class BadArguments(Unreadable):
    code = "bad_arguments"

    def __init__(self, why: str, kind: type[Struct]) -> None:
        known = ", ".join(each.name for each in fields(kind))
        super().__init__(f"{why}; the arguments are {known}")


class InvalidCursor(Unreadable):
    code = "invalid_cursor"

    def __init__(self, cursor: str, why: str) -> None:
        super().__init__(
            f"cursor {cursor!r} {why}; give the next_cursor of the page before, or none to begin"
        )


class InvalidLineOffset(Unreadable):
    code = "invalid_line_offset"

    def __init__(self, offset: int) -> None:
        super().__init__(f"line_offset {offset} is no line; lines are counted from 1")


class LineOffsetExceedsFileLength(Unreadable):
    code = "line_offset_exceeds_file_length"

    def __init__(self, path: str, offset: int, count: int) -> None:
        super().__init__(
            f"line_offset {offset} is behind the end of {path}, which has {count} lines;"
            f" give 1 to {count}"
        )


class InvalidMaxLines(Unreadable):
    code = "invalid_max_lines"

    def __init__(self, most: int) -> None:
        super().__init__(f"max_lines {most} would read nothing; give 1 or more, or leave it out")


class EmptyQuery(Unreadable):
    code = "empty_query"

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}; give at least one text to look for, and no blank one")


class QueriesTooLong(Unreadable):
    code = "queries_too_long"

    def __init__(self, length: int) -> None:
        super().__init__(
            f"queries have {length} bytes, and {QUERIES_BYTES_MAX} is the most; give a few words"
            " that stand in what you look for"
        )


class InvalidMatchWindow(Unreadable):
    code = "invalid_match_window"

    def __init__(self, count: int) -> None:
        super().__init__(f"match_mode.line_count {count} is no window; give 1 or more lines")


class ListArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: str | None = None
    cursor: str | None = None
    max_results: Count | None = None


class ReadArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: str
    line_offset: Count = 1
    max_lines: Count | None = None


class SearchArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    queries: tuple[str, ...]
    match_mode: MatchMode = field(default_factory=AnyOf)
    path: str | None = None
    cursor: str | None = None
    context_lines: Count = 0
    case_sensitive: bool = True
    normalized: bool = False
    max_results: Count | None = None


class NoteArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    filename: str
    note: str


class UseArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`turn` is the ordinal of the message that is answered, from 1; 0: the caller knows none, and
    then a thread counts once for the whole session."""

    thread_ids: Annotated[tuple[str, ...], Meta(max_length=256)]
    turn: Count = 0


class Listed(Struct, frozen=True, kw_only=True):
    path: str
    entry_type: Literal["file", "directory"]


class ListAnswer(Struct, frozen=True, kw_only=True):
    path: str | None
    entries: list[Listed]
    next_cursor: str | None
    truncated: bool


class ReadAnswer(Struct, frozen=True, kw_only=True):
    path: str
    start_line_number: int
    content: str
    truncated: bool


class Match(Struct, frozen=True, kw_only=True):
    """Lines count from 1. `content_truncated`: there is more of it than an excerpt may show."""

    path: str
    match_line_number: int
    content_start_line_number: int
    content: str
    matched_queries: list[str]
    content_truncated: bool


class SearchAnswer(Struct, frozen=True, kw_only=True):
    """`skipped` names files that could not be searched: no text, too big, or not to be opened."""

    queries: list[str]
    match_mode: MatchMode
    path: str | None
    matches: list[Match]
    next_cursor: str | None
    truncated: bool
    skipped: list[str]


class NoteAnswer(Struct, frozen=True, kw_only=True):
    """`added` False: the same text was kept before, at `path`, and nothing was stored."""

    path: str
    added: bool
    secrets_hidden: int


class UseAnswer(Struct, frozen=True, kw_only=True):
    """`not_counted` says why, by id, in the words of `CiteReport`."""

    counted: list[str]
    not_counted: dict[str, str]


Arguments = TypeVar("Arguments", bound=Struct)


def decoded(arguments: Mapping[str, Any], kind: type[Arguments]) -> Arguments:
    """Arguments as a client sent them; nothing is guessed, and nothing unknown is passed over."""
    try:
        found = msgspec.convert(arguments, kind)
        json.dumps(arguments, ensure_ascii=False).encode()
    except msgspec.ValidationError as error:
        raise BadArguments(str(error), kind) from error
    except UnicodeEncodeError as error:
        raise BadArguments("an argument has half a character (a lone surrogate)", kind) from error
    return found
