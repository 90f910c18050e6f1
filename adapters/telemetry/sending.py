"""sending: the command line's own SDK, set up by the standard variables and sent before it ends.

A command that is done waits for the collector at most `WAIT_S`; what has not gone by then is lost.
A collector that answers nobody costs less, because nothing is tried again behind that time. Where
a program has set a provider before us, that one is used, and sends what it has by itself.
"""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from importlib.metadata import version

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    ConsoleMetricExporter,
    MetricExporter,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter

WAIT_S = 0.5
OTLP = "OTEL_EXPORTER_OTLP_"
TEMPORALITY = f"{OTLP}METRICS_TEMPORALITY_PREFERENCE"

Flush = Callable[[], object]


class Heard(logging.Handler):
    """Keeps what the SDK complains of out of a command's output."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.complaints = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.complaints += 1


class Sending:
    """`serves`: the process lives on for a while, so that what fails may be tried again."""

    def __init__(self, *, serves: bool = False) -> None:
        self._heard = Heard()
        sdk = logging.getLogger("opentelemetry")
        sdk.addHandler(self._heard)
        sdk.propagate = False
        self._timeout = None if serves else WAIT_S
        self._flushes: list[Flush] = []
        if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            if (spans := self._span_exporter()) is not None:
                self._send_spans(spans)
            if (counts := self._metric_exporter()) is not None:
                self._send_metrics(counts)

    def _send_spans(self, exporter: SpanExporter) -> None:
        provider = TracerProvider(resource=resource(), shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(exporter))
        trace.set_tracer_provider(provider)
        self._flushes.append(provider.force_flush)

    def _send_metrics(self, exporter: MetricExporter) -> None:
        reader = PeriodicExportingMetricReader(exporter)
        provider = MeterProvider([reader], resource=resource(), shutdown_on_exit=False)
        metrics.set_meter_provider(provider)
        self._flushes.append(provider.force_flush)

    def _span_exporter(self) -> SpanExporter | None:
        match chosen("TRACES"):
            case "console":
                return ConsoleSpanExporter(out=sys.stderr)
            case "otlp":
                from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

                return OTLPSpanExporter(timeout=self._timeout)
        return None

    def _metric_exporter(self) -> MetricExporter | None:
        # Each command is a process of its own: what it counts adds to what others have counted.
        delta: dict[type, AggregationTemporality] | None = dict.fromkeys(
            (Counter, Histogram), AggregationTemporality.DELTA
        )
        if os.environ.get(TEMPORALITY):
            delta = None
        match chosen("METRICS"):
            case "console":
                return ConsoleMetricExporter(out=sys.stderr, preferred_temporality=delta)
            case "otlp":
                from opentelemetry.exporter.otlp.proto.http.metric_exporter import (
                    OTLPMetricExporter,
                )

                return OTLPMetricExporter(timeout=self._timeout, preferred_temporality=delta)
        return None

    def finish(self, *, within: float = WAIT_S) -> bool:
        """Send what is left, and wait for that no longer. False: something was lost."""
        threads = [
            threading.Thread(target=flush, daemon=True) for flush in map(quiet, self._flushes)
        ]
        until = time.monotonic() + within
        for each in threads:
            each.start()
        for each in threads:
            each.join(max(until - time.monotonic(), 0))
        return not any(each.is_alive() for each in threads) and not self._heard.complaints


def chosen(signal: str) -> str:
    """`otlp` where an endpoint is named and nothing else is said. Protocols other than HTTP with
    protobuf are not ours, and nothing is sent by a wrong one."""
    named = os.environ.get(f"OTEL_{signal}_EXPORTER", "").strip().lower()
    endpoints = (f"{OTLP}{signal}_ENDPOINT", f"{OTLP}ENDPOINT")
    if not named:
        named = "otlp" if any(map(os.environ.get, endpoints)) else "none"
    protocols = (f"{OTLP}{signal}_PROTOCOL", f"{OTLP}PROTOCOL")
    protocol = next(filter(None, map(os.environ.get, protocols)), "http/protobuf")
    return "none" if named == "otlp" and protocol != "http/protobuf" else named


def resource() -> Resource:
    """Named by the user's own variables, else by us. It says nothing of the machine."""
    found = Resource.create()
    if str(found.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        found = found.merge(Resource({SERVICE_NAME: "threadbook"}))
    return found.merge(Resource({SERVICE_VERSION: version("threadbook")}))


def quiet(flush: Flush) -> Callable[[], None]:
    def flushed() -> None:
        try:
            flush()
        except Exception as error:  # In a thread of its own it would be told to the terminal.
            logging.getLogger("opentelemetry").warning("not sent: %s", type(error).__name__)

    return flushed
