"""The command line. A command's module is imported when the command is run, and no sooner.

Exit codes: 0 done, also when there was nothing to do; 1 refused; 2 misuse; 3 failure. A failure is
one line on standard error that says what to do; with `--json` it is an object on standard output
too. A traceback is always our own mistake.
"""

import difflib
import os
import sys
from importlib import import_module
from io import StringIO

import click

from .. import telemetry
from .common import Context, fail, for_programs, options, say

# name -> (module, one line of help): the help of the group must not import every command.
COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run", "Read new sessions and bring the memory folders up to date."),
    "status": ("status", "What is stored, what waits and why, and what is in force."),
    "doctor": ("doctor", "What is wrong or late, and what to do."),
    "threads": ("threads", "Every session, and where it stands."),
    "context": ("context", "What a session that starts here is given of the memory."),
    "note": ("note", "Have something remembered for the sessions that come."),
    "list": ("listing", "What the memory of a project holds."),
    "read": ("read", "A file of a project's memory."),
    "search": ("search", "What a project's memory says about something."),
    "mcp": ("mcp", "Serve a project's memory to an agent, on standard input and output."),
    "cite": ("cite", "Count what a reply used, and print what a person should see of it."),
    "explain": ("explain", "Why a session is in or out, now or at an earlier position."),
    "diff": ("diff", "What changed between two positions or times."),
    "log": ("log", "The events, oldest first."),
    "mode": ("mode", "Let a session be remembered, or not."),
    "pollute": ("pollute", "Mark a session as touched by outside text."),
    "scope": ("scope", "Show or set which project a session belongs to."),
    "forget": ("forget", "Forget a session for good, its words included."),
    "reset": ("reset", "Empty what was learned; sessions and notes stay."),
    "export": ("export", "Write the memory folders somewhere else."),
    "import": ("import_", "Take over what Codex or Claude Code remembered, or an exported log."),
    "verify": ("verify", "Check that no event was changed, removed or swapped."),
    "replay": ("replay", "Rebuild everything from the events, now or as of a position."),
    "inspect": ("inspect", "Look at one session file, or one reply, as Threadbook reads it."),
    "install": ("install", "Give Codex and Claude Code their hooks and the MCP server."),
    "uninstall": ("uninstall", "Take them out again, and give every byte back."),
    "hook": ("hook", "What the agents call at both ends of a session; `install` sets it up."),
}


class Lazy(click.Group):
    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = import_module(f".{COMMANDS[name][0]}", __name__)
        command: click.Command = module.command
        return command

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            advice = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(COMMANDS)}"
            context.fail(f"No such command '{args[0]}'; {advice}")
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(
    cls=Lazy,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Every option above may stand before or after the command.",
)
@click.version_option(package_name="threadbook", message="threadbook %(version)s")
@options
def threadbook(context: Context) -> None:
    """Memory for coding agents that people can trust."""
    if not telemetry.is_asked_for():
        return
    match click.get_current_context().invoked_subcommand:
        case "hook":
            telemetry.keep()
        case name:
            telemetry.begin(serves=name == "mcp")


def main() -> None:
    """The console script."""
    try:
        code = ended()
        if sys.stdout is not None:  # It is none where the caller has closed it.
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has gone (`| head`). That is no failure of ours.
        discard_output()
        code = 0
    except OSError as error:
        discard_output()
        click.echo(f"threadbook: the output cannot be written ({error.strerror})", err=True)
        code = 3
    if f"{__name__}.hook" in sys.modules:
        telemetry.hand_over()
        os._exit(code)  # A session waits, and taking Python apart takes a tenth of a hook's time.
    telemetry.finish()
    sys.exit(code)


def ended() -> int:
    """Run the command that was asked for, and tell what ended it: its exit code."""
    output = sys.stdout
    try:
        threadbook.main(prog_name="threadbook", standalone_mode=False)
    except SystemExit as ending:
        if sys.stdout is not output:
            return 0  # Where the reader has gone click replaces it and ends with 1; no failure.
        return ending.code if isinstance(ending.code, int) else 0
    except (click.exceptions.Abort, KeyboardInterrupt):
        return fail("stopped; nothing was lost, run the same command again", code=1)
    except click.ClickException as error:
        shown = StringIO()
        error.show(file=shown)
        say(shown.getvalue(), err=True, nl=False)
        for_programs(error.format_message())
        return error.exit_code
    except Exception as error:
        from .failures import told

        code = told(error)
        if code is None:
            raise
        return code
    return 0


def discard_output() -> None:
    """What is still buffered goes nowhere; else Python tries once more when it ends, and tells."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
