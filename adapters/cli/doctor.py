"""`threadbook doctor`: what keeps memory from being right or up to date, and what to do."""

import click
import msgspec

from .common import Context, options, say

SIGNS = {"fine": "  ok  ", "warning": " note ", "error": "ERROR "}


@click.command(name="doctor")
@options
def command(context: Context) -> None:
    """Look for what is stuck, late, open to others, out of room or not erased, and send a made-up
    session the whole way, in a home of its own.

    Nothing is changed. Exit code 3 where something is wrong.
    """
    from ..memory import doctor

    found = doctor(context.home, config=context.config, clock=context.given_clock)

    def lines() -> None:
        for each in found:
            say(f"{SIGNS[each.level]} {each.what:<12} {each.told}")

    wrong = any(each.level == "error" for each in found)
    context.show({"ok": not wrong, "findings": msgspec.to_builtins(found)}, lines)
    if wrong:
        raise SystemExit(3)
