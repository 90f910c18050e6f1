"""The normal form of a transcript: what every reader makes of a file, whoever wrote it.

A session is a header and a stream of items in file order. Items are decoded text: lone
surrogates are U+FFFD, NUL is gone, pictures are a short placeholder. Who said a thing is decided
by the reader and never again: `Human` is what a person typed, `Harness` is what the program put
into the user's mouth, `Agent` is another agent. `inherited` marks copied history (a fork's, a
compaction's), which is no second witness.
"""

from typing import Literal

from msgspec import Struct

from .events import Kind, Mode, Tool
from .guard import RateLimits


class Header(Struct, frozen=True, kw_only=True):
    """What the transcript says of itself. Times are Unix milliseconds."""

    thread_id: str
    tool: Tool
    source: str
    kind: Kind
    rollout_path: str
    cwd: str | None
    git_branch: str | None
    repository_url: str | None
    created_at_ms: int
    updated_at_ms: int
    forked_from: str | None = None
    parent: str | None = None
    preview: str | None = None
    archived: bool = False
    memory_mode: Mode | None = None


class BadLine(Struct, frozen=True, kw_only=True):
    """A line that was skipped. Lines count from 1, offsets are bytes from 0."""

    line: int
    offset: int
    reason: str


class CitedReply(Struct, frozen=True, kw_only=True):
    """What the final replies of one turn cite, each id once.

    `turn` is the ordinal of the message that a person typed in this session, from 1; messages that
    were taken back count, copied ones do not. `stood_before` are those of the ids that the session
    had been given before, in text that the program or a tool put in front of it.
    """

    turn: int
    at_ms: int | None = None
    ids: tuple[str, ...]
    stood_before: tuple[str, ...] = ()


class Survey(Struct, frozen=True, kw_only=True):
    """One reading of a whole file, without its items."""

    header: Header
    records: int
    bad_lines: tuple[BadLine, ...]
    skipped: dict[str, int]
    human_messages: tuple[str, ...]
    unfinished_tail: bool
    resume_offset: int
    polluting: tuple[str, ...]
    citations: tuple[CitedReply, ...] = ()
    limits: tuple[int, RateLimits] | None = (
        None  # The newest that its program was told of, and when.
    )


class Item(Struct, frozen=True, kw_only=True):
    line: int
    at_ms: int | None = None
    inherited: bool = False


class Human(Item, frozen=True, kw_only=True):
    """What a person typed: a message, or the reason they gave for refusing a tool call."""

    text: str
    via: Literal["message", "refusal"] = "message"


class Harness(Item, frozen=True, kw_only=True):
    """Text in the user's role that no person typed: instructions, environment, reminders."""

    text: str
    what: str


class Agent(Item, frozen=True, kw_only=True):
    """Text of another agent."""

    text: str


class Assistant(Item, frozen=True, kw_only=True):
    text: str
    final: bool | None = None


class Change(Struct, frozen=True, kw_only=True):
    path: str
    how: Literal["add", "update", "delete"]


class Call(Item, frozen=True, kw_only=True):
    """A tool call. `command` is the shell line when the tool is a shell; `changes` are the files
    that the call changes if it succeeds."""

    call_id: str | None
    name: str
    arguments: str
    command: str | None = None
    changes: tuple[Change, ...] = ()


class Output(Item, frozen=True, kw_only=True):
    """What a call returned. `exit_code` and `failed` are None where the transcript does not say."""

    call_id: str | None
    text: str
    exit_code: int | None = None
    failed: bool | None = None


class TurnAborted(Item, frozen=True, kw_only=True):
    """A person interrupted the turn."""


class RolledBack(Item, frozen=True, kw_only=True):
    """The last `turns` human turns before this item were taken back, and teach nothing."""

    turns: int


AnyItem = Human | Harness | Agent | Assistant | Call | Output | TurnAborted | RolledBack
