"""The artifacts of a memory root: what makes a set of files fit to be published.

Codex checks little. Of a v1 root: the summary's first line is exactly `v1`, and MEMORY.md is there.
Of a v2 root: the same first line, the four headings in any order and among others, and less than
10,000 bytes; it has no MEMORY.md. That check is for every writer. Our own writers promise more,
because forgetting and attribution stand on it: the four headings once and in order, and a source
behind every statement.

In v1 that is one number for one task, a source behind every task and a task behind every bullet. A
bullet ends with its tasks. Up to three stand one by one, `[Task 2][Task 7]`; more are one mark with
runs, `[Tasks 1-40, 42]`, because eighty marks in a row bury the statement and a mark that left some
out would lose the sources that forgetting asks for. MEMORY.md names every task. A line of the
summary restates one of MEMORY.md's, so it may name the newest few.

In v2 a statement ends with its sessions, `; thread_id=ID, ID`, the newest few of them; what is
indented under it is theirs, too.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

MEMORY = "MEMORY.md"
SUMMARY = "memory_summary.md"
# What they are made from, beside them.
RAW_MEMORIES = "raw_memories.md"
SUMMARIES = "rollout_summaries"
SUMMARY_TOKENS_MAX = 2_500
# A reader estimates a token at four bytes.
SUMMARY_BYTES_MAX = SUMMARY_TOKENS_MAX * 4
# Of v2: from here on Codex refuses a summary.
V2_SUMMARY_BYTES = 10_000
SUMMARY_HEADINGS = (
    "## User Profile",
    "## User preferences",
    "## General Tips",
    "## What's in Memory",
)
TASK_HEADINGS = ("### rollout_summary_files", "### keywords")
BLOCK_HEADINGS = (
    "## User preferences",
    "## Reusable knowledge",
    "## Failures and how to do differently",
)

# A number has a bound, because Python refuses to read one of thousands of digits.
_TASK = re.compile(r"^## Task (\d{1,9}): .*, (?:success|partial|fail|uncertain)$")
_RUN = r"\d{1,4}(?:-\d{1,4})?"
_MARKS = re.compile(rf"(?<= )(?:(?:\[Task \d{{1,9}}\])+|\[Tasks (?P<runs>{_RUN}(?:, {_RUN})*)\])$")
_SOURCE = re.compile(r"- \S+\.md \(cwd=")
_SKILL_FORMS = ("---", "name:", "## Sources", f"- {SUMMARIES}/", "- extensions/")
_NUMBER = re.compile(r"\d+")
# Ids of any form, and no white space in one: what a person wrote before it cannot reach into it.
_POINTED = re.compile(r"; thread_id=([^\s,]+(?:, [^\s,]+)*)$")
# What a statement ends with, from the end. A line is taken apart mark by mark: one pattern for all
# of them tries each place anew, and a line of 40,000 marks took two minutes.
_TASK_MARK = re.compile(r"\[Tasks? [\d, -]+\]")
_THREAD_MARK = re.compile(r"; thread_id=[^\s,]+(?:, [^\s,]+)*")
_DAY = re.compile(r" \(\d{4}-\d\d-\d\d(?:, in \d+ sessions)?\)")
# As many stand one by one.
SINGLE_MARKS_MAX = 3
_RUN_NUMBER_MAX = 9_999


def problems(files: Mapping[str, str], *, version: str = "v1", grammar: bool = True) -> list[str]:
    """What is wrong with a root's artifacts, path -> text; empty where they may be published.

    With `grammar=False` only what Codex checks, for artifacts that a model or a person wrote.
    """
    found = []
    if version == "v1" and MEMORY not in files:
        found.append(f"{MEMORY} is missing")
    if SUMMARY not in files:
        found.append(f"{SUMMARY} is missing")
    # Exactly this line: a reader that meets another one takes the file for a foreign schema.
    elif files[SUMMARY] != "v1" and not files[SUMMARY].startswith(("v1\n", "v1\r\n")):
        found.append(f"{SUMMARY} must begin with the line v1")
    elif version == "v2":
        found += v2_problems(files[SUMMARY])
    if found or not grammar:
        return found
    if version == "v2":
        return list(_pointed_problems(files[SUMMARY]))
    tasks, found = _memory_problems(files[MEMORY])
    return found + list(_summary_problems(files[SUMMARY], tasks))


def v2_problems(summary: str) -> Iterator[str]:
    there = {line.strip() for line in summary.split("\n")}
    for heading in SUMMARY_HEADINGS:
        if heading not in there:
            yield f"{SUMMARY} lacks the heading {heading}"
    if len(summary.encode("utf-8", "replace")) >= V2_SUMMARY_BYTES:
        yield f"{SUMMARY} must be under {V2_SUMMARY_BYTES:,} bytes"


def pointed_threads(line: str) -> list[str]:
    """The sessions that a statement of v2 names at its end.

    >>> pointed_threads("- use uv; thread_id=a, b"), pointed_threads("- say thread_id=a twice")
    (['a', 'b'], [])
    """
    found = _POINTED.search(line)
    return found[1].split(", ") if found else []


def thread_marks(thread_ids: Iterable[str]) -> str:
    """What `pointed_threads` reads back.

    >>> thread_marks(["a", "b"])
    '; thread_id=a, b'
    """
    return f"; thread_id={', '.join(thread_ids)}"


def cited_tasks(line: str) -> list[int]:
    """The tasks that a bullet ends with.

    >>> cited_tasks("- use uv [Task 2][Task 7]"), cited_tasks("- see [Task 2] there")
    ([2, 7], [])
    >>> cited_tasks("- use uv [Tasks 1-3, 9]"), cited_tasks("- use uv [Tasks 3-1]")
    ([1, 2, 3, 9], [])
    """
    marks = _MARKS.search(line)
    if marks is None:
        return []
    if marks["runs"] is None:
        return [int(number) for number in _NUMBER.findall(marks[0])]
    found: list[int] = []
    for run in marks["runs"].split(", "):
        first, _, last = run.partition("-")
        # Only upwards: whoever wrote it otherwise meant something else, and runs that may overlap
        # would let a short line name tasks without end.
        if (found and int(first) <= found[-1]) or (last and int(last) <= int(first)):
            return []
        found += range(int(first), int(last or first) + 1)
    return found


def task_marks(numbers: Iterable[int]) -> str:
    """What `cited_tasks` reads back, for tasks in any order.

    >>> task_marks([7, 2]), task_marks([1, 2, 3, 4, 9, 11, 12])
    ('[Task 2][Task 7]', '[Tasks 1-4, 9, 11-12]')
    """
    ordered = sorted(set(numbers))
    if len(ordered) <= SINGLE_MARKS_MAX or ordered[-1] > _RUN_NUMBER_MAX:
        return "".join(f"[Task {number}]" for number in ordered)
    runs: list[tuple[int, int]] = []
    for number in ordered:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    told = (str(first) if first == last else f"{first}-{last}" for first, last in runs)
    return f"[Tasks {', '.join(told)}]"


def unmarked(line: str) -> str:
    """
    >>> unmarked("- use uv (2026-01-02, in 2 sessions) [Task 1][Tasks 3-4]"), unmarked("- a [1]")
    ('- use uv', '- a [1]')
    """
    line = line.rstrip()
    end = len(line)
    while (at := line.rfind("[", 0, end)) >= 0 and _TASK_MARK.fullmatch(line, at, end):
        end = at - 1 if at and line[at - 1] == " " else at
    if end == len(line):
        end = line.rfind("; thread_id=")
        if end < 0 or not _THREAD_MARK.fullmatch(line, end):
            return line
    day = line.rfind(" (", 0, end)
    return line[: day if day >= 0 and _DAY.fullmatch(line, day, end) else end]


def _memory_problems(text: str) -> tuple[set[int], list[str]]:
    tasks: set[int] = set()
    cited: list[tuple[int, str]] = []
    found: list[str] = []
    lines = text.split("\n")
    task, section, bullets, group_seen = 0, "", 0, False

    def close() -> None:
        if section in TASK_HEADINGS and bullets != 1:
            found.append(f"{MEMORY}: task {task} has {bullets} bullets under {section}")

    for at, line in enumerate(lines):
        where = f"{MEMORY}:{at + 1}"
        if line.startswith("#"):
            close()
            section, bullets = line, 0
            if line.startswith("# Task Group: "):
                group_seen = True
                follows = [*lines[at + 1 : at + 3], "", ""]
                if not follows[0].startswith("scope: ") or not re.match(
                    r"applies_to: cwd=.+; reuse_rule=.+", follows[1]
                ):
                    found.append(f"{where}: a task group needs a scope and an applies_to line")
            elif matched := _TASK.match(line):
                task = int(matched[1])
                if task in tasks:
                    found.append(f"{where}: task {task} is numbered twice")
                tasks.add(task)
                if [n for n in lines[at + 1 : at + 3] if n.startswith("###")][:1] != [
                    "### rollout_summary_files"
                ]:
                    found.append(f"{where}: a task needs its rollout_summary_files")
            elif line not in (*TASK_HEADINGS, *BLOCK_HEADINGS):
                found.append(f"{where}: unknown heading")
            if not group_seen:
                found.append(f"{where}: a heading stands before the first task group")
        elif line.startswith("- "):
            bullets += 1
            if section == "### rollout_summary_files":
                if not is_source(line):
                    found.append(f"{where}: a source needs cwd, rollout_path and updated_at")
            elif section in BLOCK_HEADINGS:
                cited += [(number, where) for number in cited_tasks(line)]
                if not cited_tasks(line):
                    found.append(f"{where}: a statement names no task")
        elif line and not line.startswith(("scope: ", "applies_to: ")):
            found.append(f"{where}: a line that is neither heading nor bullet")
    close()
    if not group_seen:
        found.append(f"{MEMORY} has no task group")
    found += [f"{where}: there is no task {n}" for n, where in cited if n not in tasks]
    return tasks, found


def is_form(path: str, line: str) -> bool:
    """Whether the file cannot do without the line, which says nothing that was learned.

    >>> is_form("memory_summary.md", "## General Tips"), is_form("MEMORY.md", "- use uv [Task 1]")
    (True, False)
    """
    line = line.rstrip()
    if path == SUMMARY:
        return line in ("v1", *SUMMARY_HEADINGS)
    if path == MEMORY:
        is_heading = line in (*TASK_HEADINGS, *BLOCK_HEADINGS)
        return is_heading or line.startswith("applies_to: cwd=") or is_source(line)
    return path.endswith("/SKILL.md") and line.startswith(_SKILL_FORMS)


def is_source(line: str) -> bool:
    """Whether a bullet names a session's summary, and where and when that session was.

    >>> is_source("- rollout_summaries/a.md (cwd=/x, rollout_path=/y, updated_at=2026)")
    True
    >>> is_source("- rollout_summaries/a.md (cwd=/x, updated_at=2026, rollout_path=/y)")
    False
    """
    if not (begin := _SOURCE.match(line)) or not line.endswith(")"):
        return False
    # Fields are found one behind the other: a pattern of all tries each with each of the others.
    place = line.find(", rollout_path=", begin.end())
    return place >= 0 and line.find(", updated_at=", place) >= 0


def _heading_problems(text: str) -> Iterator[str]:
    headings = [line for line in text.split("\n") if line.startswith("## ")]
    if tuple(headings) != SUMMARY_HEADINGS:
        yield f"{SUMMARY} must have the four headings once and in order"


def _summary_problems(text: str, tasks: set[int]) -> Iterator[str]:
    yield from _heading_problems(text)
    if len(text.encode("utf-8", "replace")) > SUMMARY_BYTES_MAX:
        yield f"{SUMMARY} is over {SUMMARY_TOKENS_MAX} tokens"
    for at, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("- "):
            numbers = cited_tasks(line)
            if not numbers:
                yield f"{SUMMARY}:{at}: a statement names no task"
            for number in numbers:
                if number not in tasks:
                    yield f"{SUMMARY}:{at}: there is no task {number}"


def _pointed_problems(text: str) -> Iterator[str]:
    yield from _heading_problems(text)
    sourced = False
    for at, line in enumerate(text.split("\n"), 1):
        if line.startswith("- "):
            sourced = bool(pointed_threads(line))
            if not sourced:
                yield f"{SUMMARY}:{at}: a statement names no session"
        elif line.lstrip().startswith("- "):
            if not sourced and not pointed_threads(line):
                yield f"{SUMMARY}:{at}: a statement names no session, nor does what it stands under"
        elif line:
            sourced = False
