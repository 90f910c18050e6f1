"""The hooks' log: one line for each hook that could not do its work, and no memory text.

A hook says nothing to the session that it could not serve, so this is where its trouble can be
read. The file is its owner's alone and stays small: a full one becomes `hooks.log.1`, once. Where
it cannot be written, nothing is: a hook has nobody to tell.
"""

import os
import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

NAME = "hooks.log"
SIZE_MAX = 64 * 1024
LINE_MAX = 400
_NO_PLAIN_TEXT = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def note(home: Path, event: str, what: str) -> None:
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    line = f"{stamp} {event}: {_NO_PLAIN_TEXT.sub(' ', what)}"[:LINE_MAX]
    with suppress(OSError):
        descriptor = opened(home)
        try:
            os.write(descriptor, f"{line}\n".encode("utf-8", "replace"))
        finally:
            os.close(descriptor)


def opened(home: Path) -> int:
    """The log, to append to. Raises OSError, also where there is no home."""
    path = home / NAME
    with suppress(FileNotFoundError):
        if path.stat().st_size > SIZE_MAX:
            os.replace(path, path.with_name(f"{NAME}.1"))
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, 0o600)
