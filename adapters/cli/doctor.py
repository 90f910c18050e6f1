"""`threadbook doctor`: what keeps memory from being right or up to date, and what to do."""

import click
import msgspec

from .common import Context, options, say

SIGNS = {"fine": "  ok  ", "warning": " note ", "error": "ERROR "}


@click.command(name="doctor")
@options
@click.option(
    "--accept-restore", "restored", is_flag=True, help="Go on with a backup that was put back."
)
@click.option("--yes", is_flag=True, help="Do not ask; needed where nobody can be asked.")
def command(context: Context, restored: bool, yes: bool) -> None:
    """What is wrong or late, and what to do.

    It looks for what is stuck, open to others, out of room, not erased or no longer whole, and
    sends a made-up session the whole way, in a home of its own. Nothing is changed. Exit code 3
    where something is wrong.

    With --accept-restore a log that is shorter than it had once come, because a backup was put
    back, becomes the true one: what it lacks is lost, and what was forgotten since is forgotten
    again.
    """
    if restored:
        accept(context, yes=yes)
        return
    from ..care import doctor

    found = doctor(context.home, config=context.config, clock=context.given_clock)

    def lines() -> None:
        for each in found:
            say(f"{SIGNS[each.level]} {each.what:<12} {each.told}")

    wrong = any(each.level == "error" for each in found)
    context.show({"ok": not wrong, "findings": msgspec.to_builtins(found)}, lines)
    if wrong:
        raise SystemExit(3)


def accept(context: Context, *, yes: bool) -> None:
    from ..care import accept_restore
    from .confirm import agreed_or_refused

    confirmed = agreed_or_refused("Take this copy for the true one?", yes=yes)
    told = accept_restore(
        context.home,
        clock=context.given_clock,
        config=context.config,
        confirmed=confirmed,
        from_cli=True,
    )

    def lines() -> None:
        say(f"the log had come to position {told.came_to}, and goes on from {told.position}")
        for thread_id in told.forgotten_again:
            say(f"  forgotten again: {thread_id}")

    context.show(msgspec.to_builtins(told), lines)
