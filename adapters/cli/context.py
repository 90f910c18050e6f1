"""`threadbook context`: what a session is given of its project's memory."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from .common import Context, options, say

if TYPE_CHECKING:
    from ...application.context import Context as Given


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
    told = given(context, cwd, session)
    answer = to_builtins(told)
    del answer["pieces"]

    def lines() -> None:
        say(told.text or told.why)
        if told.text and told.state == "shown" and told.why:
            say(f"threadbook: {told.why}", err=True)

    context.show(answer, lines)


def given(context: Context, cwd: Path | str | None, session: str | None) -> "Given":
    """Where no memory was ever made there is none to show, and none is made for the asking."""
    from ..store import NoMemoryYet

    try:
        with context.open() as memory:
            return memory.context(cwd, session=session)
    except NoMemoryYet as none:
        from ...application.context import nothing
        from ...prompts import filled

        return nothing(str(cwd or "here"), why=str(none), prompt=filled)
