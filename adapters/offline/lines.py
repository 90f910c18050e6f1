"""How foreign text becomes part of one line of ours.

Whatever a person, a tool or a model wrote is data: it stays on its line, it is bounded, and it can
neither open a heading, a fence or a list nor look like one of our own marks. Three marks are ours:
`the user wrote "…"` (straight quotation marks), a command between backticks, and `[Task n]` or
`[Tasks 1-4]`. So straight quotation marks inside a quote become curly, backticks a longer fence,
and `[Task 3]` becomes `(Task 3)`. Each function gives the same text again when it is given its own
result, which is what lets a test, or a reader, find the words in the transcript.
"""

import re

QUOTE_CHARS_MAX = 300
COMMAND_CHARS_MAX = 200
ERROR_CHARS_MAX = 120
NAME_CHARS_MAX = 120

_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u2028-\u202f\u2060-\u206f\u3164"
    "\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_SPACE = re.compile(r"\s+")
_TASK_MARK = re.compile(r"\[(\s*tasks?\b[\d\s,\u2013-]*|\s*task\s*\d*\s*)\]?", re.IGNORECASE)
_BACKTICKS = re.compile(r"`+")


def one_line(text: str, chars_max: int) -> str:
    """White space collapsed, invisible characters gone, cut at a word with an ellipsis.

    >>> one_line("a\\n  b [Task 3]", 80)
    'a b (Task 3)'
    """
    # A joiner inside an emoji or an Arabic word goes as well: it could hide a mark of ours.
    # The bound comes first so that a message of megabytes costs no more than a line.
    text = text[: 8 * chars_max + 1000]
    text = _SPACE.sub(" ", _CONTROL.sub(lambda c: " " if c[0].isspace() else "", text)).strip()
    text = _TASK_MARK.sub(lambda m: f"({m[1].strip()})", text)
    if len(text) <= chars_max:
        return text
    cut = text[: chars_max - 1]
    if " " in cut[chars_max // 2 :]:
        cut = cut[: cut.rindex(" ")]
    return cut.rstrip(" ,;:") + "…"


def quote(text: str, chars_max: int = QUOTE_CHARS_MAX) -> str:
    """What a person typed, ready to stand between straight quotation marks."""
    opening = True
    out = []
    for c in one_line(text, chars_max):
        if c == '"':
            out.append("“" if opening else "”")
            opening = not opening
        else:
            out.append(c)
    return "".join(out)


def name(text: str) -> str:
    """A sentence as the name of a task: a quote without its end mark."""
    return quote(text, NAME_CHARS_MAX).rstrip(" .:;,。")


def command(text: str) -> str:
    """A command in a code span. A fence of two holds single backticks; longer runs become one."""
    text = one_line(text, COMMAND_CHARS_MAX)
    if "`" not in text:
        return f"`{text}`"
    return f"`` {_BACKTICKS.sub('`', text)} ``"


def unspanned(text: str) -> str:
    """A line without its code spans."""
    return re.sub(r"(`+).*?\1", "", text)


def error(text: str) -> str:
    """A line of a tool's output. It can hold neither a command span nor a person's quote."""
    return one_line(text, ERROR_CHARS_MAX).replace("`", "'").replace('"', "'")


def path(text: str) -> str:
    return one_line(text, QUOTE_CHARS_MAX).replace("`", "'").replace('"', "'")


def slug(text: str) -> str | None:
    """
    >>> slug("Add a retry test, please")
    'add_a_retry_test_please'
    """
    words = re.findall(r"[a-z0-9]+", text.lower())
    return "_".join(words)[:60].strip("_") or None


def counted(count: int, noun: str, plural: str | None = None) -> str:
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
