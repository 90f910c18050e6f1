"""Server-sent events: bytes in, events out, wherever the network has cut them.

Lines are split at LF and CRLF and at nothing else. A text may hold U+2028, U+0085 and the like as
they are: for JSON they are letters, and a reader of lines that ends one there breaks the event.
"""

from collections.abc import Iterator

from msgspec import Struct


class Event(Struct, frozen=True):
    name: str
    data: bytes


class Events:
    """Feed it what arrives; `rest` is what a stream left open that ended without a blank line."""

    def __init__(self) -> None:
        self._line: list[bytes] = []  # The parts of a line that has not ended.
        self._name = ""
        self._data: list[bytes] = []
        self._begun = False

    def feed(self, content: bytes) -> Iterator[Event]:
        *ended, rest = content.split(b"\n")
        for end in ended:
            line = b"".join([*self._line, end]) if self._line else end
            self._line = []
            yield from self._take(line.removesuffix(b"\r"))
        if rest:
            self._line.append(rest)

    def rest(self) -> Iterator[Event]:
        line, self._line = b"".join(self._line), []
        if line:
            yield from self._take(line.removesuffix(b"\r"))
        yield from self._take(b"")

    def _take(self, line: bytes) -> Iterator[Event]:
        if not self._begun:
            self._begun, line = True, line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            if self._data:
                yield Event(self._name, b"\n".join(self._data))
            self._name, self._data = "", []
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
