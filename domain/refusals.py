"""Commands that the present state does not allow. Expected, and nothing is recorded.

`code` is what programs count by (`waiting` in a run's report); the message is for people, and
says what holds and what to do about it.
"""

from datetime import UTC, datetime
from typing import ClassVar


class Refused(Exception):
    """Base of every refusal. The message says what holds and what to do, and is shown to people."""

    code: ClassVar[str] = "refused"


class LeaseHeld(Refused):
    code = "running"

    def __init__(self, job: str, worker_id: str, *, until: int) -> None:
        super().__init__(f"{job} is held by {worker_id}; try again after {clock(until)}")


class CoolingDown(Refused):
    code = "cooldown"

    def __init__(self, *, until: int) -> None:
        super().__init__(f"phase 2 has just succeeded; it rests until {clock(until)}")


class LeaseLost(Refused):
    code = "lease_lost"

    def __init__(self, ownership_token: str) -> None:
        super().__init__(
            f"lease {ownership_token} has passed to another worker;"
            " discard this run's edits and claim again"
        )


class UpToDate(Refused):
    code = "up_to_date"

    def __init__(self, job: str, *, watermark: int) -> None:
        super().__init__(
            f"{job} has been read as it was at {clock(watermark)};"
            " it is read again when the session goes on, or with --again"
        )


class RetryExhausted(Refused):
    code = "retry_exhausted"

    def __init__(self, job: str, last_error: str | None) -> None:
        super().__init__(
            f"{job} has no tries left (last: {last_error or 'its worker did not come back'});"
            " it is tried again when the session goes on, or with --again"
        )


class BackingOff(Refused):
    code = "backoff"

    def __init__(self, job: str, last_error: str | None, *, until: int) -> None:
        super().__init__(
            f"{job} failed ({last_error or 'no reason recorded'}); it waits until {clock(until)}"
        )


class CapReached(Refused):
    code = "cap"

    def __init__(self, job: str, *, running: int, cap: int) -> None:
        super().__init__(
            f"{job} waits for a slot: {running} sessions are being read and {cap} may be;"
            " try again when one of them is done"
        )


class Forgotten(Refused):
    code = "forgotten"

    def __init__(self, thread_id: str) -> None:
        super().__init__(
            f"thread {thread_id} was forgotten and stays so;"
            f" only a person can lift it: threadbook forget thread {thread_id} --lift"
        )


class NotForgotten(Refused):
    code = "not_forgotten"

    def __init__(self, thread_id: str) -> None:
        super().__init__(f"thread {thread_id} is not forgotten; there is nothing to lift")


class UnknownThread(Refused):
    code = "unknown_thread"

    def __init__(self, thread_id: str) -> None:
        super().__init__(
            f"no thread {thread_id} is known; `threadbook threads` lists those that are, and six"
            " characters of an id are enough"
        )


class SeveralThreads(Refused):
    code = "several_threads"

    def __init__(self, start: str, thread_ids: list[str]) -> None:
        super().__init__(
            f"{start} is the beginning of several ids: {', '.join(thread_ids)}; write more of it"
        )


class NotTheWholeId(Refused):
    code = "not_the_whole_id"

    def __init__(self, start: str, thread_id: str) -> None:
        super().__init__(
            f"{start} is only the beginning of {thread_id}; forgetting cannot be undone,"
            " so write the whole id"
        )


class AlreadyRegistered(Refused):
    code = "already_registered"

    def __init__(self, thread_id: str) -> None:
        super().__init__(f"thread {thread_id} is registered already; read it again as a change")


class StillSelected(Refused):
    code = "selected"

    def __init__(self, thread_id: str) -> None:
        super().__init__(
            f"the output of thread {thread_id} is in the last consolidation;"
            " it can age out after the next one leaves it out"
        )


class NoOutput(Refused):
    code = "no_output"

    def __init__(self, thread_id: str) -> None:
        super().__init__(f"thread {thread_id} has no output that could be withdrawn")


class BadScope(Refused):
    code = "bad_scope"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text!r} is no scope; use global, user or project:<name>,"
            " where the name has only small letters, digits, '.', '_' and '-',"
            " does not end in .edits, and is not longer than a file's name may be"
        )


def clock(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%SZ}"


class NotConsented(Refused):
    code = "not_consented"

    def __init__(self, base_url: str, models: list[str]) -> None:
        super().__init__(
            f"nobody has agreed yet that sessions are sent to {base_url} ({', '.join(models)});"
            " `threadbook run --model openai` asks on a terminal, and --yes agrees; with"
            ' `model = "offline"` nothing is sent'
        )
