"""Quotes checked: a model's reading of a session, held against the session itself.

Every quote that a line gives as a person's words is looked up in what was typed, and kept as
evidence with its place. A line whose quote is only near, or not there, says so at its end. A line
that only a page, a tool or the agent supports, where a person's word is needed, is dropped and
counted (`domain/support.py`). Both texts, and what a person typed, are redacted already.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from ..domain.quotes import Spoken, Typed, Verdict
from ..domain.session import (
    Agent,
    AnyItem,
    Assistant,
    Call,
    Harness,
    Human,
    Output,
    RolledBack,
    TurnAborted,
)
from ..domain.support import Judge, Kind, Line, is_said
from .ports import Extracted

NEAR = "[near quote]"
NOT_FOUND = "[quote not found]"
PENDING_MAX = 1_000

_BULLET = re.compile(r"^\s*(?:[-*+\u2022]|\d{1,3}[.)]|\[\d{1,3}\])\s+")
_HEADING = re.compile(r"^\s*#{1,6}\s")
_TASK = re.compile(r"^#{2,3} Task \d{1,4}\b")
_LABEL = re.compile(r"^\s*[*_]{0,2}[A-Z][\w ,/()-]{2,60}[*_]{0,2}:[*_]{0,2}\s*$")
_FIELD = re.compile(r"^[a-z_]{3,20}:\s")
_FENCE = re.compile(r"^\s*(```|~~~)")
_PREFERENCES = re.compile(r"\bpreferences?\b", re.IGNORECASE)
_A_WISH = re.compile(
    r"\buser'?s? (?:\w+ ){0,2}?(?:prefers?|preferred|preference|wants?|wanted|likes?|hates?"
    r"|expects?|insists?|dislikes?)\b|\bper the user\b|\buser preference\b",
    re.IGNORECASE,
)
_OF_THE_USER = re.compile(r"\b(?:users?|they|person|human)\b", re.IGNORECASE)
_QUOTE = re.compile(
    '"(?P<straight>[^"\\n]{2,2000}?)"(?!\\w)|\u201c(?P<curly>[^\u201c\u201d\\n]{2,2000}?)\u201d'
    "|\u00ab\\s?(?P<french>[^\u00ab\u00bb\\n]{2,2000}?)\\s?\u00bb|\u201e(?P<german>[^\u201e\u201c\u201d\\n]{2,2000}?)[\u201c\u201d]"
    "|\u300c(?P<corner>[^\u300c\u300d\\n]{2,2000}?)\u300d"
    "|(?<!\\w)'(?P<single>(?:[^'\\n]|(?<=\\w)'(?=\\w)){12,2000}?)'(?!\\w)"
)
_OUTSIDE_TOOL = re.compile(
    r"web|http|url|fetch|brows|mcp|crawl|scrap|navigat|internet", re.IGNORECASE
)
_OUTSIDE_COMMAND = re.compile(
    r"(?<![\w./-])(?:curl|wget|lynx|w3m|https?|gh\s+(?:issue|pr|api|gist|release|search)|glab)\s"
)


class Statement(Struct, kw_only=True):
    """Lines `first` to `end` of a text, that stand or fall together."""

    first: int
    end: int
    kind: Kind | None  # None: a label over a list.
    text: str = ""
    quotes: tuple[str, ...] = ()


def checked(found: Extracted, items: Iterator[AnyItem]) -> Extracted:
    """What a model found, with its quotes looked up and without what nobody there said."""
    # A mark is ours to give; one that the model wrote, or an earlier look, says nothing.
    texts = {
        name: [unmarked(line) for line in text.split("\n")]
        for name, text in (("raw", found.raw_memory), ("summary", found.rollout_summary))
    }
    statements = {name: list(statements_of(lines)) for name, lines in texts.items()}
    judged = [each for name in texts for each in statements[name] if each.kind is not None]
    slug = (found.rollout_slug or "").replace("_", " ")
    lines = [Line(text=each.text, kind=each.kind or "fact") for each in judged]
    judge = Judge([*lines, Line(text=slug, kind="index")])
    spoken = Spoken(listen(judge, items))
    verdicts = {quote: spoken.find(quote) for each in judged for quote in each.quotes}
    said = {
        at: tuple(q for q in each.quotes if is_a_persons(q, verdicts[q]))
        for at, each in enumerate(judged)
    }
    judge.lines = [
        *(msgspec.structs.replace(line, quoted=said[at]) for at, line in enumerate(lines)),
        judge.lines[-1],
    ]
    fallen = judge.suppressed()
    gone = {id(each) for at, each in enumerate(judged) if at in fallen}
    kept_quotes = dict.fromkeys(q for each in judged if id(each) not in gone for q in each.quotes)
    told = {
        name: rendered(lines, statements[name], gone, verdicts) for name, lines in texts.items()
    }
    evidence = [*known_evidence(found), *(evidence_of(q, verdicts[q]) for q in kept_quotes)]
    return msgspec.structs.replace(
        found,
        raw_memory=told["raw"],
        rollout_summary=told["summary"],
        rollout_slug=None if len(judged) in fallen else found.rollout_slug,
        evidence=msgspec.json.encode(evidence).decode() if evidence else None,
        suppressed=found.suppressed + len(fallen),
    )


def unmarked(line: str) -> str:
    """The line without the marks at its end, and what stood between them. By hand: a pattern looks
    for blanks before a mark at each of very many blanks anew.

    >>> unmarked("- he said so [near quote] [quote not found]")
    '- he said so'
    """
    end = "\r" if line.endswith("\r") else ""
    bare = line.removesuffix(end).rstrip(" \t")
    said = bare
    while (shorter := said.removesuffix(NEAR).removesuffix(NOT_FOUND)) != said:
        said = shorter.rstrip(" \t")
    return line if said == bare else said + end


def listen(judge: Judge, items: Iterator[AnyItem]) -> list[Typed]:
    """Tell the judge the session; what a person typed in it and did not take back is returned."""
    turns: list[list[Human]] = [[]]
    outside: dict[str | None, bool] = {}
    for item in items:
        match item:
            case Human():
                if item.via == "message":
                    turns.append([])
                if item.inherited:
                    judge.spoken(item.text)
                else:
                    turns[-1].append(item)
            case RolledBack():
                back = max(1, len(turns) - item.turns)
                for taken in turns[back:]:
                    judge.spoken("\n".join(each.text for each in taken))
                del turns[back:]
            case Call():
                if len(outside) >= PENDING_MAX:
                    del outside[next(iter(outside))]
                outside[item.call_id] = is_outside(item)
                judge.known(item.arguments)
                judge.known("\n".join(change.path for change in item.changes))
            case Output():
                if outside.pop(item.call_id, False):
                    judge.outside(item.text)
                else:
                    judge.inside(item.text)
            case Harness():
                judge.known(item.text)
            case Assistant() | Agent():
                judge.spoken(item.text)
            case TurnAborted():
                pass
    typed = [item for turn in turns for item in turn]
    for item in typed:
        judge.person(item.text)
    return [Typed(text=item.text, line=item.line, at_ms=item.at_ms) for item in typed]


def is_outside(call: Call) -> bool:
    """Whether what the call returns was written by nobody on this machine."""
    return bool(_OUTSIDE_TOOL.search(call.name) or _OUTSIDE_COMMAND.search(call.command or ""))


def is_a_persons(quote: str, verdict: Verdict) -> bool:
    return verdict.typed is not None and is_said(quote, verdict.typed.text)


def statements_of(lines: list[str]) -> Iterator[Statement]:
    """Bullets and paragraphs with what continues them, titles, fields, and labels."""
    front = bool(lines) and lines[0].strip() == "---"
    preferences = fenced = False
    open_: Statement | None = None
    said: list[str] = []  # Its lines.
    for at, line in enumerate(lines):
        bare = line.strip()
        if fenced or _FENCE.match(line):
            border = bool(_FENCE.match(line))
            fenced = fenced != border
            if open_ is not None:
                yield finished(open_, said)
                open_ = None
            if bare and not border:
                yield from one(at, line, "fact")
            continue
        if front and at and bare == "---":
            front = False
        says_nothing = not bare.strip("-*_")
        if open_ is not None and not says_nothing and not starts(line):
            open_.end = at + 1
            said.append(bare)
            continue
        if open_ is not None:
            yield finished(open_, said)
            open_ = None
        if says_nothing:
            continue
        if _HEADING.match(line):
            preferences = bool(_PREFERENCES.search(line))
            yield from one(at, line, "index")
        elif _LABEL.match(line):
            preferences = bool(_PREFERENCES.search(line))
            yield Statement(first=at, end=at + 1, kind=None, text=bare)
        elif front or _FIELD.match(line):
            yield from one(at, line, "index")
        else:
            wish = preferences or _A_WISH.search(line)
            open_ = Statement(first=at, end=at + 1, kind="preference" if wish else "fact")
            said = [bare]
    if open_ is not None:
        yield finished(open_, said)


def starts(line: str) -> bool:
    return bool(_BULLET.match(line) or _HEADING.match(line) or _LABEL.match(line))


def one(at: int, line: str, kind: Kind) -> Iterator[Statement]:
    yield finished(Statement(first=at, end=at + 1, kind=kind), [line.strip()])


def finished(statement: Statement, said: list[str]) -> Statement:
    """The statement with its text, which has no bullet, and the quotes that it gives as a
    person's."""
    text = _BULLET.sub("", " ".join(said))
    quotes = [
        (found.start(), next(filter(None, found.groups()))) for found in _QUOTE.finditer(text)
    ]
    if quotes and statement.kind != "preference":
        named = _OF_THE_USER.search(text)
        quotes = [each for each in quotes if named and named.start() < each[0]]
    statement.text = text
    statement.quotes = tuple(dict.fromkeys(quote for _, quote in quotes))
    return statement


def rendered(
    lines: list[str],
    statements: list[Statement],
    gone: set[int],
    verdicts: dict[str, Verdict],
) -> str:
    """The text with its marks and without what fell; empty where nothing is told any more."""
    lines = list(lines)
    dropped: set[int] = set()
    for number, each in enumerate(statements):
        if id(each) in gone and (task := _TASK.match(lines[each.first])):
            lines[each.first] = task[0]
        elif id(each) in gone or (each.kind is None and is_bare(number, statements, gone)):
            dropped.update(range(each.first, each.end))
        elif each.kind is not None:
            last = each.end - 1
            mark = mark_of({verdicts[quote].found for quote in each.quotes})
            end = "\r" if lines[last].endswith("\r") else ""
            if mark:
                line = lines[last].removesuffix(end).rstrip(" \t")
                lines[last] = f"{line} {mark}{end}"
    told = [each for each in statements if each.kind in ("preference", "fact")]
    if told and all(id(each) in gone for each in told):
        return ""
    return "\n".join(line for at, line in enumerate(lines) if at not in dropped)


def is_bare(number: int, statements: list[Statement], gone: set[int]) -> bool:
    """Whether all that stood under a label fell."""
    under = []
    for each in statements[number + 1 :]:
        if each.kind not in ("preference", "fact"):
            break
        under.append(id(each) in gone)
    return bool(under) and all(under)


def mark_of(found: set[str]) -> str:
    return NOT_FOUND if "missing" in found else NEAR if "near" in found else ""


def known_evidence(found: Extracted) -> list[dict[str, Any]]:
    return msgspec.json.decode(found.evidence, type=list[dict[str, Any]]) if found.evidence else []


def evidence_of(quote: str, verdict: Verdict) -> dict[str, Any]:
    return {
        "kind": "quoted",
        "quote": quote,
        "line": verdict.typed.line if verdict.typed else None,
        "at_ms": verdict.typed.at_ms if verdict.typed else None,
        "found": verdict.found,
    }
