"""A model server on loopback that says what a test tells it to: real HTTP, and no model.

It has both endpoints, `/v1/responses` and `/v1/chat/completions`, keeps connections alive, answers
at once, and keeps every request with its body. Four styles say how an answer travels: `sse`,
`json` (a plain body to a streaming request), `no_completed` and `no_item_added`.

    with ModelServer("rate_limited", style="json") as server:
        ... server.base_url ... server.asked[0].body ...

A script says what is answered, request by request:

- the name of a case of `model_replies.jsonl`, or of one of the `BEHAVIOURS` below;
- a `Reply`;
- a list: one after the other, then `derived`;
- a dict: the first whose key stands in the request's text (a thread's id, a path), else `derived`;
- a callable of the request that returns any of these.

`derived` makes an honest answer out of what was sent: every `FACT[…]` in it, else the first words
of a person; always the same for the same request. Where there are tools it consolidates with them
(`tests/model_consolidates.py`).

As a program: `python -m tests.model_server --port-file F [--script S] [--style sse] [--asked F]`.
It writes its port once it listens, and ends with its standard input or a SIGTERM.
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CASES: dict[str, dict[str, Any]] = {
    case["case"]: case
    for case in map(
        json.loads,
        (Path(__file__).parent / "fixtures/open/model_replies.jsonl")
        .read_text(encoding="utf-8")
        .splitlines(),
    )
}
STYLES = ("sse", "json", "no_completed", "no_item_added")
DERIVED = "derived"
USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 30,
}


@dataclass
class Asked:
    """A request as it came. `gone` is set when its client hung up before the answer was out."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    gone: threading.Event = field(default_factory=threading.Event)

    @property
    def mode(self) -> str:
        """`responses`, or `chat_` and the kind of the reply's format."""
        if not self.path.endswith("/chat/completions"):
            return "responses"
        kind = self.body.get("response_format", {}).get("type", "text")
        return "chat_schema" if kind == "json_schema" else "chat_json"

    @property
    def schema(self) -> dict[str, Any] | None:
        """The strict schema that was asked for, whichever way."""
        if self.mode == "responses":
            form = self.body.get("text", {}).get("format", {})
        else:
            form = self.body.get("response_format", {}).get("json_schema", {})
        found: dict[str, Any] | None = form.get("schema")
        return found

    @property
    def messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.body.get("input") or self.body.get("messages") or []
        return found

    def said(self, *roles: str) -> list[str]:
        """The texts of the messages of these roles, or of all."""
        return [
            text_of(message.get("content"))
            for message in self.messages
            if not roles or message.get("role") in roles
        ]

    @property
    def text(self) -> str:
        return "\n".join(self.said())

    @property
    def evidence(self) -> str:
        """What was shown. Pieces of one text are joined as they were cut."""
        return "".join(self.said("user"))


def text_of(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


@dataclass(frozen=True)
class Reply:
    """`body` is a Responses object, which is translated for chat, or anything else, sent as it is.

    `ends` says what becomes of the connection: `hang` never goes on, `trickle` sends comments for
    ever, `cut` closes it, each after the first half of the answer, and with `at_once` before any.
    """

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    ends: str = ""
    at_once: bool = False
    delay_s: float = 0.0
    hold: threading.Event | None = None  # The answer waits until it is set.
    style: str | None = None
    content_type: str | None = None


Script = str | Reply | list[Any] | dict[str, Any] | Callable[[Asked], Any] | None


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def message(text: str, *, phase: str | None = None) -> dict[str, Any]:
    said = {
        "type": "message",
        "id": f"msg_{digest(text)}",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }
    return said | ({"phase": phase} if phase else {})


def refusal(text: str) -> dict[str, Any]:
    return message("") | {"content": [{"type": "refusal", "refusal": text}]}


def call(name: str, arguments: Any, *, call_id: str = "call_1") -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": name,
        "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
        "status": "completed",
    }


def reasoning(sealed: str = "c2VhbGVk") -> dict[str, Any]:
    return {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": sealed}


def response(*output: dict[str, Any] | str, **more: Any) -> dict[str, Any]:
    """A whole Responses object of these items; a text is a message."""
    items = [message(item) if isinstance(item, str) else item for item in output]
    return {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": "stub",
        "output": items,
        "usage": USAGE,
    } | more


def error(
    status: int,
    message: str = "no",
    *,
    code: str | None = None,
    param: str | None = None,
    kind: str = "invalid_request_error",
    headers: dict[str, str] | None = None,
) -> Reply:
    said = {"message": message, "type": kind, "param": param, "code": code}
    return Reply({"error": said}, status=status, headers=headers or {})


def case(name: str) -> Reply:
    """A line of `model_replies.jsonl`; headers that stand in its body become real ones."""
    found = CASES[name]
    body, headers = found["body"], {}
    if isinstance(body, dict) and "headers" in body:
        body = dict(body)
        headers = body.pop("headers")
    return Reply(body, status=found["http_status"], headers=headers)


def no_schema(asked: Asked) -> Any:
    """A server without strict schemas, which says so."""
    if asked.schema is None:
        return DERIVED
    if asked.mode == "responses":
        return case("schema_unsupported_400")
    return error(400, "'response_format' of type 'json_schema' is not supported by this server")


def ignores_schema(asked: Asked) -> Any:
    """It has /responses, and answers in free text whatever the format."""
    prose = "This session was about a build. The user seems to prefer short commands."
    return Reply(response(prose)) if asked.mode == "responses" else DERIVED


def no_reasoning(asked: Asked) -> Any:
    if "reasoning" in asked.body:
        return error(400, "Unsupported parameter", param="reasoning.effort")
    if "reasoning_effort" in asked.body:
        return error(400, "Unsupported parameter", param="reasoning_effort")
    return DERIVED


def chat_of_reasoning_models(asked: Asked) -> Any:
    """Only chat, and only with the newer name of the cap."""
    if asked.mode == "responses":
        return case("responses_api_404")
    if "max_tokens" in asked.body:
        return error(
            400,
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        )
    return DERIVED


def failed(code: str, said: str = "it went wrong") -> Reply:
    body = response(status="failed", error={"code": code, "message": said}, usage=None)
    return Reply(body)


def error_event(code: str, said: str = "it went wrong") -> Reply:
    """The stream's own error, in the middle of it."""
    return Reply({"type": "error", "code": code, "message": said, "param": None})


BEHAVIOURS: dict[str, Script] = {
    "schema_unsupported_400": no_schema,
    "responses_api_404": lambda asked: (
        case("responses_api_404") if asked.mode == "responses" else DERIVED
    ),
    "only_json_object": lambda asked: (
        case("responses_api_404") if asked.mode == "responses" else no_schema(asked)
    ),
    "ignores_schema": ignores_schema,
    "no_reasoning": no_reasoning,
    "max_completion_tokens": chat_of_reasoning_models,
    "hang": Reply(ends="hang", at_once=True),
    "hang_in_stream": Reply(response("{"), ends="hang"),
    "trickle": Reply(response("{"), ends="trickle"),
    "cut": Reply(response('{"raw_memory": "'), ends="cut"),
    "cut_at_once": Reply(ends="cut", at_once=True),
    "unavailable": Reply("upstream connect error", status=503),
    "unauthorized": error(401, "Incorrect API key provided", code="invalid_api_key"),
    "forbidden": error(403, "Country not supported", code="unsupported_country"),
    "insufficient_quota": error(
        429, "You exceeded your current quota", code="insufficient_quota", kind="insufficient_quota"
    ),
    "context_length": error(
        400, "Your input exceeds the context window", code="context_length_exceeded", param="input"
    ),
    "response_failed": failed("server_error"),
    "error_event": error_event("server_error"),
    "content_filter": Reply(
        response('{"raw', status="incomplete", incomplete_details={"reason": "content_filter"})
    ),
    "no_answer": Reply(response()),
    "web_page": Reply("<html>sign in</html>", content_type="text/html"),
}


FACT = re.compile(r"FACT\[([^\]]*)\]")
TYPED = re.compile(r'"type":\s*"input_text",\s*"text":\s*("(?:[^"\\]|\\.)*")')


def derived(asked: Asked) -> Reply:
    """An answer in the form that was asked for, made of what was sent."""
    if asked.body.get("tools"):
        from tests.model_consolidates import consolidates

        return consolidates(asked)
    facts = list(dict.fromkeys(FACT.findall(asked.evidence)))
    if not facts:
        typed = (json.loads(found, strict=False) for found in TYPED.findall(asked.evidence))
        people = [text.strip() for text in typed if text.strip() and text.strip()[0] != "<"]
        facts = [people[0].splitlines()[0][:200]] if people else ["nothing was said"]
    known = asked.schema["properties"] if asked.schema else None
    keys = list(known) if known else ["raw_memory", "rollout_summary", "rollout_slug"]
    if known is None and "raw_memory" not in asked.text:
        keys.remove("raw_memory")
    bullets = "\n".join(f"- {fact}" for fact in facts)
    title = facts[0][:60]
    texts = {
        "raw_memory": (
            f"---\ndescription: {title}\ntask: {title}\ntask_group: stub\ntask_outcome: success\n"
            f"cwd: unknown\nkeywords: stub\n---\n\n### Task 1: {title}\n\ntask: {title}\n"
            f"task_group: stub\ntask_outcome: success\n\nReusable knowledge:\n{bullets}\n"
        ),
        "rollout_summary": f"# {title}\n\nReusable knowledge:\n{bullets}\n",
        "rollout_slug": re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40] or "session",
    }
    return Reply(response(json.dumps({key: texts.get(key, "") for key in keys})))


class ModelServer:
    """Listens from `with` on, in a thread. `script` and `style` may be changed at any time."""

    def __init__(self, script: Script = None, *, style: str = "sse", port: int = 0) -> None:
        self.script = script
        self.style = style
        self.asked: list[Asked] = []
        self.connections = 0
        self.keeps = True  # Whether requests are kept.
        self.tell: Callable[[Asked], None] | None = None
        self._port = port
        self._taken: dict[int, tuple[list[Any], int]] = {}  # With the list, so that its id stays.
        self._arrived = threading.Condition()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="model server", daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> "ModelServer":
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    def wait_for(self, count: int, *, timeout_s: float = 10) -> list[Asked]:
        """The requests, once there are so many."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.asked) >= count, timeout_s)
            return list(self.asked)

    def _run(self) -> None:
        asyncio.run(self._listen())

    async def _listen(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self._open: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._connected, "127.0.0.1", self._port, limit=1 << 26)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._one(reader, writer):
                    pass
        except asyncio.CancelledError:
            pass  # The server ends, and its connections with it.
        finally:
            self._open.discard(task)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer. Whether the connection goes on."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        sent = await reader.readexactly(int(headers.get("content-length", "0")))
        asked = Asked(head[0].split()[1], headers, json.loads(sent) if sent else {})
        if self.keeps:
            with self._arrived:
                self.asked.append(asked)
                self._arrived.notify_all()
        if self.tell:
            self.tell(asked)
        reply = self._reply(self.script, asked)
        if reply.delay_s:
            await asyncio.sleep(reply.delay_s)
        if reply.hold is not None:
            while not reply.hold.is_set():
                await asyncio.sleep(0.005)
        if reply.at_once:
            return await self._end(reply.ends, asked, reader, writer)
        status, kind, pieces = encoded(reply, asked, reply.style or self.style)
        sse = kind == "text/event-stream"
        more = {"content-type": kind} | reply.headers
        more |= {"transfer-encoding": "chunked"} if sse else {"content-length": str(len(pieces[0]))}
        lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in more.items())]
        start = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        if reply.ends:
            # Of a stream so many whole events, so that what follows is heard as what it is.
            half = b"".join(pieces[: len(pieces) // 2]) if sse else pieces[0][: len(pieces[0]) // 2]
            writer.write(start + (chunk(half) if sse else half))
            await writer.drain()
            return await self._end(reply.ends, asked, reader, writer)
        writer.write(start + (chunk(b"".join(pieces)) + b"0\r\n\r\n" if sse else pieces[0]))
        await writer.drain()
        return True

    async def _end(
        self, how: str, asked: Asked, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        if how == "cut":
            return False
        hung_up = asyncio.ensure_future(reader.read(1))
        try:
            while not (await asyncio.wait({hung_up}, timeout=0.05))[0]:
                if how == "trickle":
                    writer.write(chunk(b": still here\n\n"))
                    await writer.drain()
        except ConnectionError:
            pass
        finally:
            hung_up.cancel()
            asked.gone.set()
        return False

    def _reply(self, script: Any, asked: Asked) -> Reply:
        match script:
            case None:
                return derived(asked)
            case Reply():
                return script
            case str() if script == DERIVED:
                return derived(asked)
            case str() if script in BEHAVIOURS:
                return self._reply(BEHAVIOURS[script], asked)
            case str():
                return case(script)
            case list():
                _, taken = self._taken.get(id(script), (script, 0))
                self._taken[id(script)] = script, taken + 1
                return self._reply(script[taken] if taken < len(script) else None, asked)
            case dict():
                found = (value for key, value in script.items() if key in asked.evidence)
                return self._reply(next(found, None), asked)
            case _:
                return self._reply(script(asked), asked)


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content) if content else b""


def encoded(reply: Reply, asked: Asked, style: str) -> tuple[int, str, list[bytes]]:
    """Status, content type, and the body in pieces: one, or an event each."""
    body = reply.body
    if isinstance(body, str):
        return reply.status, reply.content_type or "text/plain", [body.encode()]
    is_response = isinstance(body, dict) and body.get("object") == "response"
    is_event = isinstance(body, dict) and body.get("type") == "error"
    if reply.status != 200 or not (is_response or is_event):
        return reply.status, reply.content_type or "application/json", [json.dumps(body).encode()]
    chat = asked.mode != "responses"
    if style == "json" or not asked.body.get("stream"):
        plain = {"error": body} if is_event else chat_completion(body) if chat else body
        return 200, "application/json", [json.dumps(plain).encode()]
    events = chat_events(body, style) if chat else response_events(body, style)
    return 200, "text/event-stream", events


def event(name: str, **more: Any) -> bytes:
    said = json.dumps({"type": name, **more}, ensure_ascii=False)
    return f"event: {name}\ndata: {said}\n\n".encode("utf-8", "surrogatepass")


def response_events(body: dict[str, Any], style: str) -> list[bytes]:
    if body.get("type") == "error":
        created = event("response.created", response=response(status="in_progress", usage=None))
        return [created, event("error", **{k: v for k, v in body.items() if k != "type"})]
    begun = body | {"status": "in_progress", "output": [], "usage": None}
    events = [event("response.created", response=begun)]
    if body["status"] == "failed":
        return [*events, event("response.failed", response=body)]
    for index, item in enumerate(body["output"]):
        events += item_events(item, index, added=style != "no_item_added")
    if style != "no_completed":
        events.append(event(f"response.{body['status']}", response=body))
    return events


def item_events(item: dict[str, Any], index: int, *, added: bool) -> list[bytes]:
    events: list[bytes] = []
    at: dict[str, Any] = {"output_index": index}
    if added:
        empty: dict[str, Any] = item | {"status": "in_progress"}
        if item["type"] == "message":
            empty["content"] = []
        if item["type"] == "function_call":
            empty["arguments"] = ""
        events.append(event("response.output_item.added", item=empty, **at))
    for place, part in enumerate(item.get("content") or []):
        where = at | {"item_id": item["id"], "content_index": place}
        kind = "refusal" if part["type"] == "refusal" else "output_text"
        key = "refusal" if kind == "refusal" else "text"
        if added:
            events.append(event("response.content_part.added", part=part | {key: ""}, **where))
        half = len(part[key]) // 2
        for delta in (part[key][:half], part[key][half:]):
            events.append(event(f"response.{kind}.delta", delta=delta, **where))
        events.append(event(f"response.{kind}.done", **{key: part[key]}, **where))
        if added:
            events.append(event("response.content_part.done", part=part, **where))
    if item["type"] == "function_call":
        where = at | {"item_id": item["id"]}
        kind = "response.function_call_arguments"
        events.append(event(f"{kind}.delta", delta=item["arguments"], **where))
        events.append(event(f"{kind}.done", arguments=item["arguments"], **where))
    return [*events, event("response.output_item.done", item=item, **at)]


def chat_message(body: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """What a chat server would say of it: one message, and why it ended."""
    said: dict[str, Any] = {"role": "assistant", "content": None}
    messages = [item for item in body["output"] if item["type"] == "message"]
    if messages:
        for part in messages[-1]["content"]:
            if part["type"] == "refusal":
                said["refusal"] = part["refusal"]
            else:
                said["content"] = (said["content"] or "") + part["text"]
    calls = [item for item in body["output"] if item["type"] == "function_call"]
    if calls:
        said["tool_calls"] = [
            {
                "id": item["call_id"],
                "type": "function",
                "function": {"name": item["name"], "arguments": item["arguments"]},
            }
            for item in calls
        ]
    reason = (body.get("incomplete_details") or {}).get("reason")
    ended = {"max_output_tokens": "length", "content_filter": "content_filter"}.get(reason)
    return said, ended or ("tool_calls" if calls else "stop")


def chat_usage(usage: dict[str, Any] | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.get("input_tokens"),
        "prompt_tokens_details": usage.get("input_tokens_details"),
        "completion_tokens": usage.get("output_tokens"),
        "completion_tokens_details": usage.get("output_tokens_details"),
        "total_tokens": usage.get("total_tokens"),
    }


def chat_completion(body: dict[str, Any]) -> dict[str, Any]:
    if body["status"] == "failed":
        return {"error": body["error"]}
    said, ended = chat_message(body)
    choice = {"index": 0, "message": said, "finish_reason": ended}
    usage = chat_usage(body.get("usage"))
    return {"id": "c_1", "object": "chat.completion", "choices": [choice], "usage": usage}


def data(said: Any) -> bytes:
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return f"data: {text}\n\n".encode("utf-8", "surrogatepass")


def chat_events(body: dict[str, Any], style: str) -> list[bytes]:
    def delta(said: dict[str, Any], ended: str | None = None) -> bytes:
        choice = {"index": 0, "delta": said, "finish_reason": ended}
        return data({"id": "c_1", "object": "chat.completion.chunk", "choices": [choice]})

    if body.get("type") == "error":
        return [data({"error": body})]
    if body["status"] == "failed":
        return [data({"error": body["error"]})]
    said, ended = chat_message(body)
    events = [] if style == "no_item_added" else [delta({"role": "assistant", "content": ""})]
    for key in ("content", "refusal"):
        text = said.get(key) or ""
        half = len(text) // 2
        events += [delta({key: piece}) for piece in (text[:half], text[half:]) if piece]
    for index, made in enumerate(said.get("tool_calls", [])):
        arguments = made["function"]["arguments"]
        half = len(arguments) // 2
        begun = made | {"index": index, "function": made["function"] | {"arguments": ""}}
        events.append(delta({"tool_calls": [begun]}))
        for piece in (arguments[:half], arguments[half:]):
            events.append(
                delta({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
            )
    if style == "no_completed":
        return events
    usage = chat_usage(body.get("usage"))
    return [*events, delta({}, ended), data({"choices": [], "usage": usage}), data("[DONE]")]


def main() -> None:
    parser = argparse.ArgumentParser(description="A model server on loopback, for tests.")
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", default=DERIVED, help="a name, or a list or dict as JSON")
    parser.add_argument("--style", choices=STYLES, default="sse")
    parser.add_argument("--asked", type=Path, help="where each request's body is kept, a line each")
    given = parser.parse_args()
    script = json.loads(given.script) if given.script[:1] in ("[", "{") else given.script
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    signal.signal(signal.SIGINT, lambda *_: over.set())
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(ModelServer(script, style=given.style, port=given.port))
        server.keeps = False
        if given.asked:
            kept = stack.enter_context(given.asked.open("a", encoding="utf-8"))

            def tell(asked: Asked) -> None:
                kept.write(json.dumps({"path": asked.path, "body": asked.body}) + "\n")
                kept.flush()

            server.tell = tell
        written = given.port_file.with_name(given.port_file.name + ".new")
        written.write_text(str(server.port))
        os.replace(written, given.port_file)

        def watch() -> None:
            sys.stdin.read()
            over.set()

        if not sys.stdin.isatty():
            threading.Thread(target=watch, daemon=True).start()
        over.wait()


if __name__ == "__main__":
    main()
