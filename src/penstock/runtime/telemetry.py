"""Telemetry of a run: the export of its metrics, batches and log events by OTLP."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.core.errors import MissingExtra, UserError
from penstock.runtime.event_log import Event
from penstock.spec.runtime_models import check_endpoint

if TYPE_CHECKING:
    from penstock.runtime.handle import RunHandle

ENDPOINT_VARIABLE = "PENSTOCK_OTLP_ENDPOINT"
"""The environment variable with the endpoint of runs that have none of their own."""


def endpoint_of(handle: RunHandle, option: str | None) -> str | None:
    """Returns the endpoint of a run: that of the option, the file or the environment.

    Raises UserError for an invalid one.
    """
    chosen = option or handle.plan.spec.runtime.telemetry.endpoint
    chosen = chosen or os.environ.get(ENDPOINT_VARIABLE)
    return None if chosen is None else valid_endpoint(chosen)


def valid_endpoint(url: str) -> str:
    """Returns a valid endpoint. Raises UserError for an invalid one."""
    try:
        return check_endpoint(url)
    except ValueError as error:
        raise UserError(
            f"invalid endpoint of OTLP: {error}", code="invalid-address",
            hint="Pass the base URL of OTLP over HTTP, such as http://localhost:4318.",
        ) from None  # fmt: skip


@contextmanager
def exporting(handle: RunHandle, url: str) -> Iterator[None]:
    """Exports the telemetry of a run during the block. Raises MissingExtra."""
    try:
        from penstock.observe.otlp.telemetry import Endpoint, Telemetry
    except ModuleNotFoundError as error:
        raise MissingExtra.of("otlp", error.name or "opentelemetry") from error
    from penstock.observe.prometheus import Measured, run_families

    settings, metrics = handle.plan.spec.runtime.telemetry, handle.metrics
    headers = {name: value.reveal() for name, value in settings.headers.items()}
    name = handle.plan.name

    def batch_of(query: str) -> int | None:
        execution = metrics.queries.get(query)
        return execution.batch if execution is not None else None

    def add_event(event: Event) -> None:
        telemetry.add_event(event.level, event.name, event.facts)

    telemetry = Telemetry(
        Endpoint(url, headers, settings.interval), name, handle.id,
        lambda: run_families([Measured(name, metrics.snapshot())]), handle.log, batch_of,
    )  # fmt: skip
    with telemetry:
        metrics.batch_reports.observers.append(telemetry.add_batch)
        handle.log.observers.append(add_event)
        try:
            yield
        finally:
            handle.log.observers.remove(add_event)
            metrics.batch_reports.observers.remove(telemetry.add_batch)
