"""`threadbook export`: the memory folders, somewhere else."""

from pathlib import Path

import click

from .common import Context, Place, options, say


@click.command(name="export")
@options
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--at", type=Place(), help="As they were at this position or time.")
def command(context: Context, folder: Path, at: int | float | None) -> None:
    """Write the memory folders to DIR, one folder a project; the only one becomes DIR itself.

    DIR must be new or empty. What was erased since is left out.
    """
    with context.open() as memory:
        written = memory.export(folder, at=at)
    answer = {"folder": str(folder), "roots": {scope: str(path) for scope, path in written.items()}}

    def lines() -> None:
        for scope, path in written.items():
            say(f"{scope}: {path}")
        if not written:
            say("nothing to export yet; `threadbook run` writes a memory first")

    context.show(answer, lines)
