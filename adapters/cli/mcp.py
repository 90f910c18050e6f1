"""`threadbook mcp`: serve a project's memory to an agent."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .. import telemetry
from .common import Context, harmless, options

if TYPE_CHECKING:
    from ...application.surroundings import Surroundings
    from ..mcp.desk import Desk

# Where an agent says which of its sessions it has started us for: Claude Code does so by itself,
# Codex where its settings let the variable through.
SESSION_VARIABLES = ("CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID")


@click.command(name="mcp")
@options
@click.option(
    "--cwd",
    type=click.Path(path_type=Path),
    help="The folder whose project's memory is served; by default the one it is started in.",
)
@click.option("--session", metavar="ID", help="The session that is served; else nothing counts.")
def command(context: Context, cwd: Path | None, session: str | None) -> None:
    """Serve a project's memory to an agent, by the Model Context Protocol on standard input and
    output. It ends when its input does; `install` sets it up."""
    if sys.stdin is None or sys.stdout is None:
        raise click.UsageError(
            "it speaks on standard input and output, and one of them is closed; an agent starts it"
        )
    if sys.stdin.isatty():
        complain("an agent speaks to this, not a person; end it with Ctrl-D")
    folder = folder_of(cwd)
    desk = desk_of(context, folder, session=session or session_of_the_agent())
    from ..mcp.server import serve

    serve(desk, leave=telemetry.finish)


def desk_of(context: Context, cwd: str, *, session: str | None) -> "Desk":
    from ...application.ranked import RankedSearch
    from ..mcp.desk import Desk
    from ..ranking import Ranking

    @contextmanager
    def opened(create: bool) -> "Iterator[Surroundings]":
        with context.open(create=create) as memory:
            memory._refuse_sealed()
            yield memory._around

    return Desk(
        opened=opened,
        reads=lambda: version_read(context.config, cwd),
        ranked=RankedSearch(Ranking),
        complain=complain,
        cwd=cwd,
        session=session,
    )


def folder_of(cwd: Path | None) -> str:
    """A folder that is gone belongs to no project, and whoever asks is told so."""
    from ..settings import expanded  # Who writes an agent's settings has no shell to do it.

    try:
        return os.path.abspath(expanded(cwd) if cwd else os.getcwd())
    except OSError:
        return os.sep


def version_read(config: Path | None, cwd: str) -> str:
    """The memory version of the settings as they are now; raises where none is to be read."""
    from ...application.reading import MemoriesOff
    from ..actor import is_inside_a_run
    from ..mcp.desk import OwnRun
    from ..places import look
    from ..settings import load, restriction

    if is_inside_a_run():
        raise OwnRun
    settings = load(config)
    if not settings.use_memories:
        raise MemoriesOff("use_memories is false in the settings")
    if not settings.dedicated_tools:
        raise MemoriesOff("dedicated_tools is false in the settings")
    if not restriction(look(cwd).files).use_memories:
        raise MemoriesOff("use_memories is false in a .threadbook.toml of this project")
    return settings.version


def session_of_the_agent() -> str | None:
    return next((os.environ[each] for each in SESSION_VARIABLES if os.environ.get(each)), None)


def complain(what: str) -> None:
    print(f"threadbook: {harmless(what)}", file=sys.stderr, flush=True)
