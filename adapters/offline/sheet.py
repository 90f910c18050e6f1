"""The sheet: memory_summary.md as both versions write it, and what of it goes when it is too long.

Wishes that last, then an index by project and day, the older days by project alone. Whole lines
only, those of least worth first, and it says how many went.
"""

from collections.abc import Sequence

from msgspec import Struct

from ...domain.artifact import SINGLE_MARKS_MAX
from . import lines, memory
from .tasks import Bullet, Group, Task

RECENT_DAYS = 3


class Line(Struct, frozen=True, kw_only=True):
    """A line of the sheet, and the headings over it; none over a wish. Low `worth` goes first."""

    text: str
    place: tuple[str, ...]
    worth: int
    updated_at: int


def fitted(told: Sequence[Line], *, bytes_max: int, rest: str) -> str:
    """The sheet within so many bytes. `rest` says where all of it stands."""
    kept = set(range(len(told)))
    # The oldest of the least worth goes first.
    leaving = sorted(kept, key=lambda i: (told[i].worth, told[i].updated_at, -i))
    # The text only shrinks: count the bytes down, and write it out when the count says it fits.
    while True:
        text = written([told[i] for i in sorted(kept)], len(told) - len(kept), rest=rest)
        over = len(text.encode("utf-8", "replace")) - bytes_max
        if over <= 0 or not leaving:
            return text
        while over > 0 and leaving:
            gone = leaving.pop(0)
            kept.discard(gone)
            over -= len(told[gone].text.encode("utf-8", "replace")) + 1


def written(told: Sequence[Line], left_out: int, *, rest: str) -> str:
    wishes = [line.text for line in told if not line.place]
    out = [
        "v1",
        "",
        "## User Profile",
        "",
        "## User preferences",
        *wishes,
        "",
        "## General Tips",
        "",
    ]
    out.append("## What's in Memory")
    stands: tuple[str, ...] = ()
    for line in told:
        for depth, heading in enumerate(line.place):
            if line.place[: depth + 1] != stands[: depth + 1]:
                out.append(heading)
        stands = line.place or stands
        if line.place:
            out.append(line.text)
    if left_out:
        out += ["", f"({lines.counted(left_out, 'line')} left out for length; {rest}.)"]
    return "\n".join(out) + "\n"


def recent_days(groups: Sequence[Group]) -> set[str]:
    days = sorted({task.day for group in groups for task in group.tasks}, reverse=True)
    return set(days[:RECENT_DAYS])


def place(group: Group, task: Task, *, recent: bool) -> tuple[str, ...]:
    if recent:
        return f"### {group.name}", f"#### {task.day}"
    return "### Older Memory Topics", f"#### {group.name}"


def wish(group: Group, bullet: Bullet, *, marks: str) -> Line:
    """A wish that lasts, with when it was said; `marks` name where, as the version has it."""
    return Line(
        text=f"- in {group.name} {bullet.text} ({said_when(bullet)}){marks}",
        place=(),
        worth=5,
        updated_at=bullet.updated_at,
    )


def said_when(bullet: Bullet) -> str:
    day = memory.day(bullet.updated_at)
    count = len({task.number for task in bullet.tasks})
    return day if count <= SINGLE_MARKS_MAX else f"{day}, in {count} sessions"
