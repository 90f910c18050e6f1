"""`threadbook diff`: what changed between two positions."""

import click

from .common import Context, Place, options, say


@click.command(name="diff")
@options
@click.argument("before", metavar="A", type=Place())
@click.argument("after", metavar="[B]", type=Place(), required=False)
def command(context: Context, before: int | float, after: int | float | None) -> None:
    """What changed between A and B, or between A and now: sessions, outputs, folders.

    A and B are positions or times. Texts that were erased since are told as erased.
    """
    with context.open() as memory:
        told = memory.diff(before, after)

    def lines() -> None:
        say(f"from position {told['from']} to {told['to']}")
        for what in ("threads", "outputs"):
            changes = told[what]
            say(
                f"{what}: {len(changes['added'])} added, {len(changes['changed'])} changed,"
                f" {len(changes['removed'])} removed"
            )
        for root in told["selection"]:
            for thread_id in root["entered"]:
                say(f"  {root['scope']}: in   {thread_id}")
            for thread_id in root["left"]:
                say(f"  {root['scope']}: out  {thread_id}")
        for root in told["folders"]:
            say(f"{root['scope']}:")
            say(root["diff"], nl=False)

    context.show(told, lines)
