"""The hash chain: each row is sealed together with everything before it.

A row's chain is SHA-256 over the chain of the row before it and the row's own columns, written as
one JSON array: NULL is null, no column can run into the next, and PostgreSQL's rows give the same
bytes. Whoever changes, removes or swaps a row must make every later chain again, and the head,
which lies outside of the log, as well.
"""

from hashlib import sha256

from msgspec.json import Encoder

Columns = tuple[int, str, int, str, int, str, str | None, str]

START = bytes(32)
COLUMNS = "position, stream, version, type, recorded_at_ms, actor, run_id, data"

canonical = Encoder().encode


def link(previous: bytes, columns: Columns) -> bytes:
    return sha256(previous + canonical(columns)).digest()


def fits(previous: object, columns: Columns, stored: object) -> bool:
    """Whether a row read from the disk is the one sealed behind `previous`. In a damaged file any
    column can hold a value of another type, or text that is none: such a row fits nowhere."""
    if type(previous) is not bytes or type(stored) is not bytes:
        return False
    try:
        return link(previous, columns) == stored
    except UnicodeEncodeError:
        return False
