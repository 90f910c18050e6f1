"""Commands that ran: what each returned, which failures count, and what passed afterwards.

A failure is a run whose transcript says so (an exit code, a failed flag), that was no probe and
that no person refused. What passed afterwards is told as a sequence and never as a cause: the same
line later on, or within twelve runs another line that `commands.answers` accepts.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence

from msgspec import Struct

from ...domain.session import Call, Output
from . import commands, cues, lines
from .commands import Command

WINDOW_RUNS = 12
_HEAD_CHARS = 2_000
_TAIL_CHARS = 6_000

_EXIT = re.compile(r'(?:\bexit code:? |exited with code |"exit_code": ?)(-?\d+)', re.IGNORECASE)
_REFUSED = re.compile(
    r"doesn'?t want to proceed|rejected by (?:the )?user|user rejected|tool use was rejected", re.I
)
_ABORTED = re.compile(r"\baborted by (?:the )?user|\binterrupted by (?:the )?user", re.IGNORECASE)
_INTERRUPTED_EXITS = (-2, -9, -15, 130, 137, 143)
_PREAMBLE = re.compile(r"\A(?:[^\n]*\n){0,8}?Output:[ \t]*(?:\n|\Z)")

_NAMED_ERROR = re.compile(
    r"^(?:E\s+|error\s+)?[\w.]*(?:Error|Exception|Failure)\b\s*(?::|$)"
    r"|^(?:error|fatal|panic|ERROR|ERR!|npm ERR!)\b"
)
_ERROR_WORDS = re.compile(
    r"\b(?:error|fatal|panic|denied|not found|no such|cannot|can't|unable|missing|not set|undefined"
    r"|refused|timed out|invalid|unknown|failed|failure|unexpected|required|does not exist)\b"
    r"|^\w+(?:-\w+){2,}$",
    re.IGNORECASE,
)
_ERROR_LABEL = re.compile(r"^(?:E {2,}|(?:error|fatal|npm ERR!)(?: ERR!)?:? +)", re.IGNORECASE)
_ANSI = re.compile("\x1b\\[[0-9;?]*[A-Za-z]")
_RESULT = re.compile(
    r"\b\d+ (?:tests? )?passed(?:, \d+ [a-z]+)*|\bRan \d+ tests?\b"
    r"|\bAll checks passed|\bno issues found"
)


class Run(Struct, frozen=True, kw_only=True, gc=False):
    """`passed` is None where the transcript does not say. `order` counts the session's runs."""

    line: int
    order: int
    at_ms: int | None
    text: str
    command: Command
    passed: bool | None = None
    exit_code: int | None = None
    probe: bool = False
    error: str = ""
    result: str = ""

    @property
    def failed(self) -> bool:
        return self.passed is False and not self.probe


class Failure(Struct, frozen=True, kw_only=True):
    """One line that failed, `times` times. `answer` is the run that passed afterwards, if any."""

    run: Run
    times: int
    answer: Run | None

    @property
    def repeated(self) -> bool:
        """Whether what passed is the same line."""
        return self.answer is not None and self.answer.text == self.run.text


def started(call: Call, order: int) -> Run:
    text = call.command or ""
    return Run(
        line=call.line,
        order=order,
        at_ms=call.at_ms,
        text=lines.command(text),
        command=commands.read(text),
    )


def is_refused(output: Output) -> bool:
    return bool(_REFUSED.search(output.text[:_HEAD_CHARS]))


def passed(output: Output) -> tuple[bool | None, int | None]:
    """Whether the call did what it should, and its exit code, as far as the transcript says."""
    head = output.text[:_HEAD_CHARS]
    exit_code = output.exit_code
    if exit_code is None and (said := _EXIT.search(head[:500])):
        exit_code = int(said[1])
    if _ABORTED.search(head[:500]) or exit_code in _INTERRUPTED_EXITS:
        return None, exit_code
    if exit_code is not None:
        return exit_code == 0, exit_code
    return (None if output.failed is None else not output.failed), None


def finished(run: Run, output: Output) -> Run:
    good, exit_code = passed(output)
    head = _PREAMBLE.sub("", output.text[:_HEAD_CHARS], count=1)
    tail = output.text[max(_HEAD_CHARS, len(output.text) - _TAIL_CHARS) :]
    return Run(
        line=run.line,
        order=run.order,
        at_ms=output.at_ms or run.at_ms,
        text=run.text,
        command=run.command,
        passed=None if good and run.command.masked else good,
        exit_code=exit_code,
        probe=good is False and commands.is_probe(run.command, exit_code),
        error=_error(head, tail) if good is False else "",
        result=_result(head, tail) if good else "",
    )


def failures(runs: Sequence[Run]) -> list[Failure]:
    """What failed: first what another command answered, then what passed itself, then the rest."""
    by_text: dict[str, list[Run]] = {}
    for run in runs:
        if run.failed:
            by_text.setdefault(run.text, []).append(run)
    last_pass = {run.text: run for run in runs if run.passed}
    found = []
    for text, failed in by_text.items():
        answer = last_pass.get(text)
        if answer is None or answer.order < failed[-1].order:
            answer = _other_answer(failed[-1], runs)
        found.append(Failure(run=failed[-1], times=len(failed), answer=answer))
    return sorted(found, key=lambda f: 2 if f.answer is None else int(f.repeated))


def last_validations(runs: Sequence[Run]) -> list[Run]:
    """The last run of each test or check program that said how it ended."""
    last: dict[tuple[str, ...], Run] = {}
    for run in runs:
        if run.passed is not None and (run.command.is_test or run.command.is_check):
            last.pop(run.command.name, None)
            last[run.command.name] = run
    return list(last.values())


def _other_answer(failed: Run, runs: Sequence[Run]) -> Run | None:
    after = bisect_right(runs, failed.order, key=lambda run: run.order)
    for run in runs[after : after + WINDOW_RUNS]:
        if run.order > failed.order + WINDOW_RUNS:
            break
        if run.passed and commands.answers(failed.command, failed.text, run.command, run.text):
            return run
    return None


def _error(head: str, tail: str) -> str:
    """The line that names the error: the last that is labelled as one, else the last that sounds
    like one, else the last of all. Prose that tells a reader what to do is no error."""
    scored = [
        (3 if _NAMED_ERROR.search(line) else 2 if _ERROR_WORDS.search(line) else 1, at, line)
        for at, line in enumerate(_lines(head, tail))
    ]
    best = (line for _, _, line in sorted(scored, reverse=True) if not cues.kind(line.rstrip(".")))
    return lines.error(_ERROR_LABEL.sub("", next(best, ""), count=1))


def _result(head: str, tail: str) -> str:
    found = ""
    for line in _lines(head, tail):
        if match := _RESULT.search(line):
            found = match[0]
    return lines.error(found)


def _lines(head: str, tail: str) -> list[str]:
    text = _ANSI.sub("", f"{head}\n{tail}" if tail else head)
    return [line.strip()[:500] for line in text.splitlines() if any(map(str.isalpha, line))]
