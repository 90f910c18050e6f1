"""brief: what a consolidator is told: the instructions of a memory version, and what the task is.

Names of files may be a stranger's, and what was refused quotes files: each is put on one line, as
data between the prompt's own words.
"""

from collections.abc import Iterable
from hashlib import sha256

from ...application.ports import Task
from ...projections.folder import WORKSPACE_DIFF
from ...prompts import filled, prompt

EXTENSIONS = "extensions/"
INSTRUCTIONS = "/instructions.md"


def instructions(memory_version: str) -> str:
    return prompt(f"consolidation_{memory_version}")


def message(task: Task, *, tools: Iterable[str], budget: Iterable[str]) -> str:
    """Where a proposal was refused before, with what was wrong with it."""
    extensions = sorted(
        path for path in task.staged if path.startswith(EXTENSIONS) and path.endswith(INSTRUCTIONS)
    )
    said = filled(
        "consolidation_input",
        {
            "mode": task.mode,
            "diff_file": WORKSPACE_DIFF,
            "edited": listed(task.edited, none="nothing"),
            "extensions": listed(extensions, none="none"),
            "tools": listed(tools, none="none"),
            "budget": listed(budget, none="none"),
        },
    )
    if task.refused:
        refused = filled("consolidation_refused", {"refusals": listed(task.refused, none="none")})
        said = f"{said}\n{refused}"
    # A file's name may hold what is no Unicode, and that can be sent to nobody.
    return said.encode("utf-8", "replace").decode()


def digest(memory_version: str, *, tools: bytes = b"") -> str:
    """What was asked, whatever the task was: instructions, the frames of a message, the tools."""
    asked = (
        instructions(memory_version).encode(),
        prompt("consolidation_input").encode(),
        prompt("consolidation_refused").encode(),
        tools,
    )
    return sha256(b"\0".join(asked)).hexdigest()


def listed(lines: Iterable[str], *, none: str) -> str:
    return "\n".join(f"- {one_line(each)}" for each in lines) or none


def one_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
