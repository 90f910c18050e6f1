"""Claude Code's settings: hooks in settings.json, MCP servers for every project in .claude.json.

With CLAUDE_CONFIG_DIR both lie in that folder; without it settings.json lies in ~/.claude and
.claude.json beside that folder. The second file is the program's own as well: it writes it while
it runs.
"""

from collections.abc import Mapping
from pathlib import Path

from . import json_text
from .draft import CannotEdit, Draft
from .entries import NAME, Entries, add_hooks, is_our_server, remove_hooks, table
from .parts import Part, Place


def place(environment: Mapping[str, str], home: Path) -> Place:
    if named := environment.get("CLAUDE_CONFIG_DIR"):
        folder = Path(named).expanduser().absolute()
        state = folder / ".claude.json"
    else:
        folder, state = home / ".claude", home / ".claude.json"
    return Place(
        agent="claude",
        title="Claude Code",
        folder=folder,
        variable="CLAUDE_CONFIG_DIR",
        parts=(
            Part(
                path=folder / "settings.json",
                what="hooks",
                add=add_hooks,
                remove=remove_hooks,
                parsed=json_text.parsed,
            ),
            Part(
                path=state,
                what="MCP server",
                add=add_server,
                remove=remove_server,
                parsed=json_text.parsed,
            ),
        ),
        notes=("Start Claude Code anew; `/hooks` and `/mcp` show what was added.",),
    )


def add_server(draft: Draft, entries: Entries) -> None:
    wanted = entries.server()
    servers = table(json_text.parsed(draft.text), "mcpServers")
    if (there := servers.get(NAME)) is None:
        json_text.set_key(draft, ("mcpServers",), NAME, {"type": "stdio", **wanted, "env": {}})
        return
    if not is_our_server(there):
        raise CannotEdit(f"`mcpServers.{NAME}` is another server; rename or remove it")
    for key, value in wanted.items():
        if there.get(key) != value:
            json_text.replace(draft, ("mcpServers", NAME, key), value)


def remove_server(text: str) -> str:
    servers = table(json_text.parsed(text), "mcpServers")
    if not is_our_server(servers.get(NAME)):
        return text
    return json_text.remove(text, ("mcpServers", NAME) if len(servers) > 1 else ("mcpServers",))
