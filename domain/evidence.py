"""Evidence: what of a session a model is shown, within a number of tokens.

Two forms, both Codex's. `v1` is one JSON array of the session's response items; where it is too
long its middle goes, bytes and all. `v2` gives each item a row under a label that says whose it is
and cuts long rows; where not all rows fit, what people wrote goes in first and what tools printed
last, newest first, and a mark stands for each gap. `aligned` is for a model that found even that
too long: whole turns are left out of the middle, and v1 stays whole JSON.

Secrets are hidden in decoded fields, before anything is cut, so that a cut leaves no half of one.
Items come one by one and are held only as far as they could still be shown: a session of any size
is rendered in the memory that a few times its evidence takes. What is thereby never looked at is
counted as it stood, secrets included. What is left out or cut is counted always.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct

from .fields import encoded, hidden, hidden_text, missing, plain, torn
from .truncation import BYTES_A_TOKEN, character_at

Whose = Literal["person", "agent", "harness"]
Tier = Literal["human", "final", "agent", "commentary", "context", "tool"]

# In the order in which they are let in.
LABELS: dict[Tier, str] = {
    "human": "human user",
    "final": "assistant final",
    "agent": "other agent",
    "commentary": "assistant commentary",
    "context": "harness context",
    "tool": "tool",
}
GAP = "[... response items omitted ...]\n"
GAP_BYTES = len(GAP)
RESERVE_BYTES = 96  # For the mark of a cut.
OUTPUT_BYTES = 8_000 - RESERVE_BYTES
ROW_BYTES = 10_000 - RESERVE_BYTES
MESSAGE_BYTES = 8_900  # A v2 prompt travels in messages of at most this.
UNKNOWN_WINDOW_TOKENS = 150_000
# The least that evidence takes: less than this would be a label without a word.
BYTES_MIN, ALIGNED_BYTES_MIN = 96, 1_024

_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
_QUESTION = "request_user_input"
_QUESTIONS_MAX = 1_000


class Exhibit(Struct, frozen=True, kw_only=True):
    """One response item as a reader hands it on: decoded, cleaned, without what nobody may see.

    `whose` says who speaks in a message; the reader knows, the role alone does not."""

    item: dict[str, Any]
    whose: Whose | None = None


class Evidence(Struct, frozen=True, kw_only=True):
    """`omitted` of the `items` are left out or cut, by `omitted_bytes` in all."""

    text: str
    items: int
    omitted: int = 0
    omitted_bytes: int = 0


class Row(Struct, kw_only=True):
    """An item that may be shown. `at` and `size` are its place among all, in bytes."""

    order: int
    turn: int
    tier: Tier
    item: dict[str, Any]
    question: str | None = None
    at: int = 0
    size: int = 0
    # Of an item whose long strings are torn: how many characters it had, and bytes it lacks.
    chars: int = 0
    bytes_torn: int = 0
    text: bytes = b""  # As it is shown; empty until asked for.
    label_bytes: int = 0  # So much of the text is not the item's.
    is_cut: bool = False

    @property
    def held_bytes(self) -> int:
        return self.size - self.bytes_torn


def token_limit(context_window: int) -> int:
    """The share of a model's window that evidence may take.

    >>> token_limit(272_000), token_limit(0), token_limit(1)
    (180880, 150000, 1)
    """
    if context_window <= 0:
        return UNKNOWN_WINDOW_TOKENS
    return max(1, context_window * 95 // 100 * 70 // 100)


def render(
    exhibits: Iterable[Exhibit], *, version: str, tokens: int, aligned: bool = False
) -> Evidence:
    """The evidence of one session, in file order, for memory of one version.

    It takes `tokens` of four bytes; the mark of v1's cut is not counted, as in Codex.
    """
    if version not in ("v1", "v2"):
        raise ValueError(f"there is no evidence of version {version!r}")
    bytes_max = max(ALIGNED_BYTES_MIN if aligned else BYTES_MIN, tokens * BYTES_A_TOKEN)
    if aligned:
        from .evidence_turns import whole_turns

        return whole_turns(exhibits, version=version, bytes_max=bytes_max)
    return _array(exhibits, bytes_max) if version == "v1" else _tiers(exhibits, bytes_max)


# What every form does with an item.


def rows(exhibits: Iterable[Exhibit], *, keep: int) -> Iterator[Row]:
    """Items with who speaks, in which turn, and behind how much. `keep` characters of both ends
    of a string must be there to be shown."""
    asked: dict[str, str] = {}
    turn = at = 0
    for order, each in enumerate(exhibits):
        item = each.item
        question = _answered(item, asked)
        tier: Tier = "human" if question is not None else _tier(item, each.whose)
        if tier == "human" and question is None and item.get("type") == "message":
            turn += 1
        short = torn(item, keep=keep)
        chars, size = missing(short)
        held = encoded(plain(short) if size else short)
        row = Row(
            order=order,
            turn=turn,
            tier=tier,
            item=short,
            question=question,
            at=at,
            size=len(held) + size,
            chars=len(held.decode()) + chars if size else 0,
            bytes_torn=size,
        )
        at += row.size
        yield row


def _tier(item: dict[str, Any], whose: Whose | None) -> Tier:
    if item.get("type") == "agent_message":
        return "agent"
    if item.get("type") != "message":
        return "tool"
    if whose == "agent":
        return "agent"
    if whose == "harness":
        return "context"
    if item.get("role") == "user":
        return "human"
    return "commentary" if item.get("phase") == "commentary" else "final"


def _answered(item: dict[str, Any], asked: dict[str, str]) -> str | None:
    """The question that an item answers in a person's words, where a tool had asked it."""
    call_id = item.get("call_id")
    if not isinstance(call_id, str):
        return None
    if item.get("type") == "function_call":
        if item.get("name") == _QUESTION and item.get("namespace") in (None, "functions"):
            if len(asked) >= _QUESTIONS_MAX:
                del asked[next(iter(asked))]
            asked[call_id] = str(item.get("arguments", ""))
        return None
    if item.get("type") != "function_call_output" or call_id not in asked:
        return None
    return asked.pop(call_id) if _is_answer(item.get("output")) else None


def _is_answer(output: object) -> bool:
    if isinstance(output, dict):
        output = output.get("content", output.get("output"))
    if not isinstance(output, str):
        return False
    try:
        said = msgspec.json.decode(output)
    except (ValueError, RecursionError, UnicodeEncodeError):
        return False
    answers = said.get("answers") if isinstance(said, dict) else None
    if not isinstance(answers, dict):
        return False
    for given in answers.values():
        texts = given.get("answers") if isinstance(given, dict) else given
        for text in texts if isinstance(texts, list) else [texts]:
            if isinstance(text, str) and text.strip():
                return True
    return False


# v1: one array.


def _array(exhibits: Iterable[Exhibit], bytes_max: int) -> Evidence:
    ends = _Ends(bytes_max)
    for row in rows(exhibits, keep=ends.right):
        ends.take(row)
    ends.close()
    if ends.size <= bytes_max:
        return ends.evidence(b"".join([ends.head, *ends.tail]).decode(), 0, ends.torn)
    behind = b"".join(ends.tail)
    before = bytes(ends.head)
    if not ends.is_apart:
        before = behind = before + behind
    start = character_at(before, min(ends.left, len(before)))
    end = character_at(behind, max(0, len(behind) - ends.right), up=True)
    lacking = ends.size - bytes_max + ends.torn
    mark = f"…{-(-lacking // BYTES_A_TOKEN)} tokens truncated…"
    text = before[:start].decode() + mark + behind[end:].decode()
    return ends.evidence(text, ends.count - ends.intact(start, len(behind) - end), lacking)


class _Ends:
    """The two ends of the array, without secrets, and how long it would be.

    What follows the head waits with its secrets, since only the end of it will be shown; where
    some of it was let go, the ends stand `is_apart`."""

    def __init__(self, bytes_max: int) -> None:
        self.left = bytes_max // 2
        self.right = bytes_max - self.left
        self.head = bytearray(b"[")
        self.tail: list[bytes] = [b"]"]
        self.count = self.size = self.torn = 0
        self.is_apart = False
        self._ends: list[int] = []
        self._waiting: deque[Row] = deque()
        self._waiting_bytes = 0
        self._between = 0

    def take(self, row: Row) -> None:
        self.count += 1
        if len(self.head) <= self.left + 4:  # A character may end behind the half.
            self.head += b"," * (row.order > 0) + self._shown(row)
            self._ends.append(len(self.head))
            return
        self._waiting.append(row)
        self._waiting_bytes += row.held_bytes
        while self._waiting_bytes - self._waiting[0].held_bytes > 2 * self.right + 4:
            self._waiting_bytes -= self._waiting[0].held_bytes
            self._let_go(self._waiting.popleft())

    def close(self) -> None:
        tail_bytes = 1
        while self._waiting and (not self.is_apart or tail_bytes <= self.right + 4):
            self.tail.append(b"," + self._shown(self._waiting.pop()))
            tail_bytes += len(self.tail[-1])
        for row in self._waiting:
            self._let_go(row)
        self.tail.reverse()
        self.size = len(self.head) + self._between + tail_bytes

    def intact(self, before: int, behind: int) -> int:
        """How many items lie whole in so many bytes of the beginning and of the end."""
        found = sum(1 for end in self._ends if end <= before)
        left = behind - 1
        for each in reversed(self.tail[:-1]):
            left -= len(each)
            if left < -1:  # Its comma is no part of it.
                break
            found += 1
        return found

    def evidence(self, text: str, omitted: int, lacking: int) -> Evidence:
        return Evidence(
            text=text,
            items=self.count,
            omitted=max(omitted, int(lacking > 0)),
            omitted_bytes=lacking,
        )

    def _shown(self, row: Row) -> bytes:
        said = encoded(hidden(row.item))
        if row.bytes_torn:
            self.torn += row.size - len(said)
        return said

    def _let_go(self, row: Row) -> None:
        self._between += row.size + 1
        self.is_apart = True


# v2: rows.


def labelled(row: Row) -> bytes:
    """The row as v2 shows it, without secrets and under its caps."""
    if not row.text:
        said = encoded(hidden(row.item))
        if row.question is not None:
            # A model wrote it, and may have meant a row of its own by a line's end in it.
            asked = hidden_text(row.question).replace("\n", "\\n").encode()
            said = b"Assistant question: " + asked + b"\nHuman reply: " + said
        extra = row.chars - len(said.decode()) if row.bytes_torn else 0
        cap = ROW_BYTES
        if row.tier == "tool" and row.item.get("type") in _OUTPUTS:
            cap = OUTPUT_BYTES
        if len(said) > cap:
            said, extra = cut_bytes(said, cap, extra), 0
            row.is_cut = True
        row.is_cut = row.is_cut or row.bytes_torn > 0
        label = f"[{LABELS[row.tier]}]\n".encode()
        row.text = label + said + b"\n"
        row.label_bytes = len(label) + 1
    return row.text


def cut_bytes(content: bytes, keep: int, extra: int = 0) -> bytes:
    """Half of `keep` bytes from either end, on whole characters; `extra` characters lack already.

    >>> cut_bytes(b"abcdefgh", 4).decode()
    'ab…4 chars truncated…gh'
    """
    left = keep // 2
    start = character_at(content, left)
    end = character_at(content, len(content) - (keep - left), up=True)
    chars = len(content[start:end].decode("utf-8", "replace")) + extra
    return content[:start] + f"…{chars} chars truncated…".encode() + content[end:]


def _tiers(exhibits: Iterable[Exhibit], bytes_max: int) -> Evidence:
    held: dict[Tier, deque[Row]] = {tier: deque() for tier in LABELS}
    holding = dict.fromkeys(LABELS, 0)
    count = total = 0
    for row in rows(exhibits, keep=ROW_BYTES):
        count += 1
        total += row.size
        ring = held[row.tier]
        ring.append(row)
        holding[row.tier] += min(row.size, ROW_BYTES)
        # Twice the budget, because hiding secrets makes rows shorter.
        while holding[row.tier] - min(ring[0].size, ROW_BYTES) > 2 * bytes_max:
            holding[row.tier] -= min(ring.popleft().size, ROW_BYTES)
    chosen = _chosen(held, bytes_max)
    return written(chosen, count, total, gap=lambda items, size: GAP.encode(), join=lines)


def _chosen(held: dict[Tier, deque[Row]], bytes_max: int) -> dict[int, tuple[Row, bytes]]:
    chosen: dict[int, tuple[Row, bytes]] = {}
    remaining = bytes_max - GAP_BYTES
    for tier in LABELS:
        for row in reversed(held[tier]):
            if remaining <= GAP_BYTES + RESERVE_BYTES:
                break
            room = remaining - GAP_BYTES
            text = labelled(row)
            if len(text) > room:
                keep = room - RESERVE_BYTES
                if keep < 4 * len(LABELS[tier]):
                    continue  # It would be a label without a word.
                text = cut_bytes(text, keep)
            chosen[row.order] = (row, text)
            remaining -= len(text) + GAP_BYTES
    if not chosen and (newest := next((held[tier][-1] for tier in LABELS if held[tier]), None)):
        text = labelled(newest)
        label = len(LABELS[newest.tier]) + 3
        room = bytes_max - label - 1 - 2 * GAP_BYTES
        said = text[label:-1]
        if len(said) > room:
            said = said[: character_at(said, max(1, room))]
        chosen[newest.order] = (newest, text[:label] + said + b"\n")
    return chosen


def written(
    chosen: dict[int, tuple[Row, bytes]],
    count: int,
    total: int,
    *,
    gap: Callable[[int, int], bytes],
    join: Callable[[list[bytes]], bytes],
) -> Evidence:
    """The chosen rows in file order, a gap for what lies between, and what that leaves out."""
    parts: list[bytes] = []
    next_order, next_at = 0, 0
    cut = lacking = 0
    for order in sorted(chosen):
        row, text = chosen[order]
        if order > next_order:
            parts.append(gap(order - next_order, row.at - next_at))
        parts.append(text)
        if text != row.text or row.is_cut:
            cut += 1
            lacking += max(0, row.size - (len(text) - row.label_bytes))
        next_order, next_at = order + 1, row.at + row.size
    if count > next_order:
        parts.append(gap(count - next_order, total - next_at))
    left_out = total - sum(row.size for row, _ in chosen.values())
    return Evidence(
        text=join(parts).decode(),
        items=count,
        omitted=count - len(chosen) + cut,
        omitted_bytes=left_out + lacking,
    )


def lines(parts: list[bytes]) -> bytes:
    """The last line's end goes to whoever writes on."""
    return b"".join(parts).removesuffix(b"\n")
