"""JSON as a text that stays as it is: a member is put in or taken out, every other byte is left.

Strict JSON only. Neither agent reads settings with comments in them, so that such a file is one
that the person has to mend first, and editing it would hide that.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from .draft import CannotEdit, Draft, newline_of

Step = str | int
_WHITE = re.compile(r"[ \t\r\n]*")


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)


class Child(Struct, frozen=True):
    """A member or an element: its key, where it begins (with its key), where its value is."""

    key: Step
    begin: int
    start: int
    end: int


class Box(Struct, frozen=True):
    """An object or an array: where its brackets are, and what stands between them."""

    opening: int
    closing: int
    children: tuple[Child, ...]


def parsed(text: str) -> Any:
    """What the text says. Blank is an empty object, as both agents take it."""
    if not text.strip(" \t\r\n"):
        return {}
    try:
        start = _skip(text, 0)
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise CannotEdit(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise CannotEdit(str(error) or "nested beyond reason") from error
    if (rest := _skip(text, end)) != len(text):
        line = text.count("\n", 0, rest) + 1
        raise CannotEdit(f"line {line}: something stands behind the end")
    return value


def append(draft: Draft, path: Sequence[str], value: Any) -> None:
    """Put `value` behind the last element of the array at `path`, which is made if need be."""
    _put(draft, tuple(path), None, value)


def set_key(draft: Draft, path: Sequence[str], key: str, value: Any) -> None:
    """Put a new key behind the last one of the object at `path`, which is made if need be."""
    _put(draft, tuple(path), key, value)


def _put(draft: Draft, path: tuple[str, ...], key: str | None, value: Any) -> None:
    if not draft.text.strip(" \t\r\n"):
        draft.insert(len(draft.text), "{}" + newline_of(draft.text))
    there = len(path)
    while (start := _find(draft.text, path[:there])) is None:
        there -= 1
    if there == len(path):
        _append(draft, start, key, value)
        return
    inner: Any = [value] if key is None else {key: value}
    for step in reversed(path[there + 1 :]):
        inner = {step: inner}
    _append(draft, start, path[there], inner)


def replace(draft: Draft, path: Sequence[Step], value: Any) -> None:
    parent, index = _parent(draft.text, tuple(path))
    child = parent.children[index]
    draft.replace(child.start, child.end, json.dumps(value, ensure_ascii=False))


def remove(text: str, path: Sequence[Step]) -> str:
    """The text without that member or element, its comma and its line."""
    parent, index = _parent(text, tuple(path))
    children = parent.children
    if len(children) == 1:
        start, end = parent.opening + 1, children[0].end
    elif index == len(children) - 1:
        start, end = children[index - 1].end, children[index].end
    else:
        start, end = children[index].begin, children[index + 1].begin
    return text[:start] + text[end:]


def _append(draft: Draft, start: int, key: str | None, value: Any) -> None:
    text = draft.text
    box = _box(text, start)
    newline, unit = newline_of(text), _unit(text)
    one_line = "\n" not in text.strip()
    label = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
    if box.children:
        last = box.children[-1]
        before = box.children[-2].end if len(box.children) > 1 else box.opening + 1
        lead = text[before : last.begin].lstrip(",")
        if "\n" in lead:
            indent = lead[lead.rindex("\n") + 1 :]
            draft.insert(
                last.end, f",{newline}{indent}{label}{_lines(value, unit, newline + indent)}"
            )
        else:
            draft.insert(last.end, f", {label}{json.dumps(value, ensure_ascii=False)}")
        return
    inside = text[box.opening + 1 : box.closing]
    if one_line and text.strip() != "{}":
        draft.insert(box.opening + 1, f"{label}{json.dumps(value, ensure_ascii=False)}")
        return
    outer = _indent_of_line(text, box.opening)
    indent = outer + unit
    written = f"{newline}{indent}{label}{_lines(value, unit, newline + indent)}"
    draft.insert(box.opening + 1, written if "\n" in inside else written + newline + outer)


def _lines(value: Any, unit: str, newline: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", newline)


def _unit(text: str) -> str:
    """What the file indents by: the white space before its first member."""
    start = _skip(text, 0)
    lead = text[start + 1 : _skip(text, start + 1)]
    indent = lead[lead.rindex("\n") + 1 :] if "\n" in lead else ""
    return indent or "  "


def _indent_of_line(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _skip(text: str, at: int) -> int:
    found = _WHITE.match(text, at)
    assert found is not None
    return found.end()


def _box(text: str, start: int) -> Box:
    children: list[Child] = []
    is_object = text[start] == "{"
    at = _skip(text, start + 1)
    while text[at] not in "}]":
        begin = at
        key: Step = len(children)
        if is_object:
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        _, end = _DECODER.raw_decode(text, at)
        children.append(Child(key, begin, at, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return Box(start, at, tuple(children))


def _index(box: Box, step: Step) -> int | None:
    """The last of that key: of two the later one counts, for Python as for JavaScript."""
    found = (n for n in range(len(box.children) - 1, -1, -1) if box.children[n].key == step)
    return next(found, None)


def _find(text: str, path: tuple[Step, ...]) -> int | None:
    start = _skip(text, 0)
    for step in path:
        if text[start] not in "{[":
            return None
        box = _box(text, start)
        if (index := _index(box, step)) is None:
            return None
        start = box.children[index].start
    return start


def _parent(text: str, path: tuple[Step, ...]) -> tuple[Box, int]:
    start = _find(text, path[:-1])
    assert start is not None
    box = _box(text, start)
    index = _index(box, path[-1])
    assert index is not None
    return box, index
