"""Transfer: the whole log as JSON lines, out of a store and into an empty one.

The first line says what the file is; then comes every event as it was recorded, its payload byte
for byte, then every text that is not erased, and a last line by which a cut or changed file is
known. An import keeps positions, times, actors and versions, so it ends with the same chain, and
the tables folded from it are the same rows. What was forgotten stays forgotten: its events are
among the others, and its words are not.

A file is one moment of the log, and is there whole or not at all. It holds the words in the open:
keep it as you keep the home.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import IO, Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from ...application.ports import Conflict, Failure
from ...domain.events import ForgettingLifted, StoreOpened, ThreadForgotten, thread_stream
from .base import LogStore, refuse_newer
from .views import LogView, WritingView

FORMAT = "threadbook-log"
VERSION = 1
LINE_BYTES_MAX = 256 * 1024 * 1024  # A text has no bound of its own; a line without an end has.

# What every log that was ever written keeps to; behind it calendars and databases give up.
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Milliseconds = Annotated[int, Meta(ge=0, le=253_402_300_799_999)]  # To the end of the year 9999.
Ref = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
Owner = Annotated[str, Meta(min_length=1)]


class Begin(Struct, kw_only=True, tag="begin", tag_field="line"):
    format: str
    version: int
    exported_at: str


class EventLine(Struct, kw_only=True, tag="event", tag_field="line"):
    position: Count
    stream: str
    version: Count
    type: str
    recorded_at_ms: Milliseconds
    actor: str
    run_id: str | None
    data: Raw


class BodyLine(Struct, kw_only=True, tag="body", tag_field="line"):
    ref: Ref
    owner: Owner
    text: str


class End(Struct, kw_only=True, tag="end", tag_field="line"):
    """`chain` is the last row's, `digest` the SHA-256 of all the lines before this one."""

    events: int
    bodies: int
    chain: str
    digest: str


LINE = msgspec.json.Decoder(Begin | EventLine | BodyLine | End)


class TransferError(Failure):
    """A file that cannot be written, or is no whole log. The message says what to do."""


def export_log(store: LogStore, file: Path) -> End:
    """Write the log to a new file. Raises `TransferError` where something is there already."""
    try:
        if os.path.lexists(file):  # Before all of it is written; what comes meanwhile is seen, too.
            raise FileExistsError
        with unnamed(file) as (out, give_name):
            end = write_log(store, out)
            out.flush()
            os.fsync(out.fileno())
            give_name()
    except FileExistsError as error:
        raise TransferError(f"{file} is there already; name a new file, or move it away") from error
    except OSError as error:
        raise TransferError(
            f"{file} cannot be written ({error.strerror}); choose another place, or make room"
        ) from error
    return end


DESCRIPTORS = "/proc/self/fd"  # A name for what has none.


@contextmanager
def unnamed(file: Path) -> Iterator[tuple[IO[bytes], Callable[[], None]]]:
    """A file in that place that nobody sees before it is given its name. Where the system can do
    so it has none till then, so that who is killed leaves no words behind."""
    kind = getattr(os, "O_TMPFILE", None) if os.path.isdir(DESCRIPTORS) else None
    opened = None
    if kind is not None:
        with suppress(OSError):  # A file system that does not know it.
            opened = os.open(file.parent, os.O_WRONLY | os.O_CLOEXEC | kind, 0o600)
    if opened is None:
        with named_otherwise(file) as made:
            yield made
        return
    with open(opened, "wb") as out:

        def give_name() -> None:
            folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:  # With a folder given, what the link in /proc stands for is linked, not the link.
                os.link(f"{DESCRIPTORS}/{out.fileno()}", file.name, dst_dir_fd=folder)
            finally:
                os.close(folder)

        yield out, give_name


@contextmanager
def named_otherwise(file: Path) -> Iterator[tuple[IO[bytes], Callable[[], None]]]:
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    opened = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def give_name() -> None:
        try:
            os.link(part, file)  # Unlike a rename it replaces nothing.
        except FileExistsError:
            raise
        except OSError:  # No file has two names there, as on a USB stick.
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            part.replace(file)

    try:
        with open(opened, "wb") as out:
            yield out, give_name
    finally:
        part.unlink(missing_ok=True)


def write_log(store: LogStore, out: IO[bytes]) -> End:
    encode, hashed = msgspec.json.Encoder().encode, sha256()
    events = bodies = 0

    def write(line: Struct) -> None:
        written = encode(line) + b"\n"
        hashed.update(written)
        out.write(written)

    now = datetime.fromtimestamp(store.clock(), UTC).isoformat(timespec="seconds")
    write(Begin(format=FORMAT, version=VERSION, exported_at=now))
    with store.reading("exporting the log") as view:
        assert isinstance(view, LogView)
        for row in view.events():
            events += 1
            write(
                EventLine(
                    position=row.position,
                    stream=row.stream,
                    version=row.version,
                    type=row.type,
                    recorded_at_ms=row.recorded_at_ms,
                    actor=row.actor,
                    run_id=row.run_id,
                    data=Raw(row.data.encode()),
                )
            )
        for ref, owner, text in view.bodies():
            bodies += 1
            write(BodyLine(ref=ref, owner=owner, text=text))
        chain = view.chain_at(view.position)
    end = End(events=events, bodies=bodies, chain=chain.hex(), digest=hashed.hexdigest())
    out.write(encode(end) + b"\n")
    return end


def import_log(store: LogStore, file: Path) -> End:
    """Fill an empty log, in one transaction. Raises `TransferError` and leaves it empty."""
    try:
        with open(file, "rb") as read, store.importing() as view:
            if view.position:
                raise TransferError(
                    f"{store.name} has events of its own; a log can only be imported into a home"
                    " that is new: choose another --home"
                )
            return filled(view, file, lines(file, read))
    except Conflict as error:  # Two rows, or two texts, where there can be one.
        raise TransferError(f"{file}: {error}; {NOT_WHOLE}") from error
    except OSError as error:
        raise TransferError(f"{file} cannot be read ({error.strerror}); check the path") from error


def filled(view: WritingView, file: Path, read: Iterator[tuple[int, bytes, Struct]]) -> End:
    """Every line has to be one that an export could have written there."""
    hashed, bodies, begun = sha256(), 0, False
    forgotten: set[str] = set()
    for number, written, line in read:
        where = f"{file}:{number}"
        match line:
            case Begin() if not begun:
                begun = True
                if line.format != FORMAT or line.version != VERSION:
                    raise TransferError(
                        f"{file} is {line.format} {line.version}, and this program reads {FORMAT}"
                        f" {VERSION}: update it"
                    )
            case EventLine(recorded_at_ms=at) if (
                begun
                and not bodies
                and line.position == view.position + 1
                and at >= view.recorded_at_ms
            ):
                event = view.copy_row(
                    line.stream,
                    line.version,
                    line.type,
                    text_of(line.data, where),
                    recorded_at_ms=at,
                    actor=line.actor,
                    run_id=line.run_id,
                )
                match event:
                    case StoreOpened(schema=schema):
                        refuse_newer(str(file), schema)
                    case ThreadForgotten(thread_id=thread_id):
                        forgotten.add(thread_stream(thread_id))
                    case ForgettingLifted(thread_id=thread_id):
                        forgotten.discard(thread_stream(thread_id))
            case BodyLine() if begun and line.owner not in forgotten:
                bodies += 1
                view.keep(line.ref, line.owner, line.text)
            case End() if begun:
                found = (view.position, bodies, view.chain.hex(), hashed.hexdigest())
                if found != (line.events, line.bodies, line.chain, line.digest):
                    raise TransferError(
                        f"{file} was changed since it was written; export the log once more"
                    )
                if next(read, None) is not None:
                    raise TransferError(f"{file} goes on behind its last line; {NOT_WHOLE}")
                return line
            case _:
                raise TransferError(f"{where}: this line does not belong here; {NOT_WHOLE}")
        hashed.update(written)
    raise TransferError(f"{file} has no last line; {NOT_WHOLE}")


def text_of(data: Raw, where: str) -> str:
    try:
        return bytes(data).decode()
    except UnicodeDecodeError as error:
        raise TransferError(f"{where}: {error}; {NOT_WHOLE}") from error


NOT_WHOLE = "the file is no whole export of a log: export it once more"


def lines(file: Path, read: IO[bytes]) -> Iterator[tuple[int, bytes, Struct]]:
    number = 0
    while written := read.readline(LINE_BYTES_MAX + 1):
        number += 1
        try:
            yield number, written, LINE.decode(written)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise TransferError(f"{file}:{number}: {error}; {NOT_WHOLE}") from error
