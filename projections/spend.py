"""spend: what models were paid in tokens, by day (UTC), phase and model.

Every attempt counts, the failed and the abandoned too: a budget asks what was used, not what it was
good for. An attempt that called nobody leaves no row.
"""

from collections.abc import Sequence
from datetime import date
from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from ..domain.events import (
    ArtifactsPublished,
    Phase2Failed,
    Phase2LeaseReleased,
    Phase2Paid,
    Stage1Failed,
    Stage1LeaseReleased,
    Stage1Paid,
    Stage1Succeeded,
    Stage1SucceededNoOutput,
    Tokens,
)

SpendEvent = (
    Stage1LeaseReleased
    | Stage1Succeeded
    | Stage1SucceededNoOutput
    | Stage1Failed
    | Stage1Paid
    | Phase2LeaseReleased
    | Phase2Paid
    | ArtifactsPublished
    | Phase2Failed
)

NAME = "spend"
KEY = ("day", "phase", "model")
FOLLOWS = SpendEvent

SCHEMA = (
    """
CREATE TABLE spend (
    day       TEXT NOT NULL,
    phase     TEXT NOT NULL,
    model     TEXT NOT NULL,
    calls     INTEGER NOT NULL,
    input     INTEGER NOT NULL,
    cached    INTEGER NOT NULL,
    output    INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    PRIMARY KEY (day, phase, model)
) STRICT
""",
)

# Input and output; cached tokens are part of the input, reasoning of the output.
TOKENS_OF_DAY = "SELECT coalesce(sum(input + output), 0) FROM spend WHERE day = :day"

SINCE = "WHERE day >= :day ORDER BY day, phase, model"


class Row(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    day: str
    phase: Literal["phase1", "phase2"]
    model: str
    calls: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0


def day(at: int) -> str:
    """The date in UTC of a time in Unix seconds."""
    return date.fromordinal(EPOCH + at // 86_400).isoformat()


EPOCH = date(1970, 1, 1).toordinal()


def phase(event: SpendEvent) -> Literal["phase1", "phase2"]:
    match event:
        case Phase2LeaseReleased() | Phase2Paid() | ArtifactsPublished() | Phase2Failed():
            return "phase2"
        case (
            Stage1LeaseReleased()
            | Stage1Succeeded()
            | Stage1SucceededNoOutput()
            | Stage1Failed()
            | Stage1Paid()
        ):
            return "phase1"
        case _:
            assert_never(event)


def place(event: SpendEvent) -> tuple[str, ...]:
    return day(event.at), phase(event), event.tokens.model


def evolve(rows: Sequence[Row], event: SpendEvent) -> Sequence[Row]:
    spent = event.tokens
    if spent == Tokens(model=spent.model):
        return rows
    return [
        replace(
            row,
            calls=row.calls + spent.calls,
            input=row.input + spent.input,
            cached=row.cached + spent.cached,
            output=row.output + spent.output,
            reasoning=row.reasoning + spent.reasoning,
        )
        for row in rows or [Row(day=day(event.at), phase=phase(event), model=spent.model)]
    ]
