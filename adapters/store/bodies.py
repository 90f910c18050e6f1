"""Erasable texts. The log points at them by a random ref; nothing left in it can be tried out.

The MAC over ref and text stands in the row and goes with it: a text that was changed under its
ref is an error, never an answer. Erasing is complete when the WAL has been truncated, which
`erasures.py` sees to.
"""

import secrets
from collections.abc import Iterable
from hashlib import sha256

from ...projections.fold import Database
from . import dialect
from .errors import StoreDamaged

ERASED_MIN = 1000  # So few rows are not worth a rewriting.
BLANK = "UPDATE bodies SET ref = 'gone:' || id, owner = '', mac = x'', text = ''"


def mac(ref: str, text: str) -> bytes:
    # A ref has one length, so no text can continue where another ref ends.
    return sha256(f"{ref}\n{text}".encode()).digest()


def put(db: Database, owner: str, text: str) -> str:
    ref = secrets.token_hex(16)
    keep(db, ref, owner, storable(text))
    return ref


def keep(db: Database, ref: str, owner: str, text: str) -> None:
    """Under a ref that events have already."""
    db.execute(
        "INSERT INTO bodies (ref, owner, mac, text) VALUES (?, ?, ?, ?)",
        (ref, owner, mac(ref, text), text),
    )


def storable(text: str) -> str:
    """Half a character cannot be stored, and is shown as lost."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def get(db: Database, ref: str) -> str | None:
    found = db.execute("SELECT mac, text FROM bodies WHERE ref = ?", (ref,)).fetchone()
    if found is None:
        return None
    sealed, text = found
    if mac(ref, text) != sealed:
        raise StoreDamaged(
            f"the text {ref} is not the one that was stored; it is not shown:"
            " restore the file from a backup, or forget what it belongs to"
        )
    return str(text)


def erase(db: Database, owners: Iterable[str], refs: Iterable[str]) -> int:
    """The row stays, with nothing in it: a DELETE lets SQLite move rows that stay to other pages,
    and of those it leaves copies behind that no later erasing finds, secure_delete or not."""
    by_owner = db.executemany(f"{BLANK} WHERE owner = ?", ((o,) for o in owners if o)).rowcount
    by_ref = db.executemany(f"{BLANK} WHERE ref = ?", ((r,) for r in refs)).rowcount
    return max(by_owner, 0) + max(by_ref, 0)


def has_room_to_give(db: Database) -> bool:
    """An erased row keeps the room that its text had on its page, where no other text comes. Where
    there are more of them than texts it pays to write the texts anew."""
    (erased,) = db.execute("SELECT count(*) FROM bodies WHERE owner = ''").fetchone()
    (rows,) = db.execute("SELECT count(*) FROM bodies").fetchone()
    return bool(erased >= max(ERASED_MIN, rows - erased))


def write_anew(db: Database) -> None:
    """The texts in their order into a new table, so that no row is moved by another; the old one's
    pages are overwritten as they become free, and are used again."""
    db.execute("DROP INDEX IF EXISTS bodies_owner")
    db.execute("ALTER TABLE bodies RENAME TO bodies_before")
    db.execute(dialect.BODIES)
    columns = "id, ref, owner, mac, text"
    db.execute(
        f"INSERT INTO bodies ({columns}) SELECT {columns} FROM bodies_before"
        " WHERE owner <> '' ORDER BY id"
    )
    db.execute("DROP TABLE bodies_before")
    db.execute(dialect.BODIES_OWNER)
