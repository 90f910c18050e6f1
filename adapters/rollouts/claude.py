"""Claude Code transcripts: one JSON object a line, of conversation and of much bookkeeping.

One reply of the model is several lines that share a message id, and lines may be written twice
with the same uuid: those count once. A user line can be a person, a tool's result, or text that
the program put there; the reason a person types when refusing a tool call stands inside a tool
result and is a person's word.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...domain.events import Kind
from ...domain.guard import RateLimits
from ...domain.ids import UUID
from ...domain.session import (
    Agent,
    AnyItem,
    Assistant,
    Call,
    Change,
    Harness,
    Header,
    Human,
    Output,
    TurnAborted,
)
from .base import (
    IMAGE,
    Head,
    Noted,
    Preview,
    clean,
    compact_json,
    digest,
    entries,
    filled,
    identity,
    kind_name,
    string,
    table,
    updated_at,
)
from .harness import pieces, request, without_memory
from .kinds import (
    CLAUDE_BLOCKS_IGNORED,
    CLAUDE_BOOKKEEPING,
    CLAUDE_CONVERSATION,
    CLAUDE_RESULT_BLOCKS,
    CLAUDE_SUBTYPES,
)
from .lines import Found, Lines
from .results import failed, first_line
from .stamps import to_ms

_PLACEHOLDERS = {"image": IMAGE, "document": "[File]"}
_WEB = {"WebSearch": "web_search", "WebFetch": "web_fetch"}
_WEB |= {"web_search": "web_search", "web_fetch": "web_fetch"}
_EDITORS = {
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "Write": "file_path",
    "NotebookEdit": "notebook_path",
}
_REFUSED = re.compile(r"(?:Error: )?The user doesn't want to (?:proceed with|take) this")
_REASON = re.compile(
    r"(?:the user said:|The user provided the following reason for the rejection:)[ \t]*\n?",
    re.IGNORECASE,
)
# The program's own advice to the model behind a person's reason.
_AFTER_REASON = re.compile(r"\nNote: The user's next message may contain.*\Z", re.DOTALL)
_GENERATION = 250_000
_REFUSED_RESULT = "User rejected tool use"


def recognises(record: dict[str, Any]) -> bool:
    """Whether the record can only be a Claude Code line of a session."""
    kind = record.get("type")
    known = isinstance(kind, str) and (
        kind in CLAUDE_CONVERSATION or kind in CLAUDE_BOOKKEEPING or kind == "system"
    )
    return known and identity(record.get("sessionId")) is not None and "payload" not in record


def is_conversation(record: dict[str, Any]) -> bool:
    """Whether the record also says where and by whom the session is held."""
    return recognises(record) and record["type"] in CLAUDE_CONVERSATION


class ClaudeReader:
    def __init__(
        self, path: Path, first: dict[str, Any], *, now_ms: int, stop_after: int | None = None
    ) -> None:
        self.path = path
        self.skipped: Counter[str] = Counter()
        self.polluting: dict[str, None] = {}
        self.noted: list[Noted] = []  # Claude Code takes nothing out of a reply.
        self.limits: tuple[int, RateLimits] | None = None  # Nor does it say what is left.
        self.preview = Preview()
        self._now_ms = now_ms
        self._first_id = identity(first.get("sessionId")) or ""
        self._agent_id = _agent_id(path, first)
        self._session_id = self._first_id
        self._foreign: str | None = None
        stem = identity(path.name.removesuffix(".zst").removesuffix(".jsonl")) or ""
        other = self._agent_id is None and stem != self._first_id and UUID.fullmatch(stem)
        # A resumed or forked session begins with the other's lines; the file has its own name.
        if other and _holds(path, stem, stop_after):
            self._session_id, self._foreign = stem, self._first_id
        self._copying = self._foreign is not None
        self._entrypoint: str | None = None
        self._cwd: str | None = None
        self._branch: str | None = None
        self._born_ms: int | None = None
        self._newest_ms: int | None = None
        self._seen: set[int] = set()
        self._seen_before: set[int] = set()
        self._asked: dict[str, str] = {}

    @property
    def kind(self) -> Kind:
        if self._agent_id is not None:
            return "subagent"
        entry = self._entrypoint or "cli"
        if entry.startswith("sdk"):
            return "exec"
        return "unknown" if entry == "mcp" else "interactive"

    def head(self) -> Head:
        is_agent = self._agent_id is not None
        return Head(
            thread_id=f"agent-{self._agent_id}" if is_agent else self._session_id,
            tool="claude",
            source="subagent" if is_agent else self._entrypoint or "cli",
            kind=self.kind,
            rollout_path=str(self.path.absolute()),
            cwd=self._cwd,
            created_at_ms=self._born_ms,
            forked_from=self._foreign,
            parent=self._session_id if is_agent else None,
        )

    def header(self, *, mtime_ms: int, now_ms: int) -> Header:
        for name in self._asked.values():
            self._taint(name)
        head = self.head()
        updated = updated_at(self._newest_ms, self._born_ms, mtime_ms, now_ms)
        return Header(
            thread_id=head.thread_id,
            tool="claude",
            source=head.source,
            kind=head.kind,
            rollout_path=head.rollout_path,
            cwd=head.cwd,
            git_branch=self._branch,
            repository_url=None,
            created_at_ms=updated if self._born_ms is None else self._born_ms,
            updated_at_ms=updated,
            forked_from=head.forked_from,
            parent=head.parent,
            preview=self.preview.text,
        )

    def read(self, found: Found) -> Iterator[AnyItem]:
        record = found.value
        at_ms = to_ms(record.get("timestamp"))
        if at_ms is None:
            at_ms = to_ms(record.get("timestamp_ms"))
        if at_ms is not None and at_ms <= self._now_ms:
            self._newest_ms = at_ms if self._newest_ms is None else max(at_ms, self._newest_ms)
        kind = record.get("type")
        if not isinstance(kind, str):
            self.skipped["record without type"] += 1
            return
        if self._is_repeated(record):
            return
        inherited = self._is_copied(record)
        if not inherited:
            self._notice(record, at_ms)
        where = {"line": found.line, "at_ms": at_ms, "inherited": inherited}
        if kind in CLAUDE_CONVERSATION:
            if server := filled(record.get("attributionMcpServer")):
                self.polluting.setdefault(f"mcp:{server}")
            yield from self._message(kind, record, where)
        elif kind == "system":
            subtype = string(record.get("subtype"))
            if subtype not in CLAUDE_SUBTYPES:
                self.skipped[kind_name(subtype, "system without subtype")] += 1
        elif kind not in CLAUDE_BOOKKEEPING:
            self.skipped[kind_name(kind, "record without type")] += 1

    def _is_repeated(self, record: dict[str, Any]) -> bool:
        """A repetition follows soon, so that two generations of marks are enough; a set of every
        line would outgrow the memory a long session may take."""
        uuid = record.get("uuid")
        if not isinstance(uuid, str) or not uuid:
            return False
        mark = int.from_bytes(digest(uuid), "big")
        if mark in self._seen or mark in self._seen_before:
            return True
        if len(self._seen) >= _GENERATION:
            self._seen, self._seen_before = set(), self._seen
        self._seen.add(mark)
        return False

    def _is_copied(self, record: dict[str, Any]) -> bool:
        origin = identity(table(record.get("forkedFrom")).get("sessionId"))
        if origin is not None and origin != self._session_id:
            self._foreign = self._foreign or origin
            return True
        if self._copying and identity(record.get("sessionId")) == self._session_id:
            self._copying = False
        return self._copying

    def _notice(self, record: dict[str, Any], at_ms: int | None) -> None:
        if self._born_ms is None:
            self._born_ms = at_ms
        if self._cwd is None and isinstance(record.get("cwd"), str):
            self._cwd = clean(record["cwd"])
        if self._branch is None:
            self._branch = filled(record.get("gitBranch"))
        if self._entrypoint is None:
            self._entrypoint = filled(record.get("entrypoint"))

    def _message(
        self, kind: str, record: dict[str, Any], where: dict[str, Any]
    ) -> Iterator[AnyItem]:
        message = table(record.get("message"))
        role = string(message.get("role", kind))
        if role not in CLAUDE_CONVERSATION:
            self.skipped[kind_name(role, "message without role")] += 1
            return
        content = message.get("content")
        blocks = (
            [{"type": "text", "text": content}] if isinstance(content, str) else entries(content)
        )
        if role == "assistant":
            if (
                record.get("isApiErrorMessage") is not True
                and message.get("model") != "<synthetic>"
            ):
                yield from self._assistant(message, blocks, record, where)
        else:
            yield from self._user(blocks, record, where)

    def _assistant(
        self,
        message: dict[str, Any],
        blocks: list[Any],
        record: dict[str, Any],
        where: dict[str, Any],
    ) -> Iterator[AnyItem]:
        stop = message.get("stop_reason")
        final = stop == "end_turn" if isinstance(stop, str) else None
        for block in map(table, blocks):
            kind = string(block.get("type"))
            if kind == "text":
                text = string(block.get("text")) or ""
                if text and self._is_side(record):
                    yield Agent(text=text, **where)
                elif text:
                    yield Assistant(text=text, final=final, **where)
            elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
                yield self._call(block, where)
            elif kind in CLAUDE_RESULT_BLOCKS:
                yield from self._result(block, record, where)
            elif kind not in CLAUDE_BLOCKS_IGNORED:
                self.skipped[kind_name(kind, "block without type")] += 1

    def _is_side(self, record: dict[str, Any]) -> bool:
        """A sub-agent's line inside its parent's file. In its own file it is who answers."""
        return self._agent_id is None and record.get("isSidechain") is True

    def _user(
        self, blocks: list[Any], record: dict[str, Any], where: dict[str, Any]
    ) -> Iterator[AnyItem]:
        typed: list[str] = []
        injected = (
            "compact_summary"
            if record.get("isCompactSummary") is True
            else "meta"
            if record.get("isMeta") is True or record.get("isVisibleInTranscriptOnly") is True
            else None
        )
        of_agent = self._agent_id is not None or record.get("isSidechain") is True
        for block in map(table, blocks):
            kind = string(block.get("type"))
            if kind == "tool_result":
                yield from self._result(block, record, where)
            elif kind in _PLACEHOLDERS:
                yield Harness(text=_PLACEHOLDERS[kind], what="attachment", **where)
                if injected is None and not of_agent and not where["inherited"]:
                    self.preview.show(_PLACEHOLDERS[kind], where["line"])
            elif kind != "text":
                if kind not in CLAUDE_BLOCKS_IGNORED:
                    self.skipped[kind_name(kind, "block without type")] += 1
            elif not (text := string(block.get("text"))):
                continue
            elif injected is not None:
                yield Harness(text=text, what=injected, **where)
            else:
                for piece in pieces(text):
                    if piece.whose == "typed":
                        typed.append(piece.text)
                    elif piece.whose == "agent":
                        yield Agent(text=piece.text, **where)
                    elif piece.what == "interruption":
                        yield TurnAborted(**where)
                    else:
                        yield Harness(text=piece.text, what=piece.what, **where)
        if typed and of_agent:
            yield Agent(text="\n".join(typed), **where)
        elif typed:
            text = "\n".join(typed)
            if not where["inherited"]:
                self.preview.show(request(text), where["line"])
            yield Human(text=text, **where)

    def _call(self, block: dict[str, Any], where: dict[str, Any]) -> Call:
        name = filled(block.get("name")) or "tool"
        call_id = filled(block.get("id"))
        given = table(block.get("input"))
        if name.startswith("mcp__") or name in _WEB or block.get("type") == "mcp_tool_use":
            if server := filled(block.get("server_name")):
                name = f"mcp__{server}__{name}"
            if call_id is None:
                self._taint(name)
            else:
                self._asked[call_id] = name
        changes: tuple[Change, ...] = ()
        if name in _EDITORS and (path := filled(given.get(_EDITORS[name]))):
            # Whether Write made the file anew is not known before its result.
            changes = (Change(path=path, how="add" if name == "Write" else "update"),)
        arguments = compact_json(given)
        command = filled(given.get("command")) if name in ("Bash", "PowerShell") else None
        return Call(
            call_id=call_id,
            name=name,
            arguments=arguments,
            command=command,
            changes=changes,
            **where,
        )

    def _taint(self, name: str) -> None:
        if name.startswith("mcp__"):
            name = f"mcp:{name.removeprefix('mcp__').split('__')[0]}"
        self.polluting.setdefault(_WEB.get(name, name))

    def _result(
        self, block: dict[str, Any], record: dict[str, Any], where: dict[str, Any]
    ) -> Iterator[AnyItem]:
        call_id = filled(block.get("tool_use_id"))
        name = self._asked.pop(call_id, None) if call_id else None
        whole = self._text(block.get("content"))
        is_error = block.get("is_error")
        refused = is_error is True and _is_refusal(whole, record, foreign=name is not None)
        if name is not None and not refused:
            self._taint(name)
        text, exit_code = first_line(whole) if is_error is True else (whole, None)
        text = without_memory(text)
        went_wrong = failed(exit_code)
        if went_wrong is None:
            # Claude Code marks every failure; a result without the mark went well.
            went_wrong = is_error is True
        yield Output(call_id=call_id, text=text, exit_code=exit_code, failed=went_wrong, **where)
        of_agent = self._agent_id is not None or record.get("isSidechain") is True
        if refused and not of_agent and (reason := _reason(whole)):
            yield Human(text=reason, via="refusal", **where)

    def _text(self, content: object) -> str:
        if isinstance(content, str):
            return clean(content)
        parts: list[str] = []
        for block in map(table, entries(content)):
            kind = string(block.get("type"))
            if kind == "text":
                parts.append(string(block.get("text")) or "")
            elif kind in _PLACEHOLDERS:
                parts.append(_PLACEHOLDERS[kind])
            elif kind == "web_search_result":
                parts.append(
                    f"{string(block.get('title')) or ''} {string(block.get('url')) or ''}".strip()
                )
            elif kind not in CLAUDE_BLOCKS_IGNORED:
                self.skipped[kind_name(kind, "block without type")] += 1
        return "\n".join(part for part in parts if part)


def given(record: dict[str, Any]) -> Iterator[object]:
    """What a record puts before the session that neither a person nor the agent wrote."""
    kind = record.get("type")
    if kind == "attachment":
        yield record.get("attachment")
    elif kind == "system":
        yield record.get("content")
    elif kind in CLAUDE_CONVERSATION:
        content = table(record.get("message")).get("content")
        injected = record.get("isMeta") is True or record.get("isCompactSummary") is True
        whole = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in map(table, entries(whole)):
            if block.get("type") in ("tool_result", *CLAUDE_RESULT_BLOCKS):
                yield block.get("content")
            elif kind == "user" and isinstance(text := block.get("text"), str):
                if injected:
                    yield text
                else:
                    yield from (each.text for each in pieces(text) if each.whose != "typed")


def _is_refusal(text: str, record: dict[str, Any], *, foreign: bool) -> bool:
    """Whether the program says that a person refused. A server's error can hold the same words, so
    that for a foreign tool only the program's own mark beside the message counts."""
    if not _REFUSED.match(text):
        return False
    return not foreign or record.get("toolUseResult") == _REFUSED_RESULT


def _reason(text: str) -> str | None:
    found = _REASON.search(text)
    if found is None:
        return None
    said = _AFTER_REASON.sub("", text[found.end() :])
    typed = [piece.text for piece in pieces(said) if piece.whose == "typed"]
    return "\n".join(typed) or None


def _agent_id(path: Path, first: dict[str, Any]) -> str | None:
    """A sub-agent's file is wholly its own; in older versions its lines stand among the parent's,
    which begins with a line of the main chain."""
    if first.get("isSidechain") is not True:
        return None
    stem = path.name.removesuffix(".zst").removesuffix(".jsonl")
    named = identity(first.get("agentId"))
    if named is None and stem.startswith("agent-"):
        named = stem
    return named.removeprefix("agent-") if named else None


def _holds(path: Path, session_id: str, stop_after: int | None) -> bool:
    """Whether any line belongs to that session. Only asked where name and first line differ; a
    listing looks no further than `stop_after`."""
    with Lines(path, line_limit=4 * 1024 * 1024, stop_after=stop_after) as lines:
        return any(identity(found.value.get("sessionId")) == session_id for found in lines)
