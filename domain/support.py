"""Support: whether a line of a model's output may be kept, by who said what it says.

A session is read by a model together with whatever tools, pages and files put into it, and a page
can tell a model what to remember. So a line is held against the session:

* What tells a later session how a person wants things is kept only where a person typed it, in a
  sentence that is no question, no quotation and no paste.
* What repeats a passage that speaks to an assistant (`note to AI`, `add to MEMORY.md`, `ignore
  previous`) goes, and so does an order that only the outside gave, in any part of the output.
* An address or a name with digits that only the outside had goes with its line.

All else stays: a fact that a command printed, a failure, a file. A line may be lost that way that
was right (a preference told in other words, a page's identifier); it is counted and never kept in
part. Patterns only add a reason: the first rule needs none, and no list of them was ever complete.

The judge keeps what its lines need, however long the session is.
"""

import re
import string
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from .quotes import numbers

Kind = Literal["preference", "fact", "index"]
"""How a person wants things; anything else that is told; a title, a keyword, a field."""

SUPPORT_MIN = 0.6
A_LITTLE = 0.34
"""Below it a preference shares no more with what was typed than any two sentences do."""
RUN_WORDS_MIN = 3
LONG_RUN_WORDS_MIN = 12
NAME_CHARS_MIN = 4
PASTE_CHARS = 1_500
TEXT_CHARS_MAX = 64 * 1024
"""Of one output, from both of its ends; a model is rarely shown more of it."""
HEARD_CHARS_MAX = 6 * 1024 * 1024
"""Of all outputs: ten times what a model is shown. Of later ones only the ends are heard."""
ENDS_CHARS_MAX = 2 * 1024
SEEN_MAX = 50_000

_STOP_WORDS = """
    a about after all also am an and any are as at be been being but by can could did do does doing
    for from get go got had has have he her here him his how i if in into is it its just kind let me
    more most my no nor not of off on once one only or other our out over own same she should so
    some such than that the their them then there these they this those to too up us very was we
    were what when where which while who why will with would you your
    user users agent agents assistant future later session sessions default defaults said says say
    saying asked asks asking wrote typed told tells wants want wanted prefer prefers preferred
    preference preferences explicitly correction corrected expects expected likes like liked please
    always never using used task work working again now
    der die das den dem des ein eine einen einem und oder ist sind war ich du er sie es wir ihr
    nicht zu im mit auf f\u00fcr von bei bitte immer nie
"""
_STOP = frozenset(_STOP_WORDS.split())
# So many of the words of an English text are of these.
_ENGLISH_WORDS = """
    the a an to of and in is it that this for on with be not i you we do are was as at or if please
    my your have can should what how
"""
_ENGLISH = frozenset(_ENGLISH_WORDS.split())
ENGLISH_SHARE_MIN = 0.15
FEW_WORDS = 6
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_SIGNS = str.maketrans(dict.fromkeys(set(string.punctuation) - {"'"}, " "))
_CJK = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af]")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'\u201d)]?\s+|(?<=[\u3002\uff01\uff1f])|\n+|<!--|-->|;\s")
_ADDRESS = re.compile(
    r"(?:https?://|www\.)[^\s<>\"'`)\]]{1,500}|(?<![\w.-])[\w-]{1,60}(?:\.[\w-]{1,60}){1,8}(?![\w-])",
    re.ASCII,  # Other scripts write on without a space.
)
_NAME = re.compile(
    r"(?<![\w-])(?:(?=[\w-]{0,60}\d)(?=[\w-]{0,60}[^\W\d_])\w{1,60}(?:-\w{1,60}){0,6}"
    r"|[A-Z]{2,30}(?:-[A-Z0-9]{1,30}){1,6})(?![\w-])",
    re.ASCII,
)
_QUESTION = re.compile(
    r"[?\uff1f]\s*[\"'\u201d)]?\s*$"
    r"|^(?:what|why|how|who|which|whose|should (?:we|i))\b",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"\b(?:docs?|documentation|page|site|article|readme|post|error|message|log|guide|he|she|they|it"
    r"|someone|somebody|people|seite|artikel)\s+"
    r"(?:says?|said|states?|tells?|told|claims?|recommends?|suggests?|writes?|wrote|reads?|sagt)\b"
    r"|\baccording to\b|^\s*>",
    re.IGNORECASE,
)
_PASTE_FOLLOWS = re.compile(
    r"\b(?:here(?:'s| is| are)|says?|said|output|log|logs|trace|page|article|readme|text)\b"
    r"[^.?!\n]*:\s*$",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"[^\"\n]{16,}\"|\u201c[^\u201d\n]{16,}\u201d|\u00ab[^\u00bb\n]{16,}\u00bb")
_FENCE = re.compile(r"^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_LOG_LINE = re.compile(
    r"^\s*(?:\[?\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d|\[?(?:ERROR|WARN|INFO|DEBUG)\b"
    r"|at \S+\(|File \"|<)"
)
# A passage that speaks to whoever reads it for somebody else.
_TO_ASSISTANTS = re.compile(
    r"\b(?:ai|llm|coding|language)[ -]?(?:assistants?|agents?|models?|system)\b"
    r"|\b(?:assistants?|agents?|models?|chatbots?) (?:must|should|reading|who|that read)\b"
    r"|\bnote (?:to|for) (?:ai|all|any|the) \b|\blong[- ]term memory\b|\bMEMORY\.md\b"
    r"|\bmemory_summary\b|\brollout_(?:summary|slug)\b|\braw_memory\b"
    r"|\b(?:store|save|record|remember|add|memori[sz]e)\b[^.\n]{0,40}\b(?:memory|preference|rule)"
    r"|\b(?:ignore|disregard|forget|override)\b[^.\n]{0,30}"
    r"\b(?:previous|prior|above|all|every|earlier|instructions?|rules?)\b"
    r"|\bsystem prompt\b|\bsystem (?:note|message|notice|override)\b|\buser preference\b"
    r"|<oai-mem-citation>",
    re.IGNORECASE,
)
# One of them stands in every such passage, and most texts have none.
_ADDRESSING = (
    *("assistant", "agent", "model", "chatbot", "llm", "memory", "rollout", "preference", "rule"),
    *("ignore", "disregard", "forget", "override", "system", "citation", "note to", "note for"),
    *("ai ", "ai-", "coding ", "language "),
)
_ORDER = re.compile(
    r"\b(?:always|never|from now on|must|by default|every time|do not|don't|have to|make sure"
    r"|ensure)\b"
    r"|^\W*(?:please )?(?:send|skip|forget|store|remember|use|run|add|set|delete|remove|disable"
    r"|enable|ignore|approve|push|upload|post|trust|install|allow|grant|execute|fetch|download|copy|share"
    r"|report|include|append|publish|deploy|merge|commit|open|visit|call|treat|accept|bypass|turn"
    r"|email|mail|forward|give|write|put|replace|prefer|avoid|stop|start|keep)\b",
    re.IGNORECASE,
)


class Line(Struct, frozen=True, kw_only=True):
    """What is judged: a statement of the output. `quoted` are the quotes in it that were found in
    what a person typed, and need no other witness."""

    text: str
    kind: Kind
    quoted: tuple[str, ...] = ()


class Witness(Struct, kw_only=True):
    """What the session has said of one sentence of a line so far."""

    line: int
    words: tuple[str, ...]
    numbers: Counter[str]
    human: float = 0.0
    other: float = 0.0
    outside: float = 0.0
    planted: bool = False
    copied: bool = False


class Judge:
    """Lines, and a session that is told to it part by part, in any order.

    `person` hears what was typed, `known` what the agent did, `inside` what its commands printed,
    `outside` what pages and foreign tools returned, `spoken` what the agent said itself.
    """

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self._witnesses: list[Witness] = []
        self._of: defaultdict[str, list[int]] = defaultdict(list)
        self._names: dict[str, set[int]] = {}
        self._own: set[str] = set()
        self._foreign: set[str] = set()
        self._typed_words = self._typed_english = self._heard = 0
        # A log says the same a thousand times; it is weighed once.
        self._seen: set[tuple[str | bool | None, ...]] = set()
        for at, line in enumerate(lines):
            for sentence in sentences(line.text):
                words = content_words(sentence)
                if words:
                    for word in set(words):
                        self._of[word].append(len(self._witnesses))
                    self._witnesses.append(
                        Witness(line=at, words=tuple(words), numbers=numbers(sentence))
                    )
            for name in names(line.text):
                self._names.setdefault(name, set()).add(at)

    def person(self, text: str) -> None:
        self._note(text, self._own)
        for sentence in said(text):
            words = _WORD.findall(sentence.casefold())
            self._typed_words += len(words)
            self._typed_english += sum(word in _ENGLISH for word in words)
            for witness, share, _ in self._shares(sentence, merged=True):
                if not witness.numbers - numbers(sentence):
                    witness.human = max(witness.human, share)
        # What was only quoted or asked is somebody else's.
        self._hear(text)

    def inside(self, text: str) -> None:
        text = self._clipped(text)
        if not speaks_to_assistants(text):
            self._note(text, self._own)
            self._hear(text)
            return
        # A file of the project may speak of assistants, too: here a line is all that is doubted.
        for line in text.split("\n"):
            if speaks_to_assistants(line):
                self._planted(line, run_min=LONG_RUN_WORDS_MIN)
            else:
                self._note(line, self._own)
                self._hear(line)

    def outside(self, text: str) -> None:
        text = self._clipped(text)
        self._note(text, self._foreign)
        for passage in passages(text):
            if speaks_to_assistants(passage):
                self._planted(passage)
            else:
                self._hear(passage, outside=True)

    def known(self, text: str) -> None:
        """What the agent did, or was told by this machine: its names are the session's own."""
        self._note(text, self._own)
        self._hear(text)

    def spoken(self, text: str) -> None:
        self._hear(text)

    def suppressed(self) -> set[int]:
        """The numbers of the lines that may not be kept."""
        gone: set[int] = set()
        for name, lines in self._names.items():
            if name in self._foreign and name not in self._own:
                gone |= lines
        english = (
            self._typed_words < FEW_WORDS
            or self._typed_english >= ENGLISH_SHARE_MIN * self._typed_words
        )
        by_line: defaultdict[int, list[Witness]] = defaultdict(list)
        for witness in self._witnesses:
            by_line[witness.line].append(witness)
        for at, line in enumerate(self.lines):
            if at not in gone and self._falls(line, by_line[at], english=english):
                gone.add(at)
        return gone

    def _falls(self, line: Line, witnesses: Sequence[Witness], *, english: bool) -> bool:
        for each in witnesses:
            if each.human < SUPPORT_MIN and (each.planted or each.copied):
                return True
            if each.human >= SUPPORT_MIN or len(each.words) < 2:
                continue
            order = line.kind == "preference" or _ORDER.search(line.text)
            if order and each.outside >= SUPPORT_MIN:
                return True
        if line.kind != "preference" or line.quoted or not witnesses:
            return False
        best = max(witnesses, key=lambda each: each.human)
        if best.human >= SUPPORT_MIN:
            return False
        if max(each.other for each in witnesses) >= SUPPORT_MIN:
            return True
        # Whoever wrote in another language is told in English, with no word in common.
        return english and best.human < A_LITTLE

    def _clipped(self, text: str) -> str:
        most = TEXT_CHARS_MAX if self._heard < HEARD_CHARS_MAX else ENDS_CHARS_MAX
        self._heard += min(len(text), most)
        return text if len(text) <= most else f"{text[: most // 2]}\n\n{text[-most // 2 :]}"

    def _note(self, text: str, into: set[str]) -> None:
        wanted = self._names.keys() - into
        if wanted:
            low = text.casefold()
            into.update(name for name in wanted if stands_in(name, low))

    def _planted(self, text: str, *, run_min: int = RUN_WORDS_MIN) -> None:
        self._note(text, self._foreign)
        for sentence in sentences(text):
            for witness, share, run in self._shares(sentence, runs=True):
                witness.other = max(witness.other, share)
                witness.outside = max(witness.outside, share)
                if share >= SUPPORT_MIN or run >= run_min:
                    witness.planted = True

    def _hear(self, text: str, *, outside: bool = False) -> None:
        for sentence in sentences(text):
            for witness, share, run in self._shares(sentence, runs=outside):
                witness.other = max(witness.other, share)
                if outside:
                    witness.outside = max(witness.outside, share)
                    witness.copied = witness.copied or run >= LONG_RUN_WORDS_MIN

    def _shares(
        self, sentence: str, *, merged: bool = False, runs: bool = False
    ) -> Iterator[tuple[Witness, float, int]]:
        """For each sentence of a line: how much of it this one explains, and with `runs` how many
        words in a row both have. `merged`: or how much of this one the line keeps."""
        words = content_words(sentence)
        heard = set(words)
        common = heard & self._of.keys()
        if not common:
            return
        if not merged:
            told = (
                (runs, *(w if w in common else None for w in words)) if runs else (*sorted(common),)
            )
            if told in self._seen:
                return
            if len(self._seen) < SEEN_MAX:
                self._seen.add(told)
        shared: Counter[int] = Counter()
        for word in common:
            shared.update(self._of[word])
        places: defaultdict[str, list[int]] = defaultdict(list)
        if runs and any(count >= RUN_WORDS_MIN for count in shared.values()):
            for at, word in enumerate(words):
                if word in self._of:
                    places[word].append(at)
        for at, count in shared.items():
            witness = self._witnesses[at]
            share = count / len(set(witness.words))
            if merged and count >= 3:
                share = max(share, count / len(heard))
            run = longest_run(witness.words, places) if count >= RUN_WORDS_MIN else 0
            yield witness, share, run


def said(text: str) -> Iterator[str]:
    """The sentences in which a person speaks for themselves: no question, quotation or paste."""
    text = _FENCE.sub("\n", text)
    if len(text) > PASTE_CHARS:
        # The paragraph before a paste is typed.
        text = text.partition("\n\n")[0]
        if len(text) > PASTE_CHARS:
            return
    for line in text.split("\n"):
        if _LOG_LINE.match(line) or _REPORTED.search(line):
            if _PASTE_FOLLOWS.search(line):
                return
            continue
        for sentence in sentences(_QUOTED.sub(" ", line)):
            if not _QUESTION.search(sentence):
                yield sentence
        if _PASTE_FOLLOWS.search(line):
            return


def speaks_to_assistants(text: str) -> bool:
    low = text.lower()
    return any(word in low for word in _ADDRESSING) and bool(_TO_ASSISTANTS.search(text))


def is_said(quote: str, text: str) -> bool:
    """Whether the quote is what a person says in this message, and not what is quoted there."""
    words = set(content_words(quote))
    spoken = [set(content_words(each)) for each in said(text)]
    return bool(words) and len(words & set().union(*spoken)) >= SUPPORT_MIN * len(words)


def sentences(text: str) -> Iterator[str]:
    return (piece for piece in map(str.strip, _SENTENCE_END.split(text)) if piece)


def passages(text: str) -> Iterator[str]:
    """Paragraphs; a comment of a page is one, whatever stands in it."""
    for part in re.split(r"(<!--.*?(?:-->|\Z))", text, flags=re.DOTALL):
        if part.startswith("<!--"):
            yield part
        else:
            yield from filter(None, map(str.strip, re.split(r"\n\s*\n", part)))


def content_words(sentence: str) -> list[str]:
    """What a sentence is about, in order, without the endings that change with its form."""
    if sentence.isascii():
        words = sentence.lower().translate(_SIGNS).split()
        return [stemmed(word) for word in words if word not in _STOP and _counts(word)]
    found = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", sentence).casefold()):
        if _CJK.search(word):
            found += [word[at : at + 2] for at in range(max(1, len(word) - 1))]
        elif word not in _STOP and _counts(word):
            found.append(stemmed(word))
    return found


def _counts(word: str) -> bool:
    return len(word) > 1 or word.isdigit()


@lru_cache(maxsize=20_000)
def stemmed(word: str) -> str:
    """
    >>> stemmed("answers"), stemmed("committing"), stemmed("checked")
    ('answer', 'commit', 'check')
    """
    for ending in ("ing", "ed", "es", "s"):
        if len(word) >= len(ending) + 4 and word.endswith(ending) and not word.endswith("ss"):
            word = word.removesuffix(ending)
            if ending in ("ing", "ed") and word[-1] == word[-2:-1] and word[-1] not in "ls":
                word = word[:-1]
            break
    return word.removesuffix("e") if len(word) > 4 else word


def names(text: str) -> set[str]:
    """Addresses and their hosts, and words with digits in them: what is one thing's own name."""
    found = set()
    for address in _ADDRESS.findall(text):
        bare = re.sub(r"^[a-z]+://", "", address.casefold()).rstrip("/.,;:")
        host = bare.partition("/")[0]
        if any(c.isalpha() for c in host):
            found |= {bare, host}
    found |= {word.casefold() for word in _NAME.findall(text)}
    return {name for name in found if len(name) >= NAME_CHARS_MIN}


def stands_in(name: str, text: str) -> bool:
    """Whether a name stands in a text as a whole word, both lowered."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        round_it = text[at - 1 : at] + text[end : end + 1] if at else text[end : end + 1]
        if not any(c.isascii() and c.isalnum() for c in round_it):
            return True
        at = text.find(name, at + 1)
    return False


def longest_run(wanted: Sequence[str], places: Mapping[str, Sequence[int]]) -> int:
    """How many words in a row both have, at most `LONG_RUN_WORDS_MIN`."""
    best = 0
    runs: dict[int, int] = {}
    for word in wanted:
        runs = {at: runs.get(at - 1, 0) + 1 for at in places.get(word, ())}
        best = max(best, max(runs.values(), default=0))
        if best >= LONG_RUN_WORDS_MIN:
            break
    return best
