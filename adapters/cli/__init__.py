"""The command line. A command's module is imported when the command is run, and no sooner.

Exit codes: 0 done, also when there was nothing to do; 1 refused; 2 misuse; 3 failure. A failure is
one line on standard error that says what to do; with `--json` it is an object on standard output
too. A traceback is always our own mistake.
"""

import sys
from importlib import import_module

import click

from .common import Context, fail, options

# name -> (module, one line of help): the help of the group must not import every command.
COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run", "Read new sessions and bring the memory folders up to date."),
    "status": ("status", "What is stored, what waits and why, and what is in force."),
    "threads": ("threads", "Every session, and where it stands."),
    "explain": ("explain", "Why a session is in or out, now or at an earlier position."),
    "log": ("log", "The events, oldest first."),
    "mode": ("mode", "Let a session be remembered, or not."),
    "pollute": ("pollute", "Mark a session as touched by outside text."),
    "scope": ("scope", "Show or set which project a session belongs to."),
    "forget": ("forget", "Forget a session for good, its words included."),
    "export": ("export", "Write the memory folders somewhere else."),
    "verify": ("verify", "Check that no event was changed, removed or swapped."),
    "replay": ("replay", "Rebuild everything from the events, now or as of a position."),
    "inspect": ("inspect", "Look at one session file as Threadbook reads it."),
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


def main() -> None:
    """The console script."""
    try:
        threadbook.main(prog_name="threadbook", standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(fail("stopped; nothing was lost, run the same command again", code=1))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`). That is no failure of ours.
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        from .failures import told

        code = told(error)
        if code is None:
            raise
        sys.exit(code)
