"""Other processes that check a part of the log each.

A checker is a new Python, not a fork: connections, locks and threads of the program around us stay
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
def checking(path: Path, parts: Sequence[Part]) -> Iterator[list[Callable[[], Sound | None]]]:
    """Each gives its answer, when it is asked; none is left at the end of the block."""
    with ExitStack() as ended:
        checkers = [started(path.absolute(), part, ended) for part in parts]
        yield [partial(heard, checker) for checker in checkers]


def started(path: Path, part: Part, ended: ExitStack) -> "subprocess.Popen[bytes] | None":
    known = [each for each in sys.path if isinstance(each, str)]
    given = json.dumps([known, str(path), part.first, part.until])
    try:
        checker = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", PROGRAM, given],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None
    ended.enter_context(checker)
    ended.callback(checker.kill)
    return checker


def heard(checker: "subprocess.Popen[bytes] | None") -> Sound | None:
    if checker is None:
        return None
    told, _ = checker.communicate()
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(told, type=Sound | None)
    return None


def answer(file: str, first: int, until: int) -> None:
    """What a checker does."""
    path = Path(file)
    with (
        readers.registered(path.parent, "verify"),
        closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=10)) as db,
    ):
        found = sound.part(db, Part(first, until), Codec())
    sys.stdout.write(msgspec.json.encode(found).decode())
