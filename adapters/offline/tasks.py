"""Tasks: one session each, with what it left, by project; and the statements of several, once.

Tasks are numbered through the whole root in the order of their thread ids.
"""

import re
from collections.abc import Callable, Sequence

from msgspec import Struct

from ...application.ports import PhaseTwoOutput
from ...domain.artifact import task_marks
from ...projections.folder import summary_file_names
from . import cues, lines, memory
from .memory import Remembered
from .reading import loose

_ERROR_SHOWN = re.compile(r" failed(?: \d+ times)? \((.*?)\)(?=;|$)")
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


def references(tasks: Sequence[Task]) -> str:
    return task_marks(task.number for task in tasks)


def groups_of(
    scope: str,
    outputs: Sequence[PhaseTwoOutput],
    remembered: Callable[[PhaseTwoOutput], Remembered],
) -> list[Group]:
    """The newest project first; a name that two places share is told apart by the place."""
    files = summary_file_names(outputs)
    found: dict[tuple[str, str], list[Task]] = {}
    for number, output in enumerate(sorted(outputs, key=lambda o: o.thread_id), 1):
        told = remembered(output)
        cwd = lines.path(output.cwd) or "unknown"
        if scope.startswith("project:"):
            # A scope is one project, whatever its sub-directories are called.
            key = (lines.path(re.sub(r"-[0-9a-f]{8}$", "", scope.removeprefix("project:"))), "")
        else:
            key = (told.task_group or memory.task_group(None, output.cwd), cwd)
        task = Task(
            number=number,
            output=output,
            remembered=told,
            name=_name(output, told),
            group=key[0],
            cwd=cwd,
            file=files[output.thread_id],
        )
        found.setdefault(key, []).append(task)
    names = [name for name, _ in found]
    made = [
        Group(name=f"{name} ({cwd})" if names.count(name) > 1 else name, tasks=tuple(tasks))
        for (name, cwd), tasks in found.items()
    ]
    return sorted(made, key=lambda g: (-g.updated_at, g.tasks[0].number))


def _name(output: PhaseTwoOutput, remembered: Remembered) -> str:
    heading = re.search(r"^#[ \t]+(.+)$", output.rollout_summary, re.MULTILINE)
    named = remembered.task or (heading[1] if heading else "") or output.rollout_slug or ""
    return lines.name(named) or f"session {lines.one_line(output.thread_id, 80)}"


def preferences(group: Group) -> list[Bullet]:
    """Wishes that last before corrections, each in its newest order."""
    return sorted(bullets(group, "preferences"), key=lambda bullet: not lasts(bullet))


def lasts(bullet: Bullet) -> bool:
    """Whether the quote is a wish that lasts. Another writer's line is taken at its word."""
    wrote = _WROTE.match(bullet.text)
    return wrote is None or cues.lasts(wrote[1])


def bullets(group: Group, section: str) -> list[Bullet]:
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
