"""Entries: what we put into an agent's settings, and how we know it again.

A hook is ours when it starts this program with `hook session-start` or `hook session-end`, an MCP
server when it starts it with `mcp`; where the program is does not matter, so that one that moved
is brought up to date and not added a second time.
"""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from msgspec import Struct

from . import json_text
from .draft import CannotEdit, Draft

NAME = "threadbook"
HOOKS = {"session-start": "SessionStart", "session-end": "SessionEnd"}
# Seconds until the agent gives up; ours needs a fifth of one. Codex allows three at the end.
TIMEOUT_S = {"session-start": 5, "session-end": 3}


class Entries(Struct, frozen=True):
    """How the program is started: its words up to the command, and what hooks have behind it."""

    program: tuple[str, ...]
    behind_hooks: tuple[str, ...] = ()

    def hook(self, event: str, *more: str) -> str:
        return shlex.join([*self.program, "hook", event, *more])

    def renewed(self, command: str, event: str) -> str:
        """A command of ours as this program has it; what a person put behind it stays."""
        words = shlex.split(command)
        own = [*self.program, "hook", event]
        if words[: len(own)] == own:
            return command
        return self.hook(event) + command[command.rindex(event) + len(event) :]

    def server(self) -> dict[str, Any]:
        return {"command": self.program[0], "args": [*self.program[1:], "mcp"]}


def starts_us(words: Sequence[str]) -> bool:
    """Whether these words start this program: its script, or an interpreter with its module."""
    if not words:
        return False
    return PurePath(words[0]).name in (NAME, f"{NAME}.exe") or (
        len(words) > 2 and words[1] == "-m" and words[2].startswith(f"{NAME}.")
    )


def hook_of(handler: object) -> str | None:
    """The event of a hook handler of ours, None for anybody else's."""
    if not isinstance(handler, Mapping) or not isinstance(handler.get("command"), str):
        return None
    try:
        words = shlex.split(handler["command"])
    except ValueError:
        return None
    if not starts_us(words) or "hook" not in words:
        return None
    behind = words[words.index("hook") + 1 :]
    return next((word for word in behind if word in HOOKS), None)


def is_our_server(server: object) -> bool:
    if not isinstance(server, Mapping):
        return False
    command, args = server.get("command"), server.get("args", [])
    if not isinstance(command, str) or not isinstance(args, list):
        return False
    words = [command, *(word for word in args if isinstance(word, str))]
    return starts_us(words) and "mcp" in words


# Hooks stand in JSON, in the same form for both agents.


def add_hooks(
    draft: Draft,
    entries: Entries,
    *,
    more_words: tuple[str, ...] = (),
    more_keys: Mapping[str, int] | None = None,
) -> None:
    """`more_words` and `more_keys` are for the start of a session, where one agent wants what the
    other does not know."""
    for event, name in HOOKS.items():
        said = json_text.parsed(draft.text)
        is_start = event == "session-start"
        wanted = entries.hook(event, *(more_words if is_start else ()), *entries.behind_hooks)
        if found := ours_in(said, event):
            for path in found:
                command = at(said, path)["command"]
                if (renewed := entries.renewed(command, event)) != command:
                    json_text.replace(draft, (*path, "command"), renewed)
            continue
        handler = {"type": "command", "command": wanted, "timeout": TIMEOUT_S[event]}
        handler |= (more_keys or {}) if is_start else {}
        json_text.append(draft, ("hooks", name), {"hooks": [handler]})


def remove_hooks(text: str) -> str:
    """Without ours, and without the groups, events and tables that only held ours."""
    while paths := [path for event in HOOKS for path in ours_in(json_text.parsed(text), event)]:
        path: tuple[json_text.Step, ...] = max(paths, key=lambda path: path[2])
        said = json_text.parsed(text)
        if len(at(said, path[:-1])) == 1:
            path = path[:3]
            for depth in (2, 1):
                if len(at(said, path[:depth])) > 1:
                    break
                path = path[:depth]
        text = json_text.remove(text, path)
    return text


def ours_in(said: Any, event: str) -> list[tuple[Any, ...]]:
    """Where our handlers of that event are. Raises CannotEdit where hooks are no such tables."""
    found = []
    for name, groups in table(said, "hooks").items():
        for g, group in enumerate(groups if isinstance(groups, list) else ()):
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for h, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                if hook_of(handler) == event:
                    found.append(("hooks", name, g, "hooks", h))
        if name == HOOKS[event] and not isinstance(groups, list):
            raise CannotEdit(f"`hooks.{name}` is no list")
    return found


def table(said: Any, key: str) -> dict[str, Any]:
    if not isinstance(said, dict):
        raise CannotEdit("it is no table of settings")
    found = said.get(key, {})
    if not isinstance(found, dict):
        raise CannotEdit(f"`{key}` is no table")
    return found


def at(said: Any, path: Sequence[json_text.Step]) -> Any:
    for step in path:
        said = said[step]
    return said


def bare(said: Any) -> Any:
    """Settings without anything of ours and without what is empty then, to compare by."""
    if not isinstance(said, dict):
        return said
    rest = dict(said)
    if isinstance(hooks := rest.get("hooks"), dict):
        left = {
            name: [group for each in groups if (group := _bare_group(each)) is not None]
            if isinstance(groups, list)
            else groups
            for name, groups in hooks.items()
        }
        rest["hooks"] = {name: groups for name, groups in left.items() if groups != []}
    for key in ("mcpServers", "mcp_servers"):
        if isinstance(servers := rest.get(key), dict):
            rest[key] = {
                name: server
                for name, server in servers.items()
                if name != NAME or not is_our_server(server)
            }
    return {
        key: value
        for key, value in rest.items()
        if key not in ("hooks", "mcpServers", "mcp_servers") or value != {}
    }


def _bare_group(group: Any) -> Any:
    handlers = group.get("hooks") if isinstance(group, dict) else None
    if not isinstance(handlers, list):
        return group
    left = [handler for handler in handlers if hook_of(handler) is None]
    if len(left) == len(handlers):
        return group
    return {**group, "hooks": left} if left else None
