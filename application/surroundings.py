"""What a use case finds around it: a store, files, models, a clock, and the user's policy."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct

from ..domain.eligibility import Limits
from ..domain.session import AnyItem, Survey
from .ports import Clock, Consolidator, Extractor, Failure, Store

if TYPE_CHECKING:
    from ..domain.evidence import Exhibit

GLOBAL = "global"
VERSIONS = ("v1", "v2")  # Of the memory: every one that a home may hold, written today or not.


class Provider(Struct, frozen=True, kw_only=True):
    """Whom sessions are sent to, and what that may cost: tokens, both ways, failed calls too."""

    base_url: str
    extract_model: str
    consolidation_model: str
    slots: int = 8  # Sessions that it reads at once, as Codex has it.
    context_window: int = 272_000  # Tokens; 0 where nobody knows.
    max_output_tokens: int = 16_384
    max_tokens_per_run: int = 2_000_000
    max_tokens_per_day: int = 4_000_000
    min_rate_limit_remaining_percent: int = 25


class Policy(Struct, frozen=True, kw_only=True):
    """The user's settings, as far as a use case asks them. `provider` None: all is done here.

    `versions` are written; of these `memory_version` is the one that is read, or the one at hand.
    """

    memory_version: str = "v1"
    versions: tuple[str, ...] = ("v1",)
    provider: Provider | None = None
    max_roots_per_run: int = 4
    scope: Literal["project", "global"] = "project"
    limits: Limits = Limits()
    generate_memories: bool = True
    disable_on_external_context: bool = False
    trusted_mcp_servers: tuple[str, ...] = ()
    history_days: int = 30
    use_memories: bool = True
    context_tokens: int = 2500


class ProjectFile(Struct, frozen=True, kw_only=True):
    """A project's own settings. `text` is None where it is there and cannot be read."""

    path: str
    text: str | None


class Seen(Struct, frozen=True, kw_only=True):
    """What was on disk where a session worked: the project's root and its remote, if any, and the
    project files from there up to the repository's root."""

    root: str | None = None
    remote: str | None = None
    files: tuple[ProjectFile, ...] = ()


class Restriction(Struct, frozen=True, kw_only=True):
    """What a project's files take away. They give nothing, so several of them all hold."""

    generate_memories: bool = True
    use_memories: bool = True
    disable_on_external_context: bool = False
    sources: tuple[str, ...] | None = None


class Rollouts(Protocol):
    def discover(self, paths: Sequence[Path]) -> Iterator[Path]:
        """The session files under the paths. `Failure` for a path that is not there."""

    def survey(self, path: Path, *, now_ms: int) -> Survey: ...

    def items(self, path: Path, *, now_ms: int) -> Iterator[AnyItem]: ...

    def evidence(self, path: Path, *, now_ms: int) -> "Iterator[Exhibit]":
        """What a model may be shown of the session, secrets still in it."""


class Found(Protocol):
    @property
    def files(self) -> dict[str, bytes]: ...

    @property
    def others(self) -> dict[str, str]:
        """Path -> why it is not among the texts."""


class Changed(Protocol):
    @property
    def status(self) -> str:
        """A, M or D."""

    @property
    def path(self) -> str: ...

    @property
    def before(self) -> bytes: ...


class FolderUnusable(Failure):
    """One root's folder cannot be used as it is; what concerns the other roots goes on."""


class Workspace(Protocol):
    """One memory root on disk. Hold `lock` around everything that writes.

    What it cannot do is a `FolderUnusable`.
    """

    @property
    def path(self) -> Path: ...

    def lock(self, *, wait_s: float = ..., holder: str = ...) -> AbstractContextManager[None]: ...

    def prepare(self) -> list[str]:
        """Make the folder sound; the symbolic links that had to go."""

    def in_the_way(self, paths: Collection[str]) -> list[str]:
        """What is of another kind than these files need: a folder for a file, or the reverse."""

    def make_way(self, paths: Collection[str]) -> list[Path]:
        """Move that beside the root; where it is now."""

    def scan(self) -> Found: ...

    def read(self, path: str) -> bytes | None:
        """A file's bytes, of whatever size and kind; None where there is none."""

    def has_baseline(self) -> bool: ...

    def write(self, path: str, text: str, *, flushed: bool = ...) -> str:
        """Replace a file as a whole; its digest."""

    def remove(self, path: str) -> bool:
        """Remove a file and the folders it leaves empty; whether there was one."""

    def prune_summaries(self, keep: Collection[str]) -> list[str]:
        """Remove every summary but these; which."""

    def render(
        self,
        wanted: Mapping[str, str],
        *,
        previous: Mapping[str, str],
        on_edit: Callable[[str, bytes], None],
    ) -> dict[str, str]:
        """Write what differs, remove what was rendered before and is wanted no longer; path ->
        digest. An artifact that somebody changed is told of before it is replaced."""

    def set_aside(self, path: str, content: bytes) -> Path:
        """Keep a copy beside the root, never over an earlier one."""

    def remove_edits(self) -> int: ...

    def clear(self) -> int:
        """Empty the folder and what was set aside beside it; how many files there were."""

    def rendered_at(self) -> int | None:
        """The position that this folder was last rendered at, where that is known."""

    def note_rendered(self, position: int) -> None: ...

    def diff(self) -> Sequence[Changed]:
        """What differs from the baseline."""

    def reset_baseline(self, now: float) -> None: ...


Kind = Literal["file", "directory", "link", "other"]


class Files(Protocol):
    """What a memory root holds, by root-relative path; `""` is the root. Hidden is not there.

    What cannot be read is an `Unreadable`.
    """

    def kind(self, path: str) -> Kind | None: ...

    def names(self, path: str) -> Iterable[tuple[str, Kind]]:
        """What lies in one folder."""

    def text(self, path: str) -> str: ...


class Tree(Files, Protocol):
    """One memory root on disk, for whoever only reads."""

    @property
    def path(self) -> Path: ...

    def rendered_at(self) -> int | None:
        """The position that the folder was last rendered at, where that is known."""


class Spool(Protocol):
    """Lines that wait, beside the log, for whoever writes to it next. Raises `Failure`."""

    def leave(self, line: bytes) -> None: ...

    def taking(self) -> AbstractContextManager[list[bytes]]:
        """What was left, handed out again unless the block ends well; perhaps torn."""


Tell = Callable[[object], None]


class Watch(Protocol):
    """Told of an operation what is asked, and inside of it what came of that. It never raises and
    never waits. It is handed whole answers: what of them leaves the machine is its to decide."""

    def __call__(
        self, operation: str, asked: Mapping[str, Any] | Struct
    ) -> AbstractContextManager[Tell]: ...


def unwatched(operation: str, asked: Mapping[str, Any] | Struct) -> AbstractContextManager[Tell]:
    return nullcontext(lambda _: None)


class Surroundings(Struct, frozen=True, kw_only=True):
    store: Store
    rollouts: Rollouts
    look: Callable[[str | None], Seen]
    restriction: Callable[[Seen], Restriction]  # `Failure` for a file that cannot be used.
    workspace: Callable[[str, str], Workspace]
    tree: Callable[[str, str], Tree]
    spool: Spool
    folders: Callable[[str], list[str]]  # The names of a version's folders that are on this disk.
    extractor: Extractor
    consolidator: Consolidator
    offline: Consolidator | None = None  # Who writes without a model, if that one is a model.
    policy: Policy
    note_instructions: Callable[[], str] = lambda: ""  # For a model, how to read notes.
    machine_id: str
    home_dirs: tuple[str, ...] = ()  # Whose own folders are no projects.
    worker_id: str
    is_alive: Callable[[str], bool]  # Whether the worker of that id may still be at work.
    take_in_hand: Callable[[str, str], None] = lambda _worker, _thread: None
    had_in_hand: Callable[[str], str | None] = lambda _worker: None  # None: nobody knows.
    clock: Clock
    new_id: Callable[[], str]
    sleep: Callable[[float], None]
    watch: Watch = unwatched

    def now(self) -> int:
        return int(self.clock())
