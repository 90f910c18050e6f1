"""`threadbook forget thread`: a session leaves for good, its words included."""

import click
import msgspec

from .common import Context, options, say


@click.group(name="forget")
def command() -> None:
    """Forget a session for good, its words included."""


@command.command(name="thread")
@options
@click.argument("thread_id", metavar="ID")
@click.option("--lift", is_flag=True, help="Let the session be read again; its words stay gone.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def thread(context: Context, thread_id: str, lift: bool, yes: bool) -> None:
    """Forget a session: its words leave the database, the folder and the folder's git objects.

    Nothing brings it back until a person lifts it, at a terminal, with --lift. Its id, its times
    and the paths that name it stay in the log.
    """
    from .confirm import agreed

    if lift:
        with context.open() as memory:
            confirmed = agreed(f"Let {thread_id} be read again?", yes=False)
            memory.lift(thread_id, confirmed=confirmed)
        context.show(
            {"thread_id": thread_id, "lifted": True},
            lambda: say(f"{thread_id} may be read again at the next run"),
        )
        return
    with context.open() as memory:
        confirmed = agreed(f"Forget {thread_id} for good?", yes=yes)
        report = memory.forget(thread=thread_id, confirmed=confirmed)

    def lines() -> None:
        if report.already:
            say(f"{thread_id} was already forgotten")
            return
        if not report.known:
            say(f"no session {thread_id} is known; should one turn up, it stays out")
            return
        say(f"{thread_id} is forgotten: {report.bodies_erased} texts erased")
        for root in report.roots:
            say(f"  written again without it: {root}")
        if report.pending:
            say(f"  not yet gone from the disk: {report.pending}")

    context.show(msgspec.to_builtins(report), lines)
