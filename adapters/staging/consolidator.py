"""consolidator: a command of the user's, asked like a model: a folder, a prompt, an end.

It is the user's own program: it logs in, and is paid, by itself, and what it spends is not known
here. What it leaves is a proposal like any other and is checked as one.
"""

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal

from ...application.ports import ConsolidationFailed, Failure, Proposal, Task
from ...domain.events import Tokens
from . import command
from .command import Bounds, Ended
from .workplace import Owner, Workplace, workplace

TOOLS = (
    "your own; the folder is your working directory, and nothing outside of it is needed",
    "to finish, end",
)


class CommandConsolidator:
    kind: Literal["agent"] = "agent"

    def __init__(
        self,
        argv: Sequence[str],
        *,
        home: Path,
        owner: Owner,
        variables: Collection[str] = (),
        bounds: Bounds = Bounds(),  # noqa: B008 - it is a tuple of numbers
    ) -> None:
        """`variables` of this program's environment are handed on, beside what every command
        needs."""
        self.name = command_name(argv)
        self._argv = tuple(argv)
        self._home = home
        self._owner = owner
        self._variables = tuple(variables)
        self._bounds = bounds

    def propose(self, task: Task) -> Proposal:
        with workplace(task, home=self._home, owner=self._owner) as place:
            ended = command.run(
                self._argv,
                place.path,
                self._told(place),
                environment=command.environment(os.environ, also=self._variables),
                bounds=self._bounds,
                cancelled=lambda: not task.alive(),
            )
            if not ended.is_done:
                failed = self._failed(ended)
                failed.prompt_digest = place.digest()
                raise failed
            return place.proposal(tokens=self._tokens, prompt_digest=place.digest())

    @property
    def _tokens(self) -> Tokens:
        return Tokens(model=self.name)

    def _told(self, place: Workplace) -> str:
        budget = (f"{self._bounds.wall_s / 60:.0f} minutes",)
        return f"{place.instructions}\n{place.message(tools=TOOLS, budget=budget)}"

    def _failed(self, ended: Ended) -> ConsolidationFailed:
        """The code alone is recorded; what a person can do about it goes along as the cause."""
        is_started = ended.reason != "not_started"
        failed = ConsolidationFailed(
            f"failed_agent:command_{ended.reason}" if is_started else "failed_spawn_agent",
            tokens=self._tokens,
            stops=not is_started,
        )
        said = "\n".join(each for each in (ended.advice, ended.tail) if each)
        failed.__cause__ = Failure(said) if said else None
        return failed


def command_name(argv: Sequence[str]) -> str:
    return f"command:{os.path.basename(argv[0]) if argv else ''}"
