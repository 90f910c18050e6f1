"""Inside: what a compressed stream in a file holds, wherever in the file it begins."""

import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader, RawIOBase
from typing import TYPE_CHECKING, Any

from .opened import PIECE_BYTES, Opened

if TYPE_CHECKING:
    from bz2 import BZ2Decompressor
    from lzma import LZMADecompressor

INPUT_BYTES = 1 << 14
COMPRESSED = re.compile(
    rb"\x78[\x01\x5e\x9c\xda]|\x1f\x8b\x08|\x28\xb5\x2f\xfd|PK\x03\x04|BZh[1-9]1AY&SY|\xfd7zXZ\x00"
)
ZSTD = b"\x28\xb5\x2f\xfd"
GZIP = b"\x1f\x8b\x08"
ZIP = b"PK\x03\x04"
BZIP2 = b"BZh"
XZ = b"\xfd7zXZ\x00"
ZIP_HEADER = struct.Struct("<8xH16xHH")  # Of each file in it: how it is packed, and two lengths.
DEFLATED = 8
XZ_MEMORY_MAX = 1 << 28


class Inside(RawIOBase):
    """One stream. Where it breaks off it gives what it held so far."""

    def __init__(self, file: Opened, begins: int, magic: bytes) -> None:
        self.file = file
        self.begins = begins
        self.end = begins  # Up to where the stream was read.
        self.magic = magic
        self.is_whole = False

    def in_order(self) -> Iterator[bytes]:
        if self.magic == ZSTD:
            return self._zstd()
        if self.magic == ZIP:
            return self._zip()
        if self.magic.startswith(BZIP2):
            return self._bzip2()
        if self.magic == XZ:
            return self._xz()
        return self._zlib(zlib.MAX_WBITS | 16 if self.magic == GZIP else zlib.MAX_WBITS)

    def _zip(self) -> Iterator[bytes]:
        header = self.file.read(self.begins, ZIP_HEADER.size)
        if len(header) == ZIP_HEADER.size:
            packed, name, extra = ZIP_HEADER.unpack(header)
            self.end += ZIP_HEADER.size + name + extra
            if packed == DEFLATED:
                yield from self._zlib(-zlib.MAX_WBITS)

    def _bzip2(self) -> Iterator[bytes]:
        import bz2

        with suppress(OSError, EOFError):
            yield from self._unpacked(bz2.BZ2Decompressor())

    def _xz(self) -> Iterator[bytes]:
        import lzma

        with suppress(lzma.LZMAError):
            yield from self._unpacked(lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY_MAX))

    def _unpacked(self, inflating: "BZ2Decompressor | LZMADecompressor") -> Iterator[bytes]:
        while not inflating.eof:
            given = self._input() if inflating.needs_input else b""
            content = inflating.decompress(given, PIECE_BYTES)
            if content:
                yield content
            elif not given and inflating.needs_input:
                return
        self.end -= len(inflating.unused_data)
        self.is_whole = True

    def _zlib(self, window: int) -> Iterator[bytes]:
        inflating = zlib.decompressobj(window)
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
