"""Codex's settings: hooks in hooks.json, MCP servers in config.toml, both in CODEX_HOME.

Codex runs a hook only after the person has looked at it, and asks once. Its single `notify`
program is not needed, because there are hooks for both ends of a session; it stays what it was.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from . import json_text, toml_text
from .draft import CannotEdit, Draft
from .entries import NAME, Entries, add_hooks, is_our_server, remove_hooks, table
from .parts import Part, Place

TABLE = ("mcp_servers", NAME)
# From a hook Codex takes 2,500 tokens, at four bytes, if its entry does not ask for more.
ROOM_TOKENS = 5_000
ROOM_WORDS = ("--room", str(4 * ROOM_TOKENS))
ROOM_KEYS = {"additionalContextLimit": ROOM_TOKENS}
COMMENT = f"Added by `{NAME} install`; `{NAME} uninstall` takes it out."


def place(environment: Mapping[str, str], home: Path) -> Place:
    named = environment.get("CODEX_HOME")
    folder = Path(named).expanduser().absolute() if named else home / ".codex"
    return Place(
        agent="codex",
        title="Codex",
        folder=folder,
        variable="CODEX_HOME",
        parts=(
            Part(
                path=folder / "hooks.json",
                what="hooks",
                add=partial(add_hooks, more_words=ROOM_WORDS, more_keys=ROOM_KEYS),
                remove=remove_hooks,
                parsed=json_text.parsed,
            ),
            Part(
                path=folder / "config.toml",
                what="MCP server",
                add=add_server,
                remove=remove_server,
                parsed=toml_text.parsed,
                hints=hints,
            ),
        ),
        notes=(
            "Start Codex anew: it asks once whether it may run the hooks, and `/hooks` shows them.",
        ),
    )


def add_server(draft: Draft, entries: Entries) -> None:
    wanted = entries.server()
    servers = table(toml_text.parsed(draft.text), "mcp_servers")
    if (there := servers.get(NAME)) is None:
        toml_text.table(draft, TABLE, wanted, comment=COMMENT)
        return
    if not is_our_server(there):
        raise CannotEdit(f"`mcp_servers.{NAME}` is another server; rename or remove it")
    for key, value in wanted.items():
        if there.get(key) != value:
            toml_text.set_value(draft, (*TABLE, key), value)


def remove_server(text: str) -> str:
    if not is_our_server(table(toml_text.parsed(text), "mcp_servers").get(NAME)):
        return text
    text = toml_text.remove(text, TABLE, comment=COMMENT)
    if NAME in table(toml_text.parsed(text), "mcp_servers"):
        raise CannotEdit(f"`mcp_servers.{NAME}` stands inside a line; take it out by hand")
    return text


def hints(said: Any) -> tuple[str, ...]:
    """What in config.toml keeps the hooks from running, or makes Codex warn at each start."""
    features = said.get("features") if isinstance(said, dict) else None
    found = []
    if isinstance(features, dict) and False in (
        features.get("hooks"),
        features.get("codex_hooks"),
    ):
        found.append("Hooks are off in config.toml: `[features] hooks = false`; take that out.")
    hooks = said.get("hooks") if isinstance(said, dict) else None
    if isinstance(hooks, dict) and hooks.keys() - {"state"}:
        found.append("config.toml has hooks of yours; Codex runs both, and says so at each start.")
    return tuple(found)
