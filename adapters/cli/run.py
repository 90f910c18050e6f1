"""`threadbook run`: sessions in, memory folders out."""

import shlex
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ..actor import inside_a_run
from . import folder_failed, reasons
from .common import Context, options, say

if TYPE_CHECKING:
    from ...application.ports import Progress
    from ...application.reports import RootReport, RunReport
    from ..memory import Memory

ALL_OLDER = -1
STOPPING_S = 10.0  # To hang up takes five at most.
SAMPLE_FOLDER = "/home/sam/gallery"
# By the gate that shuts them out for as long as they are what they are.
LEFT_OUT = {
    "not_forgotten": "forgotten",
    "memory_mode": "disabled or polluted",
    "source_kind": "not led by a person",
    "human_message": "nothing typed in them",
    "archived": "archived",
}
# What keeps a folder back, so that it is not up to date.
FOLDERS_WAIT = {
    "budget",
    "phase1_running",
    "cooldown",
    "inputs_changed",
    "lease_lost",
    "folder_edited",
    "max_roots_per_run",
    "backoff",
}


class HowMany(click.ParamType[int]):
    name = "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if value == "all":
            return ALL_OLDER
        if not str(value).isdecimal() or int(value) < 1:
            self.fail(f"{value!r} is no number of sessions; leave it out for all", param, ctx)
        return int(value)


@click.command(name="run")
@options
@click.option(
    "--sessions",
    type=click.Path(path_type=Path),
    multiple=True,
    help="A session file or a folder of them; may be repeated.  [default: ~/.codex, ~/.claude]",
)
@click.option("--sample", is_flag=True, help="Use the sessions that come with Threadbook.")
@click.option(
    "--backfill",
    type=HowMany(),
    is_flag=False,
    flag_value="all",
    metavar="[N]",
    help="Read sessions older than the age limit too, the newest N of them or all.",
)
@click.option(
    "--model", type=click.Choice(["offline", "openai"]), help="Who reads, instead of the setting."
)
@click.option(
    "--again",
    is_flag=True,
    help="Read once more what another model or prompt has read (offline: all), and retry failures.",
)
@click.option("--consolidate", is_flag=True, help="Let no folder rest after its last change.")
@click.option("--yes", is_flag=True, help="Agree that sessions are sent to the provider.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
def command(
    context: Context,
    sessions: tuple[Path, ...],
    sample: bool,
    backfill: int | None,
    model: str | None,
    again: bool,
    consolidate: bool,
    yes: bool,
    dry_run: bool,
) -> None:
    """Read new sessions and bring the memory folders up to date.

    Sessions are only ever read. Those that ended at least 6 hours and at most 10 days ago (both
    can be set) are extracted; `--backfill` lifts the second limit.
    """
    if sample and sessions:
        raise click.UsageError("--sample brings its own sessions; drop --sessions")
    with (
        stoppable(),
        inside_a_run(),
        no_home_made(context, sample=sample) if dry_run else nullcontext(),
        context.open(create=True, sample=sample) as memory,
    ):
        confirmed = not dry_run and has_agreed(memory, model=model, yes=yes)
        with progress(context) as told:
            report = memory.run(
                sessions=sessions or None,
                cwd=working_folder(),
                model=model,
                backfill=backfill,
                again=again,
                consolidate=consolidate,
                consented=yes or confirmed,
                confirmed=confirmed,
                dry_run=dry_run,
                progress=told,
            )
        context.show(
            msgspec.to_builtins(report),
            lambda: print_report(report, memory.home, sample=sample, model=model),
        )
    if report.all_failed:
        raise SystemExit(3)


def has_agreed(memory: "Memory", *, model: str | None, yes: bool) -> bool:
    """Whether a person agrees here and now. Nobody is asked twice for one server and model."""
    needed = memory.consent_needed(model=model)
    if needed is None:
        return False
    from .confirm import agreed

    question = (
        f"What sessions say is sent to {needed.base_url} ({', '.join(needed.models)}), without the"
        " secrets that are recognised in it. Send it, now and in later runs?"
    )
    return agreed(question, yes=yes)


def working_folder() -> Path | None:
    """None: it was removed while we stood in it, and then no project's file is there to ask."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


@contextmanager
def no_home_made(context: Context, *, sample: bool) -> Iterator[None]:
    """A rehearsal before the first run has a home of its own, which is gone when it ends."""
    from ..memory import home_of
    from ..settings import load

    # A memory that is shared keeps its keys in the home: none is made there to be thrown away.
    is_shared = not sample and load(context.config).database
    if is_shared or not is_new(home_of(context.home, sample=sample)):
        yield
        return
    with TemporaryDirectory(prefix="threadbook-") as nowhere:
        context.home = Path(nowhere) / "home"
        yield


def is_new(home: Path) -> bool:
    """Whether a run would begin a memory there. A head without its log is one that was lost, and
    keys are those of a memory that is elsewhere."""
    from ..store.head import NAME as HEAD
    from ..store.sqlite import FILE, KEY_FILE

    if home.exists() and not home.is_dir():
        return False  # For the run to refuse.
    return not any((home / name).exists() for name in (FILE, KEY_FILE, HEAD))


@contextmanager
def stoppable() -> Iterator[None]:
    """SIGTERM stops as Ctrl-C does, so that leases are given back. Who presses it twice stops
    nothing of that: it takes seconds, and what calls have cost would go uncounted."""
    ends_at: float | None = None

    def stop(_signal: int, _frame: FrameType | None) -> None:
        nonlocal ends_at
        now = monotonic()
        if ends_at is None or now > ends_at:
            ends_at = now + STOPPING_S
            raise KeyboardInterrupt

    # Whoever starts us with Ctrl-C turned off, as `nohup` and `&` do, has a reason.
    numbers = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        numbers.append(signal.SIGINT)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def progress(context: Context) -> "Iterator[Progress | None]":
    """A bar on a terminal, nothing elsewhere."""
    if context.json or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    with Bars(console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def told(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=of)
            bars.update(tasks[what], completed=done, total=of)

        yield told


def print_report(
    report: "RunReport", home: Path, *, sample: bool, model: str | None = None
) -> None:
    print_sessions(report)
    for root in report.phase2:
        print_folder(root)
    print_waiting(report, model=model)
    if not report.sessions:
        say("no sessions here; `threadbook run --sample` shows what it does with some")
    elif is_all_written(report):
        say("every memory folder is up to date")
    if sample:
        for root in report.phase2:
            print_first_lines(Path(root.path))
        program = f"{shlex.quote(sys.argv[0])} --home {shlex.quote(str(home))}"
        say(f"\nlook around: {program} threads")
        say(f"what a session is given: {program} context --cwd {SAMPLE_FOLDER}")


def is_all_written(report: "RunReport") -> bool:
    """Nothing was to do for any folder, and nothing that was to come into one has failed."""
    did = report.phase2 or report.dry_run or report.stage1.failed
    return not did and not report.waiting.keys() & FOLDERS_WAIT


def print_sessions(report: "RunReport") -> None:
    stage1 = report.stage1
    would = "would be " if report.dry_run else ""
    say(f"{report.sessions} sessions found, {report.ingested} {would}new or changed")
    if report.dry_run:
        say(f"{stage1.claimed} would be read")
    elif stage1.claimed:
        say(
            f"{stage1.claimed} read: {stage1.succeeded} taught something, "
            f"{stage1.no_output} nothing, {stage1.failed} failed"
        )
    for why, count in most_first(stage1.failures):
        say(f"{count} failed: {reasons.failed(why)}")
    for why in report.unreadable:
        say(f"not read: {why}")
    if report.skipped_lines:
        kinds = ", ".join(
            f"{count} x {kind}" for kind, count in sorted(report.skipped_lines.items())
        )
        say(f"lines passed over: {kinds} (`threadbook inspect rollout FILE` shows where)")
    if report.pruned:
        aged = "would age" if report.dry_run else "aged"
        say(f"{report.pruned} outputs {aged} out: nothing has used them for `max_unused_days`")


def print_folder(root: "RootReport") -> None:
    if root.status == "succeeded_no_workspace_changes":
        say(f"{root.scope}: looked through, no file has changed")
    else:
        say(
            f"{root.scope}: {root.status} (files: {len(root.added)} added,"
            f" {len(root.modified)} modified, {len(root.deleted)} deleted)"
        )
    if root.status == "failed" and root.reason:
        say(f"  {folder_failed.told(root.reason)}")
    elif root.reason:
        say(f"  {root.reason}")
    for line in (root.advice or "").splitlines():
        say(f"  {line}")
    for edit in root.edits:
        if Path(edit).is_absolute():  # Beside the folder.
            why = "a secret, not text, too large, or no memory"
            say(f"  your edit cannot go on as it is ({why}); it lies in {edit}")
        else:
            say(f"  your edit was kept: {edit}")
    say(f"  {root.path}")


def print_waiting(report: "RunReport", *, model: str | None) -> None:
    """What waits and what was spent, and what is left out for good. `model`: whom a person asked
    for in this run, and would have to ask for again."""
    for why, count in most_first(report.waiting):
        say(f"{count} waiting: {reasons.waiting(why)}")
    if report.waiting_tokens:
        say(
            f"to read what waits costs about {report.waiting_tokens:,} tokens; `threadbook run"
            f"{f' --model {model}' if model else ''} --backfill N` reads the newest N"
        )
    if report.tokens.calls:
        spent = report.tokens
        say(
            f"{spent.calls} call{'s' * (spent.calls != 1)} to the provider: {spent.input:,} tokens"
            f" in ({spent.cached:,} from its cache), {spent.output:,} out"
        )
    left_out = sum(report.left_out.values())
    if left_out:
        kinds = ", ".join(f"{n} {LEFT_OUT.get(why, why)}" for why, n in report.left_out.items())
        say(f"{left_out} left out for what they are: {kinds} (`threadbook explain ID` says more)")


def most_first(counted: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counted.items(), key=lambda each: -each[1])


def print_first_lines(root: Path) -> None:
    summary = root / "memory_summary.md"
    if summary.exists():
        say(f"\n{summary}")
        for line in summary.read_text(encoding="utf-8").splitlines()[:24]:
            say(f"  {line}")
