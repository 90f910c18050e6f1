"""The fence: memory as data, between two lines that no text inside can hold.

Both lines carry the beginning of the digest of exactly what is between them. Whoever writes a text
that will stand inside would have to name its own digest, so no line of it can be the fence's end;
and lines that only look like one lose that look, for a reader who does not compare numbers.

What a session is given stands whole in a tag, by which the readers of transcripts know it again:
a session learns nothing from its own memory. That tag, and an agent's own
around it, is in no text inside, either.
"""

import re
import unicodedata
from hashlib import sha256

MARK_CHARS = 32
TAG = "threadbook-memory"
BEGINS = "===== THREADBOOK MEMORY BEGINS {mark} ====="
ENDS = "===== THREADBOOK MEMORY ENDS {mark} ====="

# What one reader or another takes for the end of a line.
_BREAKS = re.compile("(\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029])")
_WORDS = re.compile(r"memory(?:summary)?(?:begin|end)")
_RULE = re.compile(r"([^\w\s])\1\1|___")
# Ours, and those in which agents hand over what a hook says.
_TAG = re.compile(
    rf"<(?=[/\s]*(?:{TAG}|system[-_]reminder|hook_context|session-start-hook))", re.IGNORECASE
)
_SEEN_TAG = re.compile(_TAG.pattern)
_ASCII_UNSEEN = re.compile(r"[\x00-\x20\x7f]+")
_ASCII_SIGNS = re.compile(r"[^a-z]+")
_UNSEEN = ("Cc", "Cf", "Zs", "Mn")


def fenced(text: str) -> str:
    """
    >>> print(fenced("use uv"))
    ===== THREADBOOK MEMORY BEGINS 5f6429b417f490e9d8826ca7f9233318 =====
    use uv
    ===== THREADBOOK MEMORY ENDS 5f6429b417f490e9d8826ca7f9233318 =====
    """
    text = neutral(text)
    mark = digest(text)[:MARK_CHARS]
    return f"{BEGINS.format(mark=mark)}\n{text}\n{ENDS.format(mark=mark)}"


def tagged(text: str) -> str:
    """The whole of what a session is given; what of it is memory must be neutral."""
    return f"<{TAG}>\n{text}\n</{TAG}>"


def digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def neutral(text: str) -> str:
    """The text, in which no line looks like the fence's. Doing it again changes nothing."""
    parts = _BREAKS.split(_TAG.sub("(", text))
    return "".join(
        plain(part) if at % 2 == 0 and is_alike(part) else part for at, part in enumerate(parts)
    )


def is_alike(line: str) -> bool:
    """Whether it has the words and a rule, however it is spaced, dressed or written; or such a tag
    once what nobody sees is out of it."""
    if not line.isascii() and _SEEN_TAG.search(seen(line)):
        return True
    return _WORDS.search(letters(line)) is not None and _RULE.search(seen(line)) is not None


def seen(line: str) -> str:
    if line.isascii():  # As nearly all lines are, and a session waits for this.
        return _ASCII_UNSEEN.sub("", line.lower())
    folded = unicodedata.normalize("NFKC", line).casefold()
    return "".join(c for c in folded if unicodedata.category(c) not in _UNSEEN)


def letters(line: str) -> str:
    line = seen(line)
    return _ASCII_SIGNS.sub("", line) if line.isascii() else "".join(filter(str.isalpha, line))


def plain(line: str) -> str:
    """The words of a line, without what made it a rule."""
    words = " ".join(re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", line)))
    return f"(looked like a frame: {words})"
