"""Withholding: the texts of a memory root without what only sessions said that are out of it.

What is promised: the summary of such a session, the section of `raw_memories.md` that is its own,
and each statement all of whose sources are such sessions are not in what comes out, from the moment
that they are named here; whatever else there is stays, and each line keeps its number, so that a
citation of a line means the same line before and after.

Sources are read by the grammar that our own writers keep (`artifact`): a statement ends with its
tasks, and a task names its sessions' summaries; in v2 a statement ends with its sessions. Where a
text does not keep it, a line goes that names such a session's id or its summary, and one that says
again what the same memory as it was published would have withheld: a hand that changed a file has
not changed whose words they are. In doubt a line goes: where a number means several tasks, one of
them is enough.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from .artifact import (
    BLOCK_HEADINGS,
    MEMORY,
    RAW_MEMORIES,
    SUMMARIES,
    SUMMARY,
    cited_tasks,
    pointed_threads,
    thread_marks,
)
from .ids import UUID
from .retold import retold

WITHHELD = "[1 statement withheld]"
EXTENSIONS = "extensions/"

# How the name of a session's summary begins; a slug may follow.
STEM = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-[0-9A-Za-z]{4}")
_THREAD = re.compile(r"## Thread `(.*)`$")
_TASK = re.compile(r"## Task (\d{1,9})\b")
_HEADING = re.compile(r"(#{1,6}) ")
_SOURCES = "### rollout_summary_files"
_FIXED = (_SOURCES, "### keywords", *BLOCK_HEADINGS)


class Gone(Struct, frozen=True, kw_only=True):
    """The sessions whose words nobody reads any more, and how their summaries' names begin."""

    ids: frozenset[str] = frozenset()
    stems: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.ids)

    def named_in(self, line: str) -> bool:
        if any(stem in self.stems for stem in STEM.findall(line)):
            return True
        return any(found.lower() in self.ids for found in UUID.findall(line)) or any(
            each in line for each in self.ids if not UUID.fullmatch(each)
        )

    def is_summary(self, path: str, header: str) -> bool:
        """Whether a file of `rollout_summaries/` is theirs, by its name or first line."""
        stem = STEM.match(path.rpartition("/")[2])
        return (stem is not None and stem[0] in self.stems) or thread_of(header) in self.ids


class Task(Struct, kw_only=True):
    number: int
    group: int
    sources: list[bool]  # Of each: whether it is gone.

    @property
    def is_gone(self) -> bool:
        return bool(self.sources) and all(self.sources)


def thread_of(header: str) -> str | None:
    """The thread that a summary's text is of, by its first line."""
    first = header.partition("\n")[0]
    return first.removeprefix("thread_id: ").rstrip() if first.startswith("thread_id: ") else None


def withheld(
    path: str,
    text: str,
    gone: Gone,
    *,
    handbook: str = "",
    published: Mapping[str, str] | None = None,
) -> str:
    """The text of a file that may be read. `handbook` is MEMORY.md, which says what a task is;
    `published` are the files as they were published, whatever was made of them since."""
    if not gone or path.startswith((EXTENSIONS, f"{SUMMARIES}/")):
        return text
    lines = text.split("\n")
    out = lines_out(path, lines, gone, handbook)
    known = published or {}
    if path != RAW_MEMORIES and known.get(path) != text:  # Else its grammar is its writer's own.
        for each, told in known.items():
            as_told = told.split("\n")
            out |= retold(lines, as_told, lines_out(each, as_told, gone, known.get(MEMORY, "")))
    return "\n".join(
        WITHHELD if at in out and line.strip() else line for at, line in enumerate(lines)
    )


def lines_out(path: str, written: Sequence[str], gone: Gone, handbook: str) -> set[int]:
    lines = [line.rstrip() for line in written]  # An editor may end its lines otherwise.
    if path == RAW_MEMORIES:
        out = raw_sections(lines, gone)
    elif path == MEMORY:
        out = handbook_lines(lines, gone)
    elif path == SUMMARY:
        tasks = tasks_of([line.rstrip() for line in handbook.split("\n")], gone)
        return summary_lines(lines, tasks, gone)
    else:
        out = set()
    return out | {at for at, line in enumerate(lines) if gone.named_in(line)}


def raw_sections(lines: Sequence[str], gone: Gone) -> set[int]:
    """The lines of the sections that are theirs.

    A raw memory may hold a line that looks like the next section's first. So a section of theirs
    ends only where another's first line stands that there is once in the file.
    """
    begins = {at: found[1] for at, line in enumerate(lines) if (found := _THREAD.match(line))}
    named = list(begins.values())
    out: set[int] = set()
    inside = False
    for at in range(len(lines)):
        if at in begins:
            thread_id = begins[at]
            if thread_id in gone.ids:
                inside = True
            elif named.count(thread_id) == 1:
                inside = False
        if inside:
            out.add(at)
    return out


def tasks_of(lines: Sequence[str], gone: Gone) -> list[Task]:
    tasks: list[Task] = []
    group, section = 0, ""
    for line in lines:
        if line.startswith("# "):
            group, section = group + 1, ""
        elif found := _TASK.match(line):
            tasks.append(Task(number=int(found[1]), group=group, sources=[]))
            section = ""
        elif line.startswith("#"):
            section = line
        elif section == _SOURCES and line.startswith("- ") and tasks:
            tasks[-1].sources.append(gone.named_in(line))
    return tasks


def is_unsupported(line: str, tasks: Iterable[Task], *, group: int | None = None) -> bool | None:
    """Whether every task that a statement names is gone; None: it names none that there is. Where
    nobody can say what a task is, because no handbook is there, one that names any is."""
    known = list(tasks)
    told: list[bool] = []
    cited = cited_tasks(line)
    if cited and not known:
        return True
    for number in cited:
        meant = [task for task in known if task.number == number]
        own = [task for task in meant if task.group == group]
        if found := own or meant:
            told.append(any(task.is_gone for task in found))
    return all(told) if told else None


def is_all_gone(line: str, gone: Gone) -> bool | None:
    """Whether every session that a statement of v2 ends with is gone; None: it ends with none. One
    that is not gone has to be named as one is, and stands up for what it is named behind."""
    named = pointed_threads(line)
    if not named:
        return None
    live = [
        each
        for each in named
        if (UUID.fullmatch(each) or STEM.match(each)) and not gone.named_in(each)
    ]
    return not live or gone.named_in(line.removesuffix(thread_marks(named)))


def handbook_lines(lines: Sequence[str], gone: Gone) -> set[int]:
    tasks = tasks_of(lines, gone)
    empty = {
        group
        for group in {task.group for task in tasks}
        if all(task.is_gone for task in tasks if task.group == group)
    }
    out: set[int] = set()
    group, coming, task_gone, parent_gone = 0, iter(tasks), False, False
    for at, line in enumerate(lines):
        if line.startswith("# "):
            group, task_gone, parent_gone = group + 1, False, False
        elif _TASK.match(line):
            task_gone, parent_gone = next(coming).is_gone, False
            if task_gone:
                out.add(at)
        elif line.startswith("## "):
            task_gone, parent_gone = False, False
        elif not line.startswith("#"):
            unsupported = is_unsupported(line, tasks, group=group)
            if not line[:1].isspace() or unsupported is not None:
                parent_gone = bool(unsupported)
            if parent_gone or task_gone:
                out.add(at)
        if group in empty and line not in _FIXED:
            out.add(at)
    return out


def summary_lines(lines: Sequence[str], tasks: Sequence[Task], gone: Gone) -> set[int]:
    out: set[int] = set()
    parent_gone = False
    for at, line in enumerate(lines):
        if line.startswith("#"):
            parent_gone = False
            if gone.named_in(line):
                out.add(at)
            continue
        pointed = is_all_gone(line, gone)
        named = pointed is not False and gone.named_in(line)
        unsupported = is_unsupported(line, tasks)
        if unsupported is None:
            unsupported = True if named else pointed
        if not line[:1].isspace() or unsupported is not None:
            parent_gone = bool(unsupported)
        if named or (parent_gone and line.strip()):
            out.add(at)
    # A project's name over nothing but such lines is told by nobody else.
    for at, line in enumerate(lines):
        if line.startswith("###"):
            below = [n for n in under(lines, at) if lines[n].strip() and lines[n][0] != "#"]
            if below and all(n in out for n in below):
                out.add(at)
    return out


def under(lines: Sequence[str], at: int) -> range:
    """The lines between a heading and the next of its level or above."""
    level = depth(lines[at])
    end = at + 1
    while end < len(lines) and not 0 < depth(lines[end]) <= level:
        end += 1
    return range(at + 1, end)


def depth(line: str) -> int:
    found = _HEADING.match(line)
    return len(found[1]) if found else 0
