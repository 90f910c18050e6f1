"""The guard: a run is not begun where the account that pays for it has little left.

Codex writes what its server said of the limits into every rollout. Nothing known is no reason
against a run, and what has run out since says nothing: a window that has ended is full again.
"""

from collections.abc import Sequence

from msgspec import Struct

CODEX = "codex"


class Window(Struct, frozen=True, kw_only=True):
    """`used_percent` of what one period allows; it begins anew at `resets_at`, in Unix seconds."""

    used_percent: float
    resets_at: int | None = None


class RateLimits(Struct, frozen=True, kw_only=True):
    limit_id: str | None = None
    primary: Window | None = None
    secondary: Window | None = None
    reached: bool = False


def allows(told: Sequence[RateLimits], *, min_remaining_percent: int, now: float) -> bool:
    """Whether enough is left, by Codex's own limit or else the first that is told.

    Exactly the least is enough.
    """
    if not told:
        return True
    limits = next((each for each in told if each.limit_id == CODEX), told[0])
    windows = [each for each in (limits.primary, limits.secondary) if each is not None]
    fresh = [each for each in windows if each.resets_at is None or each.resets_at > now]
    if limits.reached and (fresh or not windows):
        return False
    ceiling = 100 - min(max(min_remaining_percent, 0), 100)
    return all(each.used_percent <= ceiling for each in fresh)
