"""What every command shares: the four global options, output for people and for programs."""

import functools
import json
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

if TYPE_CHECKING:
    from ..memory import Memory


# What would move the cursor, colour the screen, turn the reading direction or not be seen at all.
COMMANDS_OF_A_TERMINAL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\U000e0000-\U000e0fff]"
)


def harmless(text: str) -> str:
    """Text as a terminal may have it: a session, or a file's name, may hold what commands one.

    The escapes are JSON's, so that JSON stays what it was.
    """

    def escaped(found: re.Match[str]) -> str:
        return json.dumps(found[0])[1:-1] if found[0] != "\x7f" else "\\u007f"

    return COMMANDS_OF_A_TERMINAL.sub(escaped, text)


def say(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    click.echo(harmless(text), err=err, nl=nl)


def standard_input() -> str:
    """All of it, as text whatever it holds, its line ends as they are."""
    if sys.stdin is None:  # The caller has closed it.
        return ""
    if sys.stdin.isatty():
        say("reading from the terminal; end with Ctrl-D on a line of its own", err=True)
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def say_json(answer: Any, *, indent: int | None = 2) -> None:
    say(json.dumps(answer, ensure_ascii=False, indent=indent))


class Context(Struct, kw_only=True):
    """The global options as given, before or after the command; the later one wins."""

    home: Path | None = None
    config: Path | None = None
    now: float | None = None
    json: bool = False

    def open(self, *, create: bool = False, sample: bool = False, check: bool = True) -> "Memory":
        from ..memory import Memory

        return Memory.open(
            self.home,
            clock=self.given_clock,
            config=self.config,
            create=create,
            sample=sample,
            check=check,
            from_cli=True,
        )

    @property
    def given_clock(self) -> "Callable[[], float] | None":
        now = self.now
        return None if now is None else lambda: now

    def show(self, answer: Any, lines: Callable[[], None]) -> None:
        """One answer: an object for programs, lines for people."""
        if self.json:
            say_json(answer)
        else:
            lines()


class Moment(click.ParamType[float]):
    name = "RFC3339"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        try:
            moment = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r} is no time; write 2026-11-29T12:00:00Z", param, ctx)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


class Place(click.ParamType[int | float]):
    """A position of the log, or a time."""

    name = "POSITION|TIME"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | float:
        if isinstance(value, int | float):
            return value
        if str(value).isdecimal() and str(value).isascii():
            return int(value)
        return Moment().convert(value, param, ctx)


class Parts(click.Group):
    """A command that is several, and says which where none of them was named."""

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            ways = " or ".join(f"`{context.command_path} {name}`" for name in self.commands)
            context.fail(f"No such command '{args[0]}'; write {ways}")
        return super().resolve_command(context, args)


GLOBAL = (
    click.option("--home", type=click.Path(path_type=Path), help="Where the memory lives."),
    click.option("--config", type=click.Path(path_type=Path), help="The settings file."),
    click.option("--now", type=Moment(), help="Pretend it is this time; marks a new home."),
    click.option("--json", "json_", is_flag=True, default=None, help="Answer as JSON."),
)


here = click.option(
    "--cwd", type=click.Path(path_type=Path), help="The project; default: this folder."
)


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the global options; it receives them merged, as its first argument."""

    @functools.wraps(command)
    @click.pass_context
    def merged(click_context: click.Context, /, **given: Any) -> Any:
        context = click_context.find_object(Context) or Context()
        click_context.obj = context
        context.home = given.pop("home") or context.home
        context.config = given.pop("config") or context.config
        now = given.pop("now")
        context.now = context.now if now is None else now
        context.json = bool(given.pop("json_")) or context.json
        return command(context, **given)

    for option in reversed(GLOBAL):
        merged = option(merged)
    return merged


def fail(message: str, *, code: int) -> int:
    """Say it once: a line for people, and an object for a program that asked for JSON."""
    for_programs(message)
    say(f"threadbook: {message}", err=True)
    return code


def for_programs(message: str) -> None:
    if "--json" in sys.argv[1:]:
        say_json({"error": message}, indent=None)
