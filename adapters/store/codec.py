"""Events to text and back, by the type that the row names.

The type is looked at before anything is decoded: an event of a newer program is None, which every
fold passes over and `verify` counts; one that this program knows and cannot read is an error with
its position, because a decision on half of the facts would be a wrong one. Payloads of older
programs are brought up to date first, by a function for the type.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast, get_args

import msgspec

from ...domain.events import AnyEvent, Event
from .errors import StoreDamaged

Upcast = Callable[[dict[str, Any]], dict[str, Any]]


UNREADABLE = (msgspec.MsgspecError, ValueError, KeyError, TypeError)  # An upcast's failures too.


class RowUndecodable(StoreDamaged):
    def __init__(self, position: int, type_: str, why: str) -> None:
        super().__init__(
            f"the event at position {position} ({type_}) cannot be read ({why});"
            " `threadbook verify` checks the whole log, a newer program may know this event"
        )
        self.position = position


class Codec:
    """`upcasts`: for a type, a function over the raw payload; it must leave a current one alone."""

    def __init__(self, upcasts: Mapping[str, Upcast] | None = None) -> None:
        self._encode = msgspec.json.Encoder().encode
        self.upcasts = dict(upcasts or {})
        self.decoders: dict[str, Callable[[str], Event]] = {
            tag_of(event): self._decoder(event) for event in get_args(AnyEvent)
        }

    def encode(self, event: Event) -> str:
        return self._encode(event).decode()

    def knows(self, type_: str) -> bool:
        return type_ in self.decoders

    def decode(self, position: int, type_: str, data: str) -> AnyEvent | None:
        decode = self.decoders.get(type_)
        if decode is None:
            return None
        try:
            return cast(AnyEvent, decode(data))
        except UNREADABLE as error:
            raise RowUndecodable(position, type_, str(error)) from error

    def _decoder(self, event: type[Event]) -> Callable[[str], Event]:
        upcast = self.upcasts.get(tag_of(event))
        if upcast is None:
            return msgspec.json.Decoder(event).decode
        return lambda data: msgspec.convert(upcast(msgspec.json.decode(data, type=dict)), event)


def tag_of(event: type[Event]) -> str:
    tag = event.__struct_config__.tag
    assert isinstance(tag, str), f"{event.__name__} has no tag of its own"
    return tag
