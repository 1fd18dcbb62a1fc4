"""Telemetry of a process: its metrics, spans and log events, exported by OTLP over HTTP.

Exports are made by threads of their own. Nothing waits for an endpoint that does not answer.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import SpanContext

from penstock.core.log import Log
from penstock.core.version import __version__
from penstock.observe.batches import FailedBatch, FinishedBatch
from penstock.observe.otlp.batch_spans import BatchSpans, batch_context
from penstock.observe.otlp.failures import SDK_LOGGER, ExportFailures, ReportedExporter
from penstock.observe.otlp.log_records import LogRecords
from penstock.observe.otlp.metric_data import Families, metrics_data

TIMEOUT = 5.0
"""The time of an export, with its retries."""
CLOSE_SECONDS = 2.0
"""The time that the last exports have at the end of a process."""
LEVELS = frozenset({"info", "warning", "error"})


@dataclass(frozen=True)
class Endpoint:
    """An endpoint of OTLP. `url` is its base, without `/v1/metrics`. Times are in seconds."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    interval: float = 10.0

    def path(self, signal: str) -> dict[str, Any]:
        """Returns the arguments of the exporter of a signal."""
        url = f"{self.url.rstrip('/')}/v1/{signal}"
        return {"endpoint": url, "headers": dict(self.headers) or None, "timeout": TIMEOUT}


class Telemetry:
    """The telemetry of a run, or of a server.

    `service` is the name of the pipeline or of the server, and `instance` the ID of the run.
    `families` returns the metrics. `batch_of` returns the batch under way of a query.
    """

    def __init__(
        self, endpoint: Endpoint, service: str, instance: str, families: Families, log: Log,
        batch_of: Callable[[str], int | None] = lambda query: None,
    ) -> None:  # fmt: skip
        self._endpoint, self._families, self._run = endpoint, families, instance
        self._batch_of, self._began = batch_of, time.time_ns()
        self._resource = Resource.create({
            "service.name": service, "service.namespace": "penstock",
            "service.instance.id": instance, "service.version": __version__,
        })  # fmt: skip
        self._failures = ExportFailures(endpoint.url, log)
        self._metrics = self._reported(OTLPMetricExporter(**endpoint.path("metrics")))
        self._spans = BatchSpans(
            self._reported(OTLPSpanExporter(**endpoint.path("traces"))), self._resource,
            service, instance,
        )  # fmt: skip
        self._logs = LogRecords(
            self._reported(OTLPLogExporter(**endpoint.path("logs"))), self._resource,
            self._context_of,
        )  # fmt: skip
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="penstock-otlp", daemon=True)

    def __enter__(self) -> Telemetry:
        logging.getLogger(SDK_LOGGER).addHandler(self._failures)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Exports what remains, for at most `CLOSE_SECONDS`."""
        self._closed.set()
        closing = threading.Thread(target=self._close, name="penstock-otlp-close", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)
        logging.getLogger(SDK_LOGGER).removeHandler(self._failures)

    def add_batch(self, batch: FinishedBatch | FailedBatch) -> None:
        """Adds the spans of a batch."""
        self._spans.add(batch)

    def add_request(self, method: str, route: str, status: int, began: float) -> None:
        """Adds the span of a request to a server, which ends now."""
        self._spans.add_request(method, route, status, began)

    def add_event(self, level: str, event: str, facts: Mapping[str, Any]) -> None:
        """Adds a log event of a level from info on."""
        if level in LEVELS:
            self._logs.add(level, event, facts)

    def _context_of(self, facts: Mapping[str, Any]) -> SpanContext | None:
        """Returns the span of the batch that an event concerns; None for other events."""
        query = facts.get("query")
        if query is None:
            return None
        number = facts.get("batch", self._batch_of(str(query)))
        return None if number is None else batch_context(self._run, str(query), int(number))

    def _reported(self, exporter: Any) -> ReportedExporter:
        return ReportedExporter(exporter, self._failures)

    def _loop(self) -> None:
        while not self._closed.wait(self._endpoint.interval):
            self._export_metrics()

    def _export_metrics(self) -> None:
        self._metrics.export(metrics_data(self._families(), self._resource, self._began))

    def _close(self) -> None:
        parts = (self._export_metrics, self._spans.close, self._logs.close)
        threads = [threading.Thread(target=part, daemon=True) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
