"""`threadbook threads`: every session, and where it stands."""

import click
import msgspec

from .common import Context, options


@click.command(name="threads")
@options
def command(context: Context) -> None:
    """Every session, newest first: where it came from, its project, mode and state."""
    with context.open() as memory:
        found = memory.threads()

    def lines() -> None:
        if not found:
            click.echo("no sessions yet; `threadbook run` reads them")
            return
        from rich.console import Console
        from rich.table import Table

        table = Table("thread", "updated", "kind", "source", "scope", "mode", "stage 1", "in")
        for line in found:
            cells = (line.updated_at, line.kind, line.source, line.scope, line.memory_mode)
            selected = "yes" if line.selected else ""
            table.add_row(line.thread_id, *(cell or "-" for cell in cells), line.stage1, selected)
        console = Console()
        console.print(table, soft_wrap=not console.is_terminal)

    context.show(msgspec.to_builtins(found), lines)
