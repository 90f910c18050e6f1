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

from msgspec import Struct

from ...application import ports
from ...application.ports import PhaseTwoOutput
from ...domain.artifact import SINGLE_MARKS_MAX, SUMMARIES, SUMMARY_BYTES_MAX, task_marks
from ...projections.folder import summary_file_names
from . import cues, lines, memory
from .memory import Remembered
from .reading import loose

RECENT_DAYS = 3
LEARNINGS_MAX = 3  # Of one session; MEMORY.md has the rest.
_CWDS_MAX = 5
_ERROR_SHOWN = re.compile(r" failed(?: \d+ times)? \((.*?)\)(?=;|$)")
_ANSWERED = re.compile(r"; afterwards `.+` passed$")
_WROTE = re.compile(r'^the user wrote "(.*)"$')


class Task(Struct, frozen=True, kw_only=True):
    number: int
    output: PhaseTwoOutput
    remembered: Remembered
    name: str
    group: str
    cwd: str
    file: str

    @property
    def day(self) -> str:
        return memory.day(self.output.updated_at)

    @property
    def keywords(self) -> list[str]:
        """The words of the session, less those that its failure lines already show."""
        shown = [lines.unspanned(failure) for failure in self.remembered.failures]
        # A line whose error is nothing but the word says it already; of a longer error the words
        # are what somebody would search for.
        whole = {error for line in shown for error in _ERROR_SHOWN.findall(line)}
        found = [w for w in self.remembered.keywords if memory.searchable(w) and w not in whole]
        return found or memory.named_by(self.group, self.name, self.day)


class Group(Struct, frozen=True, kw_only=True):
    """The tasks of one project, in the order of their numbers."""

    name: str
    tasks: tuple[Task, ...]

    @property
    def updated_at(self) -> int:
        return max(task.output.updated_at for task in self.tasks)


class Bullet(Struct, frozen=True, kw_only=True):
    """A statement once, with every task that supports it, newest first in time."""

    text: str
    tasks: tuple[Task, ...]

    @property
    def line(self) -> str:
        return f"- {self.text} {references(self.tasks)}"

    @property
    def updated_at(self) -> int:
        return max(task.output.updated_at for task in self.tasks)


class OfflineConsolidator:
    name = "offline"
    kind: Literal["offline"] = "offline"

    def propose(self, task: ports.Task) -> ports.Proposal:
        return ports.Proposal(
            files=self.consolidate(scope=task.scope, outputs=task.outputs, published=task.published)
        )

    def consolidate(
        self, *, scope: str, outputs: Sequence[PhaseTwoOutput], published: Mapping[str, str]
    ) -> dict[str, str]:
        # What was published is not read: a line whose session has gone must not come from there.
        groups = _groups(scope, outputs)
        return {"MEMORY.md": _handbook(groups), "memory_summary.md": _summary(groups)}


def references(tasks: Sequence[Task]) -> str:
    return task_marks(task.number for task in tasks)


def _groups(scope: str, outputs: Sequence[PhaseTwoOutput]) -> list[Group]:
    """The newest project first; a name that two places share is told apart by the place."""
    files = summary_file_names(outputs)
    found: dict[tuple[str, str], list[Task]] = {}
    for number, output in enumerate(sorted(outputs, key=lambda o: o.thread_id), 1):
        remembered = memory.parse(output.raw_memory)
        cwd = lines.path(output.cwd) or "unknown"
        if scope.startswith("project:"):
            # A scope is one project, whatever its sub-directories are called.
            key = (lines.path(re.sub(r"-[0-9a-f]{8}$", "", scope.removeprefix("project:"))), "")
        else:
            key = (remembered.task_group or memory.task_group(None, output.cwd), cwd)
        task = Task(
            number=number,
            output=output,
            remembered=remembered,
            name=_name(output, remembered),
            group=key[0],
            cwd=cwd,
            file=files[output.thread_id],
        )
        found.setdefault(key, []).append(task)
    names = [name for name, _ in found]
    groups = [
        Group(name=f"{name} ({cwd})" if names.count(name) > 1 else name, tasks=tuple(tasks))
        for (name, cwd), tasks in found.items()
    ]
    return sorted(groups, key=lambda g: (-g.updated_at, g.tasks[0].number))


def _name(output: PhaseTwoOutput, remembered: Remembered) -> str:
    heading = re.search(r"^#[ \t]+(.+)$", output.rollout_summary, re.MULTILINE)
    named = remembered.task or (heading[1] if heading else "") or output.rollout_slug or ""
    return lines.name(named) or f"session {lines.one_line(output.thread_id, 80)}"


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
    for heading, bullets in (
        ("## User preferences", preferences(group)),
        ("## Reusable knowledge", _bullets(group, "knowledge")),
        ("## Failures and how to do differently", _bullets(group, "failures")),
    ):
        if bullets:
            blocks.append(_block([heading, *(bullet.line for bullet in bullets)]))
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


def preferences(group: Group) -> list[Bullet]:
    """Wishes that last before corrections, each in its newest order."""
    bullets = _bullets(group, "preferences")
    return sorted(bullets, key=lambda bullet: not lasts(bullet))


def lasts(bullet: Bullet) -> bool:
    """Whether the quote is a wish that lasts. Another writer's line is taken at its word."""
    wrote = _WROTE.match(bullet.text)
    return wrote is None or cues.lasts(wrote[1])


def _bullets(group: Group, section: str) -> list[Bullet]:
    """Each statement once, the newest session's first, a session's own in their order."""
    found: dict[str, Bullet] = {}
    for task in sorted(group.tasks, key=lambda t: (-t.output.updated_at, t.number)):
        texts: tuple[str, ...] = getattr(task.remembered, section)
        for text in texts:
            key = loose(text)
            before = found.get(key)
            found[key] = (
                Bullet(text=text, tasks=(task,))
                if before is None
                else Bullet(text=before.text, tasks=(*before.tasks, task))
            )
    return list(found.values())


# memory_summary.md


class Line(Struct, frozen=True, kw_only=True):
    """A line of the summary, or the headings over the lines that follow. Low `worth` goes first."""

    text: str
    place: tuple[str, ...]
    worth: int
    updated_at: int


def _summary(groups: Sequence[Group]) -> str:
    told = [*_wishes(groups), *_index(groups)]
    kept = set(range(len(told)))
    # The oldest of the least worth goes first.
    leaving = sorted(kept, key=lambda i: (told[i].worth, told[i].updated_at, -i))
    # The text only shrinks: count the bytes down, and write it out when the count says it fits.
    while True:
        text = _written([told[i] for i in sorted(kept)], len(told) - len(kept))
        over = len(text.encode("utf-8", "replace")) - SUMMARY_BYTES_MAX
        if over <= 0:
            return text
        while over > 0 and leaving:
            gone = leaving.pop(0)
            kept.discard(gone)
            over -= len(told[gone].text.encode("utf-8", "replace")) + 1


def _wishes(groups: Sequence[Group]) -> list[Line]:
    return [
        Line(
            text=f"- in {group.name} {bullet.text} ({_said_when(bullet)})"
            f" {references(bullet.tasks[:SINGLE_MARKS_MAX])}",
            place=(),
            worth=5,
            updated_at=bullet.updated_at,
        )
        for group in groups
        for bullet in preferences(group)
        if lasts(bullet)
    ]


def _said_when(bullet: Bullet) -> str:
    day = memory.day(bullet.updated_at)
    count = len({task.number for task in bullet.tasks})
    return day if count <= SINGLE_MARKS_MAX else f"{day}, in {count} sessions"


def _index(groups: Sequence[Group]) -> list[Line]:
    days = sorted({task.day for group in groups for task in group.tasks}, reverse=True)
    recent = set(days[:RECENT_DAYS])
    told: list[Line] = []
    older: list[Line] = []
    for group in groups:
        tasks = sorted(group.tasks, key=lambda t: (t.day, t.output.updated_at), reverse=True)
        for at, task in enumerate(tasks):
            new = task.day in recent
            place = (
                (f"### {group.name}", f"#### {task.day}")
                if new
                else ("### Older Memory Topics", f"#### {group.name}")
            )
            into = told if new else older
            # Each project keeps a line as long as there is room for one.
            worth = 4 if at == 0 else 2 + new
            mark = references([task])
            topic = f"- {task.name}: {', '.join(task.keywords)} {mark}"
            desc = f"  - desc: {_described(task)} {mark}"
            updated_at = task.output.updated_at
            into.append(Line(text=topic, place=place, worth=worth, updated_at=updated_at))
            into.append(Line(text=desc, place=place, worth=int(new), updated_at=updated_at))
            if new:
                for learned in _learnings(task):
                    text = f"  - learnings: {learned} {mark}"
                    into.append(Line(text=text, place=place, worth=0, updated_at=updated_at))
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


def _written(told: Sequence[Line], left_out: int) -> str:
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
    place: tuple[str, ...] = ()
    for line in told:
        for depth, heading in enumerate(line.place):
            if line.place[: depth + 1] != place[: depth + 1]:
                out.append(heading)
        place = line.place or place
        if line.place:
            out.append(line.text)
    if left_out:
        out += [
            "",
            f"({lines.counted(left_out, 'line')} left out for length; MEMORY.md holds all.)",
        ]
    return "\n".join(out) + "\n"
