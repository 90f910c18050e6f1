"""Codex rollouts of every generation, from bare items in 2025 to numbered records in 2026.

A record is dispatched on its `type`, only the fields that are needed are read, and everything may
be missing. What a person typed stands twice, as the model's input item and as an event; it counts
once. Lines that a fork copied from its parent and the copy that a compaction keeps are no second
witness.
"""

import json
import re
import shlex
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...domain.citation import usage_ids
from ...domain.events import Kind, Mode
from ...domain.guard import CODEX, RateLimits, Window
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
    RolledBack,
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
    is_archived,
    kind_name,
    patched,
    string,
    table,
    updated_at,
)
from .harness import pieces, request, without_memory
from .kinds import (
    CODEX_COMPLETED_IGNORED,
    CODEX_EVENTS_IGNORED,
    CODEX_IMAGE_BLOCKS,
    CODEX_ITEMS,
    CODEX_RECORDS,
    CODEX_SHELLS,
    CODEX_TEXT_BLOCKS,
)
from .lines import Found
from .results import failed, result
from .stamps import to_ms

_SILENT_BLOCKS = {
    "input_audio": "[Audio]",
    "audio": "[Audio]",
    "input_file": "[File]",
    "file": "[File]",
    "skill": "",
    "mention": "",
    "encrypted_content": "",
}
_FETCHERS = {
    "web_search": "web_search",
    "web_fetch": "external_context",
    "web_run": "external_context",
}
_INTERACTIVE = frozenset({"cli", "vscode"})
_INTERACTIVE_CUSTOM = frozenset({"atlas", "chatgpt"})
_INTERNAL_THREADS = frozenset({"guardian_review", "memory_consolidation"})
_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NAME = re.compile(rf"rollout-(\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d)-({_ID.pattern})")
_CWD_TAG = re.compile(r"<cwd>([^<>\n]+)</cwd>")
_DECLINED = re.compile(
    r"(?:user )?(?:rejected|declined|cancell?ed|denied|blocked) (?:the )?MCP tool call\.?",
    re.IGNORECASE,
)
_BARE_META_FIELDS = frozenset({"instructions", "git", "cwd", "originator", "cli_version"})
# How many typed texts wait for their twin. The twin follows at once; the rest is for steering.
_TWINS_AWAITED = 16


def recognises(record: dict[str, Any]) -> bool:
    """Whether the record can only be a rollout's."""
    if _is_bare_meta(record):
        return True
    kind = record.get("type")
    return (
        isinstance(kind, str) and kind in CODEX_RECORDS and isinstance(record.get("payload"), dict)
    )


def names_thread(record: dict[str, Any]) -> bool:
    """Whether the record is one that a rollout begins with and takes its id from."""
    payload = record.get("payload") if record.get("type") == "session_meta" else None
    return _is_bare_meta(record) or identity(table(payload).get("id")) is not None


def _is_bare_meta(record: dict[str, Any]) -> bool:
    """The first line of 2025: the fields of a meta record, without an envelope around them."""
    thread_id = record.get("id")
    return (
        "type" not in record
        and isinstance(thread_id, str)
        and _ID.fullmatch(thread_id) is not None
        and to_ms(record.get("timestamp")) is not None
        and (bool(_BARE_META_FIELDS & record.keys()) or len(record) == 2)
    )


class CodexReader:
    def __init__(self, path: Path, *, now_ms: int) -> None:
        self.path = path
        self.skipped: Counter[str] = Counter()
        self.polluting: dict[str, None] = {}
        self.noted: list[Noted] = []
        self.limits: tuple[int, RateLimits] | None = None
        self.meta: dict[str, Any] = {}
        self.preview = Preview()
        self.goal: str | None = None
        self._now_ms = now_ms
        self._named = _NAME.search(path.name)
        self._thread_id: str | None = None
        self._source: object = None
        self._thread_source: str | None = None
        self._mode: Mode | None = None
        self._git: dict[str, Any] = {}
        self._cwd: str | None = None
        self._settings_cwd: str | None = None
        self._born_ms: int | None = None
        self._newest_ms: int | None = None
        self._copied_until_ms: int | None = None
        self._copying = False
        self._spoken = False
        self._compacted = False
        self._bare = False
        # Digests of typed texts that still wait for their twin, by where they stood.
        self._items_alone: deque[bytes] = deque(maxlen=_TWINS_AWAITED)
        self._events_alone: deque[bytes] = deque(maxlen=_TWINS_AWAITED)
        # MCP calls without a result so far: the server by call id.
        self._asked: dict[str, str] = {}

    # What the session is.

    @property
    def kind(self) -> Kind:
        return _kind(self._source, self._thread_source)

    @property
    def thread_id(self) -> str | None:
        return self._thread_id or (self._named[2].lower() if self._named else None)

    def head(self) -> Head:
        return Head(
            thread_id=self.thread_id or "",
            tool="codex",
            source=_source(self._source),
            kind=self.kind,
            rollout_path=str(self.path.absolute()),
            cwd=self._settings_cwd or self._cwd,
            created_at_ms=self._created_ms(),
            forked_from=self._forked_from(),
            parent=self._parent(),
            archived=is_archived(self.path),
        )

    def header(self, *, mtime_ms: int, now_ms: int) -> Header:
        for server in self._asked.values():
            self.polluting.setdefault(f"mcp:{server}")
        head = self.head()
        created = head.created_at_ms
        updated = updated_at(self._newest_ms, created, mtime_ms, now_ms)
        return Header(
            thread_id=head.thread_id,
            tool="codex",
            source=head.source,
            kind=head.kind,
            rollout_path=head.rollout_path,
            cwd=head.cwd,
            git_branch=filled(self._git.get("branch")),
            repository_url=filled(self._git.get("repository_url")),
            created_at_ms=updated if created is None else created,
            updated_at_ms=updated,
            forked_from=head.forked_from,
            parent=head.parent,
            preview=self.preview.text or self.goal,
            archived=head.archived,
            memory_mode=self._mode,
        )

    def _created_ms(self) -> int | None:
        created = to_ms(self.meta.get("timestamp"))
        if created is None and self._named:
            created = to_ms(self._named[1])
        return self._born_ms if created is None else created

    def _forked_from(self) -> str | None:
        return identity(self.meta.get("forked_from_id")) or identity(
            table(self.meta.get("history_base")).get("thread_id")
        )

    def _parent(self) -> str | None:
        spawned = table(table(table(self._source).get("subagent")).get("thread_spawn"))
        root = identity(self.meta.get("session_id")) if self.kind == "subagent" else None
        return (
            identity(self.meta.get("parent_thread_id"))
            or identity(spawned.get("parent_thread_id"))
            or (root if root != self._thread_id else None)
        )

    # One record.

    def read(self, found: Found) -> Iterator[AnyItem]:
        record = found.value
        at_ms = to_ms(record.get("timestamp"))
        if at_ms is not None and at_ms <= self._now_ms:
            self._newest_ms = at_ms if self._newest_ms is None else max(at_ms, self._newest_ms)
        kind, payload = record.get("type"), record.get("payload")
        if not isinstance(kind, str):
            if _is_bare_meta(record):
                self._bare = True
                self._meta(record, at_ms)
            elif not (self._bare and "record_type" in record):
                self.skipped["record without type"] += 1
            return
        if self._bare and payload is None and kind in CODEX_ITEMS:
            kind, payload = "response_item", record
        if kind not in CODEX_RECORDS:
            self.skipped[kind_name(kind, "record without type")] += 1
            return
        if not isinstance(payload, dict):
            self.skipped[f"{kind} without payload"] += 1
            return
        if kind == "session_meta":
            self._meta(payload, at_ms)
            return
        inherited = self._is_copied(at_ms)
        if not inherited and self._born_ms is None:
            self._born_ms = at_ms
        where = {"line": found.line, "at_ms": at_ms, "inherited": inherited}
        match kind:
            case "response_item":
                yield from self._item(payload, table(record.get("metadata")), where)
            case "event_msg":
                yield from self._event(payload, where)
            case "compacted":
                yield from self._compaction(payload, where)
            case "turn_context" if not inherited and not self._cwd:
                self._cwd = string(payload.get("cwd")) or self._cwd
            case _:
                pass

    def _meta(self, payload: dict[str, Any], at_ms: int | None) -> None:
        """The first meta record names the session. One with its id says what has changed since;
        one with another id was copied from the session that this one was forked from."""
        thread_id = identity(payload.get("id"))
        if thread_id is None:
            self.skipped["session_meta without id"] += 1
            return
        if self._thread_id is None:
            self._thread_id = thread_id
            self.meta = {
                key: payload[key]
                for key in payload
                if key not in ("base_instructions", "instructions")
            }
            self._cwd = string(payload.get("cwd"))
            self._born_ms = at_ms if at_ms is not None else to_ms(payload.get("timestamp"))
        elif thread_id != self._thread_id:
            stamps = [stamp for stamp in (at_ms, self._born_ms) if stamp is not None]
            if self._copied_until_ms is not None:
                stamps.append(self._copied_until_ms)
            self._copied_until_ms = max(stamps, default=None)
            self._copying = True
            return
        if "source" in payload:
            self._source = payload["source"]
        self._thread_source = filled(payload.get("thread_source")) or self._thread_source
        mode = payload.get("memory_mode")
        if mode in ("enabled", "disabled", "polluted"):
            self._mode = mode
        if isinstance(payload.get("git"), dict):
            self._git = payload["git"]

    def _is_copied(self, at_ms: int | None) -> bool:
        """What follows a foreign meta record and is stamped not later than it, or than the fork
        itself, was copied. A record without a stamp goes with the one before it."""
        if self._copied_until_ms is not None and at_ms is not None:
            self._copying = at_ms <= self._copied_until_ms
        return self._copying

    # What was said.

    def _item(
        self, item: dict[str, Any], facts: dict[str, Any], where: dict[str, Any]
    ) -> Iterator[AnyItem]:
        kind = item.get("type")
        match kind:
            case "message":
                yield from self._message(item, where)
            case "agent_message":
                if text := self._text(item.get("content", item.get("text", item.get("message")))):
                    yield Agent(text=text, **where)
            case (
                "function_call"
                | "custom_tool_call"
                | "local_shell_call"
                | "web_search_call"
                | "tool_search_call"
            ):
                self._spoken = True
                yield self._call(item, where)
            case "function_call_output" | "custom_tool_call_output" | "tool_search_output":
                yield self._output(item, facts, where)
            case str() if kind in CODEX_ITEMS:
                pass
            case _:
                self.skipped[kind_name(kind, "response_item without type")] += 1

    def _message(self, item: dict[str, Any], where: dict[str, Any]) -> Iterator[AnyItem]:
        role = item.get("role")
        if role == "assistant":
            self._spoken = True
            self._items_alone.clear()
            self._events_alone.clear()
            if text := self._text(item.get("content")):
                yield Assistant(text=text, final=_is_final(item), **where)
        elif role == "user":
            yield from self._user(item, where)
        elif role not in ("developer", "system"):
            self.skipped[kind_name(role, "message without role")] += 1

    def _user(self, item: dict[str, Any], where: dict[str, Any]) -> Iterator[AnyItem]:
        content = item.get("content")
        blocks = (
            [{"type": "input_text", "text": content}]
            if isinstance(content, str)
            else entries(content)
        )
        passed = table(item.get("internal_chat_message_metadata_passthrough"))
        origins = entries(passed.get("content_item_metadata"))
        names = entries(passed.get("content_item_kinds"))
        typed: list[str] = []
        for n, block in enumerate(blocks):
            block = table(block)
            text, placeholder = self._block(block)
            if placeholder:
                yield Harness(text=placeholder, what="attachment", **where)
                self._show(placeholder, where)
            if not text:
                continue
            origin = (
                table(table(origins[n]).get("provenance")).get("type") if n < len(origins) else None
            )
            if origin not in (None, "user"):
                what = kind_name(names[n], "harness") if n < len(names) else "harness"
                self._notice_cwd(text)
                yield Harness(text=text, what=what, **where)
                continue
            for piece in pieces(text):
                if piece.whose == "typed":
                    typed.append(piece.text)
                elif piece.whose == "agent":
                    yield Agent(text=piece.text, **where)
                else:
                    self._notice_cwd(piece.text)
                    yield Harness(text=piece.text, what=piece.what, **where)
        if typed:
            self._spoken = True
            text = "\n".join(typed)
            mark = _twin(text)
            if mark in self._events_alone:
                self._events_alone.remove(mark)
                return
            self._items_alone.append(mark)
            yield self._typed(text, where)

    def _typed(self, text: str, where: dict[str, Any]) -> AnyItem:
        """A sub-agent's task is written by an agent, an internal session's by the program."""
        if self.kind == "subagent":
            return Agent(text=text, **where)
        if self.kind == "internal":
            return Harness(text=text, what="internal_task", **where)
        self._show(request(text), where)
        return Human(text=text, **where)

    def _show(self, text: str, where: dict[str, Any]) -> None:
        if not where["inherited"] and self.kind not in ("subagent", "internal"):
            self.preview.show(text, where["line"])

    def _notice_cwd(self, text: str) -> None:
        """In 2025 the working folder stood nowhere else than in the environment block."""
        if self._bare and not self._cwd and (found := _CWD_TAG.search(text)):
            self._cwd = found[1]

    def _text(self, content: object) -> str:
        """All text of a content list, with a placeholder for what is none."""
        if isinstance(content, str):
            return clean(content)
        return "\n".join(
            part for block in entries(content) for part in self._block(table(block)) if part
        )

    def _block(self, block: dict[str, Any]) -> tuple[str, str]:
        """(text, placeholder) of one content block; an unknown one is counted by its name."""
        kind = string(block.get("type"))
        if kind in CODEX_TEXT_BLOCKS:
            return string(block.get("text")) or "", ""
        if kind in CODEX_IMAGE_BLOCKS:
            return "", IMAGE
        if kind is not None and kind in _SILENT_BLOCKS:
            return "", _SILENT_BLOCKS[kind]
        self.skipped[kind_name(kind, "block without type")] += 1
        return "", ""

    # What was done.

    def _call(self, item: dict[str, Any], where: dict[str, Any]) -> Call:
        kind = item["type"]
        call_id = filled(item.get("call_id")) or filled(
            item.get("id") if kind == "local_shell_call" else None
        )
        name = filled(item.get("name")) or kind.removesuffix("_call")
        space = filled(item.get("namespace"))
        if kind == "web_search_call":
            self.polluting.setdefault("web_search")
        elif kind == "tool_search_call":
            self.polluting.setdefault("tool_search")
        else:
            self._notice_tool(name, space, call_id)
        if space and not name.startswith(space):
            name = f"{space}__{name}" if space.startswith("mcp__") else f"{space}.{name}"
        raw = item.get("arguments", item.get("input", item.get("action")))
        arguments = clean(raw) if isinstance(raw, str) else compact_json(raw)
        command: str | None = None
        changes: tuple[Change, ...] = ()
        if kind == "local_shell_call":
            command = _command(table(item.get("action")).get("command"))
        elif name in CODEX_SHELLS:
            given = _parsed(raw)
            command = _command(given.get("cmd", given.get("command")))
        if name == "apply_patch":
            given = _parsed(raw)
            changes = patched(string(given.get("input", given.get("patch"))) or arguments)
        elif command is not None and "apply_patch" in command:
            changes = patched(command)
        return Call(
            call_id=call_id,
            name=name,
            arguments=arguments,
            command=command,
            changes=changes,
            **where,
        )

    def _notice_tool(self, name: str, space: str | None, call_id: str | None) -> None:
        whole = f"{space}__{name}" if space else name
        if whole.startswith("mcp__"):
            server = whole.removeprefix("mcp__").split("__")[0]
            if call_id is None:
                self.polluting.setdefault(f"mcp:{server}")
            else:
                self._asked[call_id] = server
        elif name in _FETCHERS:
            self.polluting.setdefault(_FETCHERS[name])

    def _output(self, item: dict[str, Any], facts: dict[str, Any], where: dict[str, Any]) -> Output:
        call_id = filled(item.get("call_id"))
        raw = item.get("output", item.get("tools"))
        success: object = None
        if isinstance(raw, dict):
            success = raw.get("success")
            raw = raw.get("content", raw.get("output"))
        text, exit_code = result(self._text(raw))
        if item["type"] == "tool_search_output":
            self.polluting.setdefault("tool_search")
            text = ""
        elif call_id is None and item["type"] == "function_call_output":
            self.polluting.setdefault("out_of_band_output")
        self._notice_result(call_id, text, facts)
        external = item.get("contains_external_context"), facts.get("contains_external_context")
        if True in external and success is not False:
            self.polluting.setdefault("external_context")
        text = without_memory(text)
        went_wrong = failed(exit_code)
        if went_wrong is None and isinstance(success, bool):
            went_wrong = not success
        return Output(call_id=call_id, text=text, exit_code=exit_code, failed=went_wrong, **where)

    def _notice_result(self, call_id: str | None, text: str, facts: dict[str, Any]) -> None:
        """A call on an MCP server pollutes unless a person or a rule stopped it before it ran."""
        server = self._asked.pop(call_id, None) if call_id else None
        attribution = table(facts.get("mcp_attribution"))
        for source in entries(attribution.get("sources")):
            if name := filled(table(source).get("server_name")):
                self.polluting.setdefault(f"mcp:{name}")
        if server is not None and not _is_declined(text):
            self.polluting.setdefault(f"mcp:{server}")

    # What the program noted.

    def _event(self, event: dict[str, Any], where: dict[str, Any]) -> Iterator[AnyItem]:
        match event.get("type"):
            case "user_message":
                yield from self._announced(string(event.get("message")) or "", where)
                if entries(event.get("images")) or entries(event.get("local_images")):
                    self._show(IMAGE, where)
            case "agent_message":
                self._note(event, where)
            case "item_completed":
                yield from self._completed(table(event.get("item")), where)
            case "turn_aborted":
                if event.get("reason") in (None, "interrupted"):
                    yield TurnAborted(**where)
            case "thread_rolled_back":
                turns = event.get("num_turns")
                if isinstance(turns, int) and turns > 0:
                    yield RolledBack(turns=turns, **where)
            case "thread_settings_applied":
                settings = table(event.get("thread_settings"))
                mine = event.get("thread_id") in (None, self._thread_id)
                if mine and not where["inherited"] and (cwd := filled(settings.get("cwd"))):
                    self._settings_cwd = cwd
            case "thread_goal_updated":
                if not where["inherited"]:
                    self.goal = self.goal or filled(table(event.get("goal")).get("objective"))
            case "task_started" | "turn_started":
                self._items_alone.clear()
                self._events_alone.clear()
            case "mcp_tool_call_end":
                server = filled(table(event.get("invocation")).get("server"))
                if server and not _is_declined(table(event.get("result")).get("Err")):
                    self.polluting.setdefault(f"mcp:{server}")
            case "token_count":
                self._notice_limits(table(event.get("rate_limits")), where)
            case str() as kind if kind in CODEX_EVENTS_IGNORED:
                pass
            case kind:
                self.skipped[kind_name(kind, "event_msg without type")] += 1

    def _notice_limits(self, told: dict[str, Any], where: dict[str, Any]) -> None:
        at_ms = where["at_ms"]
        if not told or at_ms is None or at_ms > self._now_ms or where["inherited"]:
            return
        limits = RateLimits(
            limit_id=string(told.get("limit_id")),
            primary=_window(told.get("primary"), at_ms),
            secondary=_window(told.get("secondary"), at_ms),
            reached=told.get("rate_limit_reached_type") is not None,
        )
        if not (limits.primary or limits.secondary or limits.reached):
            return
        # Of several limits Codex's own decides, however old the session's last word of it is.
        if limits.limit_id == CODEX or self.limits is None or self.limits[1].limit_id != CODEX:
            self.limits = at_ms, limits

    def _note(self, event: dict[str, Any], where: dict[str, Any]) -> None:
        """A reply's citation, which Codex has taken out of the text that it shows."""
        citation = table(event.get("memory_citation"))
        ids = usage_ids(
            tuple(
                cited.strip()
                for name in ("rollout_ids", "rolloutIds", "thread_ids", "threadIds")
                for cited in entries(citation.get(name))
                if isinstance(cited, str)
            )
        )
        if ids and not where["inherited"]:
            final = _is_final(event)
            self.noted.append(Noted(ids=ids, final=final, line=where["line"], at_ms=where["at_ms"]))

    def _completed(self, item: dict[str, Any], where: dict[str, Any]) -> Iterator[AnyItem]:
        match item.get("type"):
            case "UserMessage":
                texts = [self._block(table(block))[0] for block in entries(item.get("content"))]
                yield from self._announced("\n".join(text for text in texts if text), where)
            case "McpToolCall":
                stopped = item.get("status") in ("declined", "cancelled", "canceled", "blocked")
                stopped = stopped or _is_declined(table(item.get("error")).get("message"))
                if not stopped and (server := filled(item.get("server"))):
                    self.polluting.setdefault(f"mcp:{server}")
            case "WebSearch":
                self.polluting.setdefault("web_search")
            case str() as kind if kind in CODEX_COMPLETED_IGNORED:
                pass
            case kind:
                self.skipped[kind_name(kind, "item_completed without type")] += 1

    def _announced(self, text: str, where: dict[str, Any]) -> Iterator[AnyItem]:
        """The event of a typed message: a second telling where its item stood just before."""
        typed = "\n".join(piece.text for piece in pieces(text) if piece.whose == "typed")
        if not typed:
            return
        self._spoken = True
        mark = _twin(typed)
        if mark in self._items_alone:
            self._items_alone.remove(mark)
            return
        self._events_alone.append(mark)
        yield self._typed(typed, where)

    def _compaction(self, payload: dict[str, Any], where: dict[str, Any]) -> Iterator[AnyItem]:
        """The history that a compaction keeps is a copy of lines above, unless those are missing:
        then it is all there is. In a fork it is the parent's."""
        first, self._compacted = not self._compacted, True
        if summary := string(payload.get("message")):
            yield Harness(text=summary, what="compact_summary", **where)
        if not first or self._spoken:
            return
        copied = {**where, "inherited": where["inherited"] or self._forked_from() is not None}
        for item in entries(payload.get("replacement_history")):
            yield from self._item(table(item), {}, copied)
        self._items_alone.clear()


def _window(told: object, at_ms: int) -> Window | None:
    """Older programs said how long a window lasts on, not when it ends."""
    window = table(told)
    used = window.get("used_percent")
    if isinstance(used, bool) or not isinstance(used, int | float):
        return None
    ends, lasts = window.get("resets_at"), window.get("resets_in_seconds")
    if not isinstance(ends, int):
        ends = at_ms // 1000 + lasts if isinstance(lasts, int) else None
    return Window(used_percent=float(used), resets_at=ends)


def given(record: dict[str, Any]) -> Iterator[object]:
    """What a record puts before the session that neither a person nor the agent wrote."""
    payload = table(record.get("payload", record))
    match payload.get("type"):
        case "function_call_output" | "custom_tool_call_output":
            yield payload.get("output")
        case "message" if payload.get("role") in ("developer", "system"):
            yield payload.get("content")
        case "message" if payload.get("role") == "user":
            content = payload.get("content")
            texts = [content] if isinstance(content, str) else map(_text_of, entries(content))
            for text in texts:
                if isinstance(text, str):
                    yield from (each.text for each in pieces(text) if each.whose != "typed")
    if record.get("type") == "turn_context":
        yield payload.get("developer_instructions")
        yield payload.get("user_instructions")


def _text_of(block: object) -> object:
    return table(block).get("text")


def _is_declined(text: object) -> bool:
    """Whether a person or a rule stopped a call before it ran; then nothing came from outside."""
    return isinstance(text, str) and _DECLINED.fullmatch(text.strip()) is not None


def _is_final(message: dict[str, Any]) -> bool | None:
    phase = message.get("phase")
    return phase.startswith("final") if isinstance(phase, str) else None


def _twin(text: str) -> bytes:
    """By what two tellings of a message are known: its parts may be joined in different ways."""
    return digest("".join(text.split()))


def _source(source: object) -> str:
    """As Codex's own table holds it: the bare word, or the compact JSON text of an object."""
    if source is None:
        return "vscode"
    return clean(source) if isinstance(source, str) else compact_json(source)


def _kind(source: object, thread_source: str | None) -> Kind:
    """Compared as a parsed value. A session without a source is the editor's, as Codex has it."""
    if thread_source in _INTERNAL_THREADS:
        return "internal"
    if isinstance(source, dict):
        if "internal" in source or source.get("subagent") == "memory_consolidation":
            return "internal"
        if "subagent" in source:
            return "subagent"
        if thread_source != "subagent":
            custom = string(source.get("custom"))
            return "interactive" if custom in _INTERACTIVE_CUSTOM else "unknown"
    if thread_source == "subagent":
        return "subagent"
    if source is None or string(source) in _INTERACTIVE:
        return "interactive"
    return "exec" if source == "exec" else "unknown"


def _command(value: object) -> str | None:
    """The shell line. `bash -lc LINE` is its LINE; other argument lists are quoted together."""
    if isinstance(value, str):
        return clean(value) or None
    words = [clean(word) for word in entries(value) if isinstance(word, str)]
    if not words:
        return None
    shell = words[0].rsplit("/", 1)[-1]
    if len(words) == 3 and shell in ("bash", "sh", "zsh", "dash") and words[1].startswith("-"):
        return words[2]
    return shlex.join(words)


def _parsed(raw: object) -> dict[str, Any]:
    if isinstance(raw, str):
        try:
            raw = json.loads(raw, strict=False)
        except (ValueError, RecursionError):
            return {}
    return table(raw)
