"""Redaction: no secret reaches a model, a body, a file or an export.

`redact` hides secrets in one decoded text and leaves all else as it was, byte for byte: the label
before a secret, its quotes, the JSON round it. It is idempotent (of chains of secrets that reveal
one another, the first `ROUNDS` links). Its work grows with the length of the text and not faster,
and it knows no clock, no file and no model. Redact decoded fields, never a line of JSON: behind
two layers of escapes nobody can tell where a value ends.

The text is searched as a reader sees it, without colours and invisible characters, and cut as it
is. Rules are looked up by fixed strings, window by window; a match may reach beyond its window,
so that no secret is lost at a border.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from .redaction_labels import LABELS
from .redaction_places import PLACES
from .redaction_rules import Rule
from .redaction_tokens import OTHER_KEYS, PRIVATE_KEY, TOKENS
from .redaction_values import HIDDEN, is_secret, is_strong, read, whole
from .session import (
    Agent,
    AnyItem,
    Assistant,
    Call,
    Harness,
    Header,
    Human,
    Output,
    RolledBack,
    TurnAborted,
)

MARKER = "[REDACTED_SECRET]"
RULES: tuple[Rule, ...] = (*TOKENS, PRIVATE_KEY, *OTHER_KEYS, *LABELS, *PLACES)
WINDOW = 64 * 1024
LONGEST_ANCHOR = max(len(anchor) for rule in RULES for anchor in rule.anchors)
LOOK_BACK = 160
# A rule reads at most this far, but for a value that it hides.
REACH = 9 * 1024
# A secret that was hidden can make its neighbour plain, rarely twice. The limit keeps the work in
# proportion to the text, whoever wrote it.
ROUNDS = 4

# What a terminal or a page does not show: colours, joiners, soft hyphens, byte order marks,
# fillers, variation selectors and tags, in which whole sentences are smuggled.
UNSEEN = re.compile(
    r"\x1b\[[0-9;:?]{0,32}[A-Za-z]|[\0\xad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
    r"|(?P<marker>\[REDACTED_SECRET\])"
)


def redact(text: str, rules: tuple[Rule, ...] = RULES) -> str:
    return redacted(text, rules)[0]


def redacted(text: str, rules: tuple[Rule, ...] = RULES) -> tuple[str, int]:
    """The text without its secrets, and how many were hidden."""
    hidden, view_of = 0, whole_view
    for _ in range(ROUNDS):
        view, places = as_seen(text)
        spans = merged(list(found(view, rules, view_of(view))))
        if not spans:
            break
        pieces, kept_from = [], 0
        for start, end in spans:
            pieces += [text[kept_from : places.of(start)], MARKER]
            kept_from = places.of(end - 1) + 1
        text = "".join([*pieces, text[kept_from:]])
        hidden, view_of = hidden + len(spans), round_markers
    return text, hidden


def whole_view(view: str) -> list[tuple[int, int]]:
    return [(0, len(view))]


def round_markers(view: str) -> list[tuple[int, int]]:
    """Where a secret that was hidden may change what a rule says of its neighbours."""
    near = (
        (max(0, at.start() - REACH), min(len(view), at.end() + LOOK_BACK))
        for at in re.finditer(HIDDEN, view)
    )
    return merged(list(near))


class Places:
    """Where a character of the view stands in the text."""

    def __init__(self) -> None:
        self.views, self.texts = [0], [0]

    def gap(self, view: int, text: int) -> None:
        self.views.append(view)
        self.texts.append(text)

    def of(self, view: int) -> int:
        run = bisect_right(self.views, view) - 1
        return self.texts[run] + view - self.views[run]


def as_seen(text: str) -> tuple[str, Places]:
    places, pieces, kept_from, length = Places(), [], 0, 0
    for unseen in UNSEEN.finditer(text):
        kept = text[kept_from : unseen.start()] + (HIDDEN if unseen["marker"] else "")
        pieces.append(kept)
        length += len(kept)
        kept_from = unseen.end()
        places.gap(length, kept_from)
    return ("".join([*pieces, text[kept_from:]]) if pieces else text), places


def found(
    view: str,
    rules: tuple[Rule, ...],
    stretches: list[tuple[int, int]],
    window: int = WINDOW,
) -> Iterator[tuple[int, int]]:
    """Every secret that begins in the stretches, rule by rule; spans may overlap."""
    past = [0] * len(rules)
    anchored = BY_ANCHOR if rules is RULES else by_anchor(rules)
    for start, end in stretches:
        for left in range(start, end, window):
            width = min(window, end - left)
            # One letter grows when it is lowered, and places must stay what they are.
            low = view[left : left + width + LONGEST_ANCHOR - 1].replace("\u0130", "i").lower()
            standing = placed(anchored, low, width)
            for number in sorted({number for each in standing for number in anchored[each]}):
                rule = rules[number]
                for anchor in anchors(rule, standing):
                    if past[number] <= left + anchor:
                        for begin, finish, goes in tried(rule, view, left + anchor):
                            past[number] = max(past[number], finish)
                            if goes:
                                yield begin, finish


def by_anchor(rules: tuple[Rule, ...]) -> dict[str, list[int]]:
    """Each fixed string and the numbers of the rules that begin with it: some 300 strings. To look
    whether they are there is what redaction costs, so that it is done once for all rules."""
    found: dict[str, list[int]] = {}
    for number, rule in enumerate(rules):
        for anchor in rule.anchors:
            found.setdefault(anchor, []).append(number)
    return found


BY_ANCHOR = by_anchor(RULES)


def placed(anchored: Iterable[str], low: str, window: int) -> dict[str, list[int]]:
    """Where those of the fixed strings stand that a window holds."""
    return {each: all_places(each, low, window) for each in anchored if each in low}


def anchors(rule: Rule, standing: Mapping[str, list[int]]) -> list[int]:
    """Where a rule is tried, of where each fixed string of this window stands."""
    places = [place for each in rule.anchors for place in standing.get(each, ())]
    return sorted(places) if len(rule.anchors) > 1 else places


def all_places(anchor: str, low: str, window: int) -> list[int]:
    places = []
    at = low.find(anchor)
    while 0 <= at < window:
        places.append(at)
        at = low.find(anchor, at + 1)
    return places


def tried(rule: Rule, view: str, at: int) -> Iterator[tuple[int, int, bool]]:
    """What the rule says at this anchor: spans, whether they go, and how far it has looked."""
    if rule.before and not rule.before.search(view[max(0, at - LOOK_BACK) : at]):
        return
    for back in rule.back:
        if back <= at and (match := rule.pattern.match(view, at - back)):
            break
    else:
        return
    if rule.each:
        for part in rule.each.finditer(view, match.start(), match.end()):
            yield *part.span("s"), judged(rule, part["s"], quoted=True)
        yield match.end(), match.end(), False
    elif "s" in rule.pattern.groupindex and match["s"] is not None:
        start, end = match.span("s")
        quoted = start > 0 and view[start - 1] in "\"'`"
        yield start, end, rule.family is None or judged(rule, match["s"], quoted=quoted)
    elif value := read(view, match.end()):
        start, end, quoted = value
        if not quoted and '"' in match[0] and view[start:end].isdigit():
            return  # A number of a JSON record, which would not be one any more.
        if judged(rule, view[start:end], quoted=quoted):
            yield start, end if quoted else whole(view, start, end), True


def judged(rule: Rule, value: str, *, quoted: bool) -> bool:
    return (
        rule.family is not None
        and is_secret(value, rule.family, quoted=quoted)
        and (not rule.strong or is_strong(value))
    )


def merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def redact_item(item: AnyItem) -> AnyItem:
    """The item with every text of it redacted; who said it, when and where stays."""
    match item:
        case Human() | Harness() | Agent() | Assistant() | Output():
            return replace(item, text=redact(item.text))
        case Call():
            return replace(
                item,
                arguments=redact(item.arguments),
                command=None if item.command is None else redact(item.command),
                changes=tuple(replace(change, path=redact(change.path)) for change in item.changes),
            )
        case TurnAborted() | RolledBack():
            return item


USERINFO = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/?#]*@")


def redact_names(header: Header) -> Header:
    """What a session calls itself and its branch, which stand in the log. Places stay: they are
    ids."""
    branch = header.git_branch
    return replace(
        header,
        source=redact(header.source),
        git_branch=None if branch is None else redact(branch),
    )


def redact_header(header: Header) -> Header:
    """The preview redacted, the remote without whoever it logs in as, and the names."""
    return replace(
        redact_names(header),
        preview=None if header.preview is None else redact(header.preview),
        repository_url=None
        if header.repository_url is None
        else redact(USERINFO.sub(r"\1", header.repository_url)),
    )
