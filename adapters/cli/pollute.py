"""`threadbook pollute`: mark a session as touched by outside text."""

import click

from .common import Context, options, say


@click.command(name="pollute")
@options
@click.argument("thread_id", metavar="THREAD")
@click.option("--cause", default="asked", help="A word for why, such as web_search.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(context: Context, thread_id: str, cause: str, yes: bool) -> None:
    """Mark a session as touched by outside text: it leaves the memory folder at the next run.

    It stays out until `threadbook mode THREAD enabled`.
    """
    from .confirm import agreed

    with context.open() as memory:
        confirmed = agreed(f"Mark {thread_id} as polluted?", yes=yes)
        changed = memory.pollute(thread_id, cause=cause, confirmed=confirmed)
    context.show(
        {"thread_id": thread_id, "mode": "polluted", "changed": changed},
        lambda: say(
            f"{thread_id} {'is now' if changed else 'was already'} polluted;"
            f" `threadbook mode {thread_id} enabled` takes it back in"
        ),
    )
