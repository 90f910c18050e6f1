"""What a person, or an agent for one, says of a session: its mode, pollution and scope."""

from ..domain import scope, thread
from ..domain.events import thread_stream
from ..domain.redaction import redact
from ..domain.refusals import Refused
from . import state
from .requests import move, request_where_it_counts, request_where_selected
from .surroundings import Surroundings


class BadMode(Refused):
    code = "bad_mode"

    def __init__(self, mode: str) -> None:
        super().__init__(
            f"{mode!r} is no mode to set; use enabled or disabled (`pollute` marks outside text)"
        )


class NoProject(Refused):
    code = "no_project"

    def __init__(self, wanted: str) -> None:
        super().__init__(f"{wanted} is no project; a session belongs to one: write project:<name>")


def set_mode(around: Surroundings, thread_id: str, mode: str, *, actor: str) -> bool:
    """`enabled` or `disabled`; False where it was that already. Enabling also lifts pollution."""
    if mode not in ("enabled", "disabled"):
        raise BadMode(mode)
    with around.store.writing(actor=actor) as tx:
        now = around.now()
        asked = thread.set_mode(
            state.thread(tx, thread_id),
            mode="enabled" if mode == "enabled" else "disabled",
            reason="asked",
            now=now,
        )
        if asked is None:
            return False
        tx.append(thread_stream(thread_id), asked)
        request_where_it_counts(tx, around.policy, thread_id, cause="memory_mode", now=now)
    return True


def pollute(
    around: Surroundings, thread_id: str, *, cause: str, detail: str | None = None, actor: str
) -> bool:
    """Durable: only `set_mode` leaves it. False where it was polluted already."""
    with around.store.writing(actor=actor) as tx:
        now = around.now()
        asked = thread.pollute(
            state.thread(tx, thread_id),
            cause=redact(cause),
            detail=None if detail is None else redact(detail),
            now=now,
        )
        if asked is None:
            return False
        tx.append(thread_stream(thread_id), asked)
        request_where_selected(tx, thread_id, cause="polluted", now=now)
    return True


def set_scope(around: Surroundings, thread_id: str, wanted: str, *, actor: str) -> bool:
    """Move a thread to another project: both memory roots are asked for again.

    `global` and `user` are no sessions' scopes: one is a setting, the other holds what a person
    promoted.
    """
    if not scope.checked(wanted).startswith("project:"):
        raise NoProject(wanted)
    with around.store.writing(actor=actor) as tx:
        now = around.now()
        asked = thread.rescope(state.thread(tx, thread_id), scope=wanted, reason="asked", now=now)
        if asked is None:
            return False
        move(tx, around.policy, asked, now=now)
    return True
