"""workplace: one task's folder from its beginning to its end, and what is handed back of it.

Whoever works there is told by `brief`, may use `Box` or a program, and leaves a proposal: every
text that lies in the folder afterwards. What could not be laid there was never shown to anybody, so
it is handed back as it was and does not look deleted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ...application.ports import ConsolidationFailed, Failure, Proposal, Task, ToolUse
from ...domain.events import NO_TOKENS, Tokens
from . import brief
from .folder import Staging, staged

if TYPE_CHECKING:
    from .box import Box, Limits

# A worker's id, which is alive as long as the block: it is how a killed run's folder is known.
Owner = Callable[[], AbstractContextManager[str]]


class Workplace:
    def __init__(self, task: Task, staging: Staging, carried: Mapping[str, str]) -> None:
        self.task = task
        self.path = staging.path
        self._staging = staging
        self._carried = carried

    @property
    def instructions(self) -> str:
        return brief.instructions(self.task.memory_version)

    def message(self, *, tools: Iterable[str], budget: Iterable[str]) -> str:
        return brief.message(self.task, tools=tools, budget=budget)

    def digest(self, *, tools: bytes = b"") -> str:
        return brief.digest(self.task.memory_version, tools=tools)

    def box(self, limits: "Limits | None" = None) -> "Box":
        """The tools of a model, to be closed before the folder is."""
        from .box import Box

        return Box(self.path) if limits is None else Box(self.path, limits)

    def proposal(
        self,
        *,
        tokens: Tokens = NO_TOKENS,
        tool_calls: Mapping[str, int] | None = None,
        tool_uses: Sequence[ToolUse] = (),
        prompt_digest: str | None = None,
    ) -> Proposal:
        """What lies there now. Raises `ConsolidationFailed` where the folder itself is not there:
        whoever worked in it has taken it away, and has had its price."""
        try:
            found = self._staging.files()
        except Failure as gone:
            raise ConsolidationFailed(
                "failed_agent:folder_gone",
                tokens=tokens,
                tool_calls=tool_calls,
                tool_uses=tool_uses,
            ) from gone
        return Proposal(
            files={**found.files, **self._carried},
            unusable=found.refused,
            tokens=tokens,
            tool_calls=tool_calls or {},
            tool_uses=tool_uses,
            prompt_digest=prompt_digest,
        )


@contextmanager
def workplace(task: Task, *, home: Path, owner: Owner) -> Iterator[Workplace]:
    """A fresh folder with what is staged; it is gone afterwards. Raises `Failure`."""
    with owner() as name, staged(home, task.staged, owner=name) as (staging, left_out):
        carried = {path: task.staged[path] for path in left_out}
        yield Workplace(task, staging, carried)
