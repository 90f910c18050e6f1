"""Memory that a session read with our own tools, taken out of its transcript again.

What is fenced is known by its fence (`harness.py`). What the tools give is not fenced, so that it
is known by who was asked: our MCP server, or our command in a shell. Read back as the session's
own it would confirm itself, and what was forgotten meanwhile would come back.
"""

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from ...domain.session import AnyItem, Call, Output
from ...domain.thread import OWN_SERVER

READ_BACK = "[memory]"
# Calls that wait for their result; one that never gets it must not be held for ever.
WAITING_MAX = 10_000

_OURS = re.compile(
    rf"\b{OWN_SERVER}\s+(?:-\S+\s+(?:[^-\s]\S*\s+)?){{0,8}}(?:context|list|read|search)\b"
)


def without_own(items: Iterable[AnyItem]) -> Iterator[AnyItem]:
    own = Own()
    for item in items:
        yield own.told(item)


class Own:
    """The calls on our own tools, told item by item in file order."""

    def __init__(self) -> None:
        self._waiting: dict[str, None] = {}

    def told(self, item: AnyItem) -> AnyItem:
        """The item, or what stands for it where it is such a call's result."""
        if isinstance(item, Call) and item.call_id is not None and _asks_us(item):
            self._waiting[item.call_id] = None
            if len(self._waiting) > WAITING_MAX:
                del self._waiting[next(iter(self._waiting))]
        elif isinstance(item, Output) and item.call_id in self._waiting:
            # Not taken off the list: an id may answer twice, and the second is no less ours.
            return replace(item, text=READ_BACK)
        return item


def _asks_us(call: Call) -> bool:
    if call.name.startswith(f"mcp__{OWN_SERVER}__"):
        return True
    return call.command is not None and _OURS.search(call.command) is not None
