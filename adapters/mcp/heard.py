"""heard: a request that the SDK cannot read is answered, too.

A model may write half a character (a lone surrogate). JSON can carry it, and the SDK, which cannot,
passes over the whole line without a word, so that an agent would wait for its answer for ever.
What such a line asks is not guessed: whoever sent it is told, under the request's own id.
"""

import json
from types import TracebackType
from typing import Any, Self

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

ADVICE = (
    "this request cannot be read: it is no message of the protocol, or a text in it holds half a"
    " character (a lone surrogate); leave that out and ask again"
)


class Heard:
    """The stream of messages as the SDK reads it, without what is answered here."""

    def __init__(self, messages: Any, answers: Any) -> None:
        self._messages = messages
        self._answers = answers

    @property
    def last_context(self) -> Any:
        return self._messages.last_context

    async def receive(self) -> Any:
        while True:
            message = await self._messages.receive()
            refused = refusal(message) if isinstance(message, ValidationError) else None
            if refused is None:
                return message
            await self._answers.send(SessionMessage(refused))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        await self._messages.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


def refusal(unread: ValidationError) -> types.JSONRPCError | None:
    """What to answer; None where no request is to be seen in the line."""
    line = unread.errors(include_url=False)[0]["input"]
    try:
        found = json.loads(line) if isinstance(line, str | bytes) else line
    except (ValueError, RecursionError):
        return None
    asked_as = found.get("id") if isinstance(found, dict) and "method" in found else None
    if isinstance(asked_as, bool) or not isinstance(asked_as, str | int):
        return None
    if isinstance(asked_as, str) and not asked_as.isprintable():
        return None  # Half a character, perhaps, which no answer can carry, either.
    error = types.ErrorData(code=types.INVALID_REQUEST, message=ADVICE)
    return types.JSONRPCError(jsonrpc="2.0", id=asked_as, error=error)
