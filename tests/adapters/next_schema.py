"""Tables of a Threadbook that is yet to come: one more of them, and a column more in another."""

from types import ModuleType

from msgspec import Struct
from msgspec.structs import astuple
from threadbook.domain.events import Cited
from threadbook.projections import notes, spend
from threadbook.projections.catalog import SYNCHRONOUS


def module(name, **parts):
    made = ModuleType(name)
    made.__dict__.update(parts)
    return made


class Use(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    thread_id: str
    times: int = 0


uses = module(
    "uses",
    NAME="uses",
    KEY=("thread_id",),
    FOLLOWS=Cited,
    SCHEMA=(
        "CREATE TABLE uses (thread_id TEXT NOT NULL, times INTEGER NOT NULL,"
        " PRIMARY KEY (thread_id)) STRICT",
    ),
    Row=Use,
    place=lambda event: (event.thread_id,),
    evolve=lambda rows, event: [
        Use(thread_id=event.thread_id, times=sum(row.times for row in rows) + 1)
    ],
)


class Note(notes.Row, frozen=True, kw_only=True, array_like=True, gc=False):
    length: int = 7


def with_length(rows):
    fields = notes.Row.__struct_fields__
    return [Note(**dict(zip(fields, astuple(row)[: len(fields)], strict=True))) for row in rows]


longer_notes = module(
    "longer_notes",
    **{part: getattr(notes, part) for part in ("NAME", "KEY", "FOLLOWS", "place")},
    SCHEMA=(
        notes.SCHEMA[0].replace("PRIMARY KEY", "length INTEGER NOT NULL,\n    PRIMARY KEY"),
        *notes.SCHEMA[1:],
    ),
    Row=Note,
    evolve=lambda rows, event: with_length(notes.evolve(rows, event)),
)

NEXT = (
    *(longer_notes if each is notes else each for each in SYNCHRONOUS if each is not spend),
    uses,
)
