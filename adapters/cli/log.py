"""`threadbook log`: the events."""

from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from .common import Context, options, say, say_json


@click.command(name="log")
@options
@click.option("--stream", help="Only this stream, such as thread:<id>.")
@click.option("--after", type=click.IntRange(min=0), default=0, help="Only later positions.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many.")
def command(context: Context, stream: str | None, after: int, limit: int | None) -> None:
    """The events, oldest first. Text never stands in an event; a ref points to it."""
    with context.open() as memory:
        found = memory.log(stream=stream, after=after, limit=limit)

        if context.json:
            entries: list[dict[str, Any]] = [
                {
                    "position": each.position,
                    "stream": each.stream,
                    "version": each.version,
                    "type": each.type,
                    "recorded_at_ms": each.recorded_at_ms,
                    "actor": each.actor,
                    "run_id": each.run_id,
                    "data": msgspec.json.decode(each.data),
                }
                for each in found
            ]
            say_json(entries)
            return
        for each in found:
            moment = datetime.fromtimestamp(each.recorded_at_ms / 1000, UTC)
            say(
                f"{each.position:>6}  {moment:%Y-%m-%d %H:%M:%S}  {each.actor:<12} "
                f"{each.type:<24} {each.stream}"
            )
