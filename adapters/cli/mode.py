"""`threadbook mode`: let a session be remembered, or not."""

import click

from .common import Context, options, say


@click.command(name="mode")
@options
@click.argument("thread_id", metavar="THREAD")
@click.argument("mode", type=click.Choice(["enabled", "disabled"]))
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(context: Context, thread_id: str, mode: str, yes: bool) -> None:
    """Let a session be remembered (enabled), or leave it out until you say otherwise (disabled).

    Enabling a polluted session says that its outside text may be learned from.
    """
    from .confirm import agreed

    with context.open() as memory:
        confirmed = agreed(f"Set {thread_id} to {mode}?", yes=yes)
        changed = memory.set_mode(thread_id, mode, confirmed=confirmed)
    answer = {"thread_id": thread_id, "mode": mode, "changed": changed}
    context.show(
        answer, lambda: say(f"{thread_id} {'is now' if changed else 'was already'} {mode}")
    )
