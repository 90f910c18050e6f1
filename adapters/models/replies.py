"""Replies: events or a whole body in, an answer out, for both endpoints.

An answer is the last message of the phase `final_answer`, else the last without a phase. A refusal
anywhere, or a reply that was cut, is no answer. Servers leave out what the protocol promises (the
event at the end, an item's beginning, usage, a phase), so an answer is made of what is there: items
where they came, else the pieces of text.
"""

import json
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ...domain.events import Tokens
from .failures import AnswerFailed, of_event, word

Item = dict[str, Any]

# What a server counts is only its word. More than this no call can cost, and sums of it still fit
# into the tables.
COUNT_MAX = 1_000_000_000
# Four is usual. A server that does not keep to the cap may still not hold up a run for minutes.
CHARS_A_TOKEN_MAX = 16


class Call(Struct, frozen=True, kw_only=True):
    """A tool that the model wants called. `arguments` is JSON, or what a model takes for it."""

    id: str
    name: str
    arguments: str


class Answer(Struct, frozen=True, kw_only=True):
    """`items` are the output as it came, to be sent back in a further question, in the form of the
    Responses API also where chat completions gave it. `is_cut`: the server broke it off at its cap.
    `is_full`: it is as long as it was allowed to be, which a server may not have noticed.
    `is_whole`: something said that it ends here."""

    text: str
    calls: tuple[Call, ...] = ()
    items: tuple[Item, ...] = ()
    tokens: Tokens
    is_cut: bool = False
    is_full: bool = False
    is_whole: bool = True


class Reply(Protocol):
    """What has arrived of a reply."""

    usage: Tokens
    is_over: bool  # Nothing can follow that would change it.

    @property
    def is_whole(self) -> bool: ...

    def event(self, name: str, said: Item) -> None: ...

    def whole(self, said: Item) -> None:
        """All of it at once: the server does not stream."""

    def items(self) -> list[Item]: ...

    def why_cut(self) -> str | None: ...


def answer(reply: Reply, *, tokens_max: int) -> Answer:
    items = reply.items()
    if any(part.get("type") == "refusal" for item in items for part in parts(item)):
        raise AnswerFailed("refused", "refused")
    cut = reply.why_cut()
    if cut == "content_filter":
        raise AnswerFailed("refused", "content_filter")
    if cut not in (None, "length"):
        raise AnswerFailed("bad_reply", "incomplete")
    calls = tuple(
        Call(
            id=word(item.get("call_id")) or word(item.get("id")),
            name=word(item.get("name")),
            arguments=word(item.get("arguments")),
        )
        for item in items
        if item.get("type") == "function_call"
    )
    text = final_text(items)
    if text is not None and len(text) > tokens_max * CHARS_A_TOKEN_MAX:
        raise AnswerFailed("bad_reply", "reply_too_large")
    if text is None and not calls and cut is None:
        if not reply.is_whole:
            raise AnswerFailed("transient", "stream_ended_early")
        raise AnswerFailed("bad_reply", "no_answer")
    return Answer(
        text=text or "",
        calls=calls,
        items=tuple(map(sendable, items)),
        tokens=reply.usage,
        is_cut=cut is not None,
        is_full=reply.usage.output >= tokens_max,
        is_whole=reply.is_whole,
    )


def sendable(item: Item) -> Item:
    """As it came; where it holds halves of characters, which can be sent to nobody, without them.

    >>> sendable({"name": "\\ud800"})
    {'name': '?'}
    """
    said = json.dumps(item, ensure_ascii=False)
    try:
        said.encode()
    except UnicodeEncodeError:
        whole: Item = json.loads(said.encode("utf-8", "replace"))
        return whole
    return item


def final_text(items: list[Item]) -> str | None:
    messages = [item for item in items if item.get("type") == "message"]
    for phase in ("final_answer", None):
        for item in reversed(messages):
            if item.get("phase") == phase:
                return "".join(word(part.get("text")) for part in parts(item))
    return None


def parts(item: Item) -> list[Item]:
    content = item.get("content")
    if isinstance(content, str):
        return [{"type": "output_text", "text": content}]
    return objects(content)


class ResponsesReply:
    def __init__(self, model: str) -> None:
        self.usage = Tokens(model=model, calls=1)
        self.is_over = False
        self._done: dict[int, Item] = {}
        self._pieces: dict[int, list[str]] = {}
        self._refused = False
        self._body: Item = {}

    @property
    def is_whole(self) -> bool:
        return self.is_over or bool(self._done)

    def event(self, name: str, said: Item) -> None:
        match word(said.get("type")) or name:
            case "response.output_text.delta":
                self._pieces.setdefault(index(said), []).append(word(said.get("delta")))
            case "response.refusal.delta" | "response.refusal.done":
                self._refused = True
            case "response.output_item.done":
                self._done[index(said)] = mapping(said.get("item"))
            case "response.completed" | "response.incomplete" | "response.failed":
                self.whole(mapping(said.get("response")))
            case "error":
                raise of_event(mapping(said.get("error")) or said)
            case _:
                pass  # Progress, and what later versions of the protocol add.

    def whole(self, said: Item) -> None:
        self.is_over = True
        self._body = said
        self.usage = usage(self.usage, said.get("usage"), "input", "output")
        if said.get("error") or said.get("status") == "failed":
            raise of_event(mapping(said.get("error")))

    def items(self) -> list[Item]:
        if output := objects(self._body.get("output")):
            return output
        if self._done or self._refused:
            said = [item for _, item in sorted(self._done.items())]
            if self._refused:
                said.append({"type": "message", "content": [{"type": "refusal"}]})
            return said
        return [
            {"type": "message", "role": "assistant", "content": [output_text("".join(pieces))]}
            for _, pieces in sorted(self._pieces.items())
        ]

    def why_cut(self) -> str | None:
        if self._body.get("status") != "incomplete":
            return None
        reason = mapping(self._body.get("incomplete_details")).get("reason")
        known = {"max_output_tokens": "length", "content_filter": "content_filter"}
        return known.get(word(reason), "other")


class ChatReply:
    def __init__(self, model: str) -> None:
        self.usage = Tokens(model=model, calls=1)
        self.is_over = False
        self._text: list[str] = []
        self._refused = False
        self._calls: dict[int, dict[str, str]] = {}
        self._ended = ""

    @property
    def is_whole(self) -> bool:
        return self.is_over or bool(self._ended)

    def event(self, name: str, said: Item) -> None:
        if said.get("error"):
            raise of_event(mapping(said["error"]))
        self._take(said, "delta")

    def whole(self, said: Item) -> None:
        if said.get("error"):
            raise of_event(mapping(said["error"]))
        self._take(said, "message")
        self.is_over = True

    def _take(self, said: Item, where: str) -> None:
        self.usage = usage(self.usage, said.get("usage"), "prompt", "completion")
        for choice in objects(said.get("choices"))[:1]:
            part = mapping(choice.get(where))
            self._text.append(word(part.get("content")))
            self._refused |= bool(word(part.get("refusal")))
            self._ended = word(choice.get("finish_reason")) or self._ended
            for place, made in enumerate(objects(part.get("tool_calls"))):
                at = made.get("index") if where == "delta" else place
                known = self._calls.setdefault(
                    at if isinstance(at, int) else place, {"id": "", "name": "", "arguments": ""}
                )
                function = mapping(made.get("function"))
                known["id"] = known["id"] or word(made.get("id"))
                known["name"] += word(function.get("name"))
                known["arguments"] += word(function.get("arguments"))
        if self._ended and objects(said.get("choices")) == []:
            self.is_over = True  # The chunk with the usage is the last.

    def items(self) -> list[Item]:
        items: list[Item] = []
        if self._refused:
            items.append({"type": "message", "content": [{"type": "refusal"}]})
        text = "".join(self._text)
        if text or (self._ended and not self._calls):
            # A local model may think aloud in front of its answer.
            if text.lstrip().startswith("<think>"):
                text = text.partition("</think>")[2]
            items.append({"type": "message", "role": "assistant", "content": [output_text(text)]})
        for _, made in sorted(self._calls.items()):
            items.append(
                {
                    "type": "function_call",
                    "call_id": made["id"],
                    "name": made["name"],
                    "arguments": made["arguments"],
                }
            )
        return items

    def why_cut(self) -> str | None:
        known = {"length": "length", "content_filter": "content_filter"}
        return known.get(self._ended)


def output_text(text: str) -> Item:
    return {"type": "output_text", "text": text}


def usage(known: Tokens, said: Any, in_name: str, out_name: str) -> Tokens:
    """The two endpoints count alike under different names, and any of it may be missing."""
    if not isinstance(said, dict):
        return known
    into, out = (mapping(said.get(f"{name}_tokens_details")) for name in (in_name, out_name))
    return replace(
        known,
        input=count(said.get(f"{in_name}_tokens")),
        cached=count(into.get("cached_tokens")),
        output=count(said.get(f"{out_name}_tokens")),
        reasoning=count(out.get("reasoning_tokens")),
    )


def count(said: Any) -> int:
    if not isinstance(said, int) or isinstance(said, bool):
        return 0
    return min(max(said, 0), COUNT_MAX)


def index(said: Item) -> int:
    return count(said.get("output_index"))


def mapping(said: Any) -> Item:
    return said if isinstance(said, dict) else {}


def objects(said: Any) -> list[Item]:
    return [each for each in said if isinstance(each, dict)] if isinstance(said, list) else []


def parsed(content: bytes, otherwise: str) -> Item:
    """An object of the protocol; `otherwise` is the reason where it is none."""
    try:
        said = json.loads(content)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise AnswerFailed("transient", otherwise)
    return said
