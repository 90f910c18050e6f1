"""The loop: a model with tools, asked again and again until it finishes, or until it may no more.

What the model said goes back word for word, what it thought included, each of its calls with one
result, also a refused one. Whatever may end the work is asked before each call and while it is
waited for: whoever asked for it, the clock, and what it costs. Servers that are busy are asked
again after a while. Where the whole has grown too long for the model, the oldest results are left
out of it.

It ends with a return, or with a `ConsolidationFailed`, whose reason is a code. `tokens` are those
of every call, whatever came of it.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from ...application.ports import ConsolidationFailed
from ...domain.events import Tokens
from ...domain.redaction import redact
from ...prompts import prompt
from .failures import AnswerFailed
from .questions import Question, message, output_of
from .replies import Answer, Call, Item
from .wire import MaySpend, Wire

LABEL = "failed_agent"  # Codex's own word for it; ours says behind it why.
POLL_S = 0.2  # So often it is asked, while an answer is waited for, whether it is still wanted.
STOP_S = 2.0
SHORTENED_MAX = 2
NUDGED_MAX = 2
WAIT_S_MAX = 60  # Who is to come back later than that has the next run to do so.
WAITS_S = (1.0, 4.0, 15.0)
ASKED_AGAIN = ("no_answer", "incomplete")  # Replies that the same question may do without.
LEFT_OUT = "(left out to make room; call the tool again if you need it)"


class Limits(NamedTuple):
    """Turns are answers of the model, requests are what is sent for them."""

    turns: int = 40
    requests: int = 120
    tokens: int = 2_000_000  # Both ways, of all requests together.
    wall_s: float = 1_800.0


class Tools(Protocol):
    """What a model may call, and whether it has said that it is done."""

    @property
    def finished(self) -> bool: ...

    def next_turn(self) -> None: ...

    def call(self, name: str, arguments: str) -> str:
        """What the tool answers; a refusal is an answer."""


class Loop:
    def __init__(
        self,
        wire: Wire,
        tools: Tools,
        question: Question,
        *,
        limits: Limits,
        alive: Callable[[], bool],
        may_spend: MaySpend,
        waits_s: tuple[float, ...] = WAITS_S,
    ) -> None:
        self.tokens = Tokens(model=question.model)
        self.turns = 0
        self.requests = 0
        self._wire = wire
        self._tools = tools
        self._question = question
        self._items: list[Item] = list(question.inputs)
        self._limits = limits
        self._alive = alive
        self._may_spend = may_spend
        self._waits_s = waits_s
        self._until = time.monotonic() + limits.wall_s
        self._reserved = 0
        self._refused_by = ""
        self._shortened = 0
        self._nudged = 0

    async def run(self) -> None:
        """Until the model finishes, or answers without a call: what it left is checked anyway."""
        try:
            await self._run()
        except ConsolidationFailed as failed:
            failed.tokens = self.tokens  # With those of the call that it gave up.
            raise

    async def _run(self) -> None:
        while not self._tools.finished:
            if self.turns >= self._limits.turns:
                raise self._ended("turn_limit")
            answer = await self._answer()
            self.turns += 1
            called = [with_id(item, self.turns, at) for at, item in enumerate(answer.items)]
            self._items += called
            if not answer.calls:
                return
            self._tools.next_turn()
            for item in called:
                if item.get("type") == "function_call":
                    self._items.append(self._result(item))

    def _result(self, item: Item) -> Item:
        self._go_on_or_end()
        call = Call(id=item["call_id"], name=text(item, "name"), arguments=text(item, "arguments"))
        # A folder's files name places, and what stands in those the model need not know.
        return output_of(call.id, redact(self._tools.call(call.name, call.arguments)))

    async def _answer(self) -> Answer:
        failures = 0
        while True:
            self._go_on_or_end()
            question = replace(self._question, inputs=self._items)
            try:
                answer = await self._wanted(self._asked(question))
                if answer.is_whole or answer.calls:
                    return answer
                failed = AnswerFailed("transient", "stream_ended_early")
            except AnswerFailed as error:
                failed = error
            if self._is_mended(failed):
                continue
            await self._wait(failed, failures)
            failures += 1

    async def _asked(self, question: Question) -> Answer:
        try:
            answer = await self._wire.ask(question, may_spend=self._may_be_sent)
        except AnswerFailed as failed:
            self.tokens += failed.tokens
            raise
        self.tokens += answer.tokens
        return answer

    def _may_be_sent(self, most: int) -> bool:
        """Asked by the wire before each request. Only what earlier reservations do not cover is
        reserved: a call costs less than it might, and forty of them far less."""
        spent = self.tokens.input + self.tokens.output
        if self.requests >= self._limits.requests:
            self._refused_by = "request_limit"
        elif spent + most > self._limits.tokens:
            self._refused_by = "token_limit"
        elif not self._may_spend(more := max(spent + most - self._reserved, 0)):
            self._refused_by = "budget"
        else:
            self._reserved += more
            self.requests += 1
            return True
        return False

    async def _wanted(self, asking: Coroutine[Any, Any, Answer]) -> Answer:
        """The answer; or an end as soon as nobody wants it any more. What is given up has its
        price in `tokens`, too."""
        task = asyncio.ensure_future(asking)
        try:
            while not (await asyncio.wait({task}, timeout=self._poll_s()))[0]:
                self._go_on_or_end()
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=STOP_S)
            if task.done() and not task.cancelled():
                task.exception()  # Told already, by `_asked`.

    async def _wait(self, failed: AnswerFailed, failures: int) -> None:
        """Until the server may be asked again. Raises where there is no use in that."""
        again = failed.kind == "transient" or failed.reason in ASKED_AGAIN
        if failed.stops or not again or failures >= len(self._waits_s):
            raise self._failed(failed)
        wait_s = self._waits_s[failures]
        if failed.retry_after_s is not None:
            wait_s = float(failed.retry_after_s)
        if wait_s > min(WAIT_S_MAX, self._until - time.monotonic()):
            raise self._failed(failed)
        until = time.monotonic() + wait_s
        while (left := until - time.monotonic()) > 0:
            self._go_on_or_end()
            await asyncio.sleep(min(left, self._poll_s()))

    def _is_mended(self, failed: AnswerFailed) -> bool:
        """Whether another question may fare better: a shorter one, or one that asks for less."""
        match failed.reason:
            case "context_too_long" if self._shortened < SHORTENED_MAX:
                self._shortened += 1
                return shorten(self._items, to_last=self._shortened == SHORTENED_MAX)
            case "cut_by_length" if self._nudged < NUDGED_MAX:
                self._nudged += 1
                self._items.append(message("user", prompt("consolidation_cut").strip()))
                return True
            case _:
                return False

    def _go_on_or_end(self) -> None:
        if not self._alive():
            raise self._ended("stopped")
        if time.monotonic() >= self._until:
            raise self._ended("time_limit")

    def _poll_s(self) -> float:
        return max(min(POLL_S, self._until - time.monotonic()), 0.0)

    def _failed(self, failed: AnswerFailed) -> ConsolidationFailed:
        code = failed.reason
        if code == "budget":
            code = self._refused_by
        # Of a limit of this one's own another root knows nothing.
        stops = failed.stops and code not in ("request_limit", "token_limit")
        return self._ended(code, retry_after_s=failed.retry_after_s, stops=stops)

    def _ended(
        self, code: str, *, retry_after_s: int | None = None, stops: bool = False
    ) -> ConsolidationFailed:
        return ConsolidationFailed(f"{LABEL}:{code}", retry_after_s=retry_after_s, stops=stops)


def with_id(item: Item, turn: int, at: int) -> Item:
    """A call as it came; where a server gave it no name to be answered by, with one."""
    if item.get("type") != "function_call" or text(item, "call_id"):
        return item
    return {**item, "call_id": text(item, "id") or f"call_{turn}_{at}"}


def text(item: Item, name: str) -> str:
    found = item.get(name)
    return found if isinstance(found, str) else ""


def shorten(items: list[Item], *, to_last: bool) -> bool:
    """Leave the older half of what tools have answered out, or all but the last; whether anything
    was. The calls themselves stay: a model that finds none of its own begins anew."""
    results = [
        at
        for at, item in enumerate(items)
        if item.get("type") == "function_call_output" and len(text(item, "output")) > len(LEFT_OUT)
    ]
    room = 0 if to_last else sum(len(text(items[at], "output")) for at in results) // 2
    kept = 0
    shortened = False
    for at in reversed(results):
        kept += len(text(items[at], "output"))
        if at != results[-1] and kept > room:
            items[at] = {**items[at], "output": LEFT_OUT}
            shortened = True
    return shortened
