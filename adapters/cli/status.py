"""`threadbook status`: what is stored, what waits, what is in force."""

import json

import click

from .common import Context, options, say


@click.command(name="status")
@options
def command(context: Context) -> None:
    """What is stored, what waits and why, what was spent, and the settings in force."""
    with context.open() as memory:
        told = memory.status()

    def lines() -> None:
        say(f"home      {told['home']}  ({told['clock']} clock)")
        if told["sealed"]:
            say(f"sealed    {told['sealed']}")
        say(f"log       {told['events']} events; head {told['head']}")
        threads = ", ".join(f"{count} {what}" for what, count in told["threads"].items() if count)
        say(f"threads   {threads or 'none yet; `threadbook run` reads them'}")
        for root in told["roots"]:
            sessions = "1 session" if root["selected"] == 1 else f"{root['selected']} sessions"
            say(f"memory    {root['scope']}: {sessions}, {root['state']}")
            say(f"          {root['path']}")
        for job in told["stuck"]:
            say(f"stuck     {job}")
        for line in told["spend"]:
            say(f"spent     {line}")
        for pending in told["erasures_pending"]:
            say(f"erasure   pending: {pending}")
        for backup in told["backups"]:
            say(f"backup    {backup}")
        if told["unknown_events"]:
            say(
                f"unknown   {told['unknown_events']} events of a newer Threadbook"
                " or of another application"
            )
        for key, setting in told["settings"].items():
            say(f"setting   {key} = {json.dumps(setting['value'])}   # {setting['reason']}")

    context.show(told, lines)
