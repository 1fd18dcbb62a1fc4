"""Spans of batches: one for each batch, with spans of its phases and of its sinks."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Tracer, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.trace import (
    INVALID_SPAN,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from penstock.core.known_secrets import conceal
from penstock.observe.batches import OTHER, FailedBatch, FinishedBatch

PROCESSING = "processing"


class _Ids(IdGenerator):
    """IDs of spans: random, and that of a batch for its first span."""

    def __init__(self) -> None:
        self._random = RandomIdGenerator()
        self.given: SpanContext | None = None

    def generate_trace_id(self) -> int:
        return self.given.trace_id if self.given else self._random.generate_trace_id()

    def generate_span_id(self) -> int:
        return self.given.span_id if self.given else self._random.generate_span_id()


def batch_context(run: str, query: str, number: int) -> SpanContext:
    """Returns the trace and the span of a batch, which its log events have, too."""
    digest = hashlib.sha256(f"{run}\0{query}\0{number}".encode()).digest()
    trace, span = int.from_bytes(digest[:16]) or 1, int.from_bytes(digest[16:24]) or 1
    return SpanContext(trace, span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


class BatchSpans:
    """The exported spans of the batches of a run. Called by several threads."""

    def __init__(self, exporter: Any, resource: Resource, pipeline: str, run: str) -> None:
        self._ids = _Ids()
        self._provider = TracerProvider(
            resource=resource, id_generator=self._ids, shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer: Tracer = self._provider.get_tracer("penstock")  # type: ignore[assignment]
        self._pipeline, self._run = pipeline, run
        self._lock = threading.Lock()

    def close(self) -> None:
        """Exports the remaining spans."""
        self._provider.shutdown()

    def add(self, batch: FinishedBatch | FailedBatch) -> None:
        """Adds the spans of a batch."""
        with self._lock:
            if isinstance(batch, FailedBatch):
                self._add_failed(batch)
            else:
                self._add_finished(batch)

    def add_request(self, method: str, route: str, status: int, began: float) -> None:
        """Adds the span of a request to a server, which ends now."""
        span = self._tracer.start_span(
            f"{method} {route}", set_span_in_context(INVALID_SPAN), SpanKind.SERVER,
            {
                "http.request.method": method, "http.route": route,
                "http.response.status_code": status,
            },
            start_time=_ns(began),
        )  # fmt: skip
        if status >= 500:
            span.set_status(Status(StatusCode.ERROR))
        span.end()

    def _add_finished(self, batch: FinishedBatch) -> None:
        self._ids.given = batch_context(self._run, batch.query, batch.number)
        root = self._begin(batch, {"penstock.rows": batch.rows})
        self._ids.given = None
        inside = set_span_in_context(root)
        position = batch.began
        for phase, seconds in batch.phases.items():
            if phase == OTHER:
                continue
            span = self._tracer.start_span(phase, inside, start_time=_ns(position))
            if phase == PROCESSING:
                self._add_sinks(batch, span)
            position += seconds
            span.end(_ns(position))
        root.end(_ns(batch.began + batch.seconds))

    def _add_sinks(self, batch: FinishedBatch, processing: Span) -> None:
        inside = set_span_in_context(processing)
        for sink, part in batch.sinks.items():
            facts: dict[str, str | int] = {"penstock.sink": sink, "penstock.rows": part.rows}
            span = self._tracer.start_span(
                f"write {sink}", inside, start_time=_ns(part.began), attributes=facts
            )
            span.end(_ns(part.ended))

    def _add_failed(self, batch: FailedBatch) -> None:
        """Adds the span of a failed attempt, in the trace of the batch."""
        parent = NonRecordingSpan(batch_context(self._run, batch.query, batch.number))
        root = self._begin(batch, {"error.type": batch.code}, set_span_in_context(parent))
        root.set_status(Status(StatusCode.ERROR, conceal(batch.message)))
        root.end(_ns(batch.ended))

    def _begin(
        self, batch: FinishedBatch | FailedBatch, facts: Mapping[str, str | int],
        context: Context | None = None,
    ) -> Span:  # fmt: skip
        return self._tracer.start_span(
            f"batch {batch.query}", context or set_span_in_context(INVALID_SPAN),
            start_time=_ns(batch.began),
            attributes={
                "penstock.pipeline": self._pipeline, "penstock.run": self._run,
                "penstock.query": batch.query, "penstock.batch": batch.number, **facts,
            },
        )  # fmt: skip


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)
