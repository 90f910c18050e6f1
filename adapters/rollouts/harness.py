"""What stands in the user's role although no person typed it, and how it is told apart.

Programs put instructions, environment, reminders, echoes of commands and our own memory into the
user's mouth. Only what is left after taking those out is a person's word. The rule errs towards
the program: a lost sentence costs little, an invented preference is believed for months.
"""

import re
from typing import Literal

from msgspec import Struct

# Our own memory as `context` fences it; a session must learn nothing from it.
MEMORY_FENCE = "threadbook-memory"

What = str
Whose = Literal["typed", "harness", "agent"]


class Piece(Struct, frozen=True):
    whose: Whose
    text: str
    what: What = ""


_BLOCKS = (
    "system-reminder|system_reminder|user_instructions|environment_context|INSTRUCTIONS|skill"
    "|task-notification|command-[a-z-]+|local-command-[a-z-]+|turn_aborted|subagent_notification"
    "|bash-[a-z-]+|user_shell_command|user-prompt-submit-hook|ide_opened_file|ide_selection"
    "|ide_diagnostics|new-diagnostics|hook_prompt|permissions_instructions|collaboration_mode"
    "|apps_instructions|skills_instructions|plugins_instructions|memory_instructions"
    "|user_action|goal_context|hook_context|teammate-message|post-tool-use-hook|session-start-hook|persisted-output"
    f"|{MEMORY_FENCE}"
)
_MARK = re.compile(rf"<(/?)({_BLOCKS})(?:\s[^<>]*)?>")
_MEMORY_BANNER = re.compile(
    r"^=+ ?MEMORY_SUMMARY BEGINS ?=+$.*?(?:^=+ ?MEMORY_SUMMARY ENDS ?=+$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_FENCED = re.compile(rf"<{MEMORY_FENCE}(?:\s[^<>]*)?>.*?(?:</{MEMORY_FENCE}>|\Z)", re.DOTALL)
_BEGINNINGS: tuple[tuple[str, What], ...] = (
    ("# AGENTS.md", "instructions"),
    ("# CLAUDE.md", "instructions"),
    ("[Request interrupted", "interruption"),
    ("Caveat: The messages below", "caveat"),
    ("This session is being continued", "compact_summary"),
    ("Another language model started to solve this problem", "compact_summary"),
)
_AGENT_BEGINNING = "Message Type:"
_GLUED_SKILL = re.compile(r"\n---\nname:")
# Codex labels a picture with texts around it.
_IMAGE_LABEL = re.compile(r"\s*</?image(?:\s[^<>]*)?>\s*")
_REQUEST_HEADING = re.compile(r"^#+ My request for Codex:[ \t]*$\n?", re.MULTILINE)
# What stands between these was typed; the program only put marks around it.
_WRAPPINGS = ("user_query", "user-memory-input")


def pieces(text: str, *, wrapped: bool = True) -> list[Piece]:
    """A user-role text in order, each piece with who wrote it. Blank pieces are left out. What an
    editor may have `wrapped` is unwrapped once, since nobody wraps twice."""
    start = text.lstrip()
    if _IMAGE_LABEL.fullmatch(text):
        return [Piece("harness", text, "image_label")]
    if start.startswith(_AGENT_BEGINNING):
        return [Piece("agent", text)]
    for beginning, what in _BEGINNINGS:
        if start.startswith(beginning):
            return [Piece("harness", text, what)]
    for name in _WRAPPINGS if wrapped else ():
        opening, closing = f"<{name}>", f"</{name}>"
        if start.startswith(opening) and (inner := start.rstrip()).endswith(closing):
            return pieces(inner[len(opening) : -len(closing)], wrapped=False)
    if wrapped and start.startswith("# ") and (heading := _REQUEST_HEADING.search(text)):
        context = Piece("harness", text[: heading.start()], "editor_context")
        return [
            piece
            for piece in (context, *pieces(text[heading.end() :], wrapped=False))
            if piece.text.strip()
        ]
    found: list[Piece] = []
    at = 0
    for begin, end, what in _blocks(text):
        found += (Piece("typed", text[at:begin].strip()), Piece("harness", text[begin:end], what))
        at = end
    rest = text[at:]
    if glued := _GLUED_SKILL.search(rest):
        found += (Piece("typed", rest[: glued.start()].strip()),)
        found += (Piece("harness", rest[glued.start() :], "skill"),)
    else:
        found.append(Piece("typed", rest.strip()))
    return [piece for piece in found if piece.text.strip()]


def without_memory(text: str) -> str:
    """A tool's text without memory that it showed: read back, it would confirm itself."""
    if MEMORY_FENCE in text:
        text = _FENCED.sub("[memory]", text)
    if "MEMORY_SUMMARY BEGINS" in text:
        text = _MEMORY_BANNER.sub("[memory]", text)
    return text


def request(text: str) -> str:
    """What a preview shows of a message: what follows the heading that an editor puts before it."""
    heading = _REQUEST_HEADING.search(text)
    return (text[heading.end() :] if heading else text).strip()


def _blocks(text: str) -> list[tuple[int, int, What]]:
    """The outermost marked blocks, in order. One that is never closed counts only where it begins
    the text: in the middle of a sentence a person may well name a tag. One pass, whatever the
    nesting, because the text may be a hostile page that somebody pasted."""
    found = [(banner.start(), banner.end(), "memory") for banner in _MEMORY_BANNER.finditer(text)]
    open_at: dict[str, list[int]] = {}
    for mark in _MARK.finditer(text):
        starts = open_at.setdefault(mark[2], [])
        if not mark[1]:
            starts.append(mark.start())
        elif starts:
            found.append((starts.pop(), mark.end(), mark[2]))
    outermost: list[tuple[int, int, What]] = []
    at = 0
    for begin, end, what in sorted(found, key=lambda block: (block[0], -block[1])):
        if begin >= at:
            outermost.append((begin, end, what))
            at = end
    first = _MARK.match(text, len(text) - len(text.lstrip()))
    if first and not first[1] and (not outermost or outermost[0][0] > first.start()):
        return [(first.start(), len(text), first[2])]
    return outermost
