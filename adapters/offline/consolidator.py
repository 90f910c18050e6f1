"""The offline consolidator: the artifacts of one memory root out of its selected outputs.

It reads the outputs and nothing else, so what only a departed session supported is gone from the
next artifacts without anybody looking for it, and the same selection gives the same bytes. One
session is one task; tasks are numbered through the whole of MEMORY.md in the order of their thread
ids, and every bullet ends with the tasks that support it. An output that another writer made is
carried by its own bullets.

A wish that many sessions stated names all of them in MEMORY.md and the newest three, with a
count, in the summary.

MEMORY.md holds everything. memory_summary.md is what a reader gets unasked: the wishes that last,
then an index, within the budget; when it is too long, index lines go first, wishes last, whole
lines only, and it says how many went.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from ...application import ports
from ...application.ports import PhaseTwoOutput
from ...domain.artifact import (
    MEMORY,
    SINGLE_MARKS_MAX,
    SUMMARIES,
    SUMMARY,
    SUMMARY_BYTES_MAX,
)
from . import histories, lines, memory
from .sheet import Line, fitted, place, recent_days, wish
from .tasks import Group, Task, bullets, groups_of, lasts, preferences, references

LEARNINGS_MAX = 3  # Of one session; MEMORY.md has the rest.
_CWDS_MAX = 5
_ANSWERED = re.compile(r"; afterwards `.+` passed$")


class OfflineConsolidator:
    name = "offline"
    kind: Literal["offline"] = "offline"

    def propose(self, task: ports.Task) -> ports.Proposal:
        return ports.Proposal(
            files=self.consolidate(
                memory_version=task.memory_version, scope=task.scope, outputs=task.outputs
            )
        )

    def consolidate(
        self,
        *,
        scope: str,
        outputs: Sequence[PhaseTwoOutput],
        published: Mapping[str, str] | None = None,
        memory_version: str = "v1",
    ) -> dict[str, str]:
        # What was published is not read: a line whose session has gone must not come from there.
        if memory_version == "v2":
            return {SUMMARY: histories.summary(scope, outputs)}
        groups = groups_of(scope, outputs, lambda output: memory.parse(output.raw_memory))
        return {MEMORY: _handbook(groups), SUMMARY: _summary(groups)}


# MEMORY.md


def _handbook(groups: Sequence[Group]) -> str:
    if not groups:
        return _block(["# Task Group: none yet", *_applies(["none"], "no session is kept here")])
    return "\n".join(_group(group) for group in groups)


def _group(group: Group) -> str:
    cwds = list(dict.fromkeys(task.cwd for task in group.tasks))
    told = [
        *cwds[:_CWDS_MAX],
        *([f"{len(cwds) - _CWDS_MAX} more"] if len(cwds) > _CWDS_MAX else []),
    ]
    blocks = [
        _block([f"# Task Group: {group.name}", *_applies(told, f"work in {', '.join(told)}")])
    ]
    for task in group.tasks:
        # A comma may stand in a name, so the outcome is what follows the last one.
        blocks.append(_block([f"## Task {task.number}: {task.name}, {task.remembered.outcome}"]))
        blocks.append(_block(["### rollout_summary_files", _source(task)]))
        blocks.append(_block(["### keywords", f"- {', '.join(task.keywords)}"]))
    for heading, statements in (
        ("## User preferences", preferences(group)),
        ("## Reusable knowledge", bullets(group, "knowledge")),
        ("## Failures and how to do differently", bullets(group, "failures")),
    ):
        if statements:
            blocks.append(_block([heading, *(each.line for each in statements)]))
    return "\n".join(blocks)


def _block(told: Sequence[str]) -> str:
    return "\n".join(told) + "\n"


def _applies(cwds: Sequence[str], scope: str) -> list[str]:
    return [f"scope: {scope}", f"applies_to: cwd={', '.join(cwds)}; reuse_rule=this project only"]


def _source(task: Task) -> str:
    output = task.output
    path = lines.path(output.rollout_path)
    updated_at = datetime.fromtimestamp(output.updated_at, UTC).isoformat()
    return (
        f"- {SUMMARIES}/{task.file} (cwd={task.cwd}, rollout_path={path},"
        f" updated_at={updated_at}, thread_id={lines.one_line(output.thread_id, 80)})"
    )


# memory_summary.md


def _summary(groups: Sequence[Group]) -> str:
    return fitted(
        [*_wishes(groups), *_index(groups)],
        bytes_max=SUMMARY_BYTES_MAX,
        rest=f"{MEMORY} holds all",
    )


def _wishes(groups: Sequence[Group]) -> list[Line]:
    return [
        wish(group, bullet, marks=f" {references(bullet.tasks[:SINGLE_MARKS_MAX])}")
        for group in groups
        for bullet in preferences(group)
        if lasts(bullet)
    ]


def _index(groups: Sequence[Group]) -> list[Line]:
    recent = recent_days(groups)
    told: list[Line] = []
    older: list[Line] = []
    for group in groups:
        tasks = sorted(group.tasks, key=lambda t: (t.day, t.output.updated_at), reverse=True)
        for at, task in enumerate(tasks):
            new = task.day in recent
            where = place(group, task, recent=new)
            into = told if new else older
            # Each project keeps a line as long as there is room for one.
            worth = 4 if at == 0 else 2 + new
            mark = references([task])
            topic = f"- {task.name}: {', '.join(task.keywords)} {mark}"
            desc = f"  - desc: {_described(task)} {mark}"
            updated_at = task.output.updated_at
            into.append(Line(text=topic, place=where, worth=worth, updated_at=updated_at))
            into.append(Line(text=desc, place=where, worth=int(new), updated_at=updated_at))
            if new:
                for learned in _learnings(task):
                    text = f"  - learnings: {learned} {mark}"
                    into.append(Line(text=text, place=where, worth=0, updated_at=updated_at))
    return told + older


def _learnings(task: Task) -> list[str]:
    """What failed and what then passed: a session that is given only the summary would begin with
    what failed. A correction is one session's until somebody searches for it."""
    return [text for text in task.remembered.failures if _ANSWERED.search(text)][:LEARNINGS_MAX]


def _described(task: Task) -> str:
    description = task.remembered.description or ""
    if description.startswith('asked "'):
        # The name stands in the line above.
        description = description.rpartition('"; ')[2]
    return "; ".join(filter(None, (task.remembered.outcome, description)))
