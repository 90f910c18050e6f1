"""A collector on loopback: what it was sent by OTLP over HTTP, or one that never answers."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """`variables` make a program send here. `answers=False`: it takes all and says nothing."""

    def __init__(self, *, answers=True):
        self.bodies = []
        self._came = threading.Condition()
        self._over = threading.Event()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with collector._came:
                    collector.bodies.append((self.path, body))
                    collector._came.notify_all()
                if not answers:
                    collector._over.wait(60)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                """The test's output is its own."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._over.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def variables(self):
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self._server.server_port}"}

    def wait(self, count):
        """Until so many requests have come."""
        with self._came:
            assert self._came.wait_for(lambda: len(self.bodies) >= count, timeout=30)

    def resources(self):
        return [
            {each.key: each.value.string_value for each in found.resource.attributes}
            for found in self._found("/v1/traces", ExportTraceServiceRequest, "resource_spans")
        ]

    def spans(self):
        """Name and attributes that are texts, of each span."""
        return [
            (span.name, {each.key: each.value.string_value for each in span.attributes})
            for found in self._found("/v1/traces", ExportTraceServiceRequest, "resource_spans")
            for scope in found.scope_spans
            for span in scope.spans
        ]

    def metrics(self):
        return {
            metric.name: metric
            for found in self._found("/v1/metrics", ExportMetricsServiceRequest, "resource_metrics")
            for scope in found.scope_metrics
            for metric in scope.metrics
        }

    def _found(self, path, kind, field):
        return [
            each
            for at, body in self.bodies
            if at == path
            for each in getattr(kind.FromString(body), field)
        ]
