"""What the use cases need from outside, where more than one thing can give it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct

from ..domain.events import NO_TOKENS, AnyEvent, Event, Tokens
from ..domain.extraction import FailureKind
from ..domain.session import AnyItem, Header

if TYPE_CHECKING:
    from ..domain.evidence import Evidence

Clock = Callable[[], float]  # Unix seconds.
Progress = Callable[[str, int, int], None]  # Called with what is done, how many are, of how many.


class Failure(Exception):
    """Something outside could not do it. The message says what, and what to do about it."""


class Busy(Failure):
    """Somebody else holds what is needed, for longer than we would wait."""


class NoLongerASession(Failure):
    """A file can be read, and what it holds is no session."""


class Conflict(Exception):
    """Somebody else appended first. Read again, then decide again."""


class Recorded(Struct, frozen=True, kw_only=True, gc=False):
    """A row of the log. `event` is None where this program does not know the type."""

    position: int
    stream: str
    version: int
    type: str
    recorded_at_ms: int
    actor: str
    run_id: str | None
    data: str
    event: AnyEvent | None


class View(Protocol):
    """Everything as it is at one position, now or then."""

    @property
    def position(self) -> int: ...

    @property
    def recorded_at_ms(self) -> int:
        """When the newest event up to here was recorded; 0 before the first."""

    def rows(self, projection: ModuleType, place: tuple[str, ...]) -> list[Any]:
        """The projection's rows under the leading part of its key, in key order."""

    def find(self, projection: ModuleType, rest: str, /, **values: Any) -> list[Any]:
        """Rows by a query of the projection's own file: what follows `SELECT … FROM table`."""

    def value(self, query: str, /, **values: Any) -> Any:
        """The first column of the first row of a query of a projection's file, or None."""

    def version(self, stream: str) -> int:
        """How many events the stream has."""

    def types(self) -> dict[str, int]:
        """How many events of each type there are, known to this program or not."""

    def events(self, *, stream: str | None = None, after: int = 0) -> Iterator[Recorded]:
        """The log in order, from the position behind `after` on."""

    def body(self, ref: str) -> str | None:
        """A text, or None when it has been erased."""


class Writing(View, Protocol):
    """One transaction with the write lock: what is read here is what is decided on."""

    def append(self, stream: str, *events: Event, expected_version: int | None = None) -> int:
        """Record, fold, and return the last position. `Conflict` where the version is another."""

    def put(self, owner: str, text: str) -> str:
        """Keep an erasable text for a stream; the ref is random."""

    def erase(self, *, owners: Iterable[str] = (), refs: Iterable[str] = ()) -> int:
        """Delete texts by owner or ref; how many there were."""


class Left(Struct, frozen=True, kw_only=True):
    """What a database still has of the texts that a stream owned, after they were erased."""

    texts: int = 0  # Rows of theirs.
    keys: int = 0  # Erased texts, or groups of them, that this home could still open.
    pending: list[str] = []  # What is not yet overwritten here, and who holds that up.
    elsewhere: list[str] = []  # What lies where nobody can look from here.


class Store(Protocol):
    def reading(self) -> AbstractContextManager[View]: ...

    def writing(
        self, *, actor: str, run_id: str | None = None, wait_s: float | None = None
    ) -> AbstractContextManager[Writing]:
        """Everything in the block is committed together, or nothing is. `Busy` where others write
        for longer than the store, or `wait_s`, waits."""

    def at(self, position: int) -> AbstractContextManager[View]:
        """The past, folded anew from the log."""

    def left(self, owner: str) -> Left: ...

    def tidy(self) -> None:
        """Give back the room of what was erased. It may take a second, and changes nothing."""

    def forgotten(self) -> Iterable[str]:
        """The threads whose forgetting was asked for last, kept beside the log: also those that
        it does not have, because it was cut off or restored."""


class Extracted(Struct, frozen=True, kw_only=True):
    """Without words in it, it says that the session teaches nothing, and what it cost to know.

    `evidence` is JSON: what a person typed and where. `omitted` items of the session, and so many
    bytes of them, were not shown to whoever read it.
    """

    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None
    evidence: str | None = None
    prompt_digest: str | None = None
    suppressed: int = 0
    omitted: int = 0
    omitted_bytes: int = 0
    tokens: Tokens = NO_TOKENS


class ModelFailed(Exception):
    """What was asked of a model came to nothing. `reason` is a code and quotes nothing. Where it
    `stops`, nothing else would fare better in this run: the key is refused, the quota is used
    up."""

    def __init__(
        self,
        kind: FailureKind,
        reason: str,
        *,
        retry_after_s: int | None = None,
        tokens: Tokens = NO_TOKENS,
        stops: bool = False,
    ) -> None:
        super().__init__(reason)
        self.kind: FailureKind = kind
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.tokens = tokens
        self.stops = stops


class ExtractionFailed(ModelFailed):
    """A reading that came to nothing."""

    @classmethod
    def of_source(cls, error: Failure, *, tokens: Tokens = NO_TOKENS) -> "ExtractionFailed":
        """Of what is wrong with the session's file."""
        if isinstance(error, NoLongerASession):
            return cls("source", "source_is_no_session", tokens=tokens)
        return cls("transient", "source_unreadable", tokens=tokens)


class Material(Struct, frozen=True, kw_only=True):
    """A claimed session as an extractor may read it: redacted, and in two forms.

    `evidence` renders what a model is shown, within so many tokens; with True whole turns are left
    out where it does not fit. `shrink` says how often in a row the session was too long before.
    `may_spend` is asked before each call, with what it may cost at most; False: it is not made.
    """

    header: Header
    memory_version: str
    items: Callable[[], Iterator[AnyItem]]
    evidence: "Callable[[int, bool], Evidence]"
    may_spend: Callable[[int], bool]
    shrink: int = 0


class Extractor(Protocol):
    """Reads sessions, several at a time where `slots` says so."""

    @property
    def name(self) -> str: ...

    @property
    def slots(self) -> int: ...

    def digest(self, memory_version: str) -> str | None:
        """What the prompt and the schema are known by; None: it has none, and reads for nothing."""

    def extract(self, material: Material) -> "Extracted | Future[Extracted | None] | None":
        """What is worth keeping of a session, or None; an `ExtractionFailed` where it came to
        nothing. Whoever answers later gives a future of that."""

    def stop(self) -> None:
        """End every call at once. What a call has cost until then stands in the
        `ExtractionFailed` that its future ends with."""

    @property
    def remaining_percent(self) -> float | None:
        """What the provider's limits leave, by its last answer; None: it does not say."""


class PhaseTwoOutput(Struct, frozen=True, kw_only=True):
    """One selected output as phase 2 reads it. `updated_at` is source_updated_at, in seconds."""

    thread_id: str
    updated_at: int
    rollout_path: str
    cwd: str
    git_branch: str | None
    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None


class Task(Struct, frozen=True, kw_only=True):
    """One consolidation as a consolidator is asked for it.

    `outputs` are the selected ones, `published` the artifacts as the log has them, without what a
    person changed. An agent reads neither: it is given `staged`, path -> text of everything in its
    folder: the artifacts with a person's edits in them, the inputs, notes and resources, and the
    page of changes. `edited` names what a person changed since the last publication. `refused` says
    what was wrong with the last proposal, which is then what is staged.

    `alive` is asked between steps, from whatever thread: False, and the work ends at once.
    `may_spend` is asked before each call, with the tokens that it may cost at most; False: it is
    not made.
    """

    memory_version: str
    scope: str
    outputs: Sequence[PhaseTwoOutput]
    published: Mapping[str, str] = {}
    mode: Literal["init", "incremental"] = "init"
    staged: Mapping[str, str] = {}
    edited: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    alive: Callable[[], bool] = lambda: True
    may_spend: Callable[[int], bool] = lambda _: True


class ToolUse(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of a tool: what it was about and how large that was in bytes, and none of its text.
    `path` is empty where it was no path of the folder; `refused` is a code; `to` is where a file
    was moved."""

    tool: str
    path: str = ""
    bytes: int = 0
    refused: str = ""
    to: str = ""


class Proposal(Struct, frozen=True, kw_only=True):
    """Every file that the folder holds at the end, path -> text; only artifacts of it are ever
    published, and what is not there any more is to go. `unusable` says of other paths why they are
    no text of ours. `tool_calls` counts calls by name, `tool_uses` are the first of them."""

    files: Mapping[str, str]
    unusable: Mapping[str, str] = {}
    tokens: Tokens = NO_TOKENS
    tool_calls: Mapping[str, int] = {}
    tool_uses: Sequence[ToolUse] = ()
    prompt_digest: str | None = None


class ConsolidationFailed(Exception):
    """A consolidation that came to nothing. `reason` is one of Codex's labels, or a code of ours.
    Where it `stops`, no other root would fare better in this run."""

    def __init__(
        self,
        reason: str,
        *,
        retry_after_s: int | None = None,
        tokens: Tokens = NO_TOKENS,
        tool_calls: Mapping[str, int] | None = None,
        tool_uses: Sequence[ToolUse] = (),
        prompt_digest: str | None = None,
        stops: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.tokens = tokens
        self.tool_calls = tool_calls or {}
        self.tool_uses = tool_uses
        self.prompt_digest = prompt_digest
        self.stops = stops


class Consolidator(Protocol):
    """Makes a root's artifacts. `offline` renders them from the outputs: at once, and alike each
    time. An `agent` edits a folder, takes its time, and is checked before anything is published."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> Literal["offline", "agent"]: ...

    def propose(self, task: Task) -> Proposal:
        """The artifacts that the root should hold from now on, all of them; a
        `ConsolidationFailed` where it came to nothing."""
