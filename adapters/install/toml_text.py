"""TOML as a text that stays as it is: a table is put at its end or taken out, the rest is left.

tomllib reads what a text says; where it says it is found here, statement by statement: table
headers and keys, with their whole path. Values are only walked over. A text comes here when
tomllib has read it.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from .draft import CannotEdit, Draft, newline_of

Path = tuple[str, ...]
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"[ \t]*")


class Statement(Struct, frozen=True):
    """A header or a key with its value: its whole path, its lines, and where its value is."""

    path: Path
    is_header: bool
    start: int
    end: int
    value: tuple[int, int] = (0, 0)


def parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CannotEdit(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise CannotEdit(str(error) or "nested beyond reason") from error


def table(draft: Draft, path: Sequence[str], values: Mapping[str, Any], *, comment: str) -> None:
    """Put a table behind everything else, with a comment above it."""
    text, newline = draft.text, newline_of(draft.text)
    lines = [f"# {comment}", f"[{'.'.join(path)}]"]
    lines += [f"{key} = {literal(value)}" for key, value in values.items()]
    before = ""
    if text and not text.endswith("\n"):
        before = newline
    if text.strip():
        before += newline
    draft.insert(len(text), before + newline.join(lines) + newline)


def set_value(draft: Draft, path: Path, value: Any) -> None:
    """Write one value of a table anew, where the table has it as a key of its own."""
    for statement in statements(draft.text):
        if statement.path == path and not statement.is_header:
            draft.replace(*statement.value, literal(value))
            return
    raise CannotEdit(f"{'.'.join(path)} is not a line of its own")


def remove(text: str, prefix: Path, *, comment: str) -> str:
    """The text without the table at `prefix`, the ones below it, and our comment above it."""
    kept, at = [], 0
    for statement in statements(text):
        if statement.path[: len(prefix)] != prefix:
            continue
        start = statement.start
        line_before = text.rfind("\n", 0, max(start - 1, 0)) + 1
        if text[line_before:start].strip() == f"# {comment}":
            start = line_before
        kept.append(text[at:start])
        at = statement.end
    return "".join(kept) + text[at:]


def literal(value: Any) -> str:
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for the one character that JSON lets stand.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"[{', '.join(literal(each) for each in value)}]"


def statements(text: str) -> list[Statement]:
    found: list[Statement] = []
    table: Path = ()
    at = 0
    while at < len(text):
        start = at
        at = _blank(text, at)
        if at == len(text):
            break
        if text[at] in "\r\n#":
            at = _next_line(text, at)
        elif text[at] == "[":
            table, behind = _key(text, _blank(text, at + (2 if text.startswith("[[", at) else 1)))
            at = _next_line(text, behind)
            found.append(Statement(table, True, start, at))
        else:
            key, at = _key(text, at)
            value = _blank(text, at + 1)
            end = _end_of_value(text, value)
            at = _next_line(text, end)
            found.append(Statement((*table, *key), False, start, at, (value, end)))
    return found


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    assert found is not None
    return found.end()


def _next_line(text: str, at: int) -> int:
    newline = text.find("\n", at)
    return len(text) if newline < 0 else newline + 1


def _key(text: str, at: int) -> tuple[Path, int]:
    """The names of a dotted key, and where what stands behind it begins."""
    names: list[str] = []
    while True:
        if text[at] in "\"'":
            end = _end_of_string(text, at)
            names.append(tomllib.loads(f"name = {text[at:end]}")["name"])
        else:
            bare = _BARE.match(text, at)
            assert bare is not None
            names.append(bare[0])
            end = bare.end()
        at = _blank(text, end)
        if text[at] != ".":
            return tuple(names), at
        at = _blank(text, at + 1)


def _end_of_string(text: str, at: int) -> int:
    quote = text[at]
    if text.startswith(quote * 3, at):
        at += 3
        while not text.startswith(quote * 3, at):
            at += 2 if text[at] == "\\" and quote == '"' else 1
        at += 3
        while text.startswith(quote, at):  # Up to two quotes may stand before the closing ones.
            at += 1
        return at
    at += 1
    while text[at] != quote:
        at += 2 if text[at] == "\\" and quote == '"' else 1
    return at + 1


def _end_of_value(text: str, at: int) -> int:
    depth, end = 0, at
    while at < len(text):
        mark = text[at]
        if mark in "\"'":
            at = end = _end_of_string(text, at)
            continue
        if mark == "#" and depth:
            at = _next_line(text, at)
            continue
        if not depth and mark in "\n#":
            break
        depth += (mark in "[{") - (mark in "]}")
        at += 1
        if mark not in " \t\r\n":
            end = at
    return end
