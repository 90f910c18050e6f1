"""`threadbook hook`: what the agents call at both ends of a session.

A hook never fails and never delays a session: whatever goes wrong is one line in
`<home>/hooks.log`, nothing on standard output, and exit code 0; a hook that needs too long ends
itself. What is said to a session is said whole or not at all.
"""

import fcntl
import gc
import json
import os
import select
import sys
import time
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from .common import Context, options

BUDGET_MS = 180
# Claude Code puts what is longer into a file and shows its beginning; Codex can be told to take
# more, and its entry says so.
ROOM = 10_000
INPUT_MAX = 1 << 20
INPUT_S = 1.0
TROUBLE_MIN = 3  # Lines in the log, in a day, that the person is told of.
EVENTS = ("session-start", "session-end")


class Command(click.Command):
    """Where an agent calls, words that are no use to us are trouble like any other: some agents
    take our exit code for a wish to stop the session. A person is told what is wrong with them."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **more: Any,
    ) -> click.Context:
        words = list(args)
        try:
            return super().make_context(info_name, args, parent=parent, **more)
        except click.UsageError as error:
            if sys.stdin is not None and sys.stdin.isatty():
                raise
            with suppress(Exception):  # A home that cannot be named has no log to say so in.
                misused(words, parent, error)
            raise click.exceptions.Exit(0) from None


def misused(words: list[str], parent: click.Context | None, error: click.UsageError) -> None:
    from ..hook_log import note

    context = (parent.find_object(Context) if parent else None) or Context()
    if "--home" in words[:-1]:
        context = Context(home=Path(words[words.index("--home") + 1]))
    note(where(context), "hook", f"{error.format_message()} (in the agent's settings)")


@click.command(name="hook", cls=Command)
@options
@click.argument("event", type=click.Choice(EVENTS))
@click.option(
    "--room",
    type=click.IntRange(1000),
    default=ROOM,
    show_default=True,
    metavar="BYTES",
    help="What the agent takes from a hook.",
)
@click.option(
    "--within",
    type=click.IntRange(1, 60_000),
    default=BUDGET_MS,
    show_default=True,
    metavar="MS",
    help="Milliseconds after which it gives up.",
)
def command(context: Context, event: str, room: int, within: int) -> None:
    """What an agent calls when a session starts or ends; `install` sets it up.

    It reads the agent's JSON on standard input. At the start it prints the memory of the
    session's project in the form that the agent gives to its model; at the end it starts
    `threadbook run` in the background. Trouble is a line in `hooks.log` of the home, and never
    the session's: the exit code is always 0.
    """
    from ..actor import is_inside_a_run
    from ..deadline import Deadline
    from ..hook_log import GAVE_UP, note

    gc.disable()  # It ends before there is anything worth collecting.
    if is_inside_a_run():
        return  # A model's command may be an agent that has our hooks.
    home: Path | None = None
    with suppress(Exception):  # A home that cannot be named has no log to say so in.
        home = where(context)

    def trouble(what: str) -> None:
        if home is not None:
            note(home, event, what)

    deadline = Deadline(
        within / 1000, passed=lambda: trouble(f"it took longer than {within} ms {GAVE_UP}")
    )
    try:
        with deadline.watched():
            said = heard()
            if event == "session-start":
                answer = session_start(context, said, room=room)
                with deadline.speaking():
                    spoken(answer)
            else:
                session_end(context, said)
    except (Exception, KeyboardInterrupt) as error:
        trouble(worded(error))


class NotUnderstood(Exception):
    """What the agent said is not what a hook is told."""


def where(context: Context) -> Path:
    """The home that is meant. `Memory`, which knows it too, would load the whole store."""
    from ..settings import default_home, expanded

    return default_home() if context.home is None else expanded(context.home)


def heard() -> dict[str, Any]:
    """What the agent says on standard input. A person's terminal says nothing."""
    if sys.stdin is None:
        raise NotUnderstood("there is no standard input")
    descriptor = sys.stdin.fileno()
    if os.isatty(descriptor):
        return {}
    content = b""
    until = time.monotonic() + INPUT_S
    while len(content) <= INPUT_MAX:
        left = until - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            break
        chunk = os.read(descriptor, 1 << 16)
        if not chunk:
            break
        content += chunk
        # An agent may leave its end open; what is whole is taken as all.
        if chunk.rstrip().endswith(b"}") and (found := understood(content)) is not None:
            return found
    if (found := understood(content)) is None:
        raise NotUnderstood(f"standard input is no JSON object ({len(content)} bytes)")
    return found


def understood(content: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def text_of(said: dict[str, Any], key: str) -> str | None:
    value = said.get(key)
    return value if isinstance(value, str) and value and "\x00" not in value else None


def session_start(context: Context, said: dict[str, Any], *, room: int) -> str:
    """The memory of the session's project, for the model: one form serves both agents."""
    from ..hook_log import lately
    from ..settings import load

    if not load(context.config).use_memories:
        return ""
    home = where(context)
    cwd = text_of(said, "cwd") or os.getcwd()
    with context.open() as memory:
        text = memory.context(cwd, text_of(said, "session_id"), room=room).text
    answer: dict[str, Any] = {}
    if text:
        given = {"hookEventName": "SessionStart", "additionalContext": text}
        answer["hookSpecificOutput"] = given
    if (count := lately(home)) >= TROUBLE_MIN:
        answer["systemMessage"] = (  # Both agents show it to the person.
            f"Threadbook could not do its work {count} times in the last day:"
            f" {home / 'hooks.log'} says why, `threadbook doctor` what to do."
        )
    return json.dumps(answer, ensure_ascii=False) if answer else ""


def spoken(answer: str) -> None:
    content = answer.encode("utf-8", "replace")
    while content:
        content = content[os.write(sys.stdout.fileno(), content) :]


def session_end(context: Context, said: dict[str, Any]) -> None:
    """Start a run in the background, for a session that a person had and that left a file."""
    from ..settings import load

    if not load(context.config).generate_memories or not is_a_persons(said):
        return
    home = where(context).absolute()
    if runs_at(home):
        return
    with suppress(FileExistsError):
        home.mkdir(mode=0o700, parents=True)
    lock = os.open(home / "hooks.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with closing(os.fdopen(lock)):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # The run that another session's end started has it until it ends.
        start_run(context, home, lock)


def is_a_persons(said: dict[str, Any]) -> bool:
    """Whether this is the end of a root session that a person led. An ephemeral one has no file;
    a sub-agent's, a program's or the consolidator's own says so in its first records."""
    from ..rollouts import RolloutError, head

    if text_of(said, "agent_id") is not None or (path := text_of(said, "transcript_path")) is None:
        return False
    try:
        found = head(Path(path).expanduser())
    except RolloutError:
        return False
    return found is not None and found.kind == "interactive"


def runs_at(home: Path) -> bool:
    """Whether a run of this machine is at work, as its lock file says."""
    from ..workers import Workers

    try:
        names = os.listdir(home / "workers")
        machine_id = (home / "machine").read_text(encoding="ascii").strip() if names else ""
    except FileNotFoundError:
        return False
    workers = Workers(home, machine_id)
    own = f"{machine_id[:8]}-"
    return any(name.startswith(own) and workers.is_alive(name) for name in names)


def start_run(context: Context, home: Path, lock: int) -> None:
    """In a session of its own, which outlives the agent, and holds the lock as long as it runs."""
    import subprocess

    from ..actor import INSIDE_A_RUN
    from ..hook_log import opened
    from .install import carried, program

    words = [*program(), *carried(context)]
    if "--home" not in words:
        words += ["--home", str(home)]
    if context.now is not None:
        words += ["--now", datetime.fromtimestamp(context.now, UTC).isoformat()]
    log = opened(home)
    try:
        subprocess.Popen(
            [*words, "run"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd="/",
            env=os.environ | {INSIDE_A_RUN: "1"},
            start_new_session=True,
            pass_fds=(lock,),
        )
    finally:
        os.close(log)


def worded(error: BaseException) -> str:
    """What went wrong, for the log: our own words, and of anything else only its name, because a
    foreign message may quote what was read."""
    from ...application.ports import Failure
    from ...domain.refusals import Refused
    from ..settings import SettingsError

    if isinstance(error, Refused | Failure | SettingsError | NotUnderstood):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'the system'}: {error.strerror}"
    return type(error).__name__
