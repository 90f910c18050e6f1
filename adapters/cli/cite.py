"""`threadbook cite`: count what a reply used."""

import sys

import click

from .common import Context, options, say, say_json, standard_input

WHY = {
    "not_an_id": "it is no session's id",
    "itself": "a session cannot use its own memory",
    "unknown": "no session has that id",
    "forgotten": "it was forgotten",
    "polluted": "outside text touched it, and its memory is withheld",
    "disabled": "its memory is switched off",
    "no_output": "nothing was kept of it",
    "not_in_reach": "this session was not shown it",
    "counted_before": "it has counted in this turn",
}


@click.command(name="cite")
@options
@click.option("--session", metavar="ID", help="The session that replied; else nothing counts.")
@click.option(
    "--turn", type=click.IntRange(min=0), help="Which message of a person it answers, from 1."
)
def command(context: Context, session: str | None, turn: int | None) -> None:
    """Read a reply on standard input, and print what a person should see of it.

    Each session that it cites counts as used, once a turn, if the citing session was shown it.
    What does not count is told on standard error.
    """
    from ...domain.citation import parse

    if session and turn is None:
        raise click.UsageError("with --session ID also say which turn it is: --turn N")
    reply = standard_input()
    visible = parse(reply).visible
    if not context.json:  # Also where the use of it cannot be recorded.
        show(visible)
    counted: list[str] = []
    not_counted: dict[str, str] = {}
    if session:
        with context.open() as memory:
            told = memory.cite(reply, session, turn or 0)
        counted, not_counted = told.counted, told.not_counted
    else:
        say("no session was named, so nothing counts; give --session and --turn", err=True)
    for cited, reason in not_counted.items():
        say(f"{cited[:64]} does not count: {WHY[reason]}", err=True)
    if context.json:
        say_json({"visible": visible, "counted": counted, "not_counted": not_counted})


def show(visible: str) -> None:
    """For a program the reply as it is; a terminal must not be commanded by one."""
    if sys.stdout is not None and sys.stdout.isatty():
        say(visible, nl=not visible.endswith("\n"))
    else:
        click.echo(visible.encode(), nl=False)  # As bytes, or click takes the colours out.
