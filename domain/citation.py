"""Citation: what a reply shows a person, and what it says was of use.

A reply may hold blocks: `<oai-mem-citation>`, one element `<citation_entries>` with a place a line
(`path:start-end|note=[text]`), one element `<rollout_ids>` with an id a line, or the older
`<thread_ids>`, and `</oai-mem-citation>`. Tags are exact, and blocks do not nest: a second opening
inside one is its text, so that a closing tag left over stays visible. A closed block is hidden
whole, whatever is in it; every space around it stays. Web citations (U+E200 ...) are text here:
what a page wrote must not claim a use.

A block that nothing closes counts as closed at the end of the reply, but hides nothing but itself
(a departure from Codex, which hides the rest of the answer). Hidden are the block's tags, also one
that the end cut off; its closed elements; behind an element that nothing closes those lines that
are places or UUIDs, the last one also where it is cut off; and blank text that stands between
these, or between one of them and the end. All else becomes visible when the reply ends, since
until then the closing tag could still come. Only closed elements say anything.

What is read: lines and their parts without the white space around them; of a body the first
element of each name; a line that is no place is dropped alone. The last `|note=[` of a line counts,
the last `:` before it, the first `-` behind that; numbers are ASCII digits, also with a `+`, below
2**32. Nothing is said about whether a place exists. Time is linear in the reply, however it comes.
"""

import re

from msgspec import Struct

from .ids import UUID

OPENING = "<oai-mem-citation>"
CLOSING = "</oai-mem-citation>"
ENTRIES = "citation_entries"
IDS = "rollout_ids"
OLDER_IDS = "thread_ids"

_ELEMENT_TAG = re.compile(f"<(/?)({ENTRIES}|{IDS}|{OLDER_IDS})>|{OPENING}")
_TAGS = (
    OPENING,
    CLOSING,
    *(f"<{slash}{name}>" for slash in ("", "/") for name in (ENTRIES, IDS, OLDER_IDS)),
)
# Unicode's white space, and not what Python adds to it: separators of records are no space.
_WHITE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_NUMBER = re.compile(r"\+?0*([0-9]{1,10})")
# How a place, or an id, looks where the reply was cut off inside it. A word that only could be
# the beginning of one is text: a hidden word is worse than a visible scrap.
_CUT_PLACE = re.compile(r"[^\s|]+:[0-9]+(?:-(?:[0-9]+(?:\|(?:|n|no|not|note|note=|note=\[.*))?)?)?")
_CUT_ID = re.compile(r"(?=[0-9a-f-]*[0-9])[0-9a-f][0-9a-f-]{0,35}", re.IGNORECASE)
_LIMIT = 2**32


class CitationEntry(Struct, frozen=True, kw_only=True):
    """A place that the reply says it used: lines `start` to `end` of a file, and what for."""

    path: str
    start: int
    end: int
    note: str


class Citation(Struct, frozen=True, kw_only=True):
    """A reply, read to its end. `ids_raw` are the ids as written, each once, in order."""

    visible: str
    entries: tuple[CitationEntry, ...] = ()
    ids_raw: tuple[str, ...] = ()

    @property
    def usage_ids(self) -> tuple[str, ...]:
        return usage_ids(self.ids_raw)


def parse(reply: str) -> Citation:
    """A whole reply at once."""
    parser = Parser()
    shown = parser.feed(reply)
    return parser.citation(shown + parser.finish())


def usage_ids(ids: tuple[str, ...]) -> tuple[str, ...]:
    """The ids that can be a session's: plain UUIDs, written small, each once."""
    return tuple(dict.fromkeys(cited.lower() for cited in ids if UUID.fullmatch(cited)))


class Parser:
    """A reply as it comes in. Show what `feed` returns at once, and what `finish` returns last."""

    def __init__(self) -> None:
        self._held = ""  # The end of what came so far, where it may be the beginning of a tag.
        self._inside = False
        self._body: list[str] = []
        self._entries: list[CitationEntry] = []
        self._ids: dict[str, None] = {}

    def feed(self, chunk: str) -> str:
        """The next part of the reply; what of it can be shown now."""
        shown: list[str] = []
        text = self._held + chunk
        at = 0
        while (found := text.find(self._awaited, at)) >= 0:
            (self._body if self._inside else shown).append(text[at:found])
            at = found + len(self._awaited)
            if self._inside:
                self._read("".join(self._body))
                self._body = []
            self._inside = not self._inside
        end = len(text) - _beginning_at_the_end(text, at, self._awaited)
        (self._body if self._inside else shown).append(text[at:end])
        self._held = text[end:]
        return "".join(shown)

    def finish(self) -> str:
        """The reply has ended; what of it is still to be shown."""
        held, self._held = self._held, ""
        if not self._inside:
            return held
        body = "".join(self._body) + held
        self._inside, self._body = False, []
        self._read(body)
        return _not_of_the_block(body)

    def citation(self, visible: str) -> Citation:
        """What the reply said, once it has ended. `visible` is all that was to be shown."""
        return Citation(visible=visible, entries=tuple(self._entries), ids_raw=tuple(self._ids))

    @property
    def _awaited(self) -> str:
        return CLOSING if self._inside else OPENING

    def _read(self, body: str) -> None:
        for line in _lines(_element(body, ENTRIES) or ""):
            if (entry := _entry(line)) is not None:
                self._entries.append(entry)
        ids = _element(body, IDS)
        if ids is None:
            ids = _element(body, OLDER_IDS) or ""
        self._ids |= dict.fromkeys(_lines(ids))


def _beginning_at_the_end(text: str, at: int, tag: str) -> int:
    """How much of the end of `text[at:]` may be the beginning of the tag."""
    for length in range(min(len(text) - at, len(tag) - 1), 0, -1):
        if text.endswith(tag[:length]):
            return length
    return 0


def _element(body: str, name: str) -> str | None:
    """The text of the first element of that name; None where there is none that is closed."""
    opening = f"<{name}>"
    begin = body.find(opening)
    if begin < 0:
        return None
    begin += len(opening)
    end = body.find(f"</{name}>", begin)
    return None if end < 0 else body[begin:end]


def _lines(text: str) -> list[str]:
    lines = (line.strip(_WHITE) for line in text.split("\n"))
    return [line for line in lines if line]


def _entry(line: str) -> CitationEntry | None:
    place, marked, note = line.rpartition("|note=[")
    if not marked or not note.endswith("]"):
        return None
    path, _, lines = place.rpartition(":")
    first, dash, last = lines.partition("-")
    start, end = _number(first), _number(last)
    if not dash or start is None or end is None or ":" not in place:
        return None
    return CitationEntry(
        path=path.strip(_WHITE), start=start, end=end, note=note[:-1].strip(_WHITE)
    )


def _number(text: str) -> int | None:
    digits = _NUMBER.fullmatch(text.strip(_WHITE))
    if digits is None or int(digits[1]) >= _LIMIT:
        return None
    return int(digits[1])


def _not_of_the_block(body: str) -> str:
    """What of a block that nothing closed is not the block's own."""
    visible: list[str] = []
    # Where no element of a name is closed any more, or each opening tag would look to the end.
    last = {name: body.rfind(f"</{name}>") for name in (ENTRIES, IDS, OLDER_IDS)}
    at = 0
    unclosed: str | None = None  # The element whose lines may follow.
    while True:
        tag = _ELEMENT_TAG.search(body, at)
        text = body[at : tag.start() if tag else len(body)]
        if tag is None:
            text = _without_cut_tag(text)
        if unclosed is not None:
            text = _without_lines(text, unclosed, to_the_end=tag is None)
        if text.strip(_WHITE):
            visible.append(text)
        if tag is None:
            return "".join(visible)
        at, unclosed = tag.end(), None
        if tag[2] and not tag[1]:
            closing = f"</{tag[2]}>"
            if last[tag[2]] >= at:
                at = body.index(closing, at) + len(closing)
            else:
                unclosed = tag[2]


def _without_cut_tag(text: str) -> str:
    cut = max(_beginning_at_the_end(text, 0, tag) for tag in _TAGS)
    return text[: len(text) - cut] if cut > 1 else text  # A lone `<` may be anything.


def _without_lines(text: str, element: str, *, to_the_end: bool) -> str:
    """The text from the line on that is none of the element's; its line end stays before it."""
    at = 0
    while at < len(text):
        end = text.find("\n", at + 1)
        end = len(text) if end < 0 else end
        line = text[at:end].strip(_WHITE)
        cut = to_the_end and end == len(text)
        if line and not _is_line_of(element, line, cut=cut):
            break
        at = end
    return text[at:]


def _is_line_of(element: str, line: str, *, cut: bool) -> bool:
    if element == ENTRIES:
        return _entry(line) is not None or (cut and _CUT_PLACE.fullmatch(line) is not None)
    return UUID.fullmatch(line) is not None or (cut and _CUT_ID.fullmatch(line) is not None)
