"""The artifacts of a memory root: what makes a set of files fit to be published.

Codex checks little: the summary's first line is exactly `v1`, and MEMORY.md is there. That check is
for every writer. Our own writers promise more, because forgetting and attribution stand on it: the
four headings, one number for one task, a source behind every task and a task behind every bullet.
"""

import re
from collections.abc import Iterator, Mapping

MEMORY = "MEMORY.md"
SUMMARY = "memory_summary.md"
SUMMARY_TOKENS_MAX = 2_500
# A reader estimates a token at four bytes.
SUMMARY_BYTES_MAX = SUMMARY_TOKENS_MAX * 4
SUMMARY_HEADINGS = (
    "## User Profile",
    "## User preferences",
    "## General Tips",
    "## What's in Memory",
)
BLOCK_HEADINGS = (
    "## User preferences",
    "## Reusable knowledge",
    "## Failures and how to do differently",
)

# A number has a bound, because Python refuses to read one of thousands of digits.
_TASK = re.compile(r"^## Task (\d{1,9}): .*, (?:success|partial|fail|uncertain)$")
_MARKS = re.compile(r"(?<= )(?:\[Task \d{1,9}\])+$")
_NUMBER = re.compile(r"\d+")


def problems(files: Mapping[str, str], *, grammar: bool = True) -> list[str]:
    """What is wrong with the artifacts, path -> text; empty where they may be published.

    With `grammar=False` only what Codex checks, for artifacts that a model or a person wrote.
    """
    found = []
    if MEMORY not in files:
        found.append(f"{MEMORY} is missing")
    if SUMMARY not in files:
        found.append(f"{SUMMARY} is missing")
    # Exactly this line: a reader that meets another one takes the file for a foreign schema.
    elif files[SUMMARY] != "v1" and not files[SUMMARY].startswith(("v1\n", "v1\r\n")):
        found.append(f"{SUMMARY} must begin with the line v1")
    if found or not grammar:
        return found
    tasks, found = _memory_problems(files[MEMORY])
    return found + list(_summary_problems(files[SUMMARY], tasks))


def cited_tasks(line: str) -> list[int]:
    """The tasks that a bullet ends with.

    >>> cited_tasks("- use uv [Task 2][Task 7]"), cited_tasks("- see [Task 2] there")
    ([2, 7], [])
    """
    marks = _MARKS.search(line)
    return [int(number) for number in _NUMBER.findall(marks[0])] if marks else []


def _memory_problems(text: str) -> tuple[set[int], list[str]]:
    tasks: set[int] = set()
    cited: list[tuple[int, str]] = []
    found: list[str] = []
    lines = text.split("\n")
    task, section, bullets, group_seen = 0, "", 0, False

    def close() -> None:
        if section in ("### rollout_summary_files", "### keywords") and bullets != 1:
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
            elif line not in ("### rollout_summary_files", "### keywords", *BLOCK_HEADINGS):
                found.append(f"{where}: unknown heading")
            if not group_seen:
                found.append(f"{where}: a heading stands before the first task group")
        elif line.startswith("- "):
            bullets += 1
            if section == "### rollout_summary_files":
                if not re.match(r"- \S+\.md \(cwd=.*, rollout_path=.*, updated_at=.*\)$", line):
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


def _summary_problems(text: str, tasks: set[int]) -> Iterator[str]:
    lines = text.split("\n")
    headings = [line for line in lines if line.startswith("## ")]
    if tuple(headings) != SUMMARY_HEADINGS:
        yield f"{SUMMARY} must have the four headings once and in order"
    if len(text.encode("utf-8", "replace")) > SUMMARY_BYTES_MAX:
        yield f"{SUMMARY} is over {SUMMARY_TOKENS_MAX} tokens"
    for at, line in enumerate(lines, 1):
        if line.lstrip().startswith("- "):
            numbers = cited_tasks(line)
            if not numbers:
                yield f"{SUMMARY}:{at}: a statement names no task"
            for number in numbers:
                if number not in tasks:
                    yield f"{SUMMARY}:{at}: there is no task {number}"
