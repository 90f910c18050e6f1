"""What a person typed that may be worth keeping: sentences, and the cues that mark them.

The lists are short on purpose. A wrong line in a memory is read by every later session, a missing
one is only missing, so a cue stands here when it marks something that still holds next week: a
wish that lasts (`said`), or the agent set right about a fact or a method (`corrected`). A report
that something does not work ends with its session; it decides the outcome and is never kept.

What is not prose is dropped before any cue is tried: fences, quotations, logs, code, tables, and
whatever follows `the log says:`. A question asks, and a report of what somebody else says is not
the person's own word; neither is kept, whatever cue it holds. How right the lists are was
measured on sentences that they had not seen: 12 of 23 hits, and after mending 17 of 32 on a further
set that is half traps (tests/adapters/offline/typed.py). So a kept line is a quote, and no rule.
"""

# ruff: noqa: RUF001 - the punctuation of other languages is meant.
import re
from collections.abc import Iterator
from typing import Literal

Kind = Literal["said", "corrected"]

PASTE_CHARS = 1_500
LETTERS_SHARE_MIN = 0.72

_I = re.IGNORECASE

# Programs write these into the user's role. The readers take them out; this is the second look.
_NOT_TYPED = re.compile(
    r"<(system-reminder|user_instructions|environment_context|instructions|skill|task-notification"
    r"|command-[a-z]+|local-command-[a-z]+|turn_aborted|subagent_notification|bash-[a-z]+)\b[^>]*>"
    r".*?(?:</\1>|\Z)",
    _I | re.DOTALL,
)
_NOT_A_PERSON = (
    "# AGENTS.md",
    "# CLAUDE.md",
    "[Request interrupted",
    "Caveat: The messages below",
    "This session is being continued",
    "Message Type:",
)
_FENCE = re.compile(r"^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_SKILL_FILE = re.compile(r"\n---\nname:")
_PASTE_FOLLOWS = re.compile(
    r"\b(here(?:'s| is| are)|says?|said|error|errors|output|log|logs|trace|message|review|page)\b"
    r"[^.?!]*[:：]\s*$",
    _I,
)
_CODE = re.compile(
    r"""^(?:\s{4,}\S.*[(){};=]|\s*(?:[>|]|\$\s|[{}\[\]]|\+\+\+|---|@@|diff\s--git|\#include|//|/\*|<[a-z/!]
    |at\s\S+\(|File\s"|Traceback\s|import\s\w+(?:$|\s+from|,)|from\s\S+\simport|def\s\w+\(|class\s\w+[:({]
    |(?:const|let|var)\s\w+\s*=|return\b.*;|raise\s\w+\(|func\s\w+\(|fn\s\w+|public\s|private\s))"""
    r"|[{};]\s*$|^\s*\"[^\"]+\"\s*:",
    re.VERBOSE,
)
_LOG = re.compile(
    r"^\s*(?:\[?\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d|\[?(?:ERROR|WARN|WARNING|INFO|DEBUG|TRACE|FATAL)\b"
    r"|(?:FAIL|FAILED|PASS|PASSED|ok|not ok)\b[: ]\s*\S*[/._:]|npm ERR!|E   )"
)
_MARK = re.compile(r"^\s*(?:[-*•+]|\d{1,2}[.)])\s+")
_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)(?<!vs\.)\s+|(?<=[。！？])")

_CODE_NAME = re.compile(r"\b(?:[a-z]+[A-Z]\w*|\w+_\w+|\w+::\w+)|\b\w+\(\)")
_INSTRUMENT = re.compile(
    r"\b(?:reply|respond|answer) (?:with )?(?:exactly|only)\b|\bno other text\b|\blines? \d+", _I
)
_QUESTION = re.compile(
    r"[?？]\s*$|か[。]?$|吗[。]?$|^(?:what|why|how|who|which|whose"
    r"|(?:can|could|would|will|should|shall|do|does|did|is|are|was|has|have) "
    r"(?:you|i|we|it|they|there|this|that|the)"
    r"|(?:where|when) (?:is|are|do|does|did|will|should|can))\b",
    _I,
)
_WHY_DID_YOU = re.compile(r"^why (?:did|didn'?t|don'?t|do|are|have) you\b", _I)
_REPORTED = re.compile(
    r"\b(?:docs?|documentation|page|article|readme|post|error|message|log|linter|compiler|tests?|spec"
    r"|review(?:er)?|he|she|they|it|someone|somebody|people)\s+"
    r"(?:says?|said|states?|stated|tells?|told|claims?|complains?|recommends?|suggests?)\b"
    r"|\baccording to\b|^[\"“„«'‘]",
    _I,
)
_IDLE = re.compile(
    r"^(?:never ?mind|don'?t worry|do not worry|no worries|no problem|don'?t bother|no need|no idea"
    r"|i don'?t (?:know|mind|care|think)|always (?:good|nice|happy|fun)\b)",
    _I,
)
# It says itself that it does not last.
_FOR_NOW = re.compile(
    r"\b(?:yet|for now|right now|this time|for the moment|today|let me|wait)\b|\bfirst$"
    r"|^no,? go back",
    _I,
)
_FILLER = re.compile(
    r"^(?:(?:please|pls|also|and|but|so|then|ok(?:ay)?|yes|yeah|well|oh|hey|btw|just|again|no|nope)\b"
    r"[\s,]*)+",
    _I,
)
_CLAUSE = re.compile(r"[,;:]\s+|\s+[–—-]+\s+|\s+(?:and|but|so|then)\s+|[、，；]", _I)

# Words that say that a wish lasts. They count in the first message too, because nobody states a
# default as the task of the moment.
_LASTS = re.compile(
    r"^(?:make|be) sure\b|^remember (?:to|that)\b"
    r"|^keep in mind\b"
    # At the start only: a thing may as well be `stamped in the future`.
    r"|^in (?:the )?future [a-z]+"
    r"|^don'?t (?:ever|forget)\b|^by default\b|^(?:every time|each time|whenever) you\b"
    r"|^i(?:'d| would)? (?:really |strongly |always )?(?:prefer|hate|dislike)\b"
    r"|^i(?:'d| would) rather (?:have|use|keep|see|not)\b"
    r"|^i (?:don'?t|do not|never) want\b"
    r"|^we (?:always|never|only)\b"
    # `we don't have that yet` tells how things are; these tell how things are done.
    r"|^we (?:don'?t|do not) (?:use|want|do|allow|support|write|commit|add|ship|touch|push|mock)\b",
    _I,
)
# `always` opens a wish; inside a sentence it does so before a verb only (`always visible`).
_ALWAYS = re.compile(r"^(?:always|never) (?:ever )?(?!seen|been|had|heard|knew|used to)[a-z]+", _I)
_ALWAYS_DO = re.compile(
    r"^(?:always|never) (?:ever )?(?:use|run|ask|keep|check|write|make|add|put|call|include|start"
    r"|stop|update|commit|push|merge|rebase|squash|test|format|lint|answer|reply|document|read|do|create"
    r"|return|name|change|edit|touch|delete|remove|rename|log|mock|import|install|assume|guess|skip"
    r"|plain)\b",
    _I,
)
_LASTS_ANYWHERE = re.compile(
    r"\b(?:from now on|going forward|as a rule|from here on)\b"
    # A rule for the whole place outlasts the request in which it is said.
    r"|\b(?:we|use|only|no|keep|always|never|must|don'?t)\b.*"
    r"\b(?:in|for|across|throughout) (?:this|our|the whole) "
    r"(?:repo(?:sitory)?|project|code ?base)\b"
    r"|\bin (?:this|our) (?:repo(?:sitory)?|project|code ?base)\b.*"
    r"\b(?:we|use|only|no|keep|always|never|must|don'?t)\b",
    _I,
)
# German, Japanese, Chinese. Beside the measured starts: `ab sofort` and `in Zukunft` are `ab jetzt`
# in other words, and 以后 counts at the start of a clause only, because behind a noun it means
# `after`.
_LASTS_ELSEWHERE = re.compile(
    r"\b(?:ab jetzt|ab sofort|künftig|in zukunft)\b"
    r"|\bbitte (?:immer|nie(?:mals)?|nicht|nur|kein\w*)\b"
    r"|今後は|必ず.|しないで|(?:^|[，,。；])\s*以后|请用|不要",
    _I,
)
# After the first message: what sets the agent right.
_SETS_RIGHT = re.compile(
    r"^(?:do not|don'?t|avoid) (?!you\b)[a-z]+|^(?:stop|quit) [a-z]+ing\b"
    r"|^i (?:want|need|expect) (?:you|it|them|the \w+) to\b"
    r"|^you (?:have to|must(?! be\b)|should(?:n'?t| not)?(?! (?:see|find|be|get|have|know)))\b"
    r"|^you (?:forgot|missed|skipped|ignored|misunderstood|broke"
    r"|deleted|removed|overwrote|didn'?t|did not|don'?t need)\b"
    r"|^(?:like|as) i (?:asked|said|told)\b"
    r"|^i (?:(?:never|already) )?(?:said|asked|told|meant)\b"
    r"|^(?:that|this|it)(?:'s|’s| is| was) (?:the )?"
    r"(?:wrong (?!in\b)|incorrect|old|outdated|deprecated|never)\b"
    r"|^(?:that|this|it)(?:(?:'s|’s| is| was) not| isn'?t) (?:an?|the|what|how|where|right|correct"
    r"|true|needed|necessary|allowed|supported|our|my)\b"
    r"|^(?:it|that|this|they|we|you|the \w+) already (?!looks?\b|feels?\b|seems?\b|better\b)"
    r"|^there(?:'s|’s| is| are) already\b|^let'?s not (?!worry|forget|go)\b"
    r"|^(?:use|keep|call|name|write|do|run|leave|work)\b.*"
    r"(?:\binstead\b|\brather than\b|, not\b|\bas (?:it )?is\b|\balone\b)"
    r"|^wrong \w+"
    r"|^(?:das|es) ist (?:nicht|falsch|kein\w*)\b|ではなく|而不是",
    _I,
)
# A fact with what it is not: `it is called workspace, not project`.
_CONTRAST = re.compile(
    r"\b(?:is|are|has|have|goes|lives|belongs|means)\b[^,]*, not\b|'s\b[^,]*, not\b", _I
)
_NO = re.compile(r"^(?:no|nope|nein)\s*[,.!:;–—-]+\s*(?P<rest>.{12,})", _I)

_THANKS = re.compile(
    r"\b(?:thanks|thank you|thx|perfect|lgtm|looks good|(?:that|it|this) works|works now"
    r"|works great|well done|danke|passt so|funktioniert jetzt)\b|ありがとう|谢谢|感谢|可以了",
    _I,
)
_FAULT = re.compile(
    r"\b(?:doesn'?t|does not|didn'?t|did not|isn'?t|is not|not|never|won'?t|can'?t) "
    r"(?:\w+ )?(?:work|working|compile|compiling|load|loading|start|starting|run|running|pass"
    r"|passing|build|show|showing|fixed)\b|\bstill (?:fail|fails|failing|broken|wrong|crash\w*"
    r"|the same|there|see|get|getting|red|not|doesn'?t|isn'?t)\b"
    r"|\bfails again\b|\bbroken\b|\bcrash(?:es|ed)\b"
    r"|\bgeht (?:\w+ )?nicht\b|\bfunktioniert (?:\w+ )?nicht\b|動かない|动不了|不行",
    _I,
)
_GREETING = re.compile(
    r"^(?:hi|hello|hey|hallo|moin|good (?:morning|evening|afternoon))(?: \w+)?[!.,]*$", _I
)


def is_paste(text: str) -> bool:
    return len(text) > PASTE_CHARS or text.lstrip().startswith(_NOT_A_PERSON)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a message that are prose of the person's own, in order.

    >>> list(sentences("fix it. The log says:\\nnever do that"))
    ['fix it', 'The log says:']
    """
    if is_paste(text):
        return
    text = _SKILL_FILE.split(text, maxsplit=1)[0]
    for line in _prose_lines(_FENCE.sub("\n", _NOT_TYPED.sub("\n", text))):
        for sentence in _END.split(line):
            sentence = _MARK.sub("", sentence).strip().rstrip(" .。")
            if sentence and _is_prose(sentence):
                yield sentence


def first_sentence(text: str) -> str | None:
    """What names the task. A greeting names nothing."""
    return next((s for s in sentences(text) if not _GREETING.match(s)), None)


def kind(sentence: str, *, first: bool = False, refusal: bool = False) -> Kind | None:
    """What a typed sentence is, if it is worth keeping.

    In a first message only a wish that lasts counts: the rest is the task. The reason for refusing
    a tool call sets the agent right by itself.

    >>> kind("always use uv here"), kind("no, that is the old endpoint"), kind("add a button")
    ('said', 'corrected', None)
    """
    blame = not first and bool(_WHY_DID_YOU.match(sentence))
    if len(sentence) < (4 if not sentence.isascii() else 8) or _IDLE.match(sentence):
        return None
    if _INSTRUMENT.search(sentence) or len(_CODE_NAME.findall(sentence)) >= 2:
        return None
    if _REPORTED.search(sentence) or (_QUESTION.search(sentence) and not blame):
        return None
    clauses = [_FILLER.sub("", clause).strip() for clause in _CLAUSE.split(sentence)]
    clauses = [clause for clause in clauses if clause and not _IDLE.match(clause)]
    if (
        _LASTS_ANYWHERE.search(sentence)
        or _LASTS_ELSEWHERE.search(sentence)
        or _ALWAYS.match(_FILLER.sub("", sentence))
        or any(_LASTS.match(clause) or _ALWAYS_DO.match(clause) for clause in clauses)
    ):
        return "said"
    if first or is_fault(sentence) or is_thanks(sentence) or _FOR_NOW.search(sentence):
        return None
    plain = _FILLER.sub("", sentence)
    if (
        refusal
        or blame
        or _NO.match(sentence)
        or _CONTRAST.search(sentence)
        or _SETS_RIGHT.search(plain)
        or any(_SETS_RIGHT.search(clause) for clause in clauses)
    ):
        return "corrected"
    return None


def is_thanks(sentence: str) -> bool:
    return bool(_THANKS.search(sentence)) and "in advance" not in sentence.lower()


def is_fault(sentence: str) -> bool:
    return bool(_FAULT.search(sentence))


def is_question(sentence: str) -> bool:
    return bool(_QUESTION.search(sentence))


def _prose_lines(text: str) -> Iterator[str]:
    """Lines of prose, hard-wrapped ones joined. A line that announces a paste is the last."""
    held = ""
    for line in text.splitlines():
        if not line.strip() or _CODE.search(line) or _LOG.search(line) or line.count("|") >= 2:
            if held:
                yield held
            held = ""
            continue
        if held and len(held) >= 60 and line.lstrip()[:1].islower() and held[-1] not in ".!?:":
            held = f"{held} {line.strip()}"
        else:
            if held:
                yield held
            held = line.strip()
        if _PASTE_FOLLOWS.search(line):
            break
    if held:
        yield held


def _is_prose(sentence: str) -> bool:
    solid = [c for c in sentence if not c.isspace()]
    return sum(c.isalpha() for c in solid) >= LETTERS_SHARE_MIN * len(solid)
