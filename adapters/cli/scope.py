"""`threadbook scope`: which project a session belongs to."""

import os

import click

from .common import Context, options, say


@click.command(name="scope")
@options
@click.argument("what", metavar="THREAD|PATH")
@click.argument("scope", metavar="[project:ID]", required=False)
def command(context: Context, what: str, scope: str | None) -> None:
    """Show which project a session, or a folder on this machine, belongs to; or move a session.

    A set scope holds for that session. Both memory folders change at the next run. What a folder
    belongs to is said by its git remote, or else by its path.
    """
    if scope is not None and os.sep in what:
        raise click.UsageError(
            f"{what} is a folder, and only a session can be moved: `threadbook threads` has its id"
        )
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
