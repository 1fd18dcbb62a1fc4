"""Log events as log records of OTLP."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import NonRecordingSpan, SpanContext, set_span_in_context

from penstock.core.known_secrets import conceal

SEVERITIES = {
    "debug": SeverityNumber.DEBUG,
    "info": SeverityNumber.INFO,
    "warning": SeverityNumber.WARN,
    "error": SeverityNumber.ERROR,
}


class LogRecords:
    """The exported log events of a process. `context_of` returns the span of an event's facts."""

    def __init__(
        self, exporter: Any, resource: Resource,
        context_of: Callable[[Mapping[str, Any]], SpanContext | None],
    ) -> None:  # fmt: skip
        self._provider = LoggerProvider(resource, shutdown_on_exit=False)
        self._provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
        self._logger = self._provider.get_logger("penstock")
        self._context_of = context_of

    def close(self) -> None:
        """Exports the remaining records."""
        self._provider.shutdown()

    def add(self, level: str, event: str, facts: Mapping[str, Any]) -> None:
        """Adds an event. Known secrets are replaced."""
        span = self._context_of(facts)
        context = set_span_in_context(NonRecordingSpan(span)) if span is not None else None
        now = time.time_ns()
        self._logger.emit(
            LogRecord(
                timestamp=now,
                observed_timestamp=now,
                context=context,
                severity_text=level,
                severity_number=SEVERITIES[level],
                body=conceal(event),
                attributes={
                    name: value if isinstance(value, bool | int | float) else conceal(str(value))
                    for name, value in facts.items()
                    if value is not None
                },
            )
        )
