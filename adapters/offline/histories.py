"""The summary of a v2 root: all that its reader is given, out of its sessions' histories.

It has what a person stated as lasting, or wrote in several sessions, then one line a session with
the name of its file; what was said for one task stands under that task. Each statement ends with
the ids of its sessions, the newest three of many, so that it goes with them. Below 10,000 bytes
with room to spare: lines of least worth go first, whole, and it says how many.
"""

import re
from collections.abc import Sequence

from ...application.ports import PhaseTwoOutput
from ...domain.artifact import SINGLE_MARKS_MAX, SUMMARIES, V2_SUMMARY_BYTES, thread_marks
from . import history
from .sheet import Line, fitted, place, recent_days, wish
from .tasks import Group, Task, groups_of, lasts, preferences

SUMMARY_BYTES_MAX = V2_SUMMARY_BYTES - 500
TOLD_MAX = 3  # Of one session, of each kind; its history has the rest.
KEYWORDS_MAX = 6

_ANSWERED = re.compile(r"; afterwards `.+` passed$")
# What passed is the same line: that is of its day.
_REPEATED = re.compile(r"^(`.+`) failed\b.*; afterwards \1 passed$")
_MARKABLE = re.compile(r"[^\s,]+")


def summary(scope: str, outputs: Sequence[PhaseTwoOutput]) -> str:
    groups = groups_of(scope, outputs, lambda output: history.parse(output.rollout_summary))
    return fitted(
        [*_wishes(groups), *_index(groups)],
        bytes_max=SUMMARY_BYTES_MAX,
        rest=f"{SUMMARIES}/ holds all",
    )


def mark(tasks: Sequence[Task]) -> str:
    return thread_marks(_name(task) for task in tasks)


def _name(task: Task) -> str:
    """The session's id; where that is no word by itself, the name of its file."""
    thread_id = task.output.thread_id
    return thread_id if _MARKABLE.fullmatch(thread_id) else task.file


def _wishes(groups: Sequence[Group]) -> list[Line]:
    return [
        wish(group, bullet, marks=mark(bullet.tasks[:SINGLE_MARKS_MAX]))
        for group in groups
        for bullet in preferences(group)
        if lasts(bullet) or len({task.number for task in bullet.tasks}) > 1
    ]


def _index(groups: Sequence[Group]) -> list[Line]:
    recent = recent_days(groups)
    told: list[Line] = []
    older: list[Line] = []
    for group in groups:
        once = [b for b in preferences(group) if not lasts(b) and len(b.tasks) == 1]
        tasks = sorted(group.tasks, key=lambda t: (t.day, t.output.updated_at), reverse=True)
        for at, task in enumerate(tasks):
            new = task.day in recent
            where = place(group, task, recent=new)
            updated_at = task.output.updated_at
            into = told if new else older
            # Each project keeps a line as long as there is room for one.
            worth = 4 if at == 0 else 2 + new
            # Of the older ones there are many: their ids find their files.
            about = _described(task) if new else f"{task.name}{mark([task])}"
            into.append(Line(text=f"- {about}", place=where, worth=worth, updated_at=updated_at))
            if new:
                said = [b.text for b in once if b.tasks[0] is task][:TOLD_MAX]
                learned = _learnings(task)
                for worth, label, texts in (
                    (1, history.ONCE, said),
                    (0, history.FAILED, learned),
                ):
                    into += [
                        Line(
                            text=f"  - {label}: {text}",
                            place=where,
                            worth=worth,
                            updated_at=updated_at,
                        )
                        for text in texts
                    ]
    return told + older


def _learnings(task: Task) -> list[str]:
    """What failed and what else then passed."""
    told = filter(_ANSWERED.search, task.remembered.failures)
    return [text for text in told if not _REPEATED.match(text)][:TOLD_MAX]


def _described(task: Task) -> str:
    words = ", ".join(task.keywords[:KEYWORDS_MAX])
    return (
        f"{SUMMARIES}/{task.file} — {task.name}, {task.remembered.outcome}: {words}{mark([task])}"
    )
