"""Evidence by whole turns: what a model is shown that found the first cut too long.

A turn is what happens from one message of a person to the next. The last turn and the first go in
first, then what people wrote in the others, then other whole turns, newest first, until one does
not fit. Of a turn that is longer than its share single items go in, and of an item that is still
longer its texts are cut. So v1 stays one JSON array, and every gap says what is missing.
"""

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Any

from .evidence import (
    ROW_BYTES,
    Evidence,
    Exhibit,
    Row,
    cut_bytes,
    labelled,
    lines,
    rows,
    written,
)
from .fields import encoded, hidden

_GAP_BYTES = 64
_MARK_BYTES = 40
# Less of a cut item than this says nothing.
_PART_BYTES_MIN = 256


def whole_turns(exhibits: Iterable[Exhibit], *, version: str, bytes_max: int) -> Evidence:
    read = _Read(bytes_max)
    read.all(rows(exhibits, keep=ROW_BYTES if version == "v2" else max(1_024, bytes_max // 2)))
    choice = _Choice(read, version, bytes_max)
    choice.make()
    return choice.evidence()


class _Read:
    """The rows that could be shown: the first, the last, and between them people's own."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.held: dict[int, Row] = {}
        self.by_turn: dict[int, list[Row]] = {}
        self.rows_in_turn: Counter[int] = Counter()
        self.count = self.total = 0

    def all(self, each: Iterable[Row]) -> None:
        head: list[Row] = []
        head_bytes = tail_bytes = human_bytes = 0
        tail: deque[Row] = deque()
        human: deque[Row] = deque()
        for row in each:
            self.count += 1
            self.total += row.size
            self.rows_in_turn[row.turn] += 1
            weight = row.held_bytes
            if head_bytes <= self.bytes_max:
                head.append(row)
                head_bytes += weight
                continue
            tail.append(row)
            tail_bytes += weight
            while tail_bytes - (weight := tail[0].held_bytes) > 2 * self.bytes_max:
                gone = tail.popleft()
                tail_bytes -= weight
                if gone.tier == "human":
                    human.append(gone)
                    human_bytes += weight
                    while human_bytes - human[0].held_bytes > self.bytes_max:
                        human_bytes -= human.popleft().held_bytes
        for row in (*head, *human, *tail):
            self.held[row.order] = row
            # What stands before the first message of a person's belongs to its turn.
            self.by_turn.setdefault(max(1, row.turn), []).append(row)
        self.rows_in_turn[1] += self.rows_in_turn.pop(0, 0)

    def is_whole(self, turn: int) -> bool:
        return len(self.by_turn[turn]) == self.rows_in_turn[turn]


class _Choice:
    def __init__(self, read: _Read, version: str, bytes_max: int) -> None:
        self.read, self.version = read, version
        self.chosen: dict[int, tuple[Row, bytes]] = {}
        self.left = bytes_max - _GAP_BYTES - 2
        self._items: dict[int, Any] = {}

    def make(self) -> None:
        turns = sorted(self.read.by_turn)
        if not turns:
            return
        if len(turns) == 1 and self.read.is_whole(turns[0]):
            self._turn(turns[0], self.left)
            return
        everything = self.read.count == len(self.read.held)
        if everything and self._whole(list(self.read.held.values()), self.left):
            return
        self._turn(turns[-1], self.left // 2 if len(turns) > 1 else self.left)
        if len(turns) > 1:
            self._turn(turns[0], self.left // 2)
        between = turns[-2:0:-1]
        room = self.left // 2
        for turn in between:
            for row in reversed(self.read.by_turn[turn]):
                cost = len(self._text(row)) + 1 + _GAP_BYTES
                if row.tier == "human" and cost <= room:
                    self.chosen[row.order] = (row, self._text(row))
                    room -= cost
                    self.left -= cost
        for turn in between:
            rest = [row for row in self.read.by_turn[turn] if row.order not in self.chosen]
            if not self.read.is_whole(turn) or not self._whole(rest, self.left):
                break

    def _turn(self, turn: int, share: int) -> None:
        """The turn, or of one that is longer than its share people's words, then the newest."""
        each = self.read.by_turn[turn]
        if self.read.is_whole(turn) and self._whole(each, share):
            return
        human = [row for row in each if row.tier == "human"]
        for row in human:
            is_all = row is human[-1] and len(human) == len(each)
            share -= self._part(row, share if is_all else share // 2)
        for row in reversed(each):
            if row.order not in self.chosen:
                cost = self._part(row, share)
                share -= cost
                if cost == 0:
                    break

    def _whole(self, each: Sequence[Row], share: int) -> bool:
        # Cheaper than to hide secrets in what is far too long anyway.
        if sum(row.held_bytes for row in each) > 4 * share + 4_096 and self.version == "v1":
            return False
        if any(row.bytes_torn for row in each) and self.version == "v1":
            return False
        cost = sum(len(self._text(row)) + 1 for row in each) + _GAP_BYTES
        if cost > share:
            return False
        for row in each:
            self.chosen[row.order] = (row, self._text(row))
        self.left -= cost
        return True

    def _part(self, row: Row, share: int) -> int:
        """Choose the row, cut where it has to be; what it costs, 0 where it does not go in."""
        text = self._text(row)
        room = share - 1 - _GAP_BYTES
        if len(text) > room:
            if room < _PART_BYTES_MIN and self.chosen:
                return 0
            cut = self._cut(row, text, max(room, 32))
            if cut is None:
                return 0
            text = cut
        self.chosen[row.order] = (row, text)
        cost = len(text) + 1 + _GAP_BYTES
        self.left -= cost
        return cost

    def _text(self, row: Row) -> bytes:
        if self.version == "v2":
            return labelled(row)
        if not row.text:
            self._items[row.order] = hidden(row.item)
            row.text = encoded(self._items[row.order])
            row.is_cut = row.bytes_torn > 0
        return row.text

    def _cut(self, row: Row, text: bytes, room: int) -> bytes | None:
        if self.version == "v2":
            return cut_bytes(text, room - _MARK_BYTES) if room > 2 * _MARK_BYTES else None
        item = self._items[row.order]
        most = room
        while most >= 8:
            cut = encoded(_shortened(item, most))
            if len(cut) <= room:
                return cut
            most //= 2
        said = _shortened(_said(item), max(8, room - 120))
        bare = {"type": "message", "role": item.get("role", "user"), "content": said}
        return encoded(bare) if not self.chosen else None

    def evidence(self) -> Evidence:
        read = self.read
        if self.version == "v1":
            return written(self.chosen, read.count, read.total, gap=_gap, join=_array)
        return written(self.chosen, read.count, read.total, gap=_gap_in_words, join=lines)


def _array(parts: list[bytes]) -> bytes:
    return b"[" + b",".join(parts) + b"]"


def _gap_in_words(items: int, size: int) -> bytes:
    return f"[... {items} response items omitted ...]\n".encode()


def _gap(items: int, size: int) -> bytes:
    return encoded({"type": "omitted", "items": items, "bytes": size})


def _shortened(value: Any, most: int) -> Any:
    if isinstance(value, str):
        content = value.encode()
        return cut_bytes(content, most).decode() if len(content) > most + 40 else value
    if isinstance(value, dict):
        return {key: _shortened(each, most) for key, each in value.items()}
    if isinstance(value, list):
        return [_shortened(each, most) for each in value]
    return value


def _said(item: dict[str, Any]) -> str:
    content = item.get("content")
    if isinstance(content, list):
        texts = [each.get("text") for each in content if isinstance(each, dict)]
        return "\n".join(text for text in texts if isinstance(text, str))
    said = content or item.get("output") or item.get("arguments") or ""
    return said if isinstance(said, str) else encoded(said).decode()
