"""A model with tools, played from a script: a turn each, the calls that it makes or what it says.

    turns = Turns([("read", {"path": "raw_memories.md"})], [("finish", {})])
    with ModelServer(turns) as server: ...

It is as strict as a real one. A request is a 400, and a line in `wrong`, where it does not bring
back word for word what was said, thoughts included, or where a call is without its one result.
`results` are the texts that its tools gave it, in order. A turn is

- a list of (name, arguments), the arguments as an object or as text;
- a text: an answer without a call;
- a `Reply`, or the name of a case or behaviour: sent as it is, and not part of what was said;
- a callable of the request that returns one of these.
"""

import itertools
from typing import Any

from tests.model_server import (
    BEHAVIOURS,
    CASES,
    Asked,
    Reply,
    call,
    chat_message,
    error,
    message,
    reasoning,
    response,
)

NEVER = [("list", {"path": None, "start": None})]
FINISH = [("finish", {})]
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 80},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 8},
    "total_tokens": 120,
}


class Turns:
    """`script` goes on for ever with its last turn where `repeats`."""

    def __init__(self, *script: Any, repeats: bool = False, thinks: bool = True) -> None:
        self.script = list(script)
        self.repeats = repeats
        self.thinks = thinks
        self.said: list[dict[str, Any]] = []
        self.wrong: list[str] = []
        self.results: list[str] = []
        self._taken = 0
        self._ids = itertools.count(1)

    def __call__(self, asked: Asked) -> Any:
        if wrong := self._wrong(asked):
            self.wrong.append(wrong)
            return error(400, wrong)
        self.results = [text for _, text in outputs(asked)]
        at = min(self._taken, len(self.script) - 1) if self.repeats else self._taken
        self._taken += 1
        turn = self.script[at]
        if callable(turn):
            turn = turn(asked)
        match turn:
            case str() if turn not in BEHAVIOURS and turn not in CASES:
                items = [message(turn, phase="final_answer")]
            case list():
                items = [
                    call(name, arguments, call_id=f"call_{next(self._ids)}")
                    for name, arguments in turn
                ]
            case _:
                return turn
        if self.thinks:
            # A letter that ends a line for careless readers, and sealed thoughts.
            items = [reasoning(f"sealed {len(self.said)}\u2028"), *items]
        self.said += items
        return Reply(response(*items, usage=USAGE))

    def _wrong(self, asked: Asked) -> str:
        if asked.mode == "responses":
            kinds = ("function_call_output",)
            back = [
                item
                for item in asked.body["input"]
                if item["type"] not in kinds and item.get("role") not in ("user", "developer")
            ]
            if back != self.said:
                return f"what was said is not what came back: {len(back)} of {len(self.said)}"
            if "reasoning.encrypted_content" not in asked.body.get("include", []):
                return "without its thoughts no model goes on"
            if asked.body.get("store") is not False or "previous_response_id" in asked.body:
                return "nothing is kept here"
        else:
            back = [item for item in asked.messages if item["role"] == "assistant"]
            if [made for item in back for made in item.get("tool_calls", [])] != (
                chat_message(response(*self.said))[0].get("tool_calls", []) if self.said else []
            ):
                return "the calls are not what came back"
        if asked.body.get("parallel_tool_calls") is not False:
            return "one call at a time"
        called = [item["call_id"] for item in self.said if item["type"] == "function_call"]
        if called != [call_id for call_id, _ in outputs(asked)]:
            return f"No tool output found for one of {len(called)} calls"
        return ""


def outputs(asked: Asked) -> list[tuple[str, str]]:
    """The id of each call that has a result, and the result."""
    if asked.mode == "responses":
        return [
            (item["call_id"], item["output"])
            for item in asked.body["input"]
            if item["type"] == "function_call_output"
        ]
    return [
        (item["tool_call_id"], item["content"]) for item in asked.messages if item["role"] == "tool"
    ]


def wrote(path: str, content: str) -> tuple[str, dict[str, str]]:
    return "write", {"path": path, "content": content}
