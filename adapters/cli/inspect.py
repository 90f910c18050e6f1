"""`threadbook inspect`: one session file, or one reply, as Threadbook reads it."""

import sys
from pathlib import Path

import click

from .common import Context, Parts, options, say, say_json, standard_input


@click.group(name="inspect", cls=Parts)
def command() -> None:
    """Look at one session file, or one reply, as Threadbook reads it."""


@command.command(name="rollout")
@options
@click.argument("file", type=click.Path(path_type=Path))
def rollout(context: Context, file: Path) -> None:
    """What Threadbook reads in a session file. Nothing is stored, and no home is needed."""
    from ..inspection import rollout as inspected
    from ..memory import home_of

    told = inspected(file, home=home_of(context.home), now=context.now)

    def lines() -> None:
        thread = told["thread"]
        say(f"{thread['thread_id']}  {thread['kind']} ({thread['source']})  {thread['scope']}")
        say(f"{thread['started_at']} to {thread['updated_at']}  in {thread['cwd'] or '-'}")
        say(f"{told['records']} records, {len(told['bad_lines'])} bad lines")
        for bad in told["bad_lines"]:
            say(f"  line {bad['line']} at byte {bad['offset']}: {bad['reason']}")
        for kind, count in sorted(told["skipped"].items()):
            say(f"  skipped {count} x {kind}")
        for text in told["human_messages"]:
            say(f"  > {text.strip().splitlines()[0] if text.strip() else ''}")
        if told["unfinished_tail"]:
            say("  the last line is still being written")
        if told["polluting"]:
            say(f"  touched by outside text: {', '.join(told['polluting'])}")
        for each in told["citations"]:
            say(f"  turn {each['turn']} cites {', '.join(each['ids'])}")

    context.show(told, lines)


@command.command(name="evidence")
@options
@click.option(
    "--version",
    type=click.Choice(["v1", "v2"]),
    default="v1",
    show_default=True,
    help="The version of the memory that a model would be asked for.",
)
@click.argument("file", type=click.Path(path_type=Path))
def evidence(context: Context, file: Path, version: str) -> None:
    """What a model would be shown of a session file, secrets hidden. Nothing is sent or stored."""
    from ..inspection import evidence as inspected
    from ..settings import load

    window = load(context.config).context_window
    told = inspected(file, version=version, context_window=window, now=context.now)
    context.show(told, lambda: say(told["text"]))


@command.command(name="citations")
@options
def citations(context: Context) -> None:
    """What a reply on standard input shows, and what it cites, as JSON. Nothing is counted."""
    from msgspec import to_builtins

    from ...domain.citation import parse

    cited = parse(standard_input())
    say_json(
        {
            "visible": cited.visible,
            "entries": to_builtins(cited.entries),
            "ids_raw": list(cited.ids_raw),
            "usage_ids": list(cited.usage_ids),
        }
    )


@command.command(name="redact")
@options
def redact(context: Context) -> None:
    """Standard input without its secrets. Nothing else of it changes, and nothing is stored."""
    from ...domain.redaction import redacted

    text, hidden = redacted(standard_input())
    if context.json:
        say_json({"text": text, "secrets_hidden": hidden})
    elif sys.stdout is not None and sys.stdout.isatty():
        say(text, nl=False)
    else:
        # A file gets what it would have got without us, but for the secrets.
        click.echo(text.encode(), nl=False)
    if sys.stderr is not None and sys.stderr.isatty():
        say(f"{hidden} {'secret' if hidden == 1 else 'secrets'} hidden", err=True)
