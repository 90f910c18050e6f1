"""`threadbook context`: what a session is given of its project's memory."""

from pathlib import Path

import click
from msgspec import to_builtins

from .common import Context, options, say


@click.command(name="context")
@options
@click.option(
    "--cwd", type=click.Path(path_type=Path), help="The session's folder; default: this one."
)
@click.option("--session", metavar="ID", help="The session's id; what it was shown is recorded.")
def command(context: Context, cwd: Path | None, session: str | None) -> None:
    """What a session that starts in this folder is given: its project's summary and newest notes.

    With --json also the manifest: what it is made of, its digest, what was left out, its tokens.
    """
    with context.open() as memory:
        told = memory.context(cwd, session=session)
    answer = to_builtins(told)
    del answer["pieces"]
    context.show(answer, lambda: say(told.text or told.why))
