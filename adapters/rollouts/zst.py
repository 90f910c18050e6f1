"""Compressed transcripts, expanded in bounded steps. A frame that ends early or grows without
bound is refused, because a half-read session would pass for a whole one.
"""

from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from .errors import Unreadable

# Codex compresses at level 3, whose window is 2 MiB; a larger one is not its work.
WINDOW_MAX_BYTES = 32 * 1024 * 1024
# One step of input can grow to 32 MiB at most, because a block of four bytes holds 128 KiB.
_STEP_BYTES = 1024
_GROWTH_MAX = 1_000
_GROWTH_FREE_BYTES = 1024 * 1024 * 1024


def expanded(path: Path, first: bytes, file: FileIO) -> Iterator[bytes]:
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW_MAX_BYTES)
    frame = decompressor.decompressobj()
    taken = grown = 0
    started = False
    while first:
        for at in range(0, len(first), _STEP_BYTES):
            step = first[at : at + _STEP_BYTES]
            taken += len(step)
            while step:
                try:
                    piece = frame.decompress(step)
                except zstandard.ZstdError as error:
                    raise Unreadable(path, f"its zstd frame is damaged ({error})") from error
                started = True
                grown += len(piece)
                if grown > _GROWTH_FREE_BYTES and grown > taken * _GROWTH_MAX:
                    raise Unreadable(path, "its zstd frame grows without bound")
                if piece:
                    yield piece
                step = b""
                if frame.eof:
                    step = frame.unused_data
                    frame = decompressor.decompressobj()
                    started = False
        first = file.read(256 * 1024)
    if started:
        raise Unreadable(path, "its zstd frame ends early")
