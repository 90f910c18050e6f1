"""Commands that the present state does not allow. Expected, and nothing is recorded."""

from datetime import UTC, datetime


class Refused(Exception):
    """Base of every refusal. The message says what holds and what to do, and is shown to people."""


class LeaseHeld(Refused):
    def __init__(self, job: str, worker_id: str, *, until: int) -> None:
        super().__init__(f"{job} is held by {worker_id}; try again after {clock(until)}")


class CoolingDown(Refused):
    def __init__(self, *, until: int) -> None:
        super().__init__(f"phase 2 has just succeeded; it rests until {clock(until)}")


class LeaseLost(Refused):
    def __init__(self, ownership_token: str) -> None:
        super().__init__(
            f"lease {ownership_token} has passed to another worker;"
            " discard this run's edits and claim again"
        )


def clock(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%SZ}"
