"""`threadbook verify`: is the record whole?"""

import click
import msgspec

from .common import Context, options, say


@click.command(name="verify")
@options
def command(context: Context) -> None:
    """Check the hash chain of the whole log: no event changed, removed, swapped or cut off.

    Exit code 3 when something is found; writing is then refused until a check passes.
    """
    with context.open(check=False) as memory:
        found = memory.verify()
    context.show(msgspec.to_builtins(found), lambda: say(found.message))
    if not found.ok:
        raise SystemExit(3)
