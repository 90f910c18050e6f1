"""Thread: what a session is, whether it may be remembered, which project it belongs to, its end.

Three promises. A forgotten thread takes no event but ForgettingLifted, whatever is read of it
again. Pollution lasts: only a person's `set_mode` leaves it, never what a transcript says of
itself. And a thread changes only where a later reading says something new: what was learned once
(a branch, a remote) is not lost because a later reading is silent.
"""

from collections.abc import Collection, Iterable
from typing import Literal, assert_never

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict, replace

from .events import (
    ForgettingLifted,
    Kind,
    MemoryModeSet,
    Mode,
    ThreadChanged,
    ThreadEvent,
    ThreadForgotten,
    ThreadPolluted,
    ThreadRegistered,
    ThreadRescoped,
    Tool,
)
from .refusals import AlreadyRegistered, Forgotten, NotForgotten, UnknownThread
from .remote import public_url
from .session import Header

OWN_SERVER = "threadbook"


class Thread(Struct, frozen=True, kw_only=True):
    """`exists`: a transcript of it was registered. An id can be forgotten before that; of a thread
    that does not exist only the id and the forgetting mean something."""

    thread_id: str
    exists: bool = False
    forgotten: bool = False
    mode: Mode = "disabled"
    mode_reason: str = ""
    scope: str = ""
    tool: Tool = "codex"
    source: str = ""
    kind: Kind = "unknown"
    rollout_path: str = ""
    machine_id: str | None = None  # On whose disk that is, where it is known.
    cwd: str | None = None
    git_branch: str | None = None
    repository_url: str | None = None
    root: str | None = None
    created_at_ms: int = 0
    updated_at_ms: int = 0
    preview_ref: str | None = None
    archived: bool = False
    forked_from: str | None = None


def first_mode(
    header: Header,
    *,
    generate_memories: bool = True,
) -> tuple[Mode, str]:
    """The mode a thread is registered with, and the code of the reason. The stricter word wins."""
    if header.memory_mode == "polluted":
        return "polluted", "transcript"
    if header.memory_mode == "disabled":
        return "disabled", "transcript"
    if not generate_memories:
        return "disabled", "generate_memories"
    return "enabled", "default"


def register(
    thread: Thread,
    *,
    header: Header,
    scope: str,
    root: str | None,
    preview_ref: str | None,
    mode: Mode,
    mode_reason: str,
    machine_id: str | None = None,
    now: int,
) -> ThreadRegistered:
    if thread.forgotten:
        raise Forgotten(thread.thread_id)
    if thread.exists:
        raise AlreadyRegistered(thread.thread_id)
    return ThreadRegistered(
        at=now,
        thread_id=thread.thread_id,
        tool=header.tool,
        source=header.source,
        kind=header.kind,
        rollout_path=header.rollout_path,
        cwd=header.cwd,
        git_branch=header.git_branch,
        repository_url=public_url(header.repository_url),
        root=root,
        scope=scope,
        created_at_ms=header.created_at_ms,
        updated_at_ms=header.updated_at_ms,
        preview_ref=preview_ref,
        archived=header.archived,
        forked_from=header.forked_from,
        mode=mode,
        mode_reason=mode_reason,
        machine_id=machine_id,
    )


def change(
    thread: Thread,
    *,
    header: Header,
    root: str | None = None,
    preview_ref: str | UnsetType | None = UNSET,
    machine_id: str | None = None,
    elsewhere: bool = False,
    now: int,
) -> ThreadChanged | None:
    """What a later reading says that is new, or None. An unset `preview_ref` is an unchanged one.

    Branch and remote stay what was seen first: they say where the session was, not where the
    folder is today. A root that is gone from disk, and a cwd that a reading lacks, stay known.
    `elsewhere`: what was read is another file than the one that is known, which still counts.
    It takes that file's place when it says more, and else fills in what nobody knew: two machines
    with a copy each do not take turns.
    """
    require_known(thread)
    read = {
        "source": header.source,
        "kind": header.kind,
        "rollout_path": header.rollout_path,
        "cwd": header.cwd or thread.cwd,
        "git_branch": thread.git_branch or header.git_branch,
        "repository_url": thread.repository_url or public_url(header.repository_url),
        "root": root or thread.root,
        "updated_at_ms": header.updated_at_ms,
        "preview_ref": thread.preview_ref if preview_ref is UNSET else preview_ref,
        "archived": header.archived,
        "forked_from": header.forked_from or thread.forked_from,
    }
    if elsewhere and header.updated_at_ms <= thread.updated_at_ms:
        read = {field: getattr(thread, field) or read[field] for field in FIRST_SEEN}
    elif machine_id is not None:
        read["machine_id"] = machine_id
    known = asdict(thread)
    changed = {field: value for field, value in read.items() if value != known[field]}
    if changed.keys() <= {"machine_id"}:
        return None  # Who has the file that we know is worth no event by itself.
    return ThreadChanged(at=now, thread_id=thread.thread_id, **changed)  # type: ignore[arg-type]


def follow_transcript(
    thread: Thread, *, memory_mode: Mode | None, now: int
) -> MemoryModeSet | ThreadPolluted | None:
    """What the transcript's own memory_mode asks for. It may restrict, and take back only what
    it restricted itself; what a person or a setting decided stands, and pollution lasts."""
    require_known(thread)
    if thread.mode == "polluted" or memory_mode in (None, thread.mode):
        return None
    if memory_mode == "polluted":
        return pollute(thread, cause="transcript", now=now)
    if memory_mode == "disabled":
        return set_mode(thread, mode="disabled", reason="transcript", now=now)
    if thread.mode_reason == "transcript":
        return set_mode(thread, mode="enabled", reason="transcript", now=now)
    return None


def set_mode(
    thread: Thread, *, mode: Literal["enabled", "disabled"], reason: str, now: int
) -> MemoryModeSet | None:
    """A deliberate choice, the one way out of pollution. None where the mode is that already."""
    require_known(thread)
    if thread.mode == mode:
        return None
    return MemoryModeSet(
        at=now, thread_id=thread.thread_id, mode=mode, mode_before=thread.mode, reason=reason
    )


def pollute(
    thread: Thread, *, cause: str, detail: str | None = None, now: int
) -> ThreadPolluted | None:
    require_known(thread)
    if thread.mode == "polluted":
        return None
    return ThreadPolluted(
        at=now, thread_id=thread.thread_id, cause=cause, detail=detail, mode_before=thread.mode
    )


def outside_text(triggers: Iterable[str], *, trusted: Collection[str] = ()) -> tuple[str, ...]:
    """What of a transcript's triggers brought text from outside. Our own server gives back what
    memory holds; a `trusted` one a person answers for."""
    own = {f"mcp:{server}" for server in (OWN_SERVER, *trusted)}
    return tuple(each for each in triggers if each not in own)


def rescope(thread: Thread, *, scope: str, reason: str, now: int) -> ThreadRescoped | None:
    require_known(thread)
    if thread.scope == scope:
        return None
    return ThreadRescoped(
        at=now,
        thread_id=thread.thread_id,
        scope=scope,
        scope_before=thread.scope,
        reason=reason,
    )


def forget(thread: Thread, *, reason: str, now: int) -> ThreadForgotten | None:
    """Also for an id never seen: its transcript may turn up later. None when forgotten already."""
    if thread.forgotten:
        return None
    return ThreadForgotten(at=now, thread_id=thread.thread_id, reason=reason)


def lift(thread: Thread, *, now: int) -> ForgettingLifted:
    """Who may is the caller's rule: a person, and nobody else."""
    if not thread.forgotten:
        raise NotForgotten(thread.thread_id)
    return ForgettingLifted(at=now, thread_id=thread.thread_id)


def require_known(thread: Thread) -> None:
    if thread.forgotten:
        raise Forgotten(thread.thread_id)
    if not thread.exists:
        raise UnknownThread(thread.thread_id)


def evolve(thread: Thread, event: ThreadEvent) -> Thread:
    assert not thread.forgotten or isinstance(event, ForgettingLifted), "forgotten is the end"
    match event:
        case ThreadRegistered():
            return Thread(
                exists=True,
                **{field: getattr(event, field) for field in REGISTERED},
            )
        case ThreadChanged():
            read = {field: getattr(event, field) for field in CHANGING}
            return replace(
                thread, **{field: value for field, value in read.items() if value is not UNSET}
            )
        case MemoryModeSet(mode=mode, reason=reason):
            return replace(thread, mode=mode, mode_reason=reason)
        case ThreadPolluted(cause=cause):
            return replace(thread, mode="polluted", mode_reason=cause)
        case ThreadRescoped(scope=scope):
            return replace(thread, scope=scope)
        case ThreadForgotten():
            return replace(thread, forgotten=True, preview_ref=None)  # Its text is gone with it.
        case ForgettingLifted():
            return replace(thread, forgotten=False)
        case _:
            assert_never(event)


# What no later reading takes away.
FIRST_SEEN = ("cwd", "git_branch", "repository_url", "root", "preview_ref", "forked_from")
REGISTERED = tuple(
    field for field in Thread.__struct_fields__ if field in ThreadRegistered.__struct_fields__
)
CHANGING = tuple(
    field
    for field in Thread.__struct_fields__
    if field in ThreadChanged.__struct_fields__ and field != "thread_id"
)
