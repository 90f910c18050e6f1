"""Telemetry: what OpenTelemetry is told of the memory's operations, and never in their way.

Where nobody has set OpenTelemetry up, none of it is loaded, and an operation pays a look into a
table. A program that embeds Threadbook brings its own SDK; `sending` is the command line's, set up
by the standard `OTEL_*` variables. What is told are names, ids, counts, codes and times. Words (a
question, a memory's text, a note, a path in the memory) are told only where
`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` says so, and never an error's message.

Spans and attributes are those of the GenAI conventions for memory, as far as these go; what they
have no name for begins with `threadbook.`. `gen_ai.memory.store.id` is a memory root, as
`v1/project:lantern-shop-1a2b3c4d`, and `gen_ai.memory.record.id` the id of a session.
"""

import os
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from types import TracebackType

    from msgspec import Struct

    from ...application.surroundings import Tell
    from .sending import Sending

# Whoever has set OpenTelemetry up has loaded its first module. The SDK of the protocol of the MCP
# server loads it, too; what then is told comes to nothing.
API = "opentelemetry.trace"
# Any of these asks the command line to send.
ASKS = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    "OTEL_TRACES_EXPORTER",
    "OTEL_METRICS_EXPORTER",
)
HAND_OVER_S = 5.0  # For a process that nobody waits for.


class Kept:
    """An operation of a process that has no time to load anything: told later, elsewhere."""

    def __init__(self, operation: str, asked: "Mapping[str, Any] | Struct") -> None:
        self.operation, self.asked = operation, asked
        self.told: list[object] = []
        self.error: BaseException | None = None
        self.began_ns = self.ended_ns = 0

    def __enter__(self) -> "Tell":
        self.began_ns = time.time_ns()
        return self.told.append

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: "TracebackType | None",
    ) -> None:
        self.ended_ns, self.error = time.time_ns(), error


_sending: "Sending | None" = None
_kept: list[Kept] | None = None


def watch(operation: str, asked: "Mapping[str, Any] | Struct") -> "AbstractContextManager[Tell]":
    """The `Watch` of every memory."""
    if _kept is not None:
        _kept.append(kept := Kept(operation, asked))
        return kept
    from ...application.surroundings import unwatched

    if API not in sys.modules:
        return unwatched(operation, asked)
    try:
        from .spans import watch as told

        return told(operation, asked)
    except Exception as error:  # An API of another version than ours is no trouble of the memory's.
        lost(error)
        return unwatched(operation, asked)


def lost(error: Exception) -> None:
    import logging

    logging.getLogger(__name__).debug("no telemetry: %s", type(error).__name__)


# For the command line, which nobody embeds.


def is_asked_for() -> bool:
    return any(map(os.environ.get, ASKS)) and not is_disabled()


def is_disabled() -> bool:
    return os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def begin(*, serves: bool = False) -> None:
    """Send what this process tells, if that is asked for and the packages are here."""
    global _sending
    if _sending is not None or not is_asked_for():
        return
    try:
        from .sending import Sending

        _sending = Sending(serves=serves)
    except Exception as error:  # Not installed, or set up by variables that the SDK refuses.
        lost(error)


def finish() -> None:
    """Send what is left, for half a second at most."""
    if _sending is not None and not _sending.finish() and is_a_terminal():
        print("threadbook: its telemetry could not be sent; is the collector up?", file=sys.stderr)


def is_a_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def keep() -> None:
    """From now on only keep what is told, if anything is to be sent. For a hook."""
    global _kept
    if is_asked_for():
        _kept = []


def hand_over() -> None:
    """Leave what was kept to a process of its own, which nobody waits for.

    It is a copy of this one, because loading what sends takes longer than a hook has.
    """
    global _kept
    kept, _kept = _kept, None
    if not kept:
        return
    try:
        if os.fork():
            return
    except OSError as error:
        lost(error)
        return
    try:
        leave()
        begin(serves=True)
        if _sending is not None:
            from .spans import tell_again

            for each in kept:
                tell_again(each)
            _sending.finish(within=HAND_OVER_S)
    finally:
        os._exit(0)


def leave() -> None:
    """Be nobody's: a session that waits for the hook's output must not wait for this process."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
