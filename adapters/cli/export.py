"""`threadbook export`: the memory folders, somewhere else."""

from pathlib import Path
from typing import Literal

import click
import msgspec

from .common import Context, Place, options, say

LOG = ".jsonl"


@click.command(name="export")
@options
@click.argument("folder", metavar="DIR|FILE.jsonl", type=click.Path(path_type=Path))
@click.option("--at", type=Place(), help="As they were at this position or time.")
@click.option("--scope", metavar="SCOPE", help="Only this one, as `threadbook status` names it.")
@click.option(
    "--version",
    type=click.Choice(["v1", "v2"]),
    help="Of this memory version; without it the one that is read.",
)
@click.option("--merge", is_flag=True, help="Join all of them into one folder, as Codex has it.")
@click.option("--yes", is_flag=True, help="Do not ask before joining; needed without a terminal.")
def command(
    context: Context,
    folder: Path,
    at: int | float | None,
    scope: str | None,
    version: Literal["v1", "v2"] | None,
    merge: bool,
    yes: bool,
) -> None:
    """Write the memory folders to DIR, one folder a project; the only one becomes DIR itself.

    DIR must be new or empty. What was erased since is left out, and so is what nobody may read any
    more. With --merge a reader of DIR sees every project's memory in each: a real Codex can be
    pointed at it. A name that ends in .jsonl is a new file for the whole log, every event and
    every word, which `threadbook import` reads.
    """
    if merge and scope is not None:
        raise click.UsageError("--merge joins every scope; drop --scope, or --merge")
    if yes and not merge:
        raise click.UsageError("--yes answers --merge; drop it")
    if folder.suffix == LOG:
        if at is not None or scope is not None or version is not None or merge:
            raise click.UsageError(
                "a log is exported whole; leave out --at, --scope, --version and --merge"
            )
        with context.open() as memory:
            end = memory.export_log(folder)
        context.show(
            {"file": str(folder), **msgspec.to_builtins(end)},
            lambda: say(f"{folder}: {end.events} events, {end.bodies} texts, in the open"),
        )
        return
    with context.open() as memory:
        if merge and len(scopes := memory.exportable(at=at, version=version)) > 1:
            from .confirm import agreed_or_refused

            question = f"Join {', '.join(scopes)} into one folder, each readable beside the others?"
            agreed_or_refused(question, yes=yes)
        written = memory.export(folder, at=at, scope=scope, version=version, merge=merge)
    answer = {"folder": str(folder), "roots": {scope: str(path) for scope, path in written.items()}}

    def lines() -> None:
        for scope, path in written.items():
            say(f"{scope}: {path}")
        if not written:
            say(
                "nothing to export yet; `threadbook run` writes a memory first"
                if at is None
                else "no memory folder was written by then; `threadbook log` says when one was"
            )

    context.show(answer, lines)
