"""`threadbook replay`: everything again, from the events."""

import click

from .common import Context, Place, options, say


@click.command(name="replay")
@options
@click.option("--until", type=Place(), help="Show everything as of this position or time.")
@click.option("--verify", is_flag=True, help="Compare tables and folders with the events.")
@click.option("--rebuild", is_flag=True, help="Drop the tables and fold them from the events.")
def command(context: Context, until: int | float | None, verify: bool, rebuild: bool) -> None:
    """Rebuild everything from the events, now or as of a position. No model is ever called."""
    if sum((until is not None, verify, rebuild)) > 1:
        raise click.UsageError("--until, --verify and --rebuild are three questions; ask one")
    with context.open() as memory:
        if verify:
            differences = memory.replay_verify()
            context.show(
                {"ok": not differences, "differences": differences},
                lambda: say("\n".join(differences) or "tables and folders equal the events"),
            )
            if differences:
                raise SystemExit(3)
        elif rebuild:
            count = memory.rebuild()
            context.show(
                {"events": count},
                lambda: say(f"every table folded again from {count} events"),
            )
        else:
            past = memory.at(until)

            def lines() -> None:
                say(f"position {past['position']}")
                for name in ("threads", "jobs", "outputs"):
                    say(f"{len(past[name])} {name}")
                for line in past["selection"]:
                    place = "in " if line["selected"] else "out"
                    say(f"  {place} {line['thread_id']}  {line['reason']}")

            context.show(past, lines)
