"""The facts of one session as a task history, which is all that v2 keeps of it, and read back.

It tells in the session's order what a person asked, said and corrected, what failed and passed, and
how it ended: a wish that lasts is told apart from a request of that day, which stays with its task.
Quotes and counts, and no sentence of anybody's opinion. Where it is too long the lines of least
worth go, whole, and it says how many. Parsing takes other writers' histories too: what it cannot
place it leaves out, and it never adds a word.
"""

import re
from collections.abc import Callable, Sequence

from msgspec import Struct

from ...application.kept import V2_SUMMARY_BYTES_MAX
from . import cues, lines, memory
from .memory import Facts, Remembered

ASKED = "asked"
LASTING = "stated as lasting"
ONCE = "for this task"
FAILED = "failed"
PASSED = "passed"
CHANGED = "changed"
ENDED = "final state"

_FIELDS = ("project", "cwd", "branch", "day", "session", "keywords")
_LABELLED = re.compile(rf"^- ({LASTING}|{ONCE}|{FAILED}): (.*)$")
_TITLE = re.compile(r"^# +(.+)$", re.MULTILINE)
_OUTCOME = re.compile(rf"^(.*): ({'|'.join(memory.OUTCOMES)})$")


class Line(Struct, frozen=True, kw_only=True):
    """A line of the history. Low `worth` goes first, and of one worth the earlier line."""

    label: str
    text: str
    at: int
    worth: int

    @property
    def told(self) -> str:
        return f"- {self.label}: {self.text}"


def render(f: Facts) -> str:
    told = sorted(_lines(f), key=lambda line: line.at)
    return within(told, lambda kept, gone: _written(f, kept, gone))


def within(told: Sequence[Line], write: Callable[[Sequence[Line], int], str]) -> str:
    kept = list(told)
    while True:
        text = write(kept, len(told) - len(kept))
        if not kept or len(text.encode("utf-8", "replace")) <= V2_SUMMARY_BYTES_MAX:
            return text
        kept.remove(min(kept, key=lambda line: (line.worth, line.at)))


def _lines(f: Facts) -> list[Line]:
    last = 1 << 62  # Behind every line of the file.
    told = [Line(label=ASKED, text=_wrote(f.name), at=f.named.line, worth=4)]
    for typed, _ in f.preferences:
        lasting = cues.lasts(typed.text)
        told.append(
            Line(
                label=LASTING if lasting else ONCE,
                text=_wrote(typed.text),
                at=typed.line,
                worth=3 if lasting else 2,
            )
        )
    told += [
        Line(label=FAILED, text=memory.failure_kept(x), at=x.run.line, worth=1) for x in f.failures
    ]
    told += [
        Line(label=PASSED, text=memory.passed_told(run), at=run.line, worth=0) for run in f.passed
    ]
    if f.files:
        told.append(Line(label=CHANGED, text=memory.files_told(f), at=last, worth=2))
    ended = f"{f.outcome} ({'; '.join(f.outcome_facts)})"
    told.append(Line(label=ENDED, text=ended, at=last + 1, worth=4))
    return told


def _wrote(text: str) -> str:
    return f'the user wrote "{text}"'


def _written(f: Facts, told: Sequence[Line], gone: int) -> str:
    failed = f" ({f.failed_commands} failed)" if f.failed_commands else ""
    session = (
        f"{lines.counted(f.messages, 'message')} from the user,"
        f" {lines.counted(f.commands, 'command')}{failed},"
        f" {lines.counted(len(f.files), 'file')} changed"
    )
    fields = {
        "project": f.task_group,
        "cwd": f.cwd,
        "branch": f.branch or "",
        "day": f.day,
        "session": session,
        "keywords": ", ".join(memory.keywords(f)),
    }
    blocks = [
        f"# {f.name}: {f.outcome}",
        "\n".join(f"{key}: {value}" for key, value in fields.items() if value),
        f"## Task 1: {f.name}",
        "\n".join(line.told for line in told),
        f"({lines.counted(gone, 'line')} left out for length.)" if gone else "",
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def parse(summary: str) -> Remembered:
    """Wishes and corrections are its `preferences`; which of them last, `cues` says again."""
    summary = summary.replace("\r\n", "\n")
    head, _, body = summary.partition("\n## ")
    title = _TITLE.search(summary)
    name = title[1].strip() if title else ""
    ended = _OUTCOME.match(name)
    fields: dict[str, str] = {}
    for line in head.splitlines():
        key, colon, value = line.partition(": ")
        if colon and key in _FIELDS and value.strip():
            fields.setdefault(key, value.strip())
    found: dict[str, list[str]] = {LASTING: [], ONCE: [], FAILED: []}
    for line in body.splitlines():
        if labelled := _LABELLED.match(line):
            found[labelled[1]].append(labelled[2])
    return Remembered(
        task=memory.statement(ended[1] if ended else name) or None,
        task_group=memory.statement(fields.get("project", "")) or None,
        outcome=ended[2] if ended else "uncertain",
        description=None,
        keywords=tuple(filter(None, map(memory.statement, fields.get("keywords", "").split(",")))),
        preferences=memory.statements([*found[LASTING], *found[ONCE]]),
        knowledge=(),
        failures=memory.statements(found[FAILED]),
    )
