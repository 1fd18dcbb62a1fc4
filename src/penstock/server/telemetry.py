"""Telemetry of the server: the health of pipelines, its requests and its log, exported by OTLP.

Runs export their own metrics, batches and logs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from prometheus_client.core import Metric
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.core.errors import MissingExtra
from penstock.runtime.event_log import Event, EventLog
from penstock.runtime.telemetry import ENDPOINT_VARIABLE, valid_endpoint

if TYPE_CHECKING:
    from penstock.observe.otlp.telemetry import Telemetry

SERVICE = "penstock-server"


@contextmanager
def exported(
    url: str | None, log: EventLog, families: Callable[[], Iterable[Metric]]
) -> Iterator[Telemetry | None]:
    """Exports the telemetry of a server during the block; nothing without a URL.

    Raises UserError for an invalid URL, and MissingExtra.
    """
    if url is None:
        yield None
        return
    try:
        from penstock.observe.otlp.telemetry import Endpoint, Telemetry
    except ModuleNotFoundError as error:
        raise MissingExtra.of("otlp", error.name or "opentelemetry") from error

    def add_event(event: Event) -> None:
        telemetry.add_event(event.level, event.name, event.facts)

    endpoint = Endpoint(valid_endpoint(url))
    with Telemetry(endpoint, SERVICE, uuid4().hex[:12], families, log) as telemetry:
        log.observers.append(add_event)
        try:
            yield telemetry
        finally:
            log.observers.remove(add_event)


def variables(url: str | None) -> dict[str, str]:
    """Returns the variables of runs that name the endpoint."""
    return {} if url is None else {ENDPOINT_VARIABLE: url}


class RequestSpans:
    """ASGI middleware: a span for each request. `prefix` is that of the paths of the API."""

    def __init__(self, app: ASGIApp, telemetry: Telemetry, prefix: str) -> None:
        self._app, self._telemetry, self._prefix = app, telemetry, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
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
            if scope["path"].startswith(self._prefix):
                route = self._prefix + route.removeprefix(self._prefix)
            self._telemetry.add_request(scope["method"], route, status, began)
