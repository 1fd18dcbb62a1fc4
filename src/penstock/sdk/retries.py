"""Reports of transient failures that a component retries by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from penstock.core.errors import PenstockError

_listener: ContextVar[Callable[[PenstockError], None] | None] = ContextVar("listener", default=None)


def report_retry(error: PenstockError) -> None:
    """Shows a failure in the status of the run, while a sink tries again before it raises."""
    listener = _listener.get()
    if listener is not None:
        listener(error)


@contextmanager
def reported_retries(listener: Callable[[PenstockError], None]) -> Iterator[None]:
    """Passes each error of `report_retry` in this context to `listener`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
