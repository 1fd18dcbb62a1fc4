"""Failures of exports: one warning when an endpoint stops to answer."""

from __future__ import annotations

import logging
import threading
from typing import Any

from penstock.core.known_secrets import conceal
from penstock.core.log import Log
from penstock.core.text import shorten

SDK_LOGGER = "opentelemetry"


class ExportFailures(logging.Handler):
    """The failures of all exporters. A warning follows the first one after a success.

    The handler receives the SDK's own messages, which have the reasons.
    """

    def __init__(self, endpoint: str, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._endpoint, self._log = endpoint, log
        self._reason = ""
        self._failed = False
        self._changing = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps the reason of a failure."""
        self._reason = record.getMessage()

    def report(self, succeeded: bool) -> None:
        """Handles the result of an export."""
        with self._changing:
            changed = succeeded == self._failed
            self._failed = not succeeded
        if changed and not succeeded:
            self._log.warning(
                "telemetry not exported", endpoint=conceal(self._endpoint),
                reason=shorten(conceal(self._reason)),
            )  # fmt: skip
        elif changed:
            self._log.info("telemetry exported again", endpoint=conceal(self._endpoint))


class ReportedExporter:
    """An exporter of the SDK whose results are reported."""

    def __init__(self, exporter: Any, failures: ExportFailures) -> None:
        self._exporter, self._failures = exporter, failures

    def export(self, batch: Any) -> Any:
        """Exports a batch, and reports whether the endpoint has accepted it."""
        result = self._exporter.export(batch)
        self._failures.report(result.name == "SUCCESS")
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return True
