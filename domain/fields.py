"""Fields: a decoded record with its secrets hidden, string by string, and its shape as it was.

Secrets are looked for in what a string says, never in a line of JSON, where a quote is two signs
and a line's end is two more. A string that is itself JSON, as a tool's arguments are, is searched
the same way one level down; where nothing in it is secret, not a byte of it changes.

A string that no reader will see whole is held by its two ends only. Each end reaches further than
will be shown, and what lies at the tear is thrown away once secrets are hidden: half a secret
would not be known for one.
"""

import json
import re
from typing import Any

import msgspec
from msgspec import Struct

from .redaction import redact

# What is thrown away at a tear, and as much again so that something is left to throw away.
MARGIN = 10 * 1024
_DEEPEST = 3

# Names and ids, which are most of the strings of a record: nothing a rule could know for a secret.
_PLAIN = re.compile(
    r"[a-z_.]{1,40}"
    r"|(?:[a-z]{1,6}_){0,2}[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?:[a-z]{1,6}_){1,2}[A-Za-z0-9]{1,8}"
)
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
# Fields that hold a tree of the tool's own, in which a name says what a value is.
_TREES = frozenset({"action", "arguments", "input", "tools"})


class Torn(Struct, frozen=True, kw_only=True):
    """A long string by its ends. `chars` and `size` are what is missing, as JSON writes it."""

    head: str
    tail: str
    chars: int
    size: int


def encoded(value: object) -> bytes:
    """Compact JSON."""
    try:
        return msgspec.json.encode(value)
    except (OverflowError, UnicodeEncodeError):
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def torn(value: Any, *, keep: int) -> Any:
    """The value with its long strings torn, so that of each at least `keep` characters of both
    ends can be shown."""
    if isinstance(value, str):
        end = keep + 2 * MARGIN
        if len(value) <= 2 * end:
            return value
        chars, size = _written(value, end, len(value) - end)
        return Torn(head=value[:end], tail=value[-end:], chars=chars, size=size)
    if isinstance(value, dict):
        return {key: torn(each, keep=keep) for key, each in value.items()}
    if isinstance(value, list):
        return [torn(each, keep=keep) for each in value]
    return value


def missing(value: Any) -> tuple[int, int]:
    """(characters, bytes) that the torn strings in it lack."""
    if isinstance(value, Torn):
        return value.chars, value.size
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        each = [missing(one) for one in value]
        return sum(chars for chars, _ in each), sum(size for _, size in each)
    return 0, 0


def plain(value: Any) -> Any:
    """Torn strings as text, with their secrets: only for counting."""
    if isinstance(value, Torn):
        return value.head + value.tail
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value


def hidden(value: Any) -> Any:
    """The value without its secrets, torn strings joined by a mark that says what is missing."""
    if isinstance(value, str):
        return hidden_text(value)
    if isinstance(value, Torn):
        head, tail = redact(value.head)[:-MARGIN], redact(value.tail)[MARGIN:]
        return f"{head}…{value.chars} chars truncated…{tail}"
    if isinstance(value, dict):
        return {
            _key(key): _tree(each)
            if key in _TREES and isinstance(each, dict | list)
            else hidden(each)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [hidden(each) for each in value]
    return value


def hidden_text(text: str, deep: int = 0) -> str:
    """
    >>> hidden_text('{"cmd": "PASSWORD=\\\\"horse7battery9\\\\" run"}')
    '{"cmd": "PASSWORD=\\\\"[REDACTED_SECRET]\\\\" run"}'
    """
    if len(text) < 8 or _PLAIN.fullmatch(text):
        return text
    if deep < _DEEPEST and _is_json(text):
        return _hidden_json(text, deep)
    return redact(text)


def _is_json(text: str) -> bool:
    if text[:1] not in "{[" or text.rstrip()[-1:] not in ("}", "]"):
        return False
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError, UnicodeEncodeError):
        return False
    return True


def _hidden_json(text: str, deep: int) -> str:
    """Strings with escapes are searched decoded, each for itself; what stands between them reads
    as it is, names beside their values."""
    parts: list[str] = []
    at = 0
    for literal in _LITERAL.finditer(text):
        if "\\" not in literal[0]:
            continue
        parts.append(redact(text[at : literal.start()]))
        said = json.loads(literal[0], strict=False)
        kept = hidden_text(said, deep + 1)
        parts.append(
            literal[0] if kept == said else json.dumps(kept, ensure_ascii=literal[0].isascii())
        )
        at = literal.end()
    parts.append(redact(text[at:]))
    return "".join(parts)


def _tree(value: Any) -> Any:
    """A tool's own tree. Names count as labels, so that it is searched as the JSON that it was."""
    value = hidden(value)
    text = encoded(value).decode()
    kept = _hidden_json(text, 0)
    if kept == text:
        return value
    try:
        return msgspec.json.decode(kept)
    except ValueError:
        return kept  # No secret is let through for the sake of a shape.


def _key(key: str) -> str:
    return key if len(key) < 8 or _PLAIN.fullmatch(key) else redact(key)


def _written(text: str, start: int, end: int, piece: int = 1 << 20) -> tuple[int, int]:
    chars = size = 0
    for at in range(start, end, piece):
        content = encoded(text[at : min(at + piece, end)])
        size += len(content) - 2
        chars += len(content.decode("utf-8", "replace")) - 2
    return chars, size
