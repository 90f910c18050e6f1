"""`threadbook install` and `threadbook uninstall`: in the settings of the agents, and out."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from .common import Context, options, say

if TYPE_CHECKING:
    from ..install import FileReport, Report

AGENTS = ("codex", "claude")
DRY_RUN = click.option(
    "--dry-run", is_flag=True, help="Say what would be done, and change nothing."
)
AGENT = click.argument("agents", metavar="[codex|claude]", nargs=-1, type=click.Choice(AGENTS))
# Loading what speaks to a database server takes longer than a hook gives itself.
SERVER_IS_SLOWER = ("--within", "1000")
NOBODY = (
    "neither Codex nor Claude Code was used here yet (no ~/.codex, no ~/.claude);"
    " start one of them, then run this again"
)
DONE = {
    "created": "made",
    "changed": "changed",
    "unchanged": "has it already",
    "restored": "is as it was before",
    "removed": "removed, it held nothing else",
    "nothing": "holds nothing of ours",
}
WOULD = {
    "created": "would be made",
    "changed": "would be changed",
    "restored": "would be as it was before",
    "removed": "would be removed, it holds nothing else",
}


@click.command(name="install")
@options
@AGENT
@DRY_RUN
def command(context: Context, agents: tuple[str, ...], dry_run: bool) -> None:
    """Let Codex and Claude Code use this memory: hooks, and an MCP server, in their own settings.

    At its start a session is given the memory of its project; at its end `threadbook run` reads
    older sessions in the background. Without an agent: both that are here. What their settings
    hold stays as it is; `uninstall` gives every byte back.
    """
    from .. import install
    from ..install.entries import Entries
    from ..memory import home_of
    from ..settings import load

    settings = load(context.config)  # What cannot be read would fail every hook, out of sight.
    entries = Entries(
        program=(*program(), *carried(context)),
        behind_hooks=SERVER_IS_SLOWER if settings.database else (),
    )
    chosen = install.places(agents)
    reports = install.install(chosen, entries, home=home_of(context.home), dry_run=dry_run)
    show(context, reports, dry_run=dry_run)


@click.command(name="uninstall")
@options
@AGENT
@DRY_RUN
def uninstall(context: Context, agents: tuple[str, ...], dry_run: bool) -> None:
    """Take out of the settings of Codex and Claude Code what `install` put there.

    A file that nobody has edited since becomes what it was, byte for byte; from an edited one
    only what is ours is taken out. The memory stays.
    """
    from .. import install
    from ..memory import home_of

    chosen = install.places(agents)
    reports = install.uninstall(chosen, home=home_of(context.home), dry_run=dry_run)
    show(context, reports, dry_run=dry_run)


def show(context: Context, reports: "list[Report]", *, dry_run: bool) -> None:
    answer: dict[str, Any] = {"dry_run": dry_run, "agents": msgspec.to_builtins(reports)}

    def lines() -> None:
        for report in reports:
            for file in report.files:
                say(f"{report.title}: {told(file, dry_run=dry_run)}")
                if dry_run and file.diff:
                    say(file.diff)
            if not report.files:
                say(f"{report.title}: nothing of ours is there")
            for note in report.notes if not dry_run else ():
                say(f"  {note}")
        if not reports:
            say(NOBODY)

    context.show(answer, lines)


def told(file: "FileReport", *, dry_run: bool) -> str:
    words = WOULD.get(file.done, DONE[file.done]) if dry_run else DONE[file.done]
    return f"{file.path} {words} ({file.what})"


def program() -> list[str]:
    """How this program is started again, from any folder: its script, else its interpreter."""
    beside = Path(sys.executable).with_name("threadbook")
    found = shutil.which(sys.argv[0]) if os.path.basename(sys.argv[0]) == "threadbook" else None
    if found is not None:
        return [os.path.abspath(found)]
    if beside.is_file() and os.access(beside, os.X_OK):
        return [str(beside.absolute())]
    return [os.path.abspath(sys.executable), "-m", "threadbook.adapters.cli"]


def carried(context: Context, environment: Mapping[str, str] | None = None) -> list[str]:
    """The options that make the program find this memory when an agent starts it, which may give
    it few of the variables that are set here."""
    from ..settings import default_home, expanded, user_file

    environment = os.environ if environment is None else environment
    words: list[str] = []
    if context.home is not None or {"THREADBOOK_HOME", "XDG_DATA_HOME"} & environment.keys():
        home = default_home(environment) if context.home is None else expanded(context.home)
        words += ["--home", str(home.absolute())]
    if context.config is not None:
        words += ["--config", str(expanded(context.config).absolute())]
    elif {"THREADBOOK_CONFIG", "XDG_CONFIG_HOME"} & environment.keys():
        file = user_file(environment).absolute()
        if file.exists():
            words += ["--config", str(file)]
    return words
