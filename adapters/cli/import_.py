"""`threadbook import`: a log that was exported, into a home that is new."""

from pathlib import Path

import click
import msgspec

from .common import Context, options, say


@click.command(name="import")
@options
@click.argument("file", metavar="FILE.jsonl", type=click.Path(path_type=Path))
def command(context: Context, file: Path) -> None:
    """Fill a new home with a log that was exported.

    `threadbook export FILE.jsonl` wrote it. The new home (--home) has the same events, words,
    positions and hashes; the next `threadbook run` writes its folders.
    """
    from ..memory import Memory

    end = Memory.import_log(
        file, context.home, config=context.config, simulated=context.now is not None
    )
    context.show(
        {"file": str(file), **msgspec.to_builtins(end)},
        lambda: say(
            f"{end.events} events and {end.bodies} texts; `threadbook run` writes the folders"
        ),
    )
