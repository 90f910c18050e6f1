"""The purse: what a run may still spend at a provider. It is asked before each call.

A call is reserved at the most that it may cost, and settled at what it did cost. What other
processes spend on the same day counts from when they have recorded it, so that runs beside one
another may together go past the day's limit by what they have in flight.
"""

from collections.abc import Callable
from threading import Lock

from ..domain.events import Tokens
from ..projections import spend
from .ports import View
from .surroundings import Surroundings


class Purse:
    """Asked by the calls' thread, settled by the run's."""

    def __init__(self, *, run_max: int, day_max: int) -> None:
        """Tokens, both ways; 0 is no limit."""
        self._maxima = (run_max, day_max)
        self._run = 0
        self._day = 0
        self._reserved: dict[str, int] = {}
        self._lock = Lock()
        self.is_empty = False  # A call was refused: the run starts no more of them.

    def of_today(self, spent: int) -> None:
        """What the log has of the day."""
        with self._lock:
            self._day = spent

    def may_spend(self, for_whom: str) -> Callable[[int], bool]:
        def asked(most: int) -> bool:
            with self._lock:
                wanted = sum(self._reserved.values()) + most
                if any(
                    limit and spent + wanted > limit
                    for spent, limit in zip((self._run, self._day), self._maxima, strict=True)
                ):
                    self.is_empty = True
                    return False
                self._reserved[for_whom] = self._reserved.get(for_whom, 0) + most
                return True

        return asked

    def settle(self, for_whom: str, tokens: Tokens) -> None:
        with self._lock:
            self._reserved.pop(for_whom, None)
            self._run += total(tokens)
            self._day += total(tokens)


def total(tokens: Tokens) -> int:
    return tokens.input + tokens.output


def purse(around: Surroundings) -> Purse:
    provider = around.policy.provider
    if provider is None:
        return Purse(run_max=0, day_max=0)
    return Purse(run_max=provider.max_tokens_per_run, day_max=provider.max_tokens_per_day)


def spent_today(around: Surroundings, view: View) -> int:
    return int(view.value(spend.TOKENS_OF_DAY, day=spend.day(around.now())) or 0)
