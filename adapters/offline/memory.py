"""The facts of one session in the shape of its two texts, and the raw memory read back.

`rollout_summary` is for a reader who opens the session's file; `raw_memory` is what consolidation
reads, so it is rendered and parsed here, next to each other. Both hold quotes and counts and no
sentence of anybody's opinion. Parsing takes raw memories of other writers too: what it cannot
place it leaves out, and it never adds a word.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from ...domain.session import Header
from . import lines
from .cues import Kind
from .reading import Reading, Typed
from .runs import Failure, Run, failures, last_validations

PREFERENCES_MAX = 20
FAILURES_MAX = 12
FILES_MAX = 20
KEYWORDS_MAX = 12
ERROR_KEYWORDS_MAX = 4
VALIDATIONS_MAX = 5
OUTCOMES = ("success", "partial", "fail", "uncertain")

_ERROR_NAMES = re.compile(
    r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|\b\w+(?:Error|Exception)\b|\bE\d{3,}\b|\b[a-z]+(?:-[a-z]+){2,}\b"
    r"|(?<![\w=@/-])(?:[A-Z][a-z]+){3,}\b"
)
_TOPIC = re.compile(r"[^\W\d_]{6,}")
# Words of a request that name no topic.
_COMMON_WORDS = """
    please should would could before after again always instead without within between another
    change create update remove delete implement improve support review explain follow because
    something anything everything currently really little better working problem issues
    request failing broken needed certain behind against during bitte einmal werden machen
"""
_COMMON = frozenset(_COMMON_WORDS.split())
# A word of an error by itself, and no part of a path, a name or an option.
_ERROR_WORD = re.compile(r"(?<![\w./@=-])[A-Za-z]{4,20}(?![\w/@=-]|\.\w)")
# Words that any error may hold.
_ERROR_TALK_WORDS = """
    also an any are been bad because but call called can cannot code command could denied does error
    errors exception exist exists exit exited expected fail failed failing fails failure fatal file
    files found from given have hint into invalid is just line lines make missing module more must
    name named needed none note null object only operation out output panic please process received
    refused required requires returned run running see set such that them then there they this
    time trying type unable undefined unexpected unknown unrecognized usage use used using value
    was were when which while will with work working your
"""
_ERROR_TALK = _COMMON | frozenset(_ERROR_TALK_WORDS.split())


class Facts(Struct, frozen=True, kw_only=True):
    """Everything that is told of a session."""

    name: str
    task_group: str
    cwd: str
    branch: str | None
    day: str
    outcome: str
    outcome_facts: tuple[str, ...]
    messages: int
    commands: int
    failed_commands: int
    preferences: tuple[tuple[Typed, Kind], ...]
    failures: tuple[Failure, ...]
    files: tuple[str, ...]
    passed: tuple[Run, ...]
    omitted: int
    named: Typed
    judged: Typed | None


def facts(header: Header, reading: Reading) -> Facts | None:
    """None where the session teaches nothing: no wish or correction, no failure, no change."""
    runs = reading.runs
    preferences = reading.preferences
    failed = failures(runs)
    files = [_relative(path, header.cwd) for path in reading.changed]
    named = reading.name
    if named is None or not lines.name(named.text) or not (preferences or failed or files):
        return None
    validations = last_validations(runs)
    outcome, outcome_facts, judged = _outcome(reading, validations)
    passed = [run for run in validations if run.passed]
    return Facts(
        name=lines.name(named.text),
        task_group=task_group(header.repository_url, header.cwd),
        cwd=lines.path(header.cwd) if header.cwd else "unknown",
        branch=lines.path(header.git_branch) if header.git_branch else None,
        day=day(header.updated_at_ms / 1000),
        outcome=outcome,
        outcome_facts=outcome_facts,
        messages=reading.messages,
        commands=len(runs),
        failed_commands=sum(run.failed for run in runs),
        preferences=tuple(preferences[:PREFERENCES_MAX]),
        failures=tuple(failed[:FAILURES_MAX]),
        files=tuple(files),
        passed=tuple(passed[-VALIDATIONS_MAX:]),
        omitted=max(0, len(preferences) - PREFERENCES_MAX) + max(0, len(failed) - FAILURES_MAX),
        named=named,
        judged=judged,
    )


def rollout_summary(f: Facts) -> str:
    context = [
        f.cwd,
        *([f"branch {f.branch}"] if f.branch else []),
        f.day,
        f"{lines.counted(f.messages, 'message')} from the user",
        lines.counted(f.commands, "command")
        + (f" ({f.failed_commands} failed)" if f.failed_commands else ""),
        f"{lines.counted(len(f.files), 'file')} changed",
    ]
    files = [f"files changed: {files_told(f)}"] if f.files else []
    answers = list(dict.fromkeys(x.answer.text for x in f.failures if x.answer))
    blocks = [
        f"# {f.name}: {f.outcome}",
        f"Rollout context: {', '.join(context)}.",
        f"## Task 1: {f.name}",
        f"Outcome: {f.outcome} ({'; '.join(f.outcome_facts)})",
        _section("Preference signals:", _preferences(f)),
        _section("Failures and how to do differently:", [_failure_told(x) for x in f.failures]),
        _section("Reusable knowledge:", [*files, *map(passed_told, f.passed)]),
        _section("References:", [f"[{n}] {text}" for n, text in enumerate(answers, 1)]),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def raw_memory(f: Facts) -> str:
    counts = [
        lines.counted(count, noun) + after
        for count, noun, after in (
            (len(f.preferences), "preference", ""),
            (len(f.failures), "failure", ""),
            (len(f.files), "file", " changed"),
        )
        if count
    ]
    head = [
        "---",
        f'description: asked "{f.name}"; {", ".join(counts)}',
        f"task: {f.name}",
        f"task_group: {f.task_group}",
        f"task_outcome: {f.outcome}",
        f"cwd: {f.cwd}",
        f"keywords: {', '.join(keywords(f))}",
        "---",
    ]
    task = [
        f"### Task 1: {f.name}",
        f"task: {f.name}",
        f"task_group: {f.task_group}",
        f"task_outcome: {f.outcome}",
    ]
    knowledge = [f"{r.text} passed ({r.result or 'exit 0'}) on {f.day}" for r in f.passed]
    failed = [failure_kept(x) for x in f.failures if not x.repeated]
    references = [f"[{n}] {path}" for n, path in enumerate(f.files[:FILES_MAX], 1)]
    blocks = [
        "\n".join(head),
        "\n".join(task),
        _section("Preference signals:", _preferences(f)),
        _section("Reusable knowledge:", knowledge),
        _section("Failures and how to do differently:", failed),
        _section("References:", references),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"


def keywords(f: Facts) -> list[str]:
    """What somebody would search for: topic words, files, commands, names in errors."""
    kept = [x for x in f.failures if not x.repeated]
    found = [
        *_topics(f.name)[:3],
        *f.files[:5],
        *(" ".join((x.answer or x.run).command.name) for x in kept),
        *(" ".join(run.command.name) for run in f.passed),
        *(name for x in kept for name in _ERROR_NAMES.findall(x.run.error)),
    ]
    clean = dict.fromkeys(filter(searchable, map(lines.path, found)))
    known = " ".join(clean).lower()
    errors = dict.fromkeys(
        word
        for x in kept
        for word in _ERROR_WORD.findall(x.run.error)
        if word.lower() not in _ERROR_TALK and word.lower() not in known
    )
    # A long list of files leaves room for what an error was about.
    told = list(errors)[:ERROR_KEYWORDS_MAX]
    return [*list(clean)[: KEYWORDS_MAX - len(told)], *told] or named_by(
        f.task_group, f.name, f.day
    )


def searchable(word: str) -> bool:
    """Whether a keyword finds anything: a sign or a single letter finds everything."""
    return "," not in word and len(word) <= 80 and sum(map(str.isalnum, word)) >= 2


def named_by(*names: str) -> list[str]:
    """What a session is found by when nothing in it is a keyword."""
    return [next(filter(searchable, names), names[-1])]


def task_group(repository_url: str | None, cwd: str | None) -> str:
    """The last part of the remote, else of the directory."""
    for place in (repository_url, cwd):
        parts = [part for part in re.split(r"[/\\:]+", place or "") if part]
        if parts and (name := lines.path(parts[-1].removesuffix(".git"))):
            return name
    return "unknown"


def day(second: float) -> str:
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%d}"


def _outcome(
    reading: Reading, validations: Sequence[Run]
) -> tuple[str, tuple[str, ...], Typed | None]:
    """What the last test run and the person's last word say, and nothing else."""
    tests = [run for run in validations if run.command.is_test]
    last = (tests or list(validations))[-1:]
    check = last[0].passed if last else None
    said: list[str] = []
    if last:
        said.append(f"last {'test run' if tests else 'check'} {'passed' if check else 'failed'}")
    turn = next((t for t in reversed(reading.turns) if t.message), None)
    word = None
    if turn is not None and turn is not reading.opening:
        word = turn.fault or turn.thanks
    if turn is not None and turn.aborted and word is None:
        return "uncertain", (*said, "the last turn was interrupted"), None
    if word is not None and turn is not None:
        said.append(f'the user wrote "{word.text}"')
        if turn.fault:
            return ("fail" if check is False else "uncertain"), tuple(said), word
        return ("partial" if check is False else "success"), tuple(said), word
    if check is None:
        return "uncertain", ("no test result, no last word from the user",), None
    return ("success" if check else "fail"), tuple(said), None


def _preferences(f: Facts) -> list[str]:
    return [f'the user wrote "{typed.text}"' for typed, _ in f.preferences]


def _failed(x: Failure) -> str:
    return f"{x.run.text} failed" + (f" {x.times} times" if x.times > 1 else "")


def _failure_told(x: Failure) -> str:
    exit_code = "" if x.run.exit_code is None else f"exit {x.run.exit_code}"
    why = ": ".join(filter(None, (exit_code, x.run.error)))
    told = _failed(x) + (f" ({why})" if why else "")
    if x.answer is None:
        return f"{told}; no later run of it passed."
    if x.repeated:
        return f"{told}; it passed later in the same session."
    return f"{told}; afterwards {x.answer.text} passed."


def failure_kept(x: Failure) -> str:
    why = x.run.error or ("" if x.run.exit_code is None else f"exit {x.run.exit_code}")
    told = _failed(x) + (f" ({why})" if why else "")
    if x.answer is None:
        return f"{told}; no later run of it passed"
    return f"{told}; afterwards {x.answer.text} passed"


def passed_told(run: Run) -> str:
    return f"{run.text} passed ({': '.join(filter(None, ('exit 0', run.result)))})"


def files_told(f: Facts) -> str:
    more = len(f.files) - FILES_MAX
    told = ", ".join(f.files[:FILES_MAX])
    return told + (f" and {more} more" if more > 0 else "")


def _section(label: str, bullets: Sequence[str]) -> str:
    return "\n".join([label, *(f"- {bullet}" for bullet in bullets)]) if bullets else ""


def _topics(name: str) -> list[str]:
    return [w.lower() for w in _TOPIC.findall(name) if w.isascii() and w.lower() not in _COMMON]


def _relative(path: str, cwd: str | None) -> str:
    for separator in "/\\":
        if cwd and path.startswith(cwd.rstrip("/\\") + separator):
            return lines.path(path[len(cwd.rstrip("/\\")) + 1 :])
    return lines.path(path)


# Reading a raw memory back.

_FRONT = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_BULLET = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t]+(.*)$")
_OWN_REFERENCES = re.compile(r"(?:\s*\[[^\]\[]*task[^\]\[]*\])+\s*$", re.IGNORECASE)
_LABELS = {
    "preference signals": "preferences",
    "user preferences": "preferences",
    "preferences": "preferences",
    "reusable knowledge": "knowledge",
    "failures and how to do differently": "failures",
    "failures": "failures",
    "references": "references",
}
_PASSED_THEN = re.compile(r"^`.*` passed \(.*\) on \d{4}-\d\d-\d\d$")
BULLET_CHARS_MAX = 600


class Remembered(Struct, frozen=True, kw_only=True):
    """A raw memory as far as it could be placed. Bullets are one line each."""

    task: str | None
    task_group: str | None
    outcome: str
    description: str | None
    keywords: tuple[str, ...]
    preferences: tuple[str, ...]
    knowledge: tuple[str, ...]
    failures: tuple[str, ...]


def parse(raw: str) -> Remembered:
    raw = raw.replace("\r\n", "\n")
    front = _FRONT.match(raw)
    fields: dict[str, str] = {}
    for line in front[1].splitlines() if front else ():
        key, colon, value = line.partition(":")
        if colon and key.strip() in _FIELDS and value.strip():
            fields.setdefault(key.strip(), _unquoted(value.strip()))
    title = None
    found: dict[str, list[str]] = {"preferences": [], "knowledge": [], "failures": []}
    section, open_bullet, fence = "knowledge", False, ""
    for line in (raw[front.end() :] if front else raw).splitlines():
        bare = line.strip()
        if fence or bare.startswith(("```", "~~~")):
            fence = "" if fence and bare.startswith(fence) else fence or bare[:3]
            open_bullet = False
        elif bullet := _BULLET.match(line):
            open_bullet = section in found
            if open_bullet:
                found[section].append(bullet[1])
        elif not bare:
            open_bullet = False
        elif label := _LABELS.get(bare.strip("#*: ").lower()):
            section, open_bullet = label, False
        elif bare.startswith("#"):
            heading = re.sub(r"^#+\s*(?:Task\s*\d*\s*:)?\s*", "", bare)
            title, section, open_bullet = title or heading, "knowledge", False
        elif open_bullet:
            found[section][-1] += " " + bare
    outcome = fields.get("task_outcome", "")
    return Remembered(
        task=statement(fields.get("task") or title or "") or None,
        task_group=statement(fields.get("task_group", "")) or None,
        outcome=outcome if outcome in OUTCOMES else "uncertain",
        description=statement(fields.get("description", "")) or None,
        keywords=tuple(
            filter(None, (statement(w).strip("[]") for w in fields.get("keywords", "").split(",")))
        ),
        preferences=statements(found["preferences"]),
        # That a check passed on a day is true of that day; the session's own summary keeps it.
        knowledge=statements(b for b in found["knowledge"] if not _PASSED_THEN.match(b)),
        failures=statements(found["failures"]),
    )


_FIELDS = ("description", "task", "task_group", "task_outcome", "cwd", "keywords")


def _unquoted(value: str) -> str:
    """A YAML writer's quotes around a whole value; ours has none."""
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] in "'\"" else value


def statements(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(filter(None, map(statement, texts)))


def statement(text: str) -> str:
    """A line of somebody's raw memory. Its own task numbers mean nothing outside it."""
    return lines.one_line(_OWN_REFERENCES.sub("", text), BULLET_CHARS_MAX)
