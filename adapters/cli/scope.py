"""`threadbook scope`: which project a session belongs to."""

import click

from .common import Context, options, say


@click.command(name="scope")
@options
@click.argument("what", metavar="THREAD|PATH")
@click.argument("scope", metavar="[project:ID]", required=False)
def command(context: Context, what: str, scope: str | None) -> None:
    """Show which project a session, or a folder on this machine, belongs to; or set it.

    A set scope holds for that session. Both folders change at the next run.
    """
    with context.open() as memory:
        if scope is None:
            shown = memory.scope(what)
            context.show({"of": what, "scope": shown}, lambda: say(shown))
        else:
            changed = memory.set_scope(what, scope)
            context.show(
                {"of": what, "scope": scope, "changed": changed},
                lambda: say(
                    f"{what} {'now belongs' if changed else 'already belonged'} to {scope}"
                ),
            )
