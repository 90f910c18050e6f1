"""`threadbook explain`: why a session is in or out."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
import msgspec

from .common import Context, Place, options, say

if TYPE_CHECKING:
    from ...application.reports import LastReading


@click.command(name="explain")
@options
@click.argument("thread_id", metavar="ID")
@click.option("--at", type=Place(), help="As of this position or time.")
def command(context: Context, thread_id: str, at: int | float | None) -> None:
    """Why a session is in or out of its memory folder, since when, and because of which event.

    At an earlier position, now is the time that position was recorded.
    """
    from ...application.explain import clock

    with context.open() as memory:
        told = memory.explain(thread_id, at=at)

    def lines() -> None:
        say(f"{told.thread_id} at position {told.position}: {told.verdict}")
        for gate in told.gates:
            say(f"  {'pass' if gate.passed else 'STOP'}  {gate.name}: {gate.why}")
        if told.last_used_at is not None:
            times = "once" if told.uses == 1 else f"{told.uses} times"
            say(f"  cited {times}, last at {clock(told.last_used_at)}: what is cited ranks first")
        if told.reading is not None:
            for line in reading_lines(told.reading):
                say(f"  {line}")
        for cost in told.spent:
            say(
                f"  spent on it at {cost.model}: {cost.input + cost.output} tokens in"
                f" {cost.calls} {'call' if cost.calls == 1 else 'calls'}, {cost.cached} of them"
                " from its cache"
            )
        for why in told.waiting:
            say(f"  waiting: {why}")
        positions = ", ".join(str(position) for position in told.events)
        say(f"  events: {positions or 'none'}   (threadbook log shows them)")

    context.show(msgspec.to_builtins(told), lines)


def reading_lines(reading: "LastReading") -> Iterator[str]:
    by = f"read by {reading.extractor}"
    if reading.prompt_digest:
        by += f" with prompt {reading.prompt_digest[:12]}"
    yield by
    if reading.omitted:
        size = f" ({reading.omitted_bytes} bytes)" if reading.omitted_bytes else ""
        yield f"left out for length: {reading.omitted} items, or parts of them{size}"
    if reading.suppressed:
        yield f"dropped: {reading.suppressed} statements that nobody had said"
    if reading.quotes:
        yield "quotes: " + ", ".join(f"{n} {found}" for found, n in reading.quotes.items())
