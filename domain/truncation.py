"""Truncation: a text cut to a budget of tokens, as Codex cuts it.

A token is estimated at four bytes of UTF-8. What is over the budget loses its middle: the beginning
and the end stay, each about half, on whole characters, with one mark between them that says how
much is missing. The mark is not counted, so a cut text may be longer than its budget by the mark.
"""

BYTES_A_TOKEN = 4


def tokens_of(text: str) -> int:
    """
    >>> tokens_of(""), tokens_of("four"), tokens_of("fünf")
    (0, 1, 2)
    """
    return -(-size(text) // BYTES_A_TOKEN)


def size(text: str) -> int:
    """In bytes of UTF-8, also where a lone surrogate is in it."""
    return len(text.encode("utf-8", "surrogatepass"))


def cut_middle(text: str, *, tokens: int) -> str:
    """
    >>> cut_middle("abcdefgh", tokens=1), cut_middle("abcd", tokens=1)
    ('ab…1 tokens truncated…gh', 'abcd')
    """
    budget = tokens * BYTES_A_TOKEN
    missing = -(-(size(text) - budget) // BYTES_A_TOKEN)
    if missing <= 0:
        return text
    head, _, tail = parts(text, bytes_max=budget)
    return f"{head}…{missing} tokens truncated…{tail}"


def cut_middle_bytes(text: str, *, bytes_max: int) -> str:
    """The same with a budget in bytes; what is missing is counted in characters.

    >>> cut_middle_bytes("abcdefgh", bytes_max=4), cut_middle_bytes("abcd", bytes_max=4)
    ('ab…4 chars truncated…gh', 'abcd')
    """
    if size(text) <= bytes_max:
        return text
    head, middle, tail = parts(text, bytes_max=bytes_max)
    return f"{head}…{len(middle)} chars truncated…{tail}"


def parts(text: str, *, bytes_max: int) -> tuple[str, str, str]:
    """Head, middle and tail, of which the middle has to go."""
    content = text.encode("utf-8", "surrogatepass")
    left = bytes_max // 2
    start = character_at(content, left)
    end = character_at(content, len(content) - (bytes_max - left), up=True)
    head, middle, tail = (
        part.decode("utf-8", "surrogatepass")
        for part in (content[:start], content[start:end], content[end:])
    )
    return head, middle, tail


def character_at(content: bytes, offset: int, *, up: bool = False) -> int:
    """The nearest offset, not above it or with `up` not below it, where a character begins."""
    while 0 < offset < len(content) and content[offset] & 0xC0 == 0x80:
        offset += 1 if up else -1
    return offset
