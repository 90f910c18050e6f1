"""Everything that can happen, in the words of the glossary.

An event is a bare fact: frozen, past tense, complete without its neighbours. Events are all that
is stored, so a field may be added with a default, and is never renamed or given a new meaning; the
tag is what the log knows, whatever the class is called. Times are Unix seconds, or milliseconds
where the name says so. Text is never in an event: a `*_ref` points to a body, which can be erased
while the fact that it existed stays. What was computed from the order of things (a count, a
watermark) stands in the event, so that no fold computes it again. Every `reason` is a code.
"""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

Mode = Literal["enabled", "disabled", "polluted"]
Tool = Literal["codex", "claude"]
Kind = Literal["interactive", "exec", "subagent", "internal", "unknown"]


class Event(Struct, frozen=True, kw_only=True, gc=False, tag_field="type"):
    at: int


class Tokens(Struct, frozen=True, kw_only=True, gc=False):
    """What the calls of one attempt cost. The offline model makes none, and says so."""

    model: str = "offline"
    calls: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0

    def __add__(self, more: "Tokens") -> "Tokens":
        """Of several models the last that was called gives its name."""
        return Tokens(
            model=more.model if more.calls else self.model,
            calls=self.calls + more.calls,
            input=self.input + more.input,
            cached=self.cached + more.cached,
            output=self.output + more.output,
            reasoning=self.reasoning + more.reasoning,
        )


NO_TOKENS = Tokens()


# thread:<thread id>: what the session is, its mode, its scope, its end.


class ThreadRegistered(Event, frozen=True, kw_only=True, tag="thread.registered"):
    """A session was first seen. `source` is the program's own word; `kind` is ours.

    `machine_id`: on whose disk `rollout_path` is; None in what was recorded before that was.
    """

    thread_id: str
    tool: Tool
    source: str
    kind: Kind
    rollout_path: str
    cwd: str | None
    git_branch: str | None
    repository_url: str | None
    root: str | None
    scope: str
    created_at_ms: int
    updated_at_ms: int
    preview_ref: str | None
    archived: bool
    forked_from: str | None
    mode: Mode
    mode_reason: str
    machine_id: str | None = None


class ThreadChanged(Event, frozen=True, kw_only=True, tag="thread.changed"):
    """Only the fields that changed. Unset means unchanged, None means cleared."""

    thread_id: str
    source: str | UnsetType = UNSET
    kind: Kind | UnsetType = UNSET
    rollout_path: str | UnsetType = UNSET
    cwd: str | UnsetType | None = UNSET
    git_branch: str | UnsetType | None = UNSET
    repository_url: str | UnsetType | None = UNSET
    root: str | UnsetType | None = UNSET
    updated_at_ms: int | UnsetType = UNSET
    preview_ref: str | UnsetType | None = UNSET
    archived: bool | UnsetType = UNSET
    forked_from: str | UnsetType | None = UNSET
    machine_id: str | UnsetType | None = UNSET


class MemoryModeSet(Event, frozen=True, kw_only=True, tag="thread.mode_set"):
    thread_id: str
    mode: Literal["enabled", "disabled"]
    mode_before: Mode
    reason: str


class ThreadPolluted(Event, frozen=True, kw_only=True, tag="thread.polluted"):
    """External text reached the session. `detail` names the server or tool, never its words."""

    thread_id: str
    cause: str
    detail: str | None = None
    mode_before: Mode


class ThreadRescoped(Event, frozen=True, kw_only=True, tag="thread.rescoped"):
    thread_id: str
    scope: str
    scope_before: str
    reason: str


class ThreadForgotten(Event, frozen=True, kw_only=True, tag="thread.forgotten"):
    """The end of a thread, also of one never seen. Nothing revives it until a person lifts it."""

    thread_id: str
    reason: str


class ForgettingLifted(Event, frozen=True, kw_only=True, tag="thread.forgetting_lifted"):
    thread_id: str


# extraction:<memory version>:<thread id>: the phase-1 job, the output, its usage.


class Stage1LeaseClaimed(Event, frozen=True, kw_only=True, tag="stage1.lease_claimed"):
    thread_id: str
    memory_version: str
    ownership_token: str
    worker_id: str
    input_watermark: int
    lease_until: int
    retry_remaining: int
    taken_over_from: str | None = None


class Stage1LeaseReleased(Event, frozen=True, kw_only=True, tag="stage1.lease_released"):
    """Given back unfinished; claimable at once. `retry_remaining` where that spent a try."""

    thread_id: str
    memory_version: str
    ownership_token: str
    reason: str
    tokens: Tokens = NO_TOKENS
    retry_remaining: int | None = None


class Stage1Succeeded(Event, frozen=True, kw_only=True, tag="stage1.succeeded"):
    """The thread was read. `counts_from` is what ages the output until it is first cited."""

    thread_id: str
    memory_version: str
    ownership_token: str
    input_watermark: int
    source_updated_at: int
    raw_memory_ref: str
    rollout_summary_ref: str
    rollout_slug_ref: str | None
    memory_mode: Mode
    scope: str
    output_replaced: bool
    counts_from: int
    evidence_ref: str | None = None
    extractor: str
    prompt_digest: str | None = None
    suppressed: int = 0
    omitted: int = 0
    omitted_bytes: int = 0
    tokens: Tokens = NO_TOKENS


class Stage1SucceededNoOutput(Event, frozen=True, kw_only=True, tag="stage1.no_output"):
    thread_id: str
    memory_version: str
    ownership_token: str
    input_watermark: int
    output_removed: bool
    extractor: str
    prompt_digest: str | None = None
    omitted: int = 0
    omitted_bytes: int = 0
    tokens: Tokens = NO_TOKENS


class Stage1Failed(Event, frozen=True, kw_only=True, tag="stage1.failed"):
    """`reason` is a code and a field path, and quotes nothing. `retry_at` None: not by itself."""

    thread_id: str
    memory_version: str
    ownership_token: str
    reason: str
    kind: Literal["bad_reply", "refused", "too_long", "transient", "source"]
    retry_at: int | None
    retry_remaining: int
    prompt_digest: str | None = None
    tokens: Tokens = NO_TOKENS


class Stage1Paid(Event, frozen=True, kw_only=True, tag="stage1.paid"):
    """What calls have cost whose reading had lost its lease by then: nothing else of it counts."""

    thread_id: str
    memory_version: str
    ownership_token: str
    tokens: Tokens


class OutputWithdrawn(Event, frozen=True, kw_only=True, tag="stage1.output_withdrawn"):
    """The output aged out. What forgetting and resetting remove, they remove by themselves."""

    thread_id: str
    memory_version: str
    reason: str


class Cited(Event, frozen=True, kw_only=True, tag="stage1.cited"):
    thread_id: str
    memory_version: str
    citation_id: str
    usage_count: int
    used_at: int | None = None  # Where the use was found only later, in a transcript.


# consolidation:<memory version>:<scope>: the phase-2 job of one memory root, and its folder.


class ConsolidationRequested(Event, frozen=True, kw_only=True, tag="phase2.requested"):
    memory_version: str
    scope: str
    cause: str
    thread_id: str | None
    input_watermark: int
    backoff_cleared: bool
    retry_remaining: int


class Phase2LeaseClaimed(Event, frozen=True, kw_only=True, tag="phase2.lease_claimed"):
    memory_version: str
    scope: str
    ownership_token: str
    worker_id: str
    input_watermark: int
    lease_until: int
    taken_over_from: str | None = None
    retry_remaining: int
    cooldown_waived: Literal["offline", "person", "waited"] | None = None


class Phase2LeaseRenewed(Event, frozen=True, kw_only=True, tag="phase2.lease_renewed"):
    memory_version: str
    scope: str
    ownership_token: str
    lease_until: int


class Phase2LeaseReleased(Event, frozen=True, kw_only=True, tag="phase2.lease_released"):
    """Given back unfinished: stopped, inputs_changed, folder_edited or forgotten."""

    memory_version: str
    scope: str
    ownership_token: str
    reason: str
    tokens: Tokens = NO_TOKENS


class Phase2Paid(Event, frozen=True, kw_only=True, tag="phase2.paid"):
    """What calls have cost whose consolidation had lost its lease by then."""

    memory_version: str
    scope: str
    ownership_token: str
    tokens: Tokens


class Input(Struct, frozen=True, kw_only=True, gc=False):
    thread_id: str
    source_updated_at: int


class Selected(Struct, frozen=True, kw_only=True, gc=False):
    """`matched`: the output was still the one that phase 2 read when it succeeded."""

    thread_id: str
    source_updated_at: int
    matched: bool


class Phase2InputsSelected(Event, frozen=True, kw_only=True, tag="phase2.inputs_selected"):
    memory_version: str
    scope: str
    ownership_token: str
    limit: int
    cutoff: int
    position: int
    selected: tuple[Input, ...]


class ArtifactsPublished(Event, frozen=True, kw_only=True, tag="phase2.artifacts_published"):
    """What the folder's artifacts are from now on, whole: a body is a path, LF, and the text.

    `carried_ref`: what a person did to them, for whoever writes them next.
    """

    memory_version: str
    scope: str
    run_id: str | None
    consolidator: str
    prompt_digest: str | None = None
    files: tuple[str, ...]
    removed_ref: str | None = None
    carried_ref: str | None = None
    tokens: Tokens = NO_TOKENS
    tool_calls: dict[str, int] = {}
    tool_uses_ref: str | None = None


class Phase2Succeeded(Event, frozen=True, kw_only=True, tag="phase2.succeeded"):
    memory_version: str
    scope: str
    ownership_token: str
    completed_watermark: int
    last_success_watermark: int
    selected: tuple[Selected, ...]
    no_changes: bool = False


class Phase2Failed(Event, frozen=True, kw_only=True, tag="phase2.failed"):
    memory_version: str
    scope: str
    ownership_token: str
    reason: str
    retry_at: int
    retry_remaining: int
    prompt_digest: str | None = None
    tokens: Tokens = NO_TOKENS
    tool_uses_ref: str | None = None


class RootRendered(Event, frozen=True, kw_only=True, tag="phase2.root_rendered"):
    """The folder was written. The manifest's body is JSON: path -> SHA-256 of the bytes."""

    memory_version: str
    scope: str
    renderer: str
    manifest_ref: str


class FolderEdited(Event, frozen=True, kw_only=True, tag="phase2.folder_edited"):
    """A person changed a published file. The body is the path, LF, and the text they left."""

    memory_version: str
    scope: str
    body_ref: str
    deleted: bool = False


# session:<session id>: what that session was shown.


class MemoryShown(Event, frozen=True, kw_only=True, tag="read.shown"):
    session_id: str
    via: Literal["context", "read", "search"]
    memory_version: str
    scope: str
    rendered_position: int | None = None
    thread_ids: tuple[str, ...] = ()
    omitted: int = 0
    tokens: int = 0


# store: opened, reset, erased, notes, consent. place:<scope>: how a project is known.


class NoteAdded(Event, frozen=True, kw_only=True, tag="note.added"):
    scope: str
    body_ref: str
    via: Literal["mcp", "cli", "file", "import"]


class NoteRemoved(Event, frozen=True, kw_only=True, tag="note.removed"):
    """A note goes, and its words with it: asked for, reset, or replaced by a newer import."""

    body_ref: str
    reason: str


class ProviderConsented(Event, frozen=True, kw_only=True, tag="store.provider_consented"):
    base_url: str
    model: str


class StoreOpened(Event, frozen=True, kw_only=True, tag="store.opened"):
    """At creation, a schema change and an accepted restore; never at a plain open."""

    schema: int
    clock: Literal["real", "simulated"]
    restored_from: int | None = None


class StoreReset(Event, frozen=True, kw_only=True, tag="store.reset"):
    """A person emptied everything that one memory version had learned."""

    memory_version: str
    keep_notes: bool = False
    outputs_removed: int = 0
    jobs_removed: int = 0


class BodiesErased(Event, frozen=True, kw_only=True, tag="store.bodies_erased"):
    """Texts are gone. Owners are streams; they name threads and roots, never words."""

    owners: tuple[str, ...]
    count: int
    reason: str


class ProjectLinked(Event, frozen=True, kw_only=True, tag="place.linked"):
    """A root that had no remote has its first one."""

    scope: str
    root: str
    remote: str


ThreadEvent = (
    ThreadRegistered
    | ThreadChanged
    | MemoryModeSet
    | ThreadPolluted
    | ThreadRescoped
    | ThreadForgotten
    | ForgettingLifted
)
ExtractionEvent = (
    Stage1LeaseClaimed
    | Stage1LeaseReleased
    | Stage1Succeeded
    | Stage1SucceededNoOutput
    | Stage1Failed
    | Stage1Paid
    | OutputWithdrawn
    | Cited
)
ConsolidationEvent = (
    ConsolidationRequested
    | Phase2LeaseClaimed
    | Phase2LeaseRenewed
    | Phase2LeaseReleased
    | Phase2Paid
    | Phase2InputsSelected
    | ArtifactsPublished
    | Phase2Succeeded
    | Phase2Failed
    | RootRendered
    | FolderEdited
)
StoreEvent = NoteAdded | NoteRemoved | ProviderConsented | StoreOpened | StoreReset | BodiesErased
AnyEvent = (
    ThreadEvent | ExtractionEvent | ConsolidationEvent | MemoryShown | StoreEvent | ProjectLinked
)


def thread_stream(thread_id: str) -> str:
    return f"thread:{thread_id}"


def extraction_stream(memory_version: str, thread_id: str) -> str:
    return f"extraction:{memory_version}:{thread_id}"


def consolidation_stream(memory_version: str, scope: str) -> str:
    return f"consolidation:{memory_version}:{scope}"


def place_stream(scope: str) -> str:
    return f"place:{scope}"


def session_stream(session_id: str) -> str:
    return f"session:{session_id}"


STORE_STREAM = "store"
