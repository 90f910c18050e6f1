"""Redaction, the values: where a value ends, and whether it is a secret or only looks like one.

A label such as `password` says little in the text of a coding agent: most of what follows one is
code, a reference, a placeholder or prose. These rules decide from the value alone, in bounded
time, and lean towards keeping: a hidden identifier costs a lesson.
"""

# ruff: noqa: RUF001 - the quotes of other languages are meant.
import re
from typing import Literal

Family = Literal["pass", "token", "sure"]
"""How much the label says: a password may be short or a phrase, a token is long and random, and
after `sshpass -p` only a reference or a placeholder is no secret."""

HIDDEN = "\0"
"""Stands for a marker in the view, where no value may cross it."""

# A bare value ends before what separates it from its neighbour: a next parameter, a next key of
# a connection string, the escape of a string that holds it.
BARE = re.compile(
    r"""(?:[^\s"'`<>,;&|\\\0\x1b。、\uff0c\uff1b「」\uff09]
        | &(?!&|amp;|[\w.\[\]%-]{1,40}=|\s|$)
        | ,(?![\s"'}\]]|[\w.-]{1,40}[=:]|$)
        | ;(?![\s;"'}]|[\w.\ -]{1,40}=|$)
        | \|(?![\s|]|$)
        | \\(?![nrtu"'`\\]|\r|\n)
        | \\u(?!00[0-7])[0-9A-Fa-f]{4}
        | (?<=\w)'(?=\w)
    )+""",
    re.X,
)
FIRST_CHARACTERS = 256
# Quotes that have two different ends: a writer's, a long string's, a block of YAML.
PAIRED = re.compile(
    r"""[«„“‘‹「『][\ \xa0\u202f]?(?P<typed>[^«„“‘‹»”’›「」『』\n\0\x1b]{1,512}?)
        [\ \xa0\u202f]?[»”“’‘›」』]
      | '{3}(?P<three>[^'\\\0\x1b]{1,4096})'{3} | "{3}(?P<doubled>[^"\\\0\x1b]{1,4096})"{3}
      | \[\[(?P<long>[^\[\]\n\0\x1b]{1,4096})\]\]
      | [|>][+-]?[ \t]{0,4}\r?\n[ \t]{1,40}(?P<block>[^\s:\0\x1b]{4,4096})[ \t]{0,4}(?=\r?\n|$)""",
    re.X,
)
QUOTE = re.compile(r"""[fbruFBRU@L]{0,2}(?P<quote>\\{0,3}["'`])""")
INSIDE = {
    quote: re.compile(
        rf"(?:(?!{re.escape(quote)})(?:\\[^\n\0]|[^\\\n\0\x1b])){{1,8192}}+(?={re.escape(quote)})"
    )
    for sign in "\"'`"
    for quote in (sign, "\\" + sign, "\\\\" + sign, "\\\\\\" + sign)
}

PLACEHOLDER = re.compile(
    r"""your[_\ -]|_here$|placeholder|redacted|example|change_?-?me|dummy|\.\.\.|…|\*\*\*|xxxx
      | ^(?:none|null|nil|true|false|undefined|default|required|optional|todo|tbd|n/a|empty|unset)\b
      | ^(?:my|the|some|insert|replace|enter|use|see|ask)[_-]
      | ^(?:user|username|password|passwd|pass|pw|pwd|secret|token|key|apikey|postgres|root|admin
            |string|mysecret|mypassword|mytoken)$""",
    re.X,
)
REFERENCE = re.compile(
    r"""\$\{|\$\(|\{\{|\{%|<%|%\(|\#\{|@\{|\{[A-Za-z_][\w.]*\}
      | ^\$(?:env:)?[A-Za-z_]\w*$|^\$\d$|^%\w+%$|^[:@][a-z_]+$
      | ^!(?:Ref|Sub|vault|GetAtt|ImportValue|secret|env)\b
      | ^[\[({<]""",
    re.X,
)
CODE = re.compile(
    r"""^[!~]?[A-Za-z_$][\w$]*(?:[?!]?\.[A-Za-z_$][\w$]*)*[\(\[]
      | ^[!~]?[A-Za-z_$][\w$]{0,47}(?:[?!]?\.[A-Za-z_$][\w$]{0,47})+;?$
      | ^(?:new|await|async|lambda|return|function|not|and|or)$
      | ^\w+=>""",
    re.X,
)
# After a label at the very end of a string, its closing quote looks like an opening one.
BETWEEN = re.compile(r"\s*[,:;})\]+]")
ADDRESS = re.compile(r"^[a-z][a-z0-9+.-]{1,20}://", re.I)
PATH = re.compile(
    r"^(?:~|\.{1,2}|[A-Za-z]:)?(?:[\\/][\w.@-]{0,40}){1,20}$|^[\w.-]+(?:/[\w.-]+)+\.[a-z]{1,5}$"
)
NAME_PATH = re.compile(r"^[\w.-]{1,40}(?:/[\w.-]{1,40})+$")
MIXED_RUN = re.compile(r"[A-Za-z0-9+=]{16}")
NUMBER = re.compile(r"^[-+]?[\d.,_:]+(?:ms|[smhd%]|[kmg]i?b?)?$", re.I)
DATE = re.compile(r"^\d{4}-\d\d-\d\d(?:[T ][\d:.,Z+-]*)?$")
VERSION = re.compile(r"^v?\d+(?:\.\d+)+(?:[-+][\w.]*)?$")
UUID = re.compile(r"^\{?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\}?$", re.I)
DIGEST = re.compile(r"^(?:[0-9a-f]{7,10}|[0-9a-f]{40}|[0-9a-f]{64})$")
LABEL_WORD = re.compile(r"passw|secret|token|kennwort|api_?-?key|credential|contrase|senha", re.I)
WORDS = re.compile(r"^[A-Za-z]{1,16}(?:[_-][A-Za-z]{1,16})*$")
NUMBERED_WORDS = re.compile(r"^[A-Za-z]{1,16}\d{0,2}(?:[_-](?:[A-Za-z]{1,16}\d{0,2}|\d{1,2}))*$")
CAMEL = re.compile(r"^_?[A-Za-z]?[a-z]+(?:[A-Z]{1,4}[a-z]{2,})*(?:[A-Z]{1,4})?\d{0,2}$")
SENTENCE = re.compile(
    r"\b(?:must|enter|your|least|the|characters?|is|are|required|minimum|invalid|should|cannot"
    r"|please|with|for|not|too|muss|darf|der|die|das|mindestens)\b",
    re.I,
)


def read(view: str, start: int) -> tuple[int, int, bool] | None:
    """Where the value that starts here lies, and whether it is quoted. Long bare values are read
    in part: `whole` reads on once the value is known to be a secret."""
    if paired := PAIRED.match(view, start):
        form = paired.lastgroup or ""
        return (*paired.span(form), form != "block")
    if opening := QUOTE.match(view, start):
        inside = INSIDE[opening["quote"]].match(view, opening.end())
        return (*inside.span(), True) if inside else None
    found = BARE.match(view, start, min(len(view), start + FIRST_CHARACTERS))
    if found is None:
        return None
    return (start, trimmed(view, start, found.end()), False)


def whole(view: str, start: int, end: int) -> int:
    """The end of a bare secret that may be longer than what `read` looked at."""
    if end - start < FIRST_CHARACTERS - 8:
        return end
    found = BARE.match(view, start)
    return trimmed(view, start, found.end()) if found else end


def trimmed(view: str, start: int, end: int) -> int:
    """Without the punctuation of the sentence or the code that the value stands in."""
    while end > start:
        last = view[end - 1]
        closes = {")": "(", "]": "[", "}": "{"}.get(last)
        if last in ".,:;*{(" or (closes is not None and view.find(closes, start, end) < 0):
            end -= 1
        else:
            break
    return end


def is_secret(value: str, family: Family, *, quoted: bool = False) -> bool:
    if len(value) < (4 if family == "sure" else 5 if family == "pass" else 8):
        return False
    if quoted and BETWEEN.match(value):
        return False
    if len(set(value)) < 4 or PLACEHOLDER.search(value.lower()) or REFERENCE.search(value):
        return False
    if family == "sure":
        return True
    if ADDRESS.match(value) or (UUID.match(value) and family == "pass"):
        return False
    if " " in value:
        return family == "pass" and is_phrase(value)
    if not quoted and CODE.search(value):
        return False
    if (PATH.match(value) or (family == "token" and NAME_PATH.match(value))) and not is_random(
        value
    ):
        return False
    if NUMBER.match(value):
        return family == "pass" and value.isdigit() and len(value) >= 6
    if DATE.match(value) or VERSION.match(value):
        return False
    return not is_weak(value, family, quoted)


def is_phrase(value: str) -> bool:
    """A quoted passphrase, told from a label, a hint or a message by a digit and its words."""
    return (
        any(c.isdigit() for c in value)
        and len(value) <= 80
        and not SENTENCE.search(value)
        and not LABEL_WORD.search(value)
    )


def is_weak(value: str, family: Family, quoted: bool) -> bool:
    """Words, identifiers and names: what a person or a program would call something."""
    if LABEL_WORD.search(value) and NUMBERED_WORDS.match(value):
        return True
    if family == "token":
        if NUMBERED_WORDS.match(value) and (not mixed(value) or CAMEL.match(value)):
            return sum(c.isdigit() for c in value) <= 4 and not (
                value.isalpha() and value.islower() and len(value) >= 20
            )
        return bool(CAMEL.match(value)) and len(value) < 40
    if any(c.isdigit() for c in value) or any(not (c.isalnum() or c in "_-.") for c in value):
        return False
    if quoted and mixed(value[1:]):
        return False
    return len(value) < 20 or bool(WORDS.match(value))


def is_strong(value: str) -> bool:
    """Random enough to be a password where only a sentence says so, and no id or digest."""
    if UUID.match(value) or DIGEST.match(value):
        return False
    letters = any(c.isascii() and c.isalpha() for c in value)
    digits = any(c.isascii() and c.isdigit() for c in value)
    signs = any(c.isascii() and not (c.isalnum() or c in "_-./:") for c in value)
    return (
        letters and (digits or signs) and (signs or mixed(value) or not re.search("[_./:-]", value))
    )


def is_random(value: str) -> bool:
    """A run with capitals, small letters and digits, as base64 has and words do not."""
    return any(mixed(run) and any(c.isdigit() for c in run) for run in MIXED_RUN.findall(value))


def mixed(value: str) -> bool:
    return value.lower() != value and value.upper() != value
