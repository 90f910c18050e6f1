"""Doctor: what keeps memory from being right or up to date, each with its age and what to do.

Nothing is changed. A finding is an `error` where something does not work, or words are where they
must not be; a `warning` where a person would want to know; `fine` says what was looked at, so that
silence never stands for health.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Literal

from msgspec import Struct

from ..domain import eligibility
from ..domain.redaction import redact
from ..domain.remote import normalised, public_url
from ..projections import artifacts, notes, places, stage1_outputs, threads
from . import state
from .claims import is_read
from .consent import needed
from .ports import Failure, View
from .retention import refs_of
from .roots import all_roots, chosen, chosen_inputs, is_unchanged, published, snapshot
from .status import stuck
from .surroundings import Surroundings

Level = Literal["fine", "warning", "error"]
LATE_S = 24 * 3600  # A run a day is what a timer or a hook would do.


class Finding(Struct, frozen=True, kw_only=True):
    """`what` is one word for programs; `told` is for people, and says what to do."""

    level: Level
    what: str
    told: str


def findings(around: Surroundings, view: View) -> Iterator[Finding]:
    """What the log says of itself."""
    yield from stuck_jobs(view, now=around.now())
    yield from lag(around, view)
    yield from unread(around, view)
    yield from second_remotes(around, view)
    yield from project_files(around, view)
    yield from consent(around, view)
    yield from secrets(view)


def stuck_jobs(view: View, *, now: int) -> Iterator[Finding]:
    found = stuck(view, now=now)
    for told in found:
        yield Finding(level="warning", what="stuck", told=told)
    if not found:
        yield Finding(level="fine", what="stuck", told="no job is stuck")


def lag(around: Surroundings, view: View) -> Iterator[Finding]:
    """Roots whose folder is not what it would be made from today, and since when."""
    now, late = around.now(), 0
    for root in all_roots(view, around.policy):
        rows = chosen(view, root, around.policy, now=now)
        if is_unchanged(chosen_inputs(rows), snapshot(view, root)) and published(view, root):
            continue
        job = state.consolidation(view, root.memory_version, root.scope)
        newest = max((row.since for row in rows), default=None)
        if not rows and not published(view, root):
            continue
        late += 1
        since = "" if newest is None else f", of words that are {age(now - newest)} old"
        level: Level = "warning" if newest is None or now - newest > LATE_S else "fine"
        failed = f"; it failed last with {job.last_error}" if job.last_error else ""
        yield Finding(
            level=level,
            what="lag",
            told=f"the folder of {root.scope} is behind{since}{failed}; `threadbook run` writes it",
        )
    if not late:
        yield Finding(level="fine", what="lag", told="every folder is what its sessions make it")


def unread(around: Surroundings, view: View) -> Iterator[Finding]:
    """Sessions that a run would read now, and the last run that there was."""
    now, waiting, oldest = around.now(), 0, around.now() * 1000
    for row in view.find(threads, threads.NEWEST_FIRST):
        thread = state.thread_of(row)
        if is_read(around, view, row):
            continue
        answers = eligibility.gates(thread, None, now=now, limits=around.policy.limits)
        if eligibility.failed(answers) is None:
            waiting += 1
            oldest = min(oldest, row.updated_at_ms)
    if not waiting:
        yield Finding(level="fine", what="unread", told="no known session waits to be read")
        return
    late = now - oldest // 1000
    idle = around.policy.limits.min_rollout_idle_hours * 3600
    level: Level = "warning" if late - idle > LATE_S else "fine"
    yield Finding(
        level=level,
        what="unread",
        told=f"{waiting} known sessions wait to be read, the oldest for {age(max(late - idle, 0))};"
        " `threadbook run` reads them: let a timer or the agent's hooks run it",
    )


def second_remotes(around: Surroundings, view: View) -> Iterator[Finding]:
    """A folder whose remote is another than its first: that joins nothing, and should be known."""
    for row in view.rows(places, ()):
        seen = around.look(row.root)
        if seen.root != row.root or not seen.remote:
            continue
        if normalised(seen.remote) != normalised(row.remote):
            yield Finding(
                level="warning",
                what="remotes",
                told=f"{row.root} was {row.remote} first and is {public_url(seen.remote)} now;"
                " their memories stay apart: `threadbook scope THREAD project:…` moves sessions",
            )


def project_files(around: Surroundings, view: View) -> Iterator[Finding]:
    """A project's own file that cannot be understood: its sessions wait, and are given nothing."""
    told: dict[str, None] = {}
    for cwd in dict.fromkeys(row.cwd for row in view.find(threads, threads.NEWEST_FIRST)):
        try:
            around.restriction(around.look(cwd))
        except Failure as error:
            told[str(error)] = None
    for each in told:
        yield Finding(
            level="warning",
            what="project",
            told=f"{each}; until then the sessions of that project are not read",
        )


def consent(around: Surroundings, view: View) -> Iterator[Finding]:
    """Runs that hooks and timers start ask nobody, and are refused without a word that is seen."""
    if (asked := needed(around, view)) is not None:
        yield Finding(
            level="warning",
            what="consent",
            told=f"nobody has agreed yet that sessions are sent to {asked.base_url}"
            f" ({', '.join(asked.models)}), and until then no run reads or writes anything;"
            " `threadbook run` asks at a terminal",
        )


def secrets(view: View) -> Iterator[Finding]:
    """Stored words that today's rules would take out: an older version's, or a person's edit."""
    found = 0
    for where, ref in stored_texts(view):
        text = view.body(ref)
        if text is not None and redact(text) != text:
            found += 1
            yield Finding(
                level="error",
                what="secrets",
                told=f"{where} holds what looks like a secret; forget that session, or change the"
                " line in its file and revoke the secret",
            )
    if not found:
        yield Finding(level="fine", what="secrets", told="no stored text looks like a secret")


def stored_texts(view: View) -> Iterator[tuple[str, str]]:
    """Everything that is read today, as words for a person and a ref."""
    for output in view.rows(stage1_outputs, ()):
        for ref in sorted(refs_of(output)):
            yield f"the memory of thread {output.thread_id}", ref
    for artifact in view.rows(artifacts, ()):
        if artifact.kind != "manifest":
            yield f"an artifact of {artifact.scope}", artifact.body_ref
    for note in view.rows(notes, ()):
        yield f"a note of {note.scope}", note.body_ref


def age(seconds: float) -> str:
    """
    >>> age(59), age(7260), age(200_000)
    ('0 min', '2 h', '2 days')
    """
    whole = timedelta(seconds=int(seconds))
    if whole.days:
        return f"{whole.days} days"
    hours, rest = divmod(whole.seconds, 3600)
    return f"{hours} h" if hours else f"{rest // 60} min"
