"""Bounded: no more of a response is taken in than any answer needs, whatever a server sends.

The SDK reads the whole body of an error, and a compressed one is unpacked a piece of the network at
a time: a few kilobytes may become gigabytes. So an error's body ends after its beginning, pieces
are small, and only what grows a thousandfold at most is unpacked: gzip, once.
"""

from collections.abc import AsyncIterator
from typing import Any

from httpx2 import AsyncByteStream, Response

ERROR_BYTES_MAX = 64 << 10
PIECE_BYTES_MAX = 4 << 10
UNPACKED = ("gzip", "deflate")


class Bounded(AsyncByteStream):
    def __init__(self, stream: Any, *, most: int | None, piece: int | None) -> None:
        self._stream, self._most, self._piece = stream, most, piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._most
        async for content in self._stream:
            if left is not None:
                content = content[:left]
                left -= len(content)
            size = self._piece or len(content) or 1
            for at in range(0, len(content), size):
                yield content[at : at + size]
            if left == 0:
                return

    async def aclose(self) -> None:
        await self._stream.aclose()


async def bound(response: Response) -> None:
    """A hook of the client's, between the headers and the body."""
    packed = response.headers.get("content-encoding")
    if packed and packed.strip().lower() not in UNPACKED:
        del response.headers["content-encoding"]  # It stays packed, and is no answer.
    response.stream = Bounded(
        response.stream,
        most=None if response.is_success else ERROR_BYTES_MAX,
        piece=PIECE_BYTES_MAX if packed else None,
    )
