"""`threadbook reset`: what was learned goes, the sessions stay known."""

from typing import TYPE_CHECKING

import click
import msgspec

from .common import Context, options, say

if TYPE_CHECKING:
    from ...application.reset import ResetReport


@click.command(name="reset")
@options
@click.option("--notes", is_flag=True, help="The notes go, too.")
@click.option("--yes", is_flag=True, help="Do not ask; needed where nobody can be asked.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
def command(context: Context, notes: bool, yes: bool, dry_run: bool) -> None:
    """Empty what was learned, its words included, in the log, the folders and their git objects.

    Sessions stay known with their modes, and what was forgotten stays forgotten. The next run
    reads the enabled ones that are young enough again: set `generate_memories`, or the mode of
    single sessions, to keep them out.
    """
    from .confirm import agreed_or_refused

    with context.open() as memory:
        plan = memory.reset(notes=notes, dry_run=True)
        if dry_run:
            context.show(told(plan, done=False), lambda: lines(plan, "would go"))
            return
        if not context.json:
            lines(plan, "goes")
        confirmed = agreed_or_refused("Empty this memory?", yes=yes)
        report = memory.reset(notes=notes, confirmed=confirmed)

    def done() -> None:
        say(f"emptied: {report.bodies_erased} texts erased")
        if report.pending:
            say(f"  not yet gone from the disk: {report.pending}")

    context.show(told(report, done=True), done)


def told(report: "ResetReport", *, done: bool) -> dict[str, object]:
    return {"done": done, **msgspec.to_builtins(report)}


def lines(plan: "ResetReport", verb: str) -> None:
    told = " and ".join(plan.versions)
    say(f"{verb}: {plan.outputs} outputs and {plan.jobs} jobs of version {told}")
    for folder in plan.folders:
        say(f"  everything in {folder}, your own files there included")
    say(f"  {plan.notes} notes" if plan.notes else "  notes stay")
    say(f"{plan.read_again} enabled sessions stay known; the next run reads those young enough")
