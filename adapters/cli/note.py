"""`threadbook note`: have something remembered for the sessions that come."""

import sys
from pathlib import Path

import click
from msgspec import to_builtins

from .common import Context, options, say

BYTES_MAX = 1 << 20  # Of what is read; a note is much shorter, and is told so.


@click.command(name="note")
@options
@click.argument("text", metavar="[TEXT]", required=False)
@click.option("--cwd", type=click.Path(path_type=Path), help="The project; default: this folder.")
@click.option("--filename", metavar="NAME", help="YYYY-MM-DDTHH-MM-SS-<words>.md; default: made.")
@click.option("--remove", metavar="NAME", help="Take a note back, its words included.")
def command(
    context: Context, text: str | None, cwd: Path | None, filename: str | None, remove: str | None
) -> None:
    """Keep a note for later sessions of this project. Without TEXT, or with -, it is read from
    standard input.

    Secrets in it are hidden. The same text twice is one note.
    """
    if remove is not None:
        if text is not None or filename is not None:
            raise click.UsageError("--remove takes no text and no --filename")
        with context.open() as memory:
            memory.remove_note(remove, cwd=cwd)
        context.show({"removed": remove}, lambda: say(f"{remove} is gone, its words included"))
        return
    if text is None or text == "-":
        text = heard()
    with context.open(create=True) as memory:
        kept = memory.note(text, cwd=cwd, filename=filename)

    def lines() -> None:
        said = "kept as" if kept.added else "was kept before, as"
        say(f"{kept.scope}: {said} {kept.path}")
        if kept.secrets_hidden:
            plural = "s were" if kept.secrets_hidden > 1 else " was"
            say(f"{kept.secrets_hidden} secret{plural} hidden in it")

    context.show(to_builtins(kept), lines)


def heard() -> str:
    """Standard input, which a caller may have closed. What is no UTF-8 in it is kept as what is
    no text, whatever this system's language is, so that the note is refused and not mangled."""
    if sys.stdin is None:
        return ""
    if sys.stdin.isatty():
        say("write the note; end with Ctrl-D on a line of its own", err=True)
    return sys.stdin.buffer.read(BYTES_MAX).decode("utf-8", "surrogateescape")
