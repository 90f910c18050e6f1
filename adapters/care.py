"""Care: what is done about a home from outside: look for what is wrong, take a backup for the true
log. Neither needs a memory that opens."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from ..application import forget, reset
from ..application.doctor import Finding, findings
from ..application.ports import Failure
from . import canary
from .checkup import home_findings
from .memory import Memory, home_of
from .settings import Settings


def doctor(
    home: Path | str | None = None,
    *,
    clock: Callable[[], float] | None = None,
    config: Path | None = None,
) -> list[Finding]:
    """What is wrong with a memory, also one that cannot be opened; nothing in it is changed."""
    folder = home_of(home)
    found: list[Finding] = list(home_findings(folder))
    try:
        with Memory.open(folder, clock=clock, config=config, create=False) as memory:
            with memory.store.reading() as view:
                found += findings(memory._around, view)
            for pending in memory.store.pending_erasures():
                found.append(Finding(level="warning", what="erasure", told=f"pending: {pending}"))
            if why := memory.store.sealed():
                found.append(Finding(level="error", what="sealed", told=why))
            with memory.store.writing(actor="application"):
                pass  # Nothing is recorded: whether anything could be.
    except Failure as error:
        found.append(Finding(level="error", what="store", told=str(error)))
    else:
        found.append(Finding(level="fine", what="store", told="the store opens, as its head says"))
    with TemporaryDirectory(prefix="threadbook-doctor-") as place:
        usual = {key: getattr(Settings(), key) for key in canary.MEASURES}
        # Offline: to look for what is wrong asks no provider and starts no command of a person's.
        nobody = {"model": "offline", "consolidator": []}
        for_it = {"database": "", "scope": "project", **usual, **nobody}
        opened = partial(Memory.open, config=config, settings=for_it)
        found += canary.round_trip(Path(place), opened, now=time.time())
    return found


def accept_restore(
    home: Path | str | None = None,
    *,
    clock: Callable[[], float] | None = None,
    config: Path | None = None,
    settings: Mapping[str, Any] | None = None,
    confirmed: bool = False,
    from_cli: bool = False,
) -> "Restored":
    """Go on with a log that is older than its head knows, because a backup was put back.

    Nothing that the log once had after it comes back; what was forgotten since is forgotten again.
    Raises `Failure` for a log that was changed and not only restored.
    """
    opened = partial(
        Memory.open,
        home,
        clock=clock,
        config=config,
        settings=settings,
        create=False,
        from_cli=from_cli,
    )
    with opened(check=False) as memory:
        # A folder that was written from what is lost is no rendering of this log.
        disown = partial(reset.disown, memory._around)
        actor = memory._actor(confirmed=confirmed)
        with memory.store.restored(actor=actor, before=disown) as (came_to, position):
            again = forget.again(memory._around)
        forget.finish(memory._around, actor=actor)
    return Restored(came_to=came_to, position=position, forgotten_again=again)


class Restored(Struct, frozen=True, kw_only=True):
    """How far the log had come, where the one that was put back ends, and what had to be forgotten
    once more."""

    came_to: int
    position: int
    forgotten_again: list[str]
