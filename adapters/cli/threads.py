"""`threadbook threads`: every session, and where it stands."""

import click
import msgspec

from .common import Context, options, say


def first_words(preview: str | None) -> str:
    return " ".join((preview or "").split())[:60]


@click.command(name="threads")
@options
def command(context: Context) -> None:
    """Every session, newest first: where it came from, its project, mode and state."""
    with context.open() as memory:
        found = memory.threads()

    def lines() -> None:
        if not found:
            say("no sessions yet; `threadbook run` reads them")
            return
        for line in found:
            # An id is what the next command needs, so it is never cut.
            say(
                f"{line.thread_id}  {line.updated_at or '-':<20}  {line.stage1:<9}  "
                f"{'in ' if line.selected else '   '}  {line.memory_mode:<8}  "
                f"{line.kind}/{line.source}  {line.scope or '-'}  {first_words(line.preview)}"
            )

    context.show(msgspec.to_builtins(found), lines)
