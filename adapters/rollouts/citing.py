"""Which sessions a transcript's own final replies cite, turn by turn.

Only what the agent said last in a turn is asked: a message that the transcript calls final, or
else the text behind the last tool call. Tool output, pages, what a person typed, other agents and
copied history cite nothing. What the program has taken out of a reply and noted beside it counts
like the block it was.

Whether a cited id stood in the transcript before is looked up in a second reading, and only of a
transcript that cites: it decodes no line but those that hold such an id.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from ...domain.citation import OPENING, parse
from ...domain.session import AnyItem, Assistant, Call, CitedReply, Human, Output
from .base import Noted, compact_json
from .lines import Found

Given = Callable[[dict[str, Any]], Iterator[object]]  # The texts that a record gives its session.

# What a hostile transcript can make us hold: turns that cite, ids of a turn, ids looked for.
TURNS_MAX = 4_096
IDS_MAX = 256
SOUGHT_MAX = 64


class Reply(Struct):
    """The ids of a turn so far, and the first line that cites."""

    turn: int
    line: int
    at_ms: int | None
    ids: dict[str, None]


class Turns:
    """Fed with the items of a transcript in file order."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self._turn = 0
        self._is_concluded = False
        self._concluding: Reply | None = None
        self._perhaps: Reply | None = None  # The last text, while no call follows it.

    def see(self, item: AnyItem) -> None:
        kind = type(item)
        if kind is Output or item.inherited:  # Most of a transcript.
            return
        if kind is Call:
            self._perhaps = None
        elif isinstance(item, Assistant):
            ids = parse(item.text).usage_ids if OPENING in item.text else ()
            self.note(Noted(ids=ids, final=item.final, line=item.line, at_ms=item.at_ms))
        elif isinstance(item, Human) and item.via == "message":
            self.end()
            self._turn += 1

    def note(self, noted: Noted) -> None:
        if noted.final:
            self._is_concluded = True
        if not noted.ids or noted.final is False:
            return
        reply = self._concluding if noted.final else self._perhaps
        if reply is None:
            reply = Reply(turn=self._turn, line=noted.line, at_ms=noted.at_ms, ids={})
        for cited in noted.ids[: IDS_MAX - len(reply.ids)]:
            reply.ids[cited] = None
        if noted.final:
            self._concluding = reply
        else:
            self._perhaps = reply

    def end(self) -> None:
        """The turn has ended, or the transcript."""
        last = self._concluding if self._is_concluded else self._perhaps
        if last is not None and len(self.replies) < TURNS_MAX:
            self.replies.append(last)
        self._is_concluded, self._concluding, self._perhaps = False, None, None


class Sought:
    """Where the session was given ids, found in a reading of the lines that hold one of them."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        ids = dict.fromkeys(cited for reply in replies for cited in reply.ids)
        self.missing = set(list(ids)[:SOUGHT_MAX])
        self.holding = {each for cited in self.missing for each in written(cited)}
        self.found: dict[str, int] = {}
        self._last = replies[-1].line

    def read(self, records: Iterable[Found], given: Given) -> dict[str, int]:
        """Id -> the first line that gave it, of those before the last reply."""
        for record in records:
            if record.line >= self._last:
                break
            for value in given(record.value):
                text = (value if isinstance(value, str) else compact_json(value)).lower()
                for cited in [each for each in self.missing if each in text]:
                    self.found[cited] = record.line
                    self.missing.remove(cited)
                    self.holding.difference_update(written(cited))
            if not self.missing:
                break
        return self.found


def written(cited: str) -> tuple[bytes, bytes]:
    return cited.encode(), cited.upper().encode()


def told(replies: Iterable[Reply], given: dict[str, int]) -> Iterator[CitedReply]:
    for reply in replies:
        yield CitedReply(
            turn=reply.turn,
            at_ms=reply.at_ms,
            ids=tuple(reply.ids),
            stood_before=tuple(
                cited for cited in reply.ids if given.get(cited, reply.line) < reply.line
            ),
        )
