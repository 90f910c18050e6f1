"""One pass over a session's items: what a person typed, what ran, what was changed.

The pass holds facts, not texts: sentences that a cue marked, commands cut to a line, an error line
of each output. So it is as large as the number of commands, whatever their outputs weigh.

What is no evidence never gets in: text of a program or of another agent, the assistant's words,
copied history. A turn that was taken back is dropped with everything in it.
"""

import re
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct, field

from ...domain.session import (
    AnyItem,
    Call,
    Human,
    Output,
    RolledBack,
    TurnAborted,
)
from . import changes, cues, lines, runs
from .changes import Edit
from .cues import Kind
from .runs import Run

_PENDING_MAX = 1_000
_RUNNING = re.compile(r"\brunning with session id:? (\w+)", re.IGNORECASE)
_PROCESS = re.compile(r'"session_id"\s*:\s*"?(\w+)')


class Typed(Struct, frozen=True, kw_only=True):
    """A sentence and its place. `kind_if_first` is what it would be in an opening message."""

    text: str
    line: int
    at_ms: int | None
    kind: Kind | None = None
    kind_if_first: Kind | None = None


class Turn(Struct, kw_only=True):
    """What happened from one message of a person's to the next."""

    message: Human | None = None
    name: Typed | None = None
    first_line: Typed | None = None
    messages: int = 0
    marked: list[Typed] = field(default_factory=list)
    thanks: Typed | None = None
    fault: Typed | None = None
    runs: list[Run] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    aborted: bool = False


class Reading(Struct, frozen=True, kw_only=True):
    """The session as it stands at its end."""

    turns: tuple[Turn, ...]
    continued: bool

    @property
    def runs(self) -> list[Run]:
        return [run for turn in self.turns for run in turn.runs]

    @property
    def changed(self) -> list[str]:
        return changes.left_changed(edit for turn in self.turns for edit in turn.edits)

    @property
    def messages(self) -> int:
        return sum(turn.messages for turn in self.turns)

    @property
    def name(self) -> Typed | None:
        """The first typed sentence; where nothing typed is prose, the first line as it is."""
        names = [turn.name for turn in self.turns if turn.name]
        lines_ = [turn.first_line for turn in self.turns if turn.first_line]
        return next(iter(names + lines_), None)

    @property
    def opening(self) -> Turn | None:
        """The turn whose message is the task; there is none where history was copied."""
        if self.continued:
            return None
        return next((turn for turn in self.turns if turn.message), None)

    @property
    def preferences(self) -> list[tuple[Typed, Kind]]:
        """Each wish or correction once, in the order of its first mention."""
        seen = Counter[str]()
        found = []
        for turn in self.turns:
            for typed in turn.marked:
                opening = turn is self.opening and turn.message and typed.line == turn.message.line
                kind = typed.kind_if_first if opening else typed.kind
                key = loose(typed.text)
                if kind and not seen[key]:
                    seen[key] += 1
                    found.append((typed, kind))
        return found


def loose(text: str) -> str:
    """Equal for two lines that differ in case, spaces and signs only."""
    return "".join(c for c in text.casefold() if c.isalnum())


def read(items: Iterable[AnyItem]) -> Reading:
    turns = [Turn()]
    continued = False
    pending: dict[str | None, tuple[Turn, Call, Run | None]] = {}
    # A command that outlives its call is asked again by the number it was given.
    running: dict[str, tuple[Turn, Run]] = {}
    order = 0
    for item in items:
        match item:
            case Human(via="message"):
                # Copied messages make turns, so that a rollback counts right, and nothing else.
                continued = continued or (item.inherited and len(turns) == 1)
                turns.append(Turn() if item.inherited else _turn(item))
            case RolledBack():
                del turns[max(1, len(turns) - item.turns) :]
            case _ if item.inherited:
                pass
            case Human():
                turns[-1].messages += 1
                turns[-1].marked += _marked(item)
            case TurnAborted():
                turns[-1].aborted = True
            case Call() if item.command is not None or item.changes:
                run = None
                if item.command is not None and not _only_patches(item):
                    order += 1
                    run = runs.started(item, order)
                if len(pending) >= _PENDING_MAX:
                    del pending[next(iter(pending))]
                pending[item.call_id] = (turns[-1], item, run)
                if run:
                    turns[-1].runs.append(run)
            case Call(name="write_stdin") if asked := running.get(_process(item.arguments)):
                pending[item.call_id] = (asked[0], item, asked[1])
            case Output() if item.call_id in pending:
                turn, call, run = pending.pop(item.call_id)
                if run and (process := _RUNNING.search(item.text[:500])):
                    running[process[1]] = (turn, run)
                else:
                    _settle(turn, call, run, item)
            case _:
                pass
    return Reading(turns=tuple(turns), continued=continued)


def _turn(message: Human) -> Turn:
    turn = Turn(message=message, messages=1, marked=_marked(message))
    if sentence := cues.first_sentence(message.text):
        turn.name = Typed(text=sentence, line=message.line, at_ms=message.at_ms)
    elif line := next(filter(None, map(str.strip, message.text[:4_000].splitlines())), None):
        turn.first_line = Typed(text=line, line=message.line, at_ms=message.at_ms)
    for sentence in cues.sentences(message.text):
        typed = Typed(text=lines.quote(sentence), line=message.line, at_ms=message.at_ms)
        if cues.is_question(sentence):
            continue
        if cues.is_fault(sentence):
            turn.fault = turn.fault or typed
        elif cues.is_thanks(sentence):
            turn.thanks = turn.thanks or typed
    turn.message = Human(line=message.line, at_ms=message.at_ms, text="")
    return turn


def _marked(message: Human) -> list[Typed]:
    # What belongs to a wish may be a correction by itself where it stands in a later message.
    later = dict(cues.kept(message.text, refusal=message.via == "refusal"))
    first = dict(cues.kept(message.text, first=True))
    return [
        Typed(
            text=lines.quote(text),
            line=message.line,
            at_ms=message.at_ms,
            kind=later.get(text),
            kind_if_first=first.get(text),
        )
        for text in later | first
    ]


def _process(arguments: str) -> str:
    asked = _PROCESS.search(arguments[:2_000])
    return asked[1] if asked else ""


def _only_patches(call: Call) -> bool:
    """A patch that was handed to a shell is an edit, and no command."""
    return bool(call.changes) and (call.command or "").lstrip().startswith("apply_patch")


def _settle(turn: Turn, call: Call, run: Run | None, output: Output) -> None:
    good, _ = runs.passed(output)
    refused = good is not True and runs.is_refused(output)
    if good is not False and not refused:
        # A tool that returns without a word of failure has changed what it was asked to.
        turn.edits += changes.edits(call)
    if run is None or not any(r.order == run.order for r in reversed(turn.runs)):
        return
    at = next(i for i in reversed(range(len(turn.runs))) if turn.runs[i].order == run.order)
    if refused:
        del turn.runs[at]
        return
    turn.runs[at] = runs.finished(run, output)
    if good:
        turn.edits += changes.restored(run.command.steps)
