"""The hooks' log: one line for each hook that could not do its work, and no memory text.

A hook says nothing to the session that it could not serve, so this is where its trouble can be
read. The file is its owner's alone and stays small: a full one becomes `hooks.log.1`, once. Where
it cannot be written, nothing is: a hook has nobody to tell.
"""

import os
import re
import stat
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

NAME = "hooks.log"
STAMP = "%Y-%m-%dT%H:%M:%SZ"
LATELY = timedelta(days=1)
SIZE_MAX = 64 * 1024
LINE_MAX = 400
GAVE_UP = "and gave up"
_NO_PLAIN_TEXT = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def note(home: Path, event: str, what: str) -> None:
    stamp = datetime.now(UTC).strftime(STAMP)
    line = f"{stamp} {event}: {_NO_PLAIN_TEXT.sub(' ', what)}"[:LINE_MAX]
    with suppress(OSError):
        descriptor = opened(home)
        try:
            os.write(descriptor, f"{line}\n".encode("utf-8", "replace"))
        finally:
            os.close(descriptor)


def lately(home: Path) -> int:
    """How often there was trouble in the last day. A run writes its lines without a time: they
    count with the hook before them, which started it or came after it."""
    since = (datetime.now(UTC) - LATELY).strftime(STAMP)
    try:
        path = home / NAME
        if datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime(STAMP) < since:
            return 0
        lines = lines_of(path)
    except OSError:
        return 0
    count = 0
    for line in reversed(lines):
        if line[:1].isdigit() and line[: len(since)] < since:
            break
        count += 1
    return count


def last(home: Path) -> str:
    """The last line, for a person."""
    with suppress(OSError):
        lines = lines_of(home / NAME)
        return next((line for line in reversed(lines) if line.strip()), "")[:LINE_MAX]
    return ""


def lines_of(path: Path) -> list[str]:
    """None of what is no regular file: a pipe in its place would be waited for without end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, encoding="utf-8", errors="replace") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return []
        return file.read().splitlines()


def opened(home: Path) -> int:
    """The log, to append to. Raises OSError, also where there is no home."""
    path = home / NAME
    with suppress(FileNotFoundError):
        if path.stat().st_size > SIZE_MAX:
            os.replace(path, path.with_name(f"{NAME}.1"))
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return os.open(path, flags, 0o600)
