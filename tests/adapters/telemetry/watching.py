"""The SDK's own exporters in memory, for one memory, and what they were told."""

from msgspec.structs import replace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from threadbook.adapters.telemetry.spans import Telemetry


class Watching:
    def __init__(self):
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider(shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.telemetry = Telemetry(tracers=tracers, meters=meters)

    def over(self, memory):
        """The memory, watched."""
        memory._around = replace(memory._around, watch=self.telemetry.watch)
        return memory

    def spans(self, operation=None):
        """In the order of their ends."""
        return [
            each
            for each in self.exporter.get_finished_spans()
            if operation in (None, each.attributes["threadbook.operation"])
        ]

    def span(self, operation):
        (found,) = self.spans(operation)
        return found

    def points(self, name):
        """Attributes and value of each; a histogram's value is its sum."""
        found = self.reader.get_metrics_data()
        return [
            (dict(point.attributes), getattr(point, "value", None) or getattr(point, "sum", None))
            for each in (found.resource_metrics if found else ())
            for scope in each.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def everything(self):
        """All that would leave this machine, as one text."""
        metrics = self.reader.get_metrics_data()
        told = [each.to_json() for each in self.exporter.get_finished_spans()]
        return "\n".join([*told, metrics.to_json() if metrics else ""])
