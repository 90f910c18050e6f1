"""Questions: what a model is asked, and how that is put at either endpoint.

A question is in the form of the Responses API: instructions, input items, a schema, tools. Chat
completions get the same in theirs, as far as it has a place there. Nothing is kept at the server
(`store` is false), tools are called one by one, and a reply always has a cap.
"""

import json
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from ...prompts import filled
from .failures import word
from .replies import Item, parts
from .servers import Server

SEALED = "reasoning.encrypted_content"  # What a model thought, for it to go on with; not readable.
# Fields that a server may not know, and that can be left out without breaking a promise.
CAN_GO: dict[str, tuple[str, ...]] = {
    "responses": ("reasoning", "include", "parallel_tool_calls"),
    "chat": ("reasoning_effort", "parallel_tool_calls", "stream_options", "store"),
}


class Schema(Struct, frozen=True, kw_only=True):
    name: str
    json: dict[str, Any]


class Question(Struct, frozen=True, kw_only=True):
    """`inputs` are the Responses API's input items; an answer's items may be put behind them.
    `tools` are its function tools: name, description, parameters."""

    model: str
    instructions: str
    inputs: list[Item]
    schema: Schema | None = None
    tools: tuple[Item, ...] = ()
    effort: str | None = "low"
    tokens_max: int


def message(role: str, text: str) -> Item:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def output_of(call_id: str, text: str) -> Item:
    """What a call came to. Each call needs one, also one that was refused."""
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def size(question: Question) -> int:
    """About so many bytes go out: what a call may cost is reckoned by it."""
    return sum(
        len(text.encode("utf-8", "replace"))
        for text in texts([question.instructions, question.inputs, list(question.tools)])
    ) + (len(json.dumps(question.schema.json)) if question.schema else 0)


def texts(said: Any) -> Iterable[str]:
    match said:
        case str():
            yield said
        case dict():
            for each in said.values():
                yield from texts(each)
        case list():
            for each in said:
                yield from texts(each)


def body(question: Question, server: Server) -> tuple[str, Item]:
    """The path, and what is sent there."""
    if server.mode == "responses":
        path, said = "/responses", responses_body(question)
    else:
        path, said = "/chat/completions", chat_body(question, server)
    return path, {name: value for name, value in said.items() if name not in server.without}


def responses_body(question: Question) -> Item:
    said: Item = {
        "model": question.model,
        "input": [message("developer", question.instructions), *question.inputs],
        "tools": list(question.tools),
        "parallel_tool_calls": False,
        "store": False,
        "stream": True,
        "max_output_tokens": question.tokens_max,
    }
    if question.effort:
        said["reasoning"] = {"effort": question.effort}
    if question.tools:
        said["include"] = [SEALED]
    if question.schema:
        form = {"type": "json_schema", "strict": True}
        said["text"] = {
            "format": form | {"name": question.schema.name, "schema": question.schema.json}
        }
    return said


def chat_body(question: Question, server: Server) -> Item:
    instructions = question.instructions
    said: Item = {"model": question.model, "stream": True, "store": False}
    said["stream_options"] = {"include_usage": True}
    said[server.cap] = question.tokens_max
    if question.effort:
        said["reasoning_effort"] = question.effort
    if question.tools:
        said["tools"] = [
            {"type": "function", "function": {k: v for k, v in tool.items() if k != "type"}}
            for tool in question.tools
        ]
        said["parallel_tool_calls"] = False
    if question.schema and server.mode == "chat_schema":
        form = {"name": question.schema.name, "strict": True, "schema": question.schema.json}
        said["response_format"] = {"type": "json_schema", "json_schema": form}
    elif question.schema:
        said["response_format"] = {"type": "json_object"}
        in_words = {"schema": json.dumps(question.schema.json)}
        instructions = f"{instructions}\n\n{filled('json_in_words', in_words)}"
    said["messages"] = [{"role": "system", "content": instructions}, *chat(question.inputs)]
    return said


def chat(inputs: Iterable[Item]) -> list[Item]:
    """Input items as messages. Pieces of one text become one message again, because templates of
    local models want speakers to take turns; and what a model thought has no place here."""
    said: list[Item] = []
    for item in inputs:
        last = said[-1] if said else {}
        match item.get("type", "message"):
            case "message":
                role, text = word(item.get("role")), words(item)
                if role == "developer":
                    role = "system"
                if role == last.get("role") == "user":
                    last["content"] += text
                else:
                    said.append({"role": role, "content": text})
            case "function_call":
                if last.get("role") != "assistant":
                    last = {"role": "assistant", "content": None}
                    said.append(last)
                function = {"name": item.get("name"), "arguments": item.get("arguments")}
                last.setdefault("tool_calls", []).append(
                    {"id": item.get("call_id"), "type": "function", "function": function}
                )
            case "function_call_output":
                output = item.get("output")
                text = output if isinstance(output, str) else json.dumps(output)
                said.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": text})
            case _:
                pass
    return said


def words(item: Item) -> str:
    return "".join(word(part.get("text")) for part in parts(item))
