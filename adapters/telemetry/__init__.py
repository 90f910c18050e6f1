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

import logging
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from msgspec import Struct

from ...application.surroundings import Tell, unwatched

# Whoever has set OpenTelemetry up has loaded its first module. The SDK of the protocol of the MCP
# server loads it, too; what then is told comes to nothing.
API = "opentelemetry.trace"


def watch(operation: str, asked: Mapping[str, Any] | Struct) -> AbstractContextManager[Tell]:
    """The `Watch` of every memory."""
    if API not in sys.modules:
        return unwatched(operation, asked)
    try:
        from .spans import watch as told

        return told(operation, asked)
    except Exception as error:  # An API of another version than ours is no trouble of the memory's.
        logging.getLogger(__name__).debug("no telemetry: %s", type(error).__name__)
        return unwatched(operation, asked)
