"""What of a session a model may be shown: response items, as Codex sends them to its own phase 1.

A Codex rollout gives its items as they stand in the file. Left out are: what the program told the
model (developer messages, instructions, skills), reasoning, copied history, turns that were taken
back, summaries of a compaction. Never shown are pictures and other media, wherever they stand,
encrypted content, and memory that the session was given: a short placeholder says that something
was there. Claude Code's transcripts become the same items, from their normal form.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ...domain.evidence import Exhibit, Whose
from ...domain.session import (
    Agent,
    AnyItem,
    Assistant,
    Call,
    Harness,
    Human,
    Output,
    RolledBack,
    TurnAborted,
)
from .base import clean, digest, entries, shallow, string, table
from .codex import CodexReader
from .echo import READ_BACK, Own
from .harness import MEMORY_FENCE, Piece, pieces, without_memory
from .kinds import CODEX_IMAGE_BLOCKS, CODEX_ITEMS, CODEX_TEXT_BLOCKS
from .lines import Found

_CALLS = frozenset(
    {
        "function_call",
        "custom_tool_call",
        "local_shell_call",
        "web_search_call",
        "tool_search_call",
    }
)
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
# What the program put into the user's mouth and no model may learn from: instructions, skills,
# what was remembered, what stands for copied history.
_WITHHELD = frozenset(
    {
        "instructions",
        "INSTRUCTIONS",
        "user_instructions",
        "skill",
        "skills_instructions",
        "memory",
        "memory_instructions",
        MEMORY_FENCE,
        "compact_summary",
        "caveat",
    }
)
_OF_AGENTS = frozenset({"subagent_notification", "teammate-message"})
_EXCLUDED = (
    re.compile(r"\s*# AGENTS\.md instructions.*</INSTRUCTIONS>\s*", re.IGNORECASE | re.DOTALL),
    re.compile(r"\s*<skill>.*</skill>\s*", re.IGNORECASE | re.DOTALL),
)
_AUDIO = frozenset({"input_audio", "audio", "output_audio"})
_FILES = frozenset({"input_file", "file", "document"})
IMAGE_OMITTED = "[image omitted]"
_BARE_PICTURES = ("iVBORw0KGgo", "/9j/4", "R0lGOD", "UklGR", "JVBERi0")
_BARE_PICTURE = re.compile(
    rf"(?:{'|'.join(map(re.escape, _BARE_PICTURES))})[A-Za-z0-9+/=_-]{{64,}}"
)


class Shower(CodexReader):
    """The reader, showing of each record what it may; it still knows whose the record is."""

    _own: Own
    _told: dict[bytes, str]

    def shown(self, records: Iterable[Found]) -> Iterator[Exhibit]:
        self._own = Own()
        # What a person typed of which only the event is known so far.
        self._told = {}
        for found in records:
            yield from self._shown(found)
        yield from self._only_told()

    def _shown(self, found: Found) -> Iterator[Exhibit]:
        record = found.value
        is_all_there_is = not self._compacted and not self._spoken
        items = list(self.read(found))
        kind, payload = record.get("type"), record.get("payload")
        if self._bare and payload is None and string(kind) in CODEX_ITEMS:
            kind, payload = "response_item", record
        payload = table(shallow(payload))
        told = [self._own.told(item) for item in items]
        own = any(after is not item for after, item in zip(told, items, strict=True))
        if self._copying:
            return
        match kind:
            case "response_item":
                yield from self._one(payload, own)
            case "event_msg":
                for item in items:
                    if isinstance(item, Human):
                        self._told[_mark(item.text)] = item.text
            case "inter_agent_communication":
                yield from self._only_told()
                yield Exhibit(item=_between_agents(payload), whose="agent")
            case "compacted" if is_all_there_is and self._forked_from() is None:
                for each in entries(payload.get("replacement_history")):
                    yield from self._one(table(each), own=False)
            case _:
                pass

    def _only_told(self) -> Iterator[Exhibit]:
        for text in self._told.values():
            yield _said("user", text, whose="person")
        self._told.clear()

    def _one(self, item: dict[str, Any], own: bool) -> Iterator[Exhibit]:
        kind = string(item.get("type"))
        if kind == "message" and item.get("role") == "user":
            yield from self._user_message(item)
            return
        if kind == "message" and item.get("role") in ("assistant", "system"):
            item = {**item, "content": _known(item.get("content"))}
            whose: Whose | None = "harness" if item["role"] == "system" else None
            if _is_of_agents(item):
                whose = "agent"
        elif kind == "agent_message":
            whose = "agent"
        elif kind in _CALLS:
            whose = None
        elif kind in _OUTPUTS:
            whose = None
            for key in ("output", "tools"):
                if key in item:
                    item = {**item, key: READ_BACK if own else _forgetting(item[key])}
        else:
            return
        yield from self._only_told()
        yield Exhibit(item=cleaned(item), whose=whose)

    def _user_message(self, item: dict[str, Any]) -> Iterator[Exhibit]:
        said = self._heard(item)
        if said.typed:
            self._told.pop(_mark("\n".join(said.typed)), None)
        if not said.parts:
            return
        whose: Whose = "person" if "person" in said.by else "harness"
        if whose == "harness" and "agent" in said.by:
            whose = "agent"
        if whose == "person" and self.kind in ("subagent", "internal"):
            whose = "agent" if self.kind == "subagent" else "harness"
        item = {**item, "content": said.parts}
        if _is_of_agents(item):
            whose = "agent"
        item.pop("status", None)
        yield Exhibit(item=cleaned(item), whose=whose)

    def _heard(self, item: dict[str, Any]) -> "_Heard":
        content = item.get("content")
        if isinstance(content, str):
            content = [{"type": "input_text", "text": content}]
        passed = table(item.get("internal_chat_message_metadata_passthrough"))
        origins = entries(passed.get("content_item_metadata"))
        heard = _Heard()
        for n, part in enumerate(map(table, entries(content))):
            origin = table(table(origins[n]).get("provenance")) if n < len(origins) else {}
            of_program = origin.get("type") not in (None, "user")
            if string(part.get("type")) not in CODEX_TEXT_BLOCKS:
                if _is_known(part):
                    heard.parts.append(part)
                    heard.by.add("harness" if of_program else "person")
                continue
            text = string(part.get("text")) or ""
            found = pieces(text)
            left = _allowed(text, found)
            if left is not None:
                heard.parts.append({**part, "text": left})
                for piece in found:
                    heard.hear(piece, of_program)
        return heard


class _Heard:
    """What of a message in the user's role is left, who speaks in it, and what a person typed."""

    def __init__(self) -> None:
        self.parts: list[dict[str, Any]] = []
        self.by: set[Whose] = set()
        self.typed: list[str] = []

    def hear(self, piece: Piece, of_program: bool) -> None:
        if piece.whose == "agent" or piece.what in _OF_AGENTS:
            self.by.add("agent")
        elif piece.whose == "harness" or of_program:
            self.by.add("harness")
        else:
            self.by.add("person")
            self.typed.append(piece.text)


def of_items(items: Iterable[AnyItem]) -> Iterator[Exhibit]:
    """The normal form of another program's transcript as response items."""
    for item in items:
        if item.inherited:
            continue
        match item:
            case Human():
                yield _said("user", item.text, whose="person")
            case Harness():
                if item.what not in _WITHHELD:
                    yield _said("user", without_memory(item.text), whose="harness")
            case Agent():
                content = [{"type": "input_text", "text": without_memory(item.text)}]
                yield _exhibit({"type": "agent_message", "content": content}, "agent")
            case Assistant():
                yield _said("assistant", item.text, is_final=item.final)
            case Call():
                call = {"type": "function_call", "name": item.name, "arguments": item.arguments}
                yield _exhibit(call | _id_of(item))
            case Output():
                text = item.text
                if item.exit_code is not None:
                    text = f"Exit code {item.exit_code}\n{text}"
                output = {"type": "function_call_output", **_id_of(item), "output": text}
                yield _exhibit(output | ({"success": False} if item.failed else {}))
            case TurnAborted():
                yield _said("user", "<turn_aborted>", whose="harness")
            case RolledBack():
                pass


def taken_back(items: Iterable[AnyItem]) -> list[tuple[int, int]]:
    """The lines of turns that a person took back, from the first to the last of each stretch."""
    starts = [0]
    stretches: list[tuple[int, int]] = []
    for item in items:
        if isinstance(item, Human) and item.via == "message":
            starts.append(item.line)
        elif isinstance(item, RolledBack):
            first = max(1, len(starts) - item.turns)
            if first < len(starts):
                stretches.append((starts[first], item.line))
                del starts[first:]
    return stretches


def kept(records: Iterable[Found], stretches: list[tuple[int, int]]) -> Iterator[Found]:
    for found in records:
        if not any(first <= found.line <= last for first, last in stretches):
            yield found


def cleaned(value: Any) -> Any:
    """A decoded tree as the rest of the program may hold it, and without what nobody may see."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return {
            clean(key): cleaned(each) for key, each in value.items() if key != "encrypted_content"
        }
    if isinstance(value, list):
        return [_part(each) for each in value]
    return value


def _part(value: Any) -> Any:
    kind = value.get("type") if isinstance(value, dict) else None
    if isinstance(kind, str) and (left_out := _left_out(kind)):
        return {"type": "input_text", "text": left_out}
    return cleaned(value)


def _left_out(kind: str) -> str | None:
    if kind in CODEX_IMAGE_BLOCKS or kind == "image_url":
        return IMAGE_OMITTED
    if kind in _AUDIO:
        return "[audio omitted]"
    if kind in _FILES:
        return "[file omitted]"
    return "[encrypted content omitted]" if kind == "encrypted_content" else None


def _text(text: str) -> str:
    text = clean(text)
    if any(beginning in text for beginning in _BARE_PICTURES):
        text = _BARE_PICTURE.sub(IMAGE_OMITTED, text)
    return text


def _allowed(text: str, found: list[Piece]) -> str | None:
    """What of a user's text may be shown: all, the rest of it, or nothing."""
    if any(each.fullmatch(text) for each in _EXCLUDED):
        return None
    left = [each.text for each in found if each.whose != "harness" or each.what not in _WITHHELD]
    if not left:
        return None
    # What a hook put there may hold memory inside of its own marks.
    return without_memory(text if len(left) == len(found) else "\n".join(left))


def _forgetting(value: Any) -> Any:
    """A tool's result without memory that it showed."""
    if isinstance(value, str):
        return without_memory(value)
    if isinstance(value, dict):
        return {key: _forgetting(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_forgetting(each) for each in value]
    return value


def _is_known(part: dict[str, Any]) -> bool:
    kind = part.get("type")
    return isinstance(kind, str) and (kind in CODEX_TEXT_BLOCKS or _left_out(kind) is not None)


def _known(content: object) -> object:
    if isinstance(content, list):
        return [part for part in map(table, content) if _is_known(part)]
    return content


def _is_of_agents(item: dict[str, Any]) -> bool:
    """Whether the program that ran the agents marks the message as one between them."""
    passed = table(item.get("internal_chat_message_metadata_passthrough"))
    for name in entries(passed.get("content_item_kinds")):
        if isinstance(name, str) and name.startswith("multi_agent."):
            return True
    content = entries(item.get("content"))
    if len(content) != 1 or not (text := string(table(content[0]).get("text"))):
        return False
    if not text.lstrip().startswith("{"):
        return False
    try:
        said = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and {"author", "recipient", "content"} <= said.keys()


def _between_agents(payload: dict[str, Any]) -> dict[str, Any]:
    content = payload.get("content", payload.get("message"))
    if isinstance(content, str) and content:
        content = [{"type": "input_text", "text": content}]
    elif not content:
        content = [{"type": "encrypted_content"}]
    names = {key: payload[key] for key in ("author", "recipient") if key in payload}
    item: dict[str, Any] = cleaned({"type": "agent_message", **names, "content": content})
    return item


def _said(
    role: str, text: str, *, whose: Whose | None = None, is_final: bool | None = None
) -> Exhibit:
    kind = "output_text" if role == "assistant" else "input_text"
    item: dict[str, Any] = {"type": "message", "role": role}
    item["content"] = [{"type": kind, "text": text}]
    if is_final is not None:
        item["phase"] = "final_answer" if is_final else "commentary"
    return _exhibit(item, whose)


def _exhibit(item: dict[str, Any], whose: Whose | None = None) -> Exhibit:
    return Exhibit(item=cleaned(item), whose=whose)


def _id_of(item: Call | Output) -> dict[str, Any]:
    return {} if item.call_id is None else {"call_id": item.call_id}


def _mark(text: str) -> bytes:
    return digest("".join(text.split()))
