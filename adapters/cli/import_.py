"""`threadbook import`: what was remembered elsewhere, by another program or in another home."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from .common import Context, options, say

if TYPE_CHECKING:
    from ...application.reports import ImportReport, ProjectReport

LOG = ".jsonl"
TOLD_MAX = 20


@click.command(name="import")
@options
@click.argument("source", metavar="DIR|FILE.jsonl", type=click.Path(path_type=Path))
@click.option(
    "--project", "projects", metavar="KEY", multiple=True, help="Only this one; may be repeated."
)
@click.option("--scope", metavar="SCOPE", help="Whose notes are that nobody can tell.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
def command(
    context: Context,
    source: Path,
    projects: tuple[str, ...],
    scope: str | None,
    dry_run: bool,
) -> None:
    """Take over what Codex or Claude Code remembered, or an exported log.

    DIR is a Codex memories folder (~/.codex/memories, or one that `threadbook export` wrote), or
    Claude Code's home (~/.claude), whose projects' memory is kept as files beside ours, each
    project's with its own; a later import replaces them. Secrets are hidden, nothing in DIR is
    changed, and what was forgotten here stays so.

    FILE.jsonl, which `threadbook export FILE.jsonl` wrote, fills a new home (--home) with the same
    events, words, positions and hashes; the next `threadbook run` writes its folders.
    """
    if source.suffix == LOG:
        if projects or scope is not None or dry_run:
            raise click.UsageError("a log is imported whole; leave out the other options")
        import_log(context, source)
        return
    from .run import no_home_made

    with (
        no_home_made(context, sample=False) if dry_run else nullcontext(),
        context.open(create=True) as memory,
    ):
        report = memory.import_folder(source, projects=projects, scope=scope, dry_run=dry_run)
    context.show(msgspec.to_builtins(report), lambda: print_report(report))
    if report.all_failed:
        raise SystemExit(3)


def import_log(context: Context, file: Path) -> None:
    from ..memory import Memory

    end = Memory.import_log(
        file, context.home, config=context.config, simulated=context.now is not None
    )
    context.show(
        {"file": str(file), **msgspec.to_builtins(end)},
        lambda: say(
            f"{end.events} events and {end.bodies} texts; `threadbook run` writes the folders"
        ),
    )


def print_report(report: "ImportReport") -> None:
    from ...application.importing import LEFT

    would = "would be " if report.dry_run else ""
    if report.program == "codex":
        say(f"{counted(len(report.imported), 'session')} {would}imported from {report.folder}")
        for why, ids in report.left.items():
            say(f"  {len(ids)} left: {LEFT[why]}")
        if report.notes or report.notes_known:
            known = f", {report.notes_known} known" if report.notes_known else ""
            say(f"  {counted(len(report.notes), 'note')} {would}kept{known}")
    for project in report.projects:
        say(f"  {told_of(project, would)}")
    if report.program == "claude" and not report.projects:
        say(f"no project in {report.folder} has a memory")
    together: dict[str, list[str]] = {}
    for each in report.left_out[:TOLD_MAX]:
        together.setdefault(each.why, []).append(each.what)
    for why, what in together.items():
        say(f"  left out: {', '.join(what)}: {why}")
    if len(report.left_out) > TOLD_MAX:
        say(f"  and {len(report.left_out) - TOLD_MAX} more; --json names them")
    if report.secrets_hidden:
        say(f"  {counted(report.secrets_hidden, 'secret')} {would}hidden")
    for why in report.waiting:
        say(f"  a folder follows with the next run: {why}")
    if report.imported and not report.dry_run:
        say("`threadbook run` brings the memory folders up to date")


def told_of(project: "ProjectReport", would: str) -> str:
    if project.failure is not None:
        return f"{project.key}: not imported: {project.failure}"
    parts = [
        f"{len(files)} {verb}"
        for files, verb in (
            (project.added, "added"),
            (project.replaced, "replaced"),
            (project.removed, "removed"),
        )
        if files
    ]
    whose = f" ({project.scope})" if project.scope else ""
    return f"{project.key}{whose}: {would if parts else ''}{', '.join(parts) or 'unchanged'}"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
