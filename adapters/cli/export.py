"""`threadbook export`: the memory folders, somewhere else."""

from pathlib import Path

import click
import msgspec

from .common import Context, Place, options, say

LOG = ".jsonl"


@click.command(name="export")
@options
@click.argument("folder", metavar="DIR|FILE.jsonl", type=click.Path(path_type=Path))
@click.option("--at", type=Place(), help="As they were at this position or time.")
def command(context: Context, folder: Path, at: int | float | None) -> None:
    """Write the memory folders to DIR, one folder a project; the only one becomes DIR itself.

    DIR must be new or empty. What was erased since is left out. A name that ends in .jsonl is a
    new file for the whole log, every event and every word, which `threadbook import` reads.
    """
    if folder.suffix == LOG:
        if at is not None:
            raise click.UsageError("a log is exported whole; leave out --at")
        with context.open() as memory:
            end = memory.export_log(folder)
        context.show(
            {"file": str(folder), **msgspec.to_builtins(end)},
            lambda: say(f"{folder}: {end.events} events, {end.bodies} texts, in the open"),
        )
        return
    with context.open() as memory:
        written = memory.export(folder, at=at)
    answer = {"folder": str(folder), "roots": {scope: str(path) for scope, path in written.items()}}

    def lines() -> None:
        for scope, path in written.items():
            say(f"{scope}: {path}")
        if not written:
            say("nothing to export yet; `threadbook run` writes a memory first")

    context.show(answer, lines)
