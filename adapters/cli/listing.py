"""`threadbook list`: what the memory of a project holds.

Not named as its command is: a module of that name would hide the builtin in the package."""

from pathlib import Path

import click
import msgspec

from .common import Context, here, options, say


@click.command(name="list")
@options
@here
@click.argument("path", required=False)
@click.option("--cursor", help="Go on where the page before ended.")
@click.option("--max", "max_results", type=click.IntRange(min=1), help="At most so many.")
def command(
    context: Context,
    path: str | None,
    cwd: Path | None,
    cursor: str | None,
    max_results: int | None,
) -> None:
    """The files and folders of a project's memory, one level, as an agent sees them."""
    with context.open() as memory:
        answer = memory.list(path, cwd=cwd, cursor=cursor, max_results=max_results)

    def lines() -> None:
        for each in answer.entries:
            say(f"{each.path}{'/' if each.entry_type == 'directory' else ''}")
        if answer.next_cursor is not None:
            say(f"there are more: --cursor {answer.next_cursor}", err=True)

    context.show(msgspec.to_builtins(answer), lines)
