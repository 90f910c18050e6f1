"""spans: one operation as a span, and as it counts in the metrics.

Whatever OpenTelemetry or a program's own provider does wrong is its trouble and not the
operation's: it is told to this module's logger, and the operation goes on.
"""

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from types import TracebackType
from typing import Any

from msgspec import Struct
from opentelemetry import context as contexts
from opentelemetry import metrics, trace
from opentelemetry.trace import SpanKind, StatusCode

from ...application.surroundings import Tell
from ...domain.refusals import Refused
from . import Kept, facts
from .facts import Facts

SCOPE = "threadbook"
# The convention's own example of an opt-in, with the values that its instrumentations take.
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CAPTURED = ("true", "1", "span_only", "span_and_event")
MS_BOUNDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)

log = logging.getLogger(__name__)


def may_tell_words() -> bool:
    return os.environ.get(CAPTURE, "").strip().lower() in CAPTURED


class Telemetry:
    """A tracer and the instruments of a meter: by default those of whoever set them up."""

    def __init__(
        self,
        *,
        tracers: trace.TracerProvider | None = None,
        meters: metrics.MeterProvider | None = None,
    ) -> None:
        release = version("threadbook")
        self.tracer = trace.get_tracer(SCOPE, release, tracer_provider=tracers)
        meter = metrics.get_meter(SCOPE, release, meter_provider=meters)
        self.calls = meter.create_counter(
            "threadbook.tool.calls", unit="{call}", description="Questions to the memory's tools."
        )
        self.uses = meter.create_counter(
            "threadbook.uses", unit="{use}", description="Uses of a session's memory, as counted."
        )
        self.outputs = meter.create_counter(
            "threadbook.outputs", unit="{session}", description="Sessions read, by what came of it."
        )
        self.tokens = meter.create_counter(
            "threadbook.tokens", unit="{token}", description="What a run's models took and gave."
        )
        self.given = meter.create_histogram(
            "threadbook.context.tokens",
            unit="{token}",
            description="What a session was given of the memory when it started.",
        )
        self.duration = meter.create_histogram(
            "threadbook.operation.duration",
            unit="s",
            description="How long an operation took.",
            explicit_bucket_boundaries_advisory=MS_BOUNDS,
        )

    def watch(self, operation: str, asked: Mapping[str, Any] | Struct) -> "Operation":
        return Operation(self, operation, asked)

    def count(self, operation: str, found: Facts, *, seconds: float) -> None:
        ended: dict[str, Any] = {
            "threadbook.operation": operation,
            "threadbook.outcome": found.outcome,
        }
        if found.error:
            ended["error.type"] = found.error
        self.duration.record(seconds, ended)
        if operation in facts.TOOLS:
            self.calls.add(1, call(operation, found))
        if found.uses:
            self.uses.add(found.uses, {"threadbook.operation": operation})
        if operation == "extract":
            self.outputs.add(1, {"threadbook.outcome": found.outcome})
        if operation == "context" and found.outcome == "shown":
            self.given.record(int(found.said["threadbook.tokens"]))
        if found.spent is not None and found.spent.calls:
            spent = found.spent
            for kind in ("input", "cached", "output", "reasoning"):
                of = {"gen_ai.token.type": kind, "gen_ai.request.model": spent.model}
                self.tokens.add(getattr(spent, kind), of)


def call(operation: str, found: Facts) -> dict[str, str]:
    """Codex's five tags."""
    failed = found.error is not None
    if operation in ("add_ad_hoc_note", "report_use"):
        truncated = "not_applicable"
    elif failed or found.truncated is None:
        truncated = "unknown"
    else:
        truncated = str(found.truncated).lower()
    return {
        "threadbook.tool": f"memories/{operation}",
        "threadbook.operation": operation,
        "threadbook.scope_class": str(found.said["threadbook.scope_class"]),
        "threadbook.status": "failed" if failed else "succeeded",
        "threadbook.truncated": truncated,
    }


class Operation:
    """From its start to its end. Inside, `tell` is called with what came of it."""

    def __init__(
        self,
        telemetry: Telemetry,
        operation: str,
        asked: Mapping[str, Any] | Struct,
        *,
        began_ns: int | None = None,
        ended_ns: int | None = None,
    ) -> None:
        """The times are those of an operation that is over; else they are now."""
        self._began_ns, self._ended_ns = began_ns, ended_ns
        self._telemetry = telemetry
        self._operation = operation
        self._asked = asked
        self._found = Facts(said={"threadbook.operation": operation})
        self._span: trace.Span | None = None
        self._leave: Callable[[], None] | None = None
        self._began = 0.0

    def __enter__(self) -> Tell:
        with nobodys_trouble():
            self._found = facts.asked_of(self._operation, self._asked)
            name = self._found.said.get("gen_ai.operation.name", f"threadbook {self._operation}")
            self._span = self._telemetry.tracer.start_span(
                str(name),
                kind=SpanKind.INTERNAL,
                attributes=self._found.said,
                start_time=self._began_ns,
            )
            token = contexts.attach(trace.set_span_in_context(self._span))
            self._leave = lambda: contexts.detach(token)
        self._began = time.perf_counter()
        return self._tell

    def _tell(self, answer: object) -> None:
        with nobodys_trouble():
            facts.told(self._found, answer)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        seconds = time.perf_counter() - self._began
        if self._began_ns is not None and self._ended_ns is not None:
            seconds = (self._ended_ns - self._began_ns) / 1e9
        if error is not None:
            self._found.outcome, self._found.error = "failed", code_of(error)
        with nobodys_trouble():
            if self._leave is not None:
                self._leave()
        with nobodys_trouble():
            self._end()
        with nobodys_trouble():
            self._telemetry.count(self._operation, self._found, seconds=seconds)

    def _end(self) -> None:
        if self._span is None:
            return
        found = self._found
        try:
            found.said["threadbook.outcome"] = found.outcome
            if found.error:
                found.said["error.type"] = found.error
                self._span.set_status(StatusCode.ERROR)
            self._span.set_attributes(found.said)
            if self._span.is_recording() and may_tell_words():
                self._span.set_attributes({name: word() for name, word in found.words.items()})
        finally:
            self._span.end(end_time=self._ended_ns)


def code_of(error: BaseException) -> str:
    """A word for what went wrong. Its message may quote a path, or what was asked."""
    return error.code if isinstance(error, Refused) else type(error).__name__


@contextmanager
def nobodys_trouble() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        log.debug("telemetry was lost: %s", type(error).__name__)


_everyones: Telemetry | None = None


def everyones() -> Telemetry:
    """By the providers of this process, also if they are set later than the first operation."""
    global _everyones
    if _everyones is None:
        _everyones = Telemetry()
    return _everyones


def watch(operation: str, asked: Mapping[str, Any] | Struct) -> Operation:
    return everyones().watch(operation, asked)


def tell_again(kept: Kept) -> None:
    """What was kept while there was no time to tell it."""
    over = Operation(
        everyones(),
        kept.operation,
        kept.asked,
        began_ns=kept.began_ns,
        ended_ns=kept.ended_ns,
    )
    tell = over.__enter__()
    for answer in kept.told:
        tell(answer)
    over.__exit__(None, kept.error, None)
