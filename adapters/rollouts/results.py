"""What a tool's result says of itself: the exit code that stands in its head, and the text behind.

Only the head is believed. A program can print "Exit code 1" as well, and a page can say anything.
"""

import json
import re

_HEAD_LINE = re.compile(
    r"(?:Chunk ID: |Wall time: |Process (?:exited|running) |Original token count: |Exit code: "
    r"|Total output lines: )[^\n]*(?:\n|\Z)"
)
_BODY = re.compile(r"Output:[ \t]*(?:\n|\Z)")
_CODE = re.compile(r"^(?:Process exited with code |Exit code: )(-?\d{1,10})[ \t]*$", re.MULTILINE)
# A patch that a shell call carried has its own head behind the shell's.
_PATCH_HEAD = re.compile(r"Exit code: (-?\d{1,10})\nWall time: [\d.]+ seconds\nOutput:\n")
_FIRST_LINE_CODE = re.compile(r"(?:Error: )?Exit code (-?\d{1,10})[ \t]*(?:\n|\Z)")


def result(text: str) -> tuple[str, int | None]:
    """(what the tool printed, its exit code) of a result as a rollout holds it."""
    text, exit_code = _unwrapped(text)
    at = 0
    while line := _HEAD_LINE.match(text, at):
        at = line.end()
    if at == 0:
        return (text, exit_code) if exit_code is not None else first_line(text)
    for code in _CODE.finditer(text[:at]):
        exit_code = int(code[1])
    body = _BODY.match(text, at)
    text = text[body.end() if body else at :]
    if body and exit_code is None and (nested := _PATCH_HEAD.match(text)):
        return text[nested.end() :], int(nested[1])
    return text, exit_code


def first_line(text: str) -> tuple[str, int | None]:
    """The same where the code is the first line, as Claude Code writes it for a failed command."""
    code = _FIRST_LINE_CODE.match(text)
    return (text[code.end() :], int(code[1])) if code else (text, None)


def failed(exit_code: int | None) -> bool | None:
    return None if exit_code is None else exit_code != 0


def _unwrapped(text: str) -> tuple[str, int | None]:
    """The older form: a JSON object with the output and, beside it, facts about the run."""
    if not text.startswith("{") or '"exit_code"' not in text:
        return text, None
    try:
        whole = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text, None
    printed = whole.get("output", whole.get("stdout"))
    if not isinstance(printed, str):
        return text, None
    facts = whole.get("metadata")
    code = (facts if isinstance(facts, dict) else whole).get("exit_code")
    return printed, code if isinstance(code, int) and not isinstance(code, bool) else None
