"""`threadbook export`: the memory folders, somewhere else."""

from pathlib import Path

import click

from .common import Context, options


@click.command(name="export")
@options
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def command(context: Context, folder: Path) -> None:
    """Write the memory folders to DIR, one folder a project; the only one becomes DIR itself.

    DIR must be new or empty.
    """
    with context.open() as memory:
        written = memory.export(folder)
    answer = {"folder": str(folder), "roots": {scope: str(path) for scope, path in written.items()}}

    def lines() -> None:
        for scope, path in written.items():
            click.echo(f"{scope}: {path}")
        if not written:
            click.echo("nothing to export yet; `threadbook run` writes a memory first")

    context.show(answer, lines)
