"""The wire: one question over HTTP, and one answer, or why there is none.

The SDK brings the client: the key, the address, status errors, proxies. Its own retries and its
typed events are not used: a job knows better when to come back, each request is counted, and a
stream is read by `sse`, which costs a fraction.

A deadline stands round each call, because a server that sends a comment now and then is never
silent. A call that is given up has an unknown price; what was reserved for it is booked. How a
server is asked that cannot do everything is `fallback`'s.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from math import ceil
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...domain.address import is_usable
from ...domain.events import Tokens
from .failures import AnswerFailed, Rejected, number
from .fallback import Fallback
from .questions import Question, body, size
from .replies import Answer, ChatReply, Reply, ResponsesReply, answer, parsed
from .servers import Server, Servers
from .sse import Event, Events

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response
    from openai import AsyncOpenAI

DEADLINE_S = 300.0
CONNECT_S = 10.0
DRAIN_S = 0.2
REPLY_BYTES_MAX = 64 << 20
BYTES_A_TOKEN = 4
RESERVE = 1.25  # JSON has fewer bytes a token than prose.

STREAM_BEGINS = (b"data:", b"event:", b":", b"id:", b"retry:")

MaySpend = Callable[[int], bool]


def unlimited(tokens: int) -> bool:
    return True


class Wire:
    """For one event loop, and for one run: a new client costs a tenth of a second."""

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str | None = None,
        servers: Servers,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        """Without a key the SDK's own variable is read; a local server wants none."""
        self.remaining_percent: float | None = None  # What the limits leave, by the last answer.
        self._base_url = base_url
        self._is_plain = base_url.startswith("http://")
        self._api_key = api_key
        self._servers = servers
        self._deadline_s = deadline_s
        self._client: AsyncOpenAI | None = None

    async def ask(
        self,
        question: Question,
        *,
        may_spend: MaySpend = unlimited,
        fits: Callable[[str], bool] | None = None,
    ) -> Answer:
        """`may_spend` is asked before each call, with the most that it may cost. `fits` says
        whether a text is an object of the schema; with it, a server that ignores schemas is told
        from a model that errs. The tokens of all calls are summed, in an `AnswerFailed` too."""
        self._connected()
        asked = Fallback(question, servers=self._servers, base_url=self._base_url, fits=fits)
        while True:
            most = reserve(question)
            if not may_spend(most.input + most.output):
                raise AnswerFailed("transient", "budget", tokens=asked.spent, stops=True)
            try:
                found = await self._within_deadline(question, asked.server, most)
            except Rejected as rejected:
                asked.rejected(rejected)
            except AnswerFailed as failed:
                asked.failed(failed)
            else:
                if asked.answers(found):
                    return replace(found, tokens=asked.spent)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _within_deadline(self, question: Question, server: Server, most: Tokens) -> Answer:
        try:
            async with asyncio.timeout(self._deadline_s):
                return await self._call(question, server)
        except TimeoutError:
            raise AnswerFailed("transient", "deadline", tokens=most) from None
        except asyncio.CancelledError:
            # Whoever cancels it wants it to end, and to know what it has cost.
            raise AnswerFailed("transient", "stopped", tokens=most) from None

    async def _call(self, question: Question, server: Server) -> Answer:
        import httpx2
        import openai

        client = self._connected()
        path, said = body(question, server)
        kind = ResponsesReply if server.mode == "responses" else ChatReply
        reply: Reply = kind(question.model)
        streams = True  # As a variable: the literal would ask for a class of the SDK's streams.
        try:
            response = await client.post(
                path,
                cast_to=httpx2.Response,
                body=said,
                stream=streams,
                options={"follow_redirects": False},
            )
            try:
                self._heed(response.headers)
                await read(response, reply)
            finally:
                await response.aclose()
            return answer(reply, tokens_max=question.tokens_max)
        except openai.APIStatusError as error:
            self._heed(error.response.headers)
            raise Rejected(error.status_code, error.body, error.response.headers) from None
        except (openai.APITimeoutError, httpx2.TimeoutException) as error:
            raise AnswerFailed("transient", "timeout", tokens=reply.usage) from error
        except openai.APIConnectionError as error:
            lost = isinstance(error.__cause__, (httpx2.NetworkError, httpx2.RemoteProtocolError))
            never = isinstance(error.__cause__, httpx2.ConnectError)
            reason = "hung_up" if lost and not never else "no_connection"
            raise AnswerFailed("transient", reason, tokens=reply.usage) from error
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise AnswerFailed("transient", "connection_lost", tokens=reply.usage) from error
        except AnswerFailed as failed:
            failed.tokens = reply.usage
            raise

    def _connected(self) -> "AsyncOpenAI":
        if self._client is None:
            if not is_usable(self._base_url):
                raise AnswerFailed("transient", "base_url_unusable", stops=True)
            import httpx2
            from openai import AsyncOpenAI

            key = (self._api_key or os.environ.get("OPENAI_API_KEY") or "none").strip()
            if not (key.isascii() and key.isprintable()):
                raise AnswerFailed("transient", "key_refused", stops=True)  # No header can hold it.
            try:
                reached_by = connections(is_plain=self._is_plain)
            except (ImportError, OSError, ValueError, httpx2.InvalidURL) as error:
                raise AnswerFailed("transient", "environment_unusable", stops=True) from error
            try:
                self._client = AsyncOpenAI(
                    base_url=self._base_url,
                    api_key=key,
                    max_retries=0,
                    timeout=httpx2.Timeout(self._deadline_s, connect=CONNECT_S),
                    http_client=reached_by,
                )
            except (ValueError, httpx2.InvalidURL) as error:
                raise AnswerFailed("transient", "base_url_unusable", stops=True) from error
        return self._client

    def _heed(self, headers: Mapping[str, str]) -> None:
        left = remaining_percent(headers)
        if left is not None:
            self.remaining_percent = left


def connections(*, is_plain: bool) -> "AsyncClient":
    """For plain HTTP, which a server of one's own speaks, without the world's certificates, which
    take time to load. Without any, a connection that wanted one would fail."""
    import ssl

    from openai import DefaultAsyncHttpxClient

    from .bounded import UNPACKED, bound

    return DefaultAsyncHttpxClient(
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True,
        headers={"accept-encoding": ", ".join(UNPACKED)},
        event_hooks={"response": [bound]},
    )


async def read(response: "Response", reply: Reply) -> None:
    """The body into the reply. What it is, its first bytes say: servers mislabel it."""
    events, whole, size_read = Events(), bytearray(), 0
    streams = "event-stream" in response.headers.get("content-type", "")
    async with aclosing(response.aiter_bytes()) as contents:
        async for content in contents:
            size_read += len(content)
            if size_read > REPLY_BYTES_MAX:
                raise AnswerFailed("bad_reply", "reply_too_large")
            streams = streams or (not whole and content.lstrip().startswith(STREAM_BEGINS))
            if not streams:
                whole += content
                continue
            for event in events.feed(content):
                take(event, reply)
            if reply.is_over:
                await drain(contents)
                return
    if streams:
        for event in events.rest():
            take(event, reply)
    else:
        reply.whole(parsed(bytes(whole), "no_api_reply"))


def take(event: Event, reply: Reply) -> None:
    if event.data.strip() == b"[DONE]":
        reply.is_over = True
    else:
        reply.event(event.name, parsed(event.data, "stream_broken"))


async def drain(contents: AsyncIterator[bytes]) -> None:
    """What follows the end, so that the connection can be used again. The answer is in hand."""
    import httpx2

    with suppress(TimeoutError, httpx2.HTTPError):
        async with asyncio.timeout(DRAIN_S):
            async for _ in contents:
                pass


def remaining_percent(headers: Mapping[str, str]) -> float | None:
    """The share that is left of the limit that is nearest."""
    left = []
    for what in ("requests", "tokens"):
        remaining = number(headers.get(f"x-ratelimit-remaining-{what}"))
        limit = number(headers.get(f"x-ratelimit-limit-{what}"))
        if remaining is not None and limit:
            left.append(100 * remaining / limit)
    for window in ("primary", "secondary"):
        used = number(headers.get(f"x-codex-{window}-used-percent"))
        if used is not None:
            left.append(100 - used)
    return min(max(min(left), 0.0), 100.0) if left else None


def reserve(question: Question) -> Tokens:
    """The most that a call of it may cost."""
    into = ceil(size(question) / BYTES_A_TOKEN * RESERVE)
    return Tokens(model=question.model, calls=1, input=into, output=question.tokens_max)
