"""The consolidator: a model that edits a staged copy of a memory folder with a few tools.

It can reach nothing but that copy, which is gone when it ends, however it ends. What it leaves is a
proposal, also where it never said that it has finished: whoever asked for it checks it. Calls are
made in a thread of their own, so that whoever asks may itself be in an event loop.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec.json import encode

from ...application.ports import ConsolidationFailed, Proposal, Task, ToolUse
from ...application.surroundings import Provider
from ...domain.artifact import RAW_MEMORIES, SUMMARIES
from ...domain.events import Tokens
from .calls import Calls
from .loop import LABEL, WAITS_S, Limits, Loop, Tools
from .questions import Question, message
from .servers import Servers
from .wire import DEADLINE_S, Wire

EFFORT = "medium"  # As Codex has it.
PAGE_CHARS = 18_000  # About what one `read` gives.
WHAT_TOOLS_DO = (
    "list, read, search: look at the files, a page at a time",
    "write, replace, move, delete: change your own files",
    "finish: the memory is complete",
)


class Box(Tools, Protocol):
    calls: dict[str, int]  # By the tool's name.
    done: list[ToolUse]  # The first of them.

    def tools(self) -> list[dict[str, Any]]:
        """The tools as the Responses API takes them."""

    def close(self) -> None: ...


class Workplace(Protocol):
    """One task's folder, and what is said of it."""

    @property
    def instructions(self) -> str: ...

    def message(self, *, tools: Iterable[str], budget: Iterable[str]) -> str: ...

    def digest(self, *, tools: bytes = ...) -> str: ...

    def box(self) -> Box: ...

    def proposal(
        self,
        *,
        tokens: Tokens = ...,
        tool_calls: Mapping[str, int] | None = ...,
        tool_uses: Sequence[ToolUse] = ...,
        prompt_digest: str | None = ...,
    ) -> Proposal: ...


class OpenAIConsolidator:
    kind: Literal["agent"] = "agent"

    def __init__(
        self,
        paid: Provider,
        *,
        home: Path | None,
        workplace: Callable[[Task], AbstractContextManager[Workplace]],
        api_key: str | None = None,
        limits: Limits | None = None,
        deadline_s: float = DEADLINE_S,
        waits_s: tuple[float, ...] = WAITS_S,
    ) -> None:
        """`home` keeps what was learned of servers; `api_key` None: the SDK's own variable."""
        self.name = paid.consolidation_model
        self._paid = paid
        self._home = home
        self._workplace = workplace
        self._api_key = api_key
        self._limits = limits or limits_for(paid)
        self._deadline_s = deadline_s
        self._waits_s = waits_s

    def propose(self, task: Task) -> Proposal:
        with self._workplace(task) as place:
            box = place.box()
            try:
                return self._proposal(task, place, box)
            except ConsolidationFailed as failed:
                failed.tool_calls, failed.tool_uses = dict(box.calls), list(box.done)
                failed.prompt_digest = place.digest(tools=encode(box.tools()))
                raise
            finally:
                box.close()

    def _proposal(self, task: Task, place: Workplace, box: Box) -> Proposal:
        wire = Wire(
            base_url=self._paid.base_url,
            api_key=self._api_key,
            servers=Servers(self._home),
            deadline_s=self._deadline_s,
        )
        loop = self._loop(task, place, box, wire)
        calls = Calls(at_end=wire.close)
        try:
            calls.start(loop.run, stopped=self._was_stopped).result()
        finally:
            calls.stop()
        return place.proposal(
            tokens=loop.tokens,
            tool_calls=dict(box.calls),
            tool_uses=list(box.done),
            prompt_digest=place.digest(tools=encode(box.tools())),
        )

    def _loop(self, task: Task, place: Workplace, box: Box, wire: Wire) -> Loop:
        limits, more = self._limits, pages(task)
        limits = limits._replace(turns=limits.turns + more, requests=limits.requests + more)
        budget = (f"{limits.turns} replies", f"{limits.wall_s / 60:.0f} minutes")
        question = Question(
            model=self.name,
            instructions=place.instructions,
            inputs=[message("user", place.message(tools=WHAT_TOOLS_DO, budget=budget))],
            tools=tuple(box.tools()),
            effort=EFFORT,
            tokens_max=self._paid.max_output_tokens,
        )
        return Loop(
            wire,
            box,
            question,
            limits=limits,
            alive=task.alive,
            may_spend=task.may_spend,
            waits_s=self._waits_s,
        )

    def _was_stopped(self) -> ConsolidationFailed:
        return ConsolidationFailed(f"{LABEL}:stopped", tokens=Tokens(model=self.name))


def limits_for(paid: Provider) -> Limits:
    """Whoever lets a run spend more lets a folder have it: a large one is read page by page."""
    usual = Limits()
    return usual._replace(tokens=max(usual.tokens, paid.max_tokens_per_run))


def pages(task: Task) -> int:
    """So many replies more for what is to be read whole: a reply reads one page."""
    if task.memory_version == "v1":
        return len(task.staged.get(RAW_MEMORIES, "")) // PAGE_CHARS
    return sum(path.startswith(f"{SUMMARIES}/") for path in task.staged)
