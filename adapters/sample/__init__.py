"""The sample: eight invented sessions of two projects, for a person who has none yet.

`write_sample` lays them out as Codex and Claude Code would on a real machine, moved in time as a
whole so that the newest one ended twelve hours ago: idle long enough to be read, young enough to
be kept. The same `now` gives the same bytes.

The ids of Codex threads carry their time, so they move too, and a sample written on another day
has other ids. It is therefore written once: a folder that holds a sample is used as it is,
whatever the clock says. A second run meets the same ids and doubles nothing, and a session that
a person deleted stays deleted.
"""

import math
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path

import msgspec

from ...domain.refusals import Refused

ENDED_BEFORE_NOW_MS = 12 * 3_600_000

# Put together here, so that no scanner of this repository or of a wheel takes it for a real one.
MADE_UP_PASSWORD = "-".join(("Plum", "Kettle", "42"))
PASSWORD_MARK = "@made-up-password@"

STAMP = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
DAY = re.compile(r"(?<=<current_date>)\d{4}-\d\d-\d\d(?=</current_date>)")
UNIX = re.compile(r'"(started|completed)_at(_ms)?":(\d+)')
# Version 7 only: a Claude Code session has a version 4 id, which knows no time and stays.
TIMED_ID = re.compile(
    r"(?<![0-9a-f])([0-9a-f]{8})-([0-9a-f]{4})(-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})\b"
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class NotASampleFolder(Refused):
    code = "not_a_sample_folder"

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder} holds something that is not the sample; name a folder that is empty or new"
        )


class _CodexMeta(msgspec.Struct):
    id: str
    timestamp: str


class _First(msgspec.Struct, rename="camel"):
    """What the first line says of the file's place: Codex has a payload, Claude Code a cwd."""

    payload: _CodexMeta | None = None
    session_id: str | None = None
    cwd: str | None = None


def write_sample(folder: Path, *, now: float) -> list[Path]:
    """The paths of the sample's sessions in `folder`, written there unless they are already.

    `now` is in Unix seconds. `NotASampleFolder` where the folder holds other things.
    """
    if _is_filled(folder):
        return _present(folder)

    texts = _texts()
    newest_ms = max(_ended_ms(text) for text in texts.values())
    shift_ms = math.floor(now * 1000) - ENDED_BEFORE_NOW_MS - newest_ms

    folder.parent.mkdir(parents=True, exist_ok=True)
    # Written beside it and renamed: two runs at once, or one that is killed, must not leave a
    # folder that is half of one day and half of another.
    staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for text in texts.values():
            _write(staging, _shifted(text, shift_ms))
        try:
            staging.rename(folder)
        except OSError:
            if not _is_filled(folder):
                raise  # the disk's own reason, not another run that was first
    finally:
        shutil.rmtree(staging, ignore_errors=True)  # nothing is left of it after the rename
    return _present(folder)


def _is_filled(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _texts() -> dict[str, str]:
    """The sessions as they are shipped: name of the file -> its text."""
    shipped = sorted(files(__package__).iterdir(), key=lambda entry: entry.name)
    return {
        entry.name: entry.read_text(encoding="utf-8").replace(PASSWORD_MARK, MADE_UP_PASSWORD)
        for entry in shipped
        if entry.name.endswith(".jsonl")
    }


def _write(folder: Path, text: str) -> None:
    path = folder / _place(text)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    path.chmod(0o600)
    ended_ns = _ended_ms(text) * 1_000_000
    os.utime(path, ns=(ended_ns, ended_ns))


def _present(folder: Path) -> list[Path]:
    """The sample's sessions that are in the folder, recognised by what no shift changes."""
    marks = {_unshifted(_place(text)) for text in _texts().values()}
    found = sorted(
        path
        for path in folder.rglob("*.jsonl")
        if _unshifted(path.relative_to(folder)) in marks and path.is_file()
    )
    if not found:
        raise NotASampleFolder(folder)
    return found


def _place(text: str) -> Path:
    """Where the session lies on a real machine. Codex names files by local time; ours is UTC."""
    first = msgspec.json.decode(text.partition("\n")[0], type=_First)
    if first.payload is not None:
        start = first.payload.timestamp[:19]
        name = f"rollout-{start.replace(':', '-')}-{first.payload.id}.jsonl"
        return Path("codex", "sessions", *start[:10].split("-"), name)
    assert first.cwd is not None
    assert first.session_id is not None
    project = re.sub(r"[^A-Za-z0-9]", "-", first.cwd)
    return Path("claude", "projects", project, f"{first.session_id}.jsonl")


def _unshifted(place: Path) -> str:
    """The part of a place that is the same on every day: the random end of a timed id, or all."""
    timed = TIMED_ID.search(place.name)
    return timed[3] if timed else place.as_posix()


def _ended_ms(text: str) -> int:
    return max(_ms(stamp) for stamp in _stamps(text))


def _stamps(text: str) -> Iterator[str]:
    return (found[0] for found in STAMP.finditer(text))


def _shifted(text: str, shift_ms: int) -> str:
    """Every time and every timed id moved by the same amount.

    All of it keeps its length and references keep agreeing, so a fork's byte offset into its
    parent stays true.
    """
    started_ms = _ms(next(_stamps(text))) + shift_ms
    moves: list[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]] = [
        (STAMP, lambda m: _stamp(_ms(m[0]) + shift_ms)),
        (DAY, lambda _: _stamp(started_ms)[:10]),
        (UNIX, lambda m: _unix(m, shift_ms)),
        (TIMED_ID, lambda m: _timed_id(m, shift_ms)),
    ]
    for pattern, moved in moves:
        text = pattern.sub(moved, text)
    return text


def _unix(found: re.Match[str], shift_ms: int) -> str:
    what, unit, number = found[1], found[2] or "", int(found[3])
    moved = number + shift_ms if unit else (number * 1000 + shift_ms) // 1000
    return f'"{what}_at{unit}":{moved}'


def _timed_id(found: re.Match[str], shift_ms: int) -> str:
    moved = f"{int(found[1] + found[2], 16) + shift_ms:012x}"
    return f"{moved[:8]}-{moved[8:]}{found[3]}"


def _ms(stamp: str) -> int:
    return (datetime.fromisoformat(stamp) - EPOCH) // timedelta(milliseconds=1)


def _stamp(ms: int) -> str:
    return f"{EPOCH + timedelta(milliseconds=ms):%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"
