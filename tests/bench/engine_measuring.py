"""Measuring on a machine that is busy: cases take turns in one run, and ratios are what counts."""

import time
from collections.abc import Callable, Mapping
from statistics import median

from msgspec import Struct

Case = Callable[[], object]


class Figure(Struct, kw_only=True):
    """`value` is what the goal speaks of; `ours` and `beside` are what it was made from."""

    name: str
    value: float | None
    unit: str
    ours: str = ""
    beside: str = ""
    goal: str = ""
    met: bool | None = None
    more: dict[str, float] = {}


class Times:
    """Seconds of each case, a list entry a round."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    def median(self, name: str) -> float:
        return median(self.seconds[name])

    def ratio(self, above: str, below: str, *, per: float = 1) -> float:
        """The median over the rounds: what slowed a round down slowed both."""
        pairs = zip(self.seconds[above], self.seconds[below], strict=True)
        return median(a / b for a, b in pairs) * per


def interleaved(cases: Mapping[str, Case], rounds: int) -> Times:
    """Each case once a round, and each round from another one on. A case that returns a number
    has taken the time itself (without its own preparations)."""
    times = Times()
    names = list(cases)
    for round_ in range(rounds):
        turn = round_ % len(names)
        for name in names[turn:] + names[:turn]:
            started = time.perf_counter()
            told = cases[name]()
            took = time.perf_counter() - started
            times.seconds.setdefault(name, []).append(told if isinstance(told, float) else took)
    return times


def once_ms(case: Case, repeats: int) -> float:
    """The median time of one call, in milliseconds."""
    took = []
    for _ in range(repeats):
        started = time.perf_counter()
        case()
        took.append(time.perf_counter() - started)
    return median(took) * 1000


def rate(count: int, seconds: float) -> str:
    return f"{count / seconds:,.0f}/s"
