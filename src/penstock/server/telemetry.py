"""Telemetry of the server: the health of pipelines, its requests and its log, exported by OTLP.

Runs export their own metrics, batches and logs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from prometheus_client.core import Metric
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.core.errors import MissingExtra
from penstock.core.log import Log
from penstock.runtime.telemetry import ENDPOINT_VARIABLE, valid_endpoint

if TYPE_CHECKING:
    from penstock.observe.otlp.telemetry import Telemetry

SERVICE = "penstock-server"


class ExportedLog:
    """A log whose events are exported, too, once `telemetry` is set."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.telemetry: Telemetry | None = None

    def debug(self, event: str, **facts: Any) -> None:
        self._log.debug(event, **facts)

    def info(self, event: str, **facts: Any) -> None:
        self._log.info(event, **facts)
        self._export("info", event, facts)

    def warning(self, event: str, **facts: Any) -> None:
        self._log.warning(event, **facts)
        self._export("warning", event, facts)

    def error(self, event: str, **facts: Any) -> None:
        self._log.error(event, **facts)
        self._export("error", event, facts)

    def _export(self, level: str, event: str, facts: Mapping[str, Any]) -> None:
        if self.telemetry is not None:
            self.telemetry.add_event(level, event, facts)


@contextmanager
def exported(
    url: str | None, log: ExportedLog, families: Callable[[], Iterable[Metric]]
) -> Iterator[None]:
    """Exports the telemetry of a server during the block; nothing without a URL.

    Raises UserError for an invalid URL, and MissingExtra.
    """
    if url is None:
        yield
        return
    try:
        from penstock.observe.otlp.telemetry import Endpoint, Telemetry
    except ModuleNotFoundError as error:
        raise MissingExtra.of("otlp", error.name or "opentelemetry") from error
    endpoint = Endpoint(valid_endpoint(url))
    with Telemetry(endpoint, SERVICE, uuid4().hex[:12], families, log) as telemetry:
        log.telemetry = telemetry
        try:
            yield
        finally:
            log.telemetry = None


def variables(url: str | None) -> dict[str, str]:
    """Returns the variables of runs that name the endpoint."""
    return {} if url is None else {ENDPOINT_VARIABLE: url}


class RequestSpans:
    """ASGI middleware: a span for each request, while its server exports telemetry."""

    def __init__(self, app: ASGIApp, log: ExportedLog) -> None:
        self._app, self._log = app, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        telemetry = self._log.telemetry
        if telemetry is None or scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.time(), 500

        async def send_noting_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_noting_status)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            telemetry.add_request(scope["method"], route, status, began)
