"""The key file: what opens the texts in a shared database, and what forgets how.

A database server keeps deleted rows in its log, its replicas and its backups. So texts lie there
sealed, and their keys lie in this file of the home (`keys.sqlite`, 0600), which no server sees.
Every machine that is to read the memory has a copy of it, made once; keys of later texts follow
from it, and an erased key follows from it no more.

Each text has a path of 96 bits: 64 that are its owner's, 32 that are its own. A key is derived
along its path from the node above it, one digest a bit, as in a binary tree that begins with one
secret. To erase a path, whole or the first part of it, the node above it is replaced by the nodes
beside the path: every other key can still be derived, and those under the path by nobody who has
this file. (Goldreich, Goldwasser and Micali's tree, punctured.) An owner that is forgotten costs
about 64 small rows, later ones fewer. The order of erasures does not matter, so that each machine
may follow in its own time; `applied` says how far it has.

Copy the file while no Threadbook is at work on its home, over a way that you trust: whoever has a
copy and the database's bytes can read what was not erased in that copy.
"""

import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from .connections import Connections
from .errors import StoreMismatch, translated
from .files import sync_folder
from .sqlite import KEY_FILE

NAME = KEY_FILE
GROUP_BYTES = 8
NUMBER_BYTES = 4
APPLICATION_ID = 0x54424B59  # "TBKY"
WAIT_S = 10.0

SCHEMA = (
    """
CREATE TABLE nodes (
    place TEXT PRIMARY KEY,
    node  BLOB NOT NULL
) STRICT
""",
    """
CREATE TABLE whose (
    memory  TEXT PRIMARY KEY,
    applied INTEGER NOT NULL
) STRICT
""",
)


class KeyFile:
    """`memory` is the id of the database that the keys belong to."""

    def __init__(self, home: Path) -> None:
        self.path = home / NAME
        self._connections = Connections(self.path, timeout_s=WAIT_S)

    def close(self) -> None:
        self._connections.close()

    def make(self, memory: str) -> str:
        """The memory that the file is for: `memory`, where it is made now."""
        if (known := self.memory()) is not None:
            return known
        own = self.path.with_name(f"{NAME}.{secrets.token_hex(8)}")
        try:
            os.close(os.open(own, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            made = Connections(own, timeout_s=WAIT_S)
            with translated(own), made.one() as db:
                db.execute("BEGIN IMMEDIATE")
                for statement in SCHEMA:
                    db.execute(statement)
                db.execute("INSERT INTO nodes VALUES ('', ?)", (secrets.token_bytes(32),))
                db.execute("INSERT INTO whose VALUES (?, 0)", (memory,))
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute("COMMIT")
            made.close()
            with suppress(FileExistsError):  # Somebody else was first.
                os.link(own, self.path)
            sync_folder(self.path.parent)  # Without its keys a text would be lost.
        finally:
            own.unlink(missing_ok=True)
        known = self.memory()
        assert known is not None
        return known

    def memory(self) -> str | None:
        """Whose keys these are; None where there is no file."""
        if not self.path.exists():
            return None
        with self._open() as db:
            (application,) = db.execute("PRAGMA application_id").fetchone()
            if application != APPLICATION_ID:
                raise StoreMismatch(
                    f"{self.path} is no key file; put the right one there, or move it away"
                )
            (memory,) = db.execute("SELECT memory FROM whose").fetchone()
            return str(memory)

    def applied(self) -> int:
        with self._open() as db:
            return int(db.execute("SELECT applied FROM whose").fetchone()[0])

    def key(self, path: bytes) -> bytes | None:
        """The key of a text, or None: it was erased."""
        bits = bits_of(path)
        with self._open() as db:
            found = above(db, bits)
        if found is None:
            return None
        place, node = found
        for bit in bits[len(place) :]:
            node = child(node, bit)
        return child(node, "k")

    def opens(self, paths: Iterable[bytes]) -> int:
        """How many of these paths still lead to a key, their own or one under them."""
        with self._open() as db:
            return sum(leads_on(db, bits_of(path)) for path in paths)

    def erase(self, paths: Iterable[bytes], *, applied: int) -> None:
        """Make the keys under these paths underivable, all or none; `applied` only grows."""
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            for path in paths:
                puncture(db, bits_of(path))
            db.execute("UPDATE whose SET applied = max(applied, ?)", (applied,))
            db.execute("COMMIT")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with translated(self.path), self._connections.one() as db:
            yield db


def bits_of(path: bytes) -> str:
    return "".join(f"{byte:08b}" for byte in path)


def child(node: bytes, which: str) -> bytes:
    return sha256(node + which.encode()).digest()


def above(db: sqlite3.Connection, bits: str) -> tuple[str, bytes] | None:
    """The node at or above a place. No node stands under another, so that it is the last one in
    order that does not come after the place."""
    found = db.execute(
        "SELECT place, node FROM nodes WHERE place <= ? ORDER BY place DESC LIMIT 1", (bits,)
    ).fetchone()
    return found if found is not None and bits.startswith(found[0]) else None


def leads_on(db: sqlite3.Connection, bits: str) -> bool:
    under = "SELECT 1 FROM nodes WHERE place >= ? AND place < ? LIMIT 1"
    return (
        above(db, bits) is not None or db.execute(under, (bits, bits + "2")).fetchone() is not None
    )


def puncture(db: sqlite3.Connection, bits: str) -> None:
    found = above(db, bits)
    if found is None:
        # Nothing above: what of it is left stands below.
        db.execute("DELETE FROM nodes WHERE place >= ? AND place < ?", (bits, bits + "2"))
        return
    place, node = found
    db.execute("DELETE FROM nodes WHERE place = ?", (place,))
    beside = []
    for n in range(len(place), len(bits)):
        other = "1" if bits[n] == "0" else "0"
        beside.append((bits[:n] + other, child(node, other)))
        node = child(node, bits[n])
    db.executemany("INSERT INTO nodes VALUES (?, ?)", beside)
