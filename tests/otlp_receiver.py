"""A receiver of OTLP over HTTP, which decodes requests by the official protocol buffers."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Receiver(ThreadingHTTPServer):
    """A receiver. `headers` are those of the last request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: dict[str, list[Any]] = {"metrics": [], "traces": [], "logs": []}
        self.headers: dict[str, str] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def metrics(self) -> dict[str, Any]:
        """Returns the last metric of each name."""
        return {
            metric.name: metric
            for request in self.requests["metrics"]
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def spans(self) -> list[Any]:
        return [
            span
            for request in self.requests["traces"]
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def logs(self) -> list[Any]:
        return [
            record
            for request in self.requests["logs"]
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]


class _Handler(BaseHTTPRequestHandler):
    server: Receiver
    messages: Any = {
        "metrics": ExportMetricsServiceRequest,
        "traces": ExportTraceServiceRequest,
        "logs": ExportLogsServiceRequest,
    }

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        signal = self.path.removeprefix("/v1/")
        self.server.requests[signal].append(self.messages[signal].FromString(body))
        self.server.headers = {name.lower(): text for name, text in self.headers.items()}
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""


@contextmanager
def otlp_receiver() -> Iterator[Receiver]:
    """A receiver during the block."""
    with Receiver() as receiver:
        thread = threading.Thread(target=receiver.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield receiver
        receiver.shutdown()
        thread.join()


def attributes(item: Any) -> dict[str, Any]:
    """Returns the attributes of a span, of a record or of a data point."""
    return {
        each.key: getattr(each.value, each.value.WhichOneof("value")) for each in item.attributes
    }
