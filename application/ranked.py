"""Ranked search: the passages of a memory that answer a question best, best first.

Only what a `Reading` shows is ranked, so the scope and what is withheld hold here by construction.
The index lives in memory and is made from the texts as they are now: nothing is kept on a disk, so
nothing has to be erased from it, and it is never behind. It is made again when a text has changed.

A statement stands in several files: said in a session's summary, repeated in MEMORY.md, restated in
the summary of all. It is one result, in the handbook if there, and the others are named beside it.
"""

import hashlib
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Protocol

from msgspec import Meta, Struct

from ..domain.artifact import (
    MEMORY,
    RAW_MEMORIES,
    SUMMARIES,
    SUMMARY,
    cited_tasks,
    pointed_threads,
)
from ..domain.passages import Passage, passages
from ..domain.search import lines_of
from ..domain.truncation import cut_middle
from ..domain.withholding import STEM, thread_of
from .questions import EmptyQuery
from .reading import Reading, Unreadable
from .tools import GONE, SKIPPED_MAX, Tools, clamped, files, found, refuse_long

RESULTS_DEFAULT = 10
RESULTS_MAX = 50
PASSAGE_TOKENS_MAX = 500
ALSO_MAX = 5
_LOOKED_AT = 5  # Times as many passages as results are looked at, since some say the same.
_SAME_LETTERS_MIN = 16  # Shorter ones are in many others by chance.

_TASK = re.compile(r"## Task (\d{1,9})\b")
# What stands around a statement: its sources, and how a history of v2 labels what a person wrote.
# Whether something failed or passed is no such label: it is what is said.
_MARKS = re.compile(
    r"\[Tasks? [\d, -]+\]|; thread_id=\S+(?:, \S+)*$"
    r"|^\s*- (?:asked|stated as lasting|for this task): ",
    re.MULTILINE,
)


class RankedArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    query: str
    path: str | None = None
    max_results: Annotated[int, Meta(ge=0)] | None = None


class Place(Struct, frozen=True, kw_only=True):
    path: str
    start_line_number: int


class Ranked(Struct, frozen=True, kw_only=True):
    """`threads` are the sessions that the passage comes from, where that is known; `score` compares
    results of one search only, and more is better."""

    path: str
    start_line_number: int
    end_line_number: int
    content: str
    headings: str
    score: float
    threads: list[str]
    also: list[Place]


class RankedAnswer(Struct, frozen=True, kw_only=True):
    query: str
    path: str | None
    results: list[Ranked]
    skipped: list[str]


class Index(Protocol):
    def best(self, query: str, *, limit: int) -> Sequence[tuple[int, float]]:
        """The numbers of the passages that fit, from 0, best first, with their scores."""

    def close(self) -> None: ...


class Indexed(Struct, frozen=True, kw_only=True):
    digest: bytes
    passages: Sequence[Passage]
    threads: Sequence[tuple[str, ...]]
    index: Index
    skipped: list[str]


class RankedSearch:
    """Keeps the index of what was searched last. Several threads may ask: one at a time."""

    def __init__(self, build: Callable[[Iterable[Passage]], Index]) -> None:
        self._build = build
        self._last: Indexed | None = None
        self._one_at_a_time = threading.Lock()

    def answer(self, tools: Tools, asked: RankedArguments) -> RankedAnswer:
        """What a session is given, recorded as shown to it."""
        with tools.watched("search_ranked", asked) as tell:
            reading = tools.open()
            answer = self.search(reading, asked)
            if answer.results:
                tools.shown(
                    reading,
                    "search",
                    [each.path for each in answer.results],
                    [each.content for each in answer.results],
                    [thread for each in answer.results for thread in each.threads],
                )
            tell(answer)
        return answer

    def search(self, reading: Reading, asked: RankedArguments) -> RankedAnswer:
        query = asked.query.strip()
        if not any(map(str.isalnum, query)):
            raise EmptyQuery("query has no letter or digit")
        refuse_long([query])
        path = found(reading, asked.path)
        limit = RESULTS_DEFAULT if asked.max_results is None else asked.max_results
        with self._one_at_a_time:
            indexed = self._indexed(reading, path)
            best = results(indexed, query, limit=clamped(limit, RESULTS_MAX))
        return RankedAnswer(
            query=query, path=asked.path, results=best, skipped=indexed.skipped[:SKIPPED_MAX]
        )

    def _indexed(self, reading: Reading, path: str) -> Indexed:
        texts, skipped = searchable(reading, path)
        digest = hashlib.sha256()
        for each, text in texts.items():
            for part in (each, text):
                content = part.encode("utf-8", "surrogatepass")
                digest.update(len(content).to_bytes(8))
                digest.update(content)
        if self._last is None or self._last.digest != digest.digest():
            if self._last is not None:
                self._last.index.close()
            pieces = [piece for each, text in texts.items() for piece in passages(each, text)]
            self._last = Indexed(
                digest=digest.digest(),
                passages=pieces,
                threads=list(threads_of(pieces, texts)),
                index=self._build(pieces),
                skipped=skipped,
            )
        return self._last


def searchable(reading: Reading, path: str) -> tuple[dict[str, str], list[str]]:
    """Path -> text of what is ranked, and what is none. Raw memories say again, unsorted, what the
    summaries say; whoever names that file searches it."""
    texts: dict[str, str] = {}
    skipped: list[str] = []
    for each in files(reading, path):
        if each == RAW_MEMORIES and path != RAW_MEMORIES:
            continue
        try:
            texts[each] = reading.text(each)
        except GONE:
            continue
        except Unreadable:
            skipped.append(each)
    return texts, skipped


def results(indexed: Indexed, query: str, *, limit: int) -> list[Ranked]:
    # Each is every passage that says the same, with the score of the best of them.
    chosen: list[tuple[float, list[int]]] = []
    letters: list[str] = []
    for number, score in indexed.index.best(query, limit=limit * _LOOKED_AT):
        own = letters_of(indexed.passages[number].text)
        same = next((at for at, each in enumerate(letters) if says_the_same(own, each)), None)
        if same is not None:
            chosen[same][1].append(number)
        elif len(chosen) < limit:
            chosen.append((score, [number]))
            letters.append(own)
    return [result(indexed, numbers, score) for score, numbers in chosen]


def result(indexed: Indexed, numbers: Sequence[int], score: float) -> Ranked:
    first, *others = sorted(numbers, key=lambda each: depth(indexed.passages[each].path))
    passage = indexed.passages[first]
    threads = [thread for number in (first, *others) for thread in indexed.threads[number]]
    return Ranked(
        path=passage.path,
        start_line_number=passage.start,
        end_line_number=passage.end,
        content=cut_middle(passage.text, tokens=PASSAGE_TOKENS_MAX),
        headings=cut_middle(passage.headings, tokens=PASSAGE_TOKENS_MAX),
        score=round(score, 6),
        threads=list(dict.fromkeys(threads)),
        also=[
            Place(path=each.path, start_line_number=each.start)
            for each in (indexed.passages[number] for number in others[:ALSO_MAX])
        ],
    )


def depth(path: str) -> int:
    """The handbook is where one goes on reading; the summary of all a session has had already."""
    return {MEMORY: 0, SUMMARY: 2}.get(path, 1)


def letters_of(text: str) -> str:
    return "".join(filter(str.isalnum, _MARKS.sub("", text).casefold()))


def says_the_same(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return one == other or (len(shorter) >= _SAME_LETTERS_MIN and shorter in longer)


def threads_of(pieces: Iterable[Passage], texts: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Of each passage, the sessions it comes from, as the files themselves say it."""
    own = {path: thread_of(text) for path, text in texts.items() if path.startswith(SUMMARIES)}
    by_stem = {
        stem[0]: thread
        for path, thread in own.items()
        if thread and (stem := STEM.match(path.rpartition("/")[2]))
    }
    of_task = tasks_of(texts.get(MEMORY, ""), by_stem)
    for piece in pieces:
        thread = own.get(piece.path)
        named: list[str] = [thread] if thread else []
        if piece.path in (MEMORY, SUMMARY):
            tasks = cited_tasks(piece.text) or task_above(piece)
            named = [each for task in tasks for each in of_task.get(task, ())]
        if piece.path == SUMMARY and not named:
            pointed = pointed_above(lines_of(texts[SUMMARY]), piece.start - 1)
            named = [
                by_stem.get(stem[0], each) if (stem := STEM.match(each)) else each
                for each in pointed
            ]
        yield tuple(dict.fromkeys(named))


def pointed_above(lines: Sequence[str], at: int) -> list[str]:
    """The sessions that a line of v2's summary is of: its own, or those of what it stands under."""
    while at > 0 and lines[at][:1].isspace() and not pointed_threads(lines[at]):
        at -= 1
    return pointed_threads(lines[at])


def task_above(piece: Passage) -> list[int]:
    """The task whose heading a passage stands under."""
    above = [_TASK.match(f"## {each}") for each in piece.headings.split(" / ")]
    return [int(each[1]) for each in above[::-1] if each][:1]


def tasks_of(handbook: str, by_stem: Mapping[str, str]) -> dict[int, list[str]]:
    """Task -> the sessions whose summaries it names."""
    tasks: dict[int, list[str]] = {}
    current: list[str] | None = None
    for line in handbook.split("\n"):
        if opened := _TASK.match(line):
            current = tasks.setdefault(int(opened[1]), [])
        elif line.startswith(("# ", "## ")):
            current = None
        elif current is not None and line.startswith(f"- {SUMMARIES}/"):
            current += [by_stem[stem] for stem in STEM.findall(line)[:1] if stem in by_stem]
    return tasks
