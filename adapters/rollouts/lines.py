"""The line reader that both transcript formats share: bytes in, JSON objects with their place out.

A line ends at byte 0x0A and nowhere else. What does not parse is one bad line and never more; a
last line without its end that does not parse is a tail still being written, which is no fault.
The file is read once, in pieces, so that memory follows the longest line and not the file; a line
over the limit is passed over without being held.
"""

import json
import os
import re
from collections.abc import Collection, Iterator
from io import FileIO
from pathlib import Path
from stat import S_ISREG
from types import TracebackType
from typing import Any, Self

import msgspec

from ...domain.session import BadLine
from .errors import Unreadable

LINE_LIMIT_BYTES = 48 * 1024 * 1024
BAD_LINES_LISTED_MAX = 1_000

_PIECE_BYTES = 256 * 1024
# What may stand around an object without meaning: blanks, NUL padding of a preallocated file, BOM.
_PADDING = b" \t\r\x00"
_BOM = b"\xef\xbb\xbf"
_BETWEEN = re.compile("[ \t\r\n\x00\ufeff]*")


def _lenient_int(digits: str) -> int | float:
    # Python refuses to build very long integers; nothing we read is one.
    return int(digits) if len(digits) < 400 else float("inf")


_DECODER = json.JSONDecoder(strict=False, parse_int=_lenient_int)


class Found(msgspec.Struct, frozen=True):
    """One object and where its line begins. Lines count from 1."""

    line: int
    offset: int
    value: dict[str, Any]


class Lines:
    """Iterate for the objects; when that has ended the other attributes hold for the whole file."""

    def __init__(
        self,
        path: Path,
        *,
        line_limit: int = LINE_LIMIT_BYTES,
        stop_after: int | None = None,
        holding: Collection[bytes] | None = None,
    ) -> None:
        self.path = path
        self.bad_lines: list[BadLine] = []
        self.bad_lines_unlisted = 0
        self.oversized = 0
        self.records = 0
        self.unfinished_tail = False
        self.resume_offset = 0
        self._limit = line_limit
        self.stop_after = stop_after
        # Lines without any of these are passed over undecoded. The caller may take some out.
        self._holding = holding
        self._file, self.mtime_ms = _open(path)
        self._pieces = _pieces(path, self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[Found]:
        number, offset = 1, 0
        held = bytearray()  # The line so far, where it began in an earlier piece.
        held_bytes = 0
        for piece in self._pieces:
            if self.stop_after is not None and offset + held_bytes > self.stop_after:
                return
            start = 0
            while (end := piece.find(b"\n", start)) >= 0:
                length = held_bytes + end - start
                if length > self._limit:
                    self.oversized += 1
                elif held_bytes:
                    held += piece[start:end]
                    yield from self._objects(held, number, offset, ended=True)
                else:
                    yield from self._objects(piece[start:end], number, offset, ended=True)
                if held_bytes:
                    held, held_bytes = bytearray(), 0
                number, offset, start = number + 1, offset + length + 1, end + 1
                self.resume_offset = offset
            held_bytes += len(piece) - start
            if held_bytes <= self._limit:
                held += piece[start:]
            else:
                held = bytearray()
        if held_bytes > self._limit:
            self.unfinished_tail = True
        elif held_bytes:
            yield from self._objects(held, number, offset, ended=False)

    def _objects(
        self, line: bytes | bytearray, number: int, offset: int, *, ended: bool
    ) -> Iterator[Found]:
        """The objects of one line. `ended` is whether its LF was there."""
        if self._holding is not None and not any(each in line for each in self._holding):
            return
        try:
            whole = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            yield from self._piecewise(line, number, offset, ended=ended)
            return
        if isinstance(whole, dict):
            self.records += 1
            self.resume_offset = offset + len(line)
            yield Found(number, offset, whole)
        elif ended:
            self._bad(number, offset, "not an object")
        else:
            self.unfinished_tail = True

    def _piecewise(
        self, line: bytes | bytearray, number: int, offset: int, *, ended: bool
    ) -> Iterator[Found]:
        """The slow way: padding, several objects on a line, bytes that are not UTF-8, half
        surrogates, or no JSON at all."""
        if not line.strip(_PADDING).removeprefix(_BOM).strip(_PADDING):
            return  # Blank, which is no error; an unended blank is read again with what follows.
        text = line.decode("utf-8", "replace")
        at = _after_padding(text, 0)
        while at < len(text):
            try:
                value, end = _DECODER.raw_decode(text, at)
                if not isinstance(value, dict):
                    raise ValueError("not an object")
            except (ValueError, RecursionError) as error:
                if ended:
                    reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
                    self._bad(number, offset + _width(text, at), reason)
                else:
                    self.unfinished_tail = True
                    self.resume_offset = offset + _width(text, at)
                return
            self.records += 1
            at = _after_padding(text, end)
            yield Found(number, offset, value)
        self.resume_offset = offset + len(line)

    def _bad(self, number: int, offset: int, reason: str) -> None:
        if len(self.bad_lines) < BAD_LINES_LISTED_MAX:
            self.bad_lines.append(BadLine(line=number, offset=offset, reason=reason))
        else:
            self.bad_lines_unlisted += 1


def _after_padding(text: str, at: int) -> int:
    found = _BETWEEN.match(text, at)
    return found.end() if found else at


def _width(text: str, at: int) -> int:
    return len(text[:at].encode("utf-8", "replace"))


def _open(path: Path) -> tuple[FileIO, int]:
    """The file, or the one it became when Codex compressed or expanded it just now."""
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError as error:
        raise Unreadable(path, "its name is not UTF-8 and could not be stored") from error
    for other in (False, True):
        try:
            # Without O_NONBLOCK a pipe without a writer would hold us for ever.
            descriptor = os.open(
                _sibling(path) if other else path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
            )
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise Unreadable(path, _reason(error)) from error
        status = os.fstat(descriptor)
        if not S_ISREG(status.st_mode):
            os.close(descriptor)
            raise Unreadable(path, "it is not a regular file")
        return FileIO(descriptor, "rb"), status.st_mtime_ns // 1_000_000
    raise Unreadable(path, "there is no such file")


def _sibling(path: Path) -> Path:
    return path.with_name(
        path.name.removesuffix(".zst") if path.suffix == ".zst" else path.name + ".zst"
    )


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()


def _pieces(path: Path, file: FileIO) -> Iterator[bytes]:
    try:
        first = file.read(_PIECE_BYTES)
        if first.startswith(b"\x28\xb5\x2f\xfd"):
            from .zst import expanded

            yield from expanded(path, first, file)
            return
        while first:
            yield first
            first = file.read(_PIECE_BYTES)
    except OSError as error:
        raise Unreadable(path, _reason(error)) from error
