"""Inside: what a compressed stream in a file holds, wherever in the file it begins."""

import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader, RawIOBase
from typing import Any

from .opened import PIECE_BYTES, Opened

INPUT_BYTES = 1 << 14
COMPRESSED = re.compile(rb"\x78[\x01\x5e\x9c\xda]|\x1f\x8b\x08|\x28\xb5\x2f\xfd")
ZSTD = b"\x28\xb5\x2f\xfd"
GZIP = b"\x1f\x8b\x08"


class Inside(RawIOBase):
    """One stream. Where it breaks off it gives what it held so far."""

    def __init__(self, file: Opened, begins: int, magic: bytes) -> None:
        self.file = file
        self.begins = begins
        self.end = begins  # Up to where the stream was read.
        self.magic = magic
        self.is_whole = False

    def in_order(self) -> Iterator[bytes]:
        return self._zstd() if self.magic == ZSTD else self._zlib()

    def _zlib(self) -> Iterator[bytes]:
        inflating = zlib.decompressobj(
            zlib.MAX_WBITS | 16 if self.magic == GZIP else zlib.MAX_WBITS
        )
        with suppress(zlib.error):  # Two bytes that looked like a beginning, or a torn end.
            while not inflating.eof:
                given = inflating.unconsumed_tail or self._input()
                content = inflating.decompress(given, PIECE_BYTES)
                if content:
                    yield content
                elif not given:
                    return
            self.end -= len(inflating.unused_data)
            self.is_whole = True

    def _zstd(self) -> Iterator[bytes]:
        import zstandard

        source = zstandard.ZstdDecompressor(max_window_size=1 << 31)
        with (
            suppress(zstandard.ZstdError),
            source.stream_reader(BufferedReader(self), closefd=False) as reader,
        ):
            while content := reader.read(PIECE_BYTES):
                yield content
            self.is_whole = True
            self.end = self.begins + 1  # How far the frame went is not said.

    def _input(self) -> bytes:
        given = self.file.read(self.end, INPUT_BYTES)
        self.end += len(given)
        return given

    # As zstandard reads from it.

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        given = self._input()[: len(buffer)]
        buffer[: len(given)] = given
        return len(given)
