"""Other processes that check a part of the log each.

A helper is a new Python, not a fork: connections, locks and threads of the program around us stay
out of it, and its `__main__` is not run again. It opens the file for reading, says in one line what
it found, and ends. One that cannot start, is killed or says something else has found nothing.
"""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec

from . import readers, sound
from .codec import Codec
from .sound import Part, Sound

# No site packages are looked for: it is given our path, and begins in half of the time.
PROGRAM = (
    "import json, sys; sys.path[:], *given = json.loads(sys.argv[1]);"
    f" from {__name__} import answer; answer(*given)"
)


@contextmanager
def helping(path: Path, parts: Sequence[Part]) -> Iterator[list[Callable[[], Sound | None]]]:
    """Each gives its answer, when it is asked; none is left at the end of the block."""
    with ExitStack() as ended:
        helpers = [started(path.absolute(), part, ended) for part in parts]
        yield [partial(heard, helper) for helper in helpers]


def started(path: Path, part: Part, ended: ExitStack) -> "subprocess.Popen[bytes] | None":
    known = [each for each in sys.path if isinstance(each, str)]
    given = json.dumps([known, str(path), part.first, part.until])
    try:
        helper = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", PROGRAM, given],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None
    ended.enter_context(helper)
    ended.callback(helper.kill)
    return helper


def heard(helper: "subprocess.Popen[bytes] | None") -> Sound | None:
    if helper is None:
        return None
    told, _ = helper.communicate()
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(told, type=Sound | None)
    return None


def answer(file: str, first: int, until: int) -> None:
    """What a helper does."""
    path = Path(file)
    with (
        readers.registered(path.parent, "verify"),
        closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=10)) as db,
    ):
        found = sound.part(db, Part(first, until), Codec())
    sys.stdout.write(msgspec.json.encode(found).decode())
