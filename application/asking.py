"""Asking: an agent at work on a root, and what keeps it on a lead.

The agent works in a thread of its own. Meanwhile the run's own thread renews the lease, and ends
the work at once when the lease is somebody else's or the run is stopped. What it leaves is looked
through; where something is refused it is told what and why, and asked again, twice at most.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from threading import Event, Thread

from msgspec import Struct
from msgspec.structs import replace

from ..domain import consolidation
from ..domain.carried import Carried
from ..domain.events import NO_TOKENS, Tokens, consolidation_stream
from ..domain.proposal import artifacts, refusals
from ..domain.redaction import redact
from . import state
from .ports import ConsolidationFailed, Failure, Proposal, Task, ToolUse
from .purse import Purse
from .roots import Root
from .staging import Staged
from .surroundings import Surroundings

HEARTBEAT_S = 90
LOOK_S = 0.5  # How long a lost lease may go unseen.
END_S = 10.0  # How long an agent that is to end may take.
REPAIRS_MAX = 2
TOLD_MAX = 5  # To a person, of what was refused last: they look for the kind of it, not for each.
TOLD_CHARS_MAX = 300


class Answer(Struct, frozen=True, kw_only=True):
    """What an agent made, and what all its rounds cost."""

    files: Mapping[str, str]
    tokens: Tokens
    tool_calls: Mapping[str, int]
    tool_uses: Sequence[ToolUse]
    prompt_digest: str | None


class Asking:
    def __init__(
        self,
        around: Surroundings,
        root: Root,
        *,
        ownership_token: str,
        run_id: str,
        budget: Purse | None,
    ) -> None:
        self.around = around
        self.root = root
        self.ownership_token = ownership_token
        self.run_id = run_id
        self.budget = budget
        self.tokens = NO_TOKENS
        self.tool_calls: Counter[str] = Counter()
        self.tool_uses: list[ToolUse] = []
        self.stop = Event()

    def answer(self, task: Task, staging: Staged, carried: Carried) -> Answer:
        """Raises `ConsolidationFailed`, or `LeaseLost`."""
        name = f"{self.root.memory_version} {self.root.scope}"
        task = replace(task, alive=lambda: not self.stop.is_set())
        if self.budget is not None:
            task = replace(task, may_spend=self.budget.may_spend(name))
        try:
            for repair in range(REPAIRS_MAX + 1):
                proposal = self.proposal(task)
                refused = self.refused(task, proposal, staging, carried)
                if not refused:
                    return Answer(
                        files=self.published(proposal, staging),
                        tokens=self.tokens,
                        tool_calls=dict(self.tool_calls),
                        tool_uses=self.tool_uses,
                        prompt_digest=proposal.prompt_digest,
                    )
                if repair == REPAIRS_MAX:
                    break
                task = replace(
                    task,
                    refused=tuple(refused),
                    staged={**staging.task_files, **self.published(proposal, staging)},
                )
            digest = proposal.prompt_digest
            raise ConsolidationFailed(
                "failed_invalid_artifacts", prompt_digest=digest
            ) from Failure(told(refused))
        except ConsolidationFailed as error:
            self.count(error)
            error.tokens, error.tool_uses = self.tokens, self.tool_uses
            raise
        finally:
            if self.budget is not None:
                self.budget.settle(name, self.tokens)

    def published(self, proposal: Proposal, staging: Staged) -> dict[str, str]:
        return artifacts(proposal.files, memory_version=self.root.memory_version, own=staging.own)

    def refused(
        self, task: Task, proposal: Proposal, staging: Staged, carried: Carried
    ) -> list[str]:
        return refusals(
            proposal.files,
            memory_version=self.root.memory_version,
            staged=staging.task_files,
            unusable=proposal.unusable,
            threads={each.thread_id for each in task.outputs},
            published=task.published,
            carried=carried,
            own=staging.own,
            redact=redact,
        )

    def proposal(self, task: Task) -> Proposal:
        """One round, watched until it ends."""
        asked: Future[Proposal] = Future()
        consolidator = self.around.consolidator

        def work() -> None:
            try:
                asked.set_result(consolidator.propose(task))
            except BaseException as error:
                asked.set_exception(error)  # Raised where the answer is waited for.

        worker = Thread(target=work, name=f"consolidate {self.root.scope}", daemon=True)
        beat_at = self.around.clock() + HEARTBEAT_S
        try:
            worker.start()
            while not wait([asked], timeout=LOOK_S).done:
                beat_at = self.looked(beat_at)
        except BaseException:
            self.end(asked)
            raise
        proposal = asked.result()
        self.count(proposal)
        return proposal

    def looked(self, beat_at: float) -> float:
        """Whether the job is still ours; when the lease is to be renewed next."""
        with self.around.store.reading() as view:
            job = state.consolidation(view, self.root.memory_version, self.root.scope)
        consolidation.require_lease(job, self.ownership_token)
        if self.around.clock() < beat_at:
            return beat_at
        with self.around.store.writing(actor="pipeline", run_id=self.run_id) as tx:
            job = state.consolidation(tx, self.root.memory_version, self.root.scope)
            renewed = consolidation.renew(
                job, ownership_token=self.ownership_token, now=self.around.now()
            )
            stream = consolidation_stream(self.root.memory_version, self.root.scope)
            tx.append(stream, renewed)
        return self.around.clock() + HEARTBEAT_S

    def end(self, asked: "Future[Proposal]") -> None:
        """Tell the agent to end, and learn what it has cost until then."""
        self.stop.set()
        if not wait([asked], timeout=END_S).done:
            return  # It can publish nothing any more, whatever it still does.
        error = asked.exception()
        if error is None:
            self.count(asked.result())
        elif isinstance(error, ConsolidationFailed):
            self.count(error)

    def count(self, round_: Proposal | ConsolidationFailed) -> None:
        self.tokens += round_.tokens
        self.tool_calls.update(round_.tool_calls)
        self.tool_uses += round_.tool_uses


def told(refused: Sequence[str]) -> str:
    """What was refused last, for whoever ran it. It is recorded nowhere, as it may quote them."""
    shown = [
        each if len(each) <= TOLD_CHARS_MAX else f"{each[:TOLD_CHARS_MAX]}…"
        for each in refused[:TOLD_MAX]
    ]
    more = len(refused) - len(shown)
    return "\n".join([*shown, *([f"and {more:,} more"] if more else [])])
