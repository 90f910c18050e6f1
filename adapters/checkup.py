"""Checkup: what the disk says of a home: who may read it, how much room is left, what lies in it.

It looks and changes nothing, so that it can be asked of a home whose database cannot be opened.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..application.doctor import Finding
from ..domain.redaction import redact
from . import hook_log

ROOM_BYTES_MIN = 100 * 1024 * 1024
SHOWN_MAX = 5  # Of findings of one kind: the rest is a number.
TEXT_BYTES_MAX = 1024 * 1024
LOGS = ("hooks.log", "shown.jsonl")


def home_findings(home: Path) -> Iterator[Finding]:
    if not home.is_dir():
        told = f"{home} is not there; `threadbook run` makes it"
        if os.path.lexists(home):
            told = f"{home} is no folder; move it away, or choose another --home"
        yield Finding(level="error", what="home", told=told)
        return
    yield from permissions(home)
    yield from room(home)
    yield from hooks(home)
    yield from secrets_in_files(home)


def permissions(home: Path) -> Iterator[Finding]:
    """Whatever somebody else on this machine could reach and read, or owns.

    What lies in a folder that lets nobody in is out of reach, whatever its own mode."""
    found: list[Path] = []
    closed: list[Path] = [] if lets_others_in(home.lstat()) else [home]
    for path, seen in walked(home):
        reached = path == home or not any(path.is_relative_to(each) for each in closed)
        if seen.st_uid != os.geteuid() or (reached and is_open(seen)):
            found.append(path)
        if stat.S_ISDIR(seen.st_mode) and reached and not lets_others_in(seen):
            closed.append(path)
    for path in found[:SHOWN_MAX]:
        yield Finding(
            level="error",
            what="permissions",
            told=f"{path} may be used by others on this machine, or is not yours; make it your own"
            " (chown, chmod go-rwx)",
        )
    if len(found) > SHOWN_MAX:
        yield Finding(
            level="error", what="permissions", told=f"and {len(found) - SHOWN_MAX} more like it"
        )
    if not found:
        yield Finding(level="fine", what="permissions", told="only you may read the home")


def is_open(seen: os.stat_result) -> bool:
    return not stat.S_ISLNK(seen.st_mode) and bool(seen.st_mode & 0o077)


def lets_others_in(seen: os.stat_result) -> bool:
    return bool(seen.st_mode & 0o011)


def walked(home: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The home and everything in it, a folder before what is in it, no link followed."""
    waiting = [home]  # And not `os.walk`, which a folder that is deep enough brings down.
    while waiting:
        path = waiting.pop()
        try:
            seen = path.lstat()
        except OSError:  # A temporary file of somebody at work, or a path that is too long.
            continue
        yield path, seen
        if stat.S_ISDIR(seen.st_mode):
            with suppress(OSError):  # Closed to us, or gone.
                waiting += sorted(path.iterdir(), reverse=True)


def hooks(home: Path) -> Iterator[Finding]:
    """What the hooks could not do lately. Nothing where they never had trouble."""
    if not (count := hook_log.lately(home)):
        return
    last = hook_log.last(home)
    advice = "mend what it says"
    if hook_log.GAVE_UP in last:
        advice = (
            "write `--within 500` or more behind the hook's command, which `install` leaves there"
        )
    lines = "a line" if count == 1 else f"{count} lines"
    yield Finding(
        level="warning",
        what="hooks",
        told=f"{lines} of the last day in {home / hook_log.NAME}, the last: {last}; {advice}",
    )


def room(home: Path) -> Iterator[Finding]:
    """Rebuilding and erasing write as much as the database holds."""
    database = home / "threadbook.sqlite"
    needed = max(ROOM_BYTES_MIN, 2 * database.stat().st_size if database.exists() else 0)
    free = shutil.disk_usage(home).free
    told = f"{free // 2**20} MiB are free where the home is"
    if free < needed:
        yield Finding(
            level="warning", what="disk", told=f"{told}; make room for at least {needed // 2**20}"
        )
    else:
        yield Finding(level="fine", what="disk", told=told)


def secrets_in_files(home: Path) -> Iterator[Finding]:
    """The texts that agents read, each up to a MiB, and our own small logs; the database is asked
    in its own way."""
    found = 0
    for path, seen in walked(home):
        if ".git" in path.parts or not stat.S_ISREG(seen.st_mode):
            continue
        inside = path.relative_to(home).parts
        if inside[0] != "memories" and path.name not in LOGS:
            continue
        try:
            with path.open("rb") as file:
                text = file.read(TEXT_BYTES_MAX).decode("utf-8", "replace")
        except OSError as error:
            yield Finding(
                level="error", what="files", told=f"{path} cannot be read ({error.strerror})"
            )
            continue
        for number in lines_with_secrets(text):
            found += 1
            if found <= SHOWN_MAX:
                yield Finding(
                    level="error",
                    what="secrets",
                    told=f"{path}:{number} holds what looks like a secret; take it out there, and"
                    " revoke it",
                )
    if found > SHOWN_MAX:
        yield Finding(
            level="error", what="secrets", told=f"and {found - SHOWN_MAX} more lines like it"
        )
    if not found:
        yield Finding(level="fine", what="secrets", told="no file looks like it held a secret")


def lines_with_secrets(text: str) -> list[int]:
    """The lines, counted from 1, that differ once the secrets are out; the first one where the
    rules take several lines as one."""
    clean = redact(text)
    if clean == text:
        return []
    before, after = text.split("\n"), clean.split("\n")
    if len(before) != len(after):
        return [next(n for n, (a, b) in enumerate(zip(before, after, strict=False), 1) if a != b)]
    return [n for n, (a, b) in enumerate(zip(before, after, strict=True), 1) if a != b]
