"""Whether the log is what was written, and whether the tables are what follows from it.

A row that does not fit its chain is looked at twice. Two rows that changed places make the rows
behind them look wrong as well; a row that fits some chain found elsewhere is sound, so that only
the rows that were really touched are named.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from types import ModuleType
from typing import Any

from msgspec import Struct

from ...projections.fold import Database, plan
from . import chain, dialect, sound
from .codec import UNREADABLE, Codec
from .head import Head

NAMED = 1_000  # So many positions are named; of a log that is wrong throughout, more help nobody.


class Verified(Struct, frozen=True, kw_only=True):
    """`positions` were changed, removed, swapped or cut off. `quarantined` are sound rows that this
    program cannot read, `unknown` counts the types that it does not know; neither is damage."""

    ok: bool
    positions: tuple[int, ...] = ()
    checked: int = 0
    position: int = 0
    head: int | None = None
    message: str
    quarantined: tuple[int, ...] = ()
    unknown: dict[str, int] = {}


class Difference(Struct, frozen=True, kw_only=True):
    """A row (or, with an empty key, a table) that is stored otherwise than the log tells."""

    table: str
    key: tuple[Any, ...]
    stored: dict[str, Any] | None
    replayed: dict[str, Any] | None
    message: str


class Suspect(Struct):
    position: int
    columns: chain.Columns
    stored: bytes


class Walk:
    """One pass over the log, in position order."""

    def __init__(self, codec: Codec, known: Head | None) -> None:
        self.codec = codec
        self.known = known
        self.gone: list[int] = []
        self.suspects: list[Suspect] = []
        self.quarantined: list[int] = []
        self.unknown: Counter[str] = Counter()
        self.checked = 0
        self.last = 0
        self.rewritten = False

    def over(self, rows: Iterator[tuple[Any, ...]]) -> None:
        head_position = self.known.position if self.known else 0
        canonical, decoders = chain.canonical, self.codec.decoders
        previous: bytes | None = chain.START
        instead: bytes | None = None  # The chain that the row before should have had.
        for row in rows:
            columns, stored = row[:8], row[8]
            position = columns[0]
            if type(stored) is not bytes:
                stored = b""  # The column was struck: no chain of ours, and no start of another.
            if position <= self.last:  # Before the first: no row of ours was ever there.
                self.suspects.append(Suspect(position, columns, stored))
                continue
            if position > self.last + 1:
                self._missing_before(position)
                previous = instead = None  # It was chained to a row that is gone.
            try:
                # As in `chain.link`, written out: this is the loop that a million rows go through.
                linked = previous and sha256(previous + canonical(columns)).digest()
            except UnicodeEncodeError:
                linked = b""
            if linked != stored and previous is not None:
                if instead is None or not chain.fits(instead, columns, stored):
                    self.suspects.append(Suspect(position, columns, stored))
                instead = linked
            else:
                instead = None
            previous = stored
            self.last = position
            self.checked += 1
            if position == head_position:
                self.rewritten = self.known is not None and stored != self.known.chain
            decode = decoders.get(columns[3])
            if decode is None:
                self.unknown[in_print(columns[3])] += 1
                continue
            try:
                decode(columns[7])
            except UNREADABLE:
                self.quarantined.append(position)

    def _missing_before(self, position: int) -> None:
        self.gone.extend(range(self.last + 1, min(position, self.last + 1 + NAMED)))

    def cut_off(self, issued: int) -> None:
        end = max(issued, self.known.position if self.known else 0)
        self.gone.extend(range(self.last + 1, min(end, self.last + NAMED) + 1))

    def touched(self) -> list[int]:
        found = {*self.gone, *(suspect.position for suspect in really_touched(self.suspects))}
        if self.rewritten and not found:
            # Every row fits the one before, and still it is another log than the head knows.
            assert self.known is not None
            found = {self.known.position}
        return sorted(found)


def verify_log(db: sqlite3.Connection, known: Head | None, codec: Codec) -> Verified:
    found = sound.whole(db, codec)
    if found is not None and is_as_known(db, found.checked, known):
        return all_sound(found, known)
    walk = Walk(codec, known)
    try:
        try:
            walk.over(rows_of(db))
        except sqlite3.OperationalError as error:
            if "decode" not in str(error):
                raise
            # A text that is no text ended the pass. Once more, with such bytes let through.
            walk = Walk(codec, known)
            db.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
            walk.over(rows_of(db))
        issued = last_issued(db, walk.last)
    except sqlite3.DatabaseError as error:
        position = walk.last + 1
        return report(walk, [position], f"unreadable from position {position} on: {error}")
    finally:
        db.text_factory = str
    walk.cut_off(issued)
    touched = walk.touched()
    return report(walk, touched, in_words(walk, touched))


def is_as_known(db: Database, last: int, known: Head | None) -> bool:
    """Whether a log whose rows fit each other is whole, and the one that its head knows."""
    try:
        if last_issued(db, last) != last:
            return False
        if known is None:
            return True
        there = db.execute(
            "SELECT chain FROM events WHERE position = ?", (known.position,)
        ).fetchone()
        return there is not None and bool(there[0] == known.chain)
    except sqlite3.DatabaseError:
        return False


def last_issued(db: Database, otherwise: int) -> int:
    found = db.execute(dialect.LAST_POSITION_ISSUED).fetchone()
    return otherwise if found is None else int(found[0])


def all_sound(found: sound.Sound, known: Head | None) -> Verified:
    return Verified(
        ok=True,
        checked=found.checked,
        position=found.checked,
        head=known.position if known else None,
        message=all_as_recorded(found.checked),
        quarantined=tuple(found.quarantined[:NAMED]),
        unknown=found.unknown,
    )


def all_as_recorded(count: int) -> str:
    return f"{count} events are as they were recorded"


def report(walk: Walk, touched: list[int], message: str) -> Verified:
    return Verified(
        ok=not touched,
        positions=tuple(touched[:NAMED]),
        checked=walk.checked,
        position=walk.last,
        head=walk.known.position if walk.known else None,
        message=message,
        quarantined=tuple(walk.quarantined[:NAMED]),
        unknown=dict(walk.unknown),
    )


def in_words(walk: Walk, touched: list[int]) -> str:
    if not touched:
        return all_as_recorded(walk.checked)
    gone = set(walk.gone)
    changed = [position for position in touched if position not in gone]
    missing = [position for position in touched if position in gone]
    parts = []
    if walk.rewritten and not walk.suspects and not gone:
        parts.append(f"the log was written anew: its head at position {changed[0]} is another")
    elif changed:
        parts.append(f"changed or swapped: position {listed(changed)}")
    if missing:
        parts.append(f"removed or cut off: position {listed(missing)}")
    return "; ".join(parts) + "; restore a backup, then run `threadbook verify` again"


def listed(positions: list[int]) -> str:
    if len(positions) > 1 and positions[-1] - positions[0] == len(positions) - 1:
        return f"{positions[0]} to {positions[-1]}"
    shown = ", ".join(map(str, positions[:20]))
    return shown if len(positions) <= 20 else f"{shown} and {len(positions) - 20} more"


def rows_of(db: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    return db.execute(f"SELECT {chain.COLUMNS}, chain FROM events ORDER BY position")


def in_print(type_: object) -> str:
    """A type as it stands in a report; a struck row's may be no text at all."""
    return str(type_).encode("utf-8", "backslashreplace").decode("utf-8")


def really_touched(suspects: Sequence[Suspect]) -> list[Suspect]:
    """Without those that fit behind a chain that stands elsewhere: only their neighbour moved."""
    if len(suspects) > 200:
        return list(suspects)
    elsewhere = [suspect.stored for suspect in suspects]
    touched = [
        suspect
        for suspect in suspects
        if not any(chain.fits(c, suspect.columns, suspect.stored) for c in elsewhere)
    ]
    return touched or list(suspects)


def differences(
    projections: Sequence[ModuleType],
    *,
    stored: Database,
    replayed: sqlite3.Connection,
    shapes: Callable[[ModuleType, Database, sqlite3.Connection], tuple[list[Any], list[Any]]],
) -> list[Difference]:
    found = []
    for projection in projections:
        shape, expected = shapes(projection, stored, replayed)
        if shape != expected:
            found.append(table_differs(projection, "its table or an index is not as it should be"))
            if not shape:
                continue
        try:
            found += row_differences(projection, stored, replayed)
        except (sqlite3.Error, TypeError) as error:  # Keys of different types have no order.
            found.append(table_differs(projection, f"its table cannot be read ({error})"))
    return found


def shape_of(projection: ModuleType, db: Database) -> list[Any]:
    return db.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE tbl_name = ? ORDER BY type, name",
        (projection.NAME,),
    ).fetchall()


def row_differences(
    projection: ModuleType, stored: Database, replayed: sqlite3.Connection
) -> Iterator[Difference]:
    """Both tables side by side in key order, so that no table is held in memory."""
    columns, depth = plan(projection).columns, len(projection.KEY)
    select = plan(projection).at_depth[0]
    here, there = stored.execute(select), replayed.execute(select)
    left, right = here.fetchone(), there.fetchone()
    while left is not None or right is not None:
        if left == right:
            left, right = here.fetchone(), there.fetchone()
            continue
        key = min(row[:depth] for row in (left, right) if row is not None)
        found = left if left is not None and left[:depth] == key else None
        wanted = right if right is not None and right[:depth] == key else None
        yield Difference(
            table=projection.NAME,
            key=key,
            stored=None if found is None else dict(zip(columns, found, strict=True)),
            replayed=None if wanted is None else dict(zip(columns, wanted, strict=True)),
            message=f"{projection.NAME} {'/'.join(map(str, key))}: "
            + difference(columns, found, wanted),
        )
        if found is not None:
            left = here.fetchone()
        if wanted is not None:
            right = there.fetchone()


def difference(
    columns: Sequence[str], stored: tuple[Any, ...] | None, replayed: tuple[Any, ...] | None
) -> str:
    if stored is None:
        return "the row is missing"
    if replayed is None:
        return "the row should not be there"
    pairs = zip(columns, stored, replayed, strict=True)
    return ", ".join(
        f"{column} is {found!r}, should be {wanted!r}"
        for column, found, wanted in pairs
        if found != wanted
    )


def table_differs(projection: ModuleType, why: str) -> Difference:
    return Difference(
        table=projection.NAME,
        key=(),
        stored=None,
        replayed=None,
        message=f"{projection.NAME}: {why}",
    )
