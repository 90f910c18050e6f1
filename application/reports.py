"""What a use case tells its caller: plain structs, the same for people and for programs."""

from typing import Literal

from msgspec import Struct, field

from ..domain.events import NO_TOKENS, Tokens
from .foreign import LeftOut


class Stage1Report(Struct, kw_only=True):
    claimed: int = 0
    succeeded: int = 0
    no_output: int = 0
    failed: int = 0
    waiting: int = 0
    failures: dict[str, int] = field(default_factory=dict)  # How many failed, by reason.

    def add(self, more: "Stage1Report") -> None:
        self.claimed += more.claimed
        self.succeeded += more.succeeded
        self.no_output += more.no_output
        self.failed += more.failed
        self.waiting += more.waiting
        for reason, count in more.failures.items():
            self.failures[reason] = self.failures.get(reason, 0) + count


class RootReport(Struct, kw_only=True):
    """One memory root after this run. Paths are of the whole folder, after publishing."""

    version: str
    scope: str
    status: str
    path: str
    added: list[str] = field(default_factory=list)
    modified: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    edits: list[str] = field(default_factory=list)
    reason: str | None = None
    advice: str | None = None  # For whoever runs it: what a command said last. Recorded nowhere.


class IngestReport(Struct, kw_only=True):
    """`ingested` counts sessions whose facts are new or changed; `sessions` all that were found."""

    sessions: int = 0
    ingested: int = 0
    skipped_lines: dict[str, int] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)


class RunReport(Struct, kw_only=True):
    run_id: str
    sessions: int = 0
    ingested: int = 0
    skipped_lines: dict[str, int] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    pruned: int = 0
    stage1: Stage1Report = field(default_factory=Stage1Report)
    phase2: list[RootReport] = field(default_factory=list)
    tokens: Tokens = NO_TOKENS
    waiting: dict[str, int] = field(default_factory=dict)
    waiting_tokens: int = 0  # About what a provider would be paid to read what waits for it.
    left_out: dict[str, int] = field(default_factory=dict)
    dry_run: bool = False

    @property
    def all_failed(self) -> bool:
        """Every job that was started has failed, and there was one; or nothing that was asked for
        could be read."""
        if self.unreadable and not self.sessions:
            return True
        phase2_failed = [root for root in self.phase2 if root.status.startswith("failed")]
        started = self.stage1.claimed + len(self.phase2)
        return started > 0 and self.stage1.failed + len(phase2_failed) == started


class GateAnswer(Struct, kw_only=True):
    name: str
    passed: bool = field(name="pass")
    why: str


class Explanation(Struct, kw_only=True):
    """Why a thread is in or out at a position, in the order in which the gates are asked, and how
    often and when last its memory was cited, which its rank goes by."""

    thread_id: str
    position: int
    at: int
    scope: str | None
    selected: bool
    verdict: str
    gates: list[GateAnswer]
    rank: int | None
    waiting: list[str]
    events: list[int]
    uses: int = 0
    last_used_at: int | None = None
    spent: list[Tokens] = field(default_factory=list)
    reading: "LastReading | None" = None


class LastReading(Struct, kw_only=True):
    """The last time that the thread was read to the end: by whom, how much of it was not shown to
    them, how many statements were dropped, and how many quotes a person typed like that."""

    extractor: str
    prompt_digest: str | None = None
    omitted: int = 0
    omitted_bytes: int = 0
    suppressed: int = 0
    quotes: dict[str, int] = field(default_factory=dict)


class ThreadLine(Struct, kw_only=True):
    thread_id: str
    source: str
    kind: str
    scope: str | None
    memory_mode: str
    updated_at: str | None
    stage1: str
    selected: bool
    preview: str | None = None


class ForgetReport(Struct, kw_only=True):
    """`known`: a session of that id was seen before."""

    thread_id: str
    known: bool = True
    already: bool
    bodies_erased: int = 0
    roots: list[str] = field(default_factory=list)
    pending: str | None = None


class CiteReport(Struct, kw_only=True):
    """What a reply shows, which threads it used, and why another id did not count.

    The reasons: `not_an_id`, `no_session` (none was named), `itself`, `unknown`, `forgotten`,
    `polluted`, `disabled`, `no_output` (nothing was kept of it), `not_in_reach` (the session was
    not shown it), `counted_before` (in the same turn).
    """

    visible: str = ""
    counted: list[str] = field(default_factory=list)
    not_counted: dict[str, str] = field(default_factory=dict)


class ProjectReport(Struct, kw_only=True):
    """Files of one key, as paths from its folder on. With a `failure` nothing of it was changed."""

    key: str
    scope: str | None = None
    added: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unchanged: int = 0
    failure: str | None = None

    @property
    def is_changed(self) -> bool:
        return bool(self.added or self.replaced or self.removed)


class ImportReport(Struct, kw_only=True):
    """`left` says of which threads nothing was taken, by reason; `waiting` which folders follow
    with the next run."""

    program: Literal["codex", "claude"]
    folder: str
    imported: list[str] = field(default_factory=list)
    left: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    notes_known: int = 0
    projects: list[ProjectReport] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    secrets_hidden: int = 0
    scopes: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    dry_run: bool = False

    @property
    def all_failed(self) -> bool:
        return bool(self.projects) and all(each.failure for each in self.projects)
