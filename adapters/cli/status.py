"""`threadbook status`: what is stored, what waits, what is in force."""

import json
from typing import Any

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
        several = {each["version"] for each in told["versions"]} != {"v1"}
        for each in told["versions"] if several else ():
            say(f"version   {version_line(each)}")
        for root in told["roots"]:
            of = f" ({root['version']})" if several else ""
            sessions = "1 session" if root["selected"] == 1 else f"{root['selected']} sessions"
            say(f"memory    {root['scope']}{of}: {sessions}, {root['state']}")
            say(f"          {root['path']}")
        for job in told["stuck"]:
            say(f"stuck     {job}")
        for line in told["spend"]:
            say(f"spent     {line}")
        if told["budget"]:
            say(f"budget    {budget_line(told['budget'])}")
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


def version_line(version: dict[str, Any]) -> str:
    from ...application.status import READY_THREADS

    does = [what for what in ("read", "written") if version[what]]
    count = version["consolidated_threads"]
    ready = f"not ready yet, at {READY_THREADS} it is"
    if version["ready"]:
        ready = "ready"
    elif count >= READY_THREADS:
        ready = "not ready yet, a summary is not fit to be read"
    return (
        f"{version['version']} is {' and '.join(does)};"
        f" {count} session{'s' * (count != 1)} consolidated at once; {ready}"
    )


def budget_line(budget: dict[str, Any]) -> str:
    left, run = budget["left_today"], budget["max_tokens_per_run"]
    told = [
        f"{budget['spent_today']:,} tokens spent today (UTC)",
        "no limit a day" if left is None else f"{left:,} left",
        "no limit a run" if run is None else f"at most {run:,} a run",
        budget["base_url"],
    ]
    if not budget["consented"]:
        told.append("nobody has agreed yet; `threadbook run --model openai` asks")
    return "; ".join(told)
