"""Texts in a shared database: sealed there, and opened with the key file of the home.

AES-256-GCM, bound to the ref and the owner: a text that was changed, or put under another ref, is
an error and never an answer. Nothing beside it could be tried against guesses. Erasing deletes the
row and writes down which keys have to go; every machine's key file drops them when it next looks
(`keys.py`). A row that comes back with an old backup of the database stays unreadable.

A home without the key file can look at everything but the texts: they are shown as erased ones
are, and `status` says why. It stores no text and renders no folder, because either would be made
from half a memory.
"""

import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...projections.fold import Database
from .bodies import storable
from .errors import StoreDamaged, StoreSealed
from .keys import GROUP_BYTES, NUMBER_BYTES, KeyFile

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NONCE_BYTES = 12


class SealedBodies:
    def __init__(self, keys: KeyFile) -> None:
        self.keys = keys
        self.missing: str | None = None  # Why there are no keys, once that is known.
        self.now_ms = 0

    def put(self, db: Database, owner: str, text: str) -> str:
        ref = secrets.token_hex(16)
        self.keep(db, ref, owner, storable(text))
        return ref

    def keep(self, db: Database, ref: str, owner: str, text: str) -> None:
        """Under a ref that events have already."""
        self.require_keys()
        number, beside = db.execute(
            "SELECT nextval('body_numbers'), (SELECT path FROM bodies WHERE owner = ? LIMIT 1)",
            (owner,),
        ).fetchone()
        group = beside[:GROUP_BYTES] if beside else secrets.token_bytes(GROUP_BYTES)
        path = group + number.to_bytes(NUMBER_BYTES)
        key = self.keys.key(path)
        assert key is not None, "a number is issued once, and a group ends with its texts"
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = nonce + cipher(key).encrypt(nonce, text.encode(), bound_to(ref, owner))
        db.execute(
            "INSERT INTO bodies (ref, owner, path, sealed) VALUES (?, ?, ?, ?)",
            (ref, owner, path, sealed),
        )

    def get(self, db: Database, ref: str) -> str | None:
        if self.missing is not None:
            return None
        found = db.execute(
            "SELECT owner, path, sealed FROM bodies WHERE ref = ?", (ref,)
        ).fetchone()
        if found is None:
            return None
        owner, path, sealed = found
        key = self.keys.key(path)
        if key is None:
            return None  # Erased here; the row is one of an older copy of the database.
        from cryptography.exceptions import InvalidTag

        try:
            return (
                cipher(key)
                .decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], bound_to(ref, owner))
                .decode()
            )
        except InvalidTag as error:
            raise StoreDamaged(
                f"the text {ref} is not the one that was stored; it is not shown:"
                " restore the database from a backup, or forget what it belongs to"
            ) from error

    def erase(self, db: Database, owners: Iterable[str], refs: Iterable[str]) -> int:
        by_owner = db.execute(
            "DELETE FROM bodies WHERE owner = ANY(?) RETURNING path", (list(owners),)
        ).fetchall()
        by_ref = db.execute(
            "DELETE FROM bodies WHERE ref = ANY(?) RETURNING path", (list(refs),)
        ).fetchall()
        gone = {path[:GROUP_BYTES] for (path,) in by_owner} | {path for (path,) in by_ref}
        if gone:
            # Numbered by hand, under the lock: no machine may pass over one that comes later. The
            # time keeps that so on a server that was restored and lacks the last ones.
            (last,) = db.execute("SELECT coalesce(max(id), 0) FROM erasures").fetchone()
            last = max(last, self.now_ms, 0 if self.missing else self.keys.applied())
            db.executemany(
                "INSERT INTO erasures (id, path, since_ms) VALUES (?, ?, ?)",
                [(last + n, path, self.now_ms) for n, path in enumerate(sorted(gone), 1)],
            )
        return len(by_owner) + len(by_ref)

    def require_keys(self) -> None:
        if self.missing is not None:
            raise StoreSealed(self.missing)


def bound_to(ref: str, owner: str) -> bytes:
    return f"{ref}\n{owner}".encode()


def cipher(key: bytes) -> "AESGCM":
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)
