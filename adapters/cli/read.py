"""`threadbook read`: a file of a project's memory."""

from pathlib import Path

import click
import msgspec

from .common import Context, here, options, say


@click.command(name="read")
@options
@here
@click.argument("path")
@click.option("--line", "line_offset", type=int, default=1, help="From this line on.")
@click.option("--lines", "max_lines", type=int, help="At most so many lines.")
@click.option("--session", metavar="ID", help="Record that this session was given it.")
def command(
    context: Context,
    path: str,
    cwd: Path | None,
    line_offset: int,
    max_lines: int | None,
    session: str | None,
) -> None:
    """A file of a project's memory, as an agent may read it. `threadbook list` shows the paths."""
    with context.open() as memory:
        answer = memory.read(
            path, line_offset=line_offset, max_lines=max_lines, cwd=cwd, session=session
        )

    def lines() -> None:
        say(answer.content, nl=not answer.content.endswith("\n"))
        if answer.truncated:
            say("there is more of it: --line and --lines choose", err=True)

    context.show(msgspec.to_builtins(answer), lines)
