"""`threadbook status`: what is stored, what waits, what is in force."""

import json

import click

from .common import Context, options


@click.command(name="status")
@options
def command(context: Context) -> None:
    """What is stored, what waits and why, what was spent, and the settings in force."""
    with context.open() as memory:
        told = memory.status()

    def lines() -> None:
        click.echo(f"home      {told['home']}  ({told['clock']} clock)")
        if told["sealed"]:
            click.echo(f"sealed    {told['sealed']}")
        click.echo(f"log       {told['events']} events; head {told['head']}")
        threads = ", ".join(f"{count} {what}" for what, count in told["threads"].items() if count)
        click.echo(f"threads   {threads or 'none yet; `threadbook run` reads them'}")
        for root in told["roots"]:
            click.echo(f"memory    {root['scope']}: {root['selected']} sessions, {root['state']}")
            click.echo(f"          {root['path']}")
        for job in told["stuck"]:
            click.echo(f"stuck     {job}")
        for line in told["spend"]:
            click.echo(f"spent     {line}")
        for pending in told["erasures_pending"]:
            click.echo(f"erasure   pending: {pending}")
        if told["unknown_events"]:
            click.echo(f"unknown   {told['unknown_events']} events of a newer Threadbook")
        for key, setting in told["settings"].items():
            click.echo(f"setting   {key} = {json.dumps(setting['value'])}   # {setting['reason']}")

    context.show(told, lines)
