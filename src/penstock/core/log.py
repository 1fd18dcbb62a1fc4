"""Structured logging: text for a console, or one JSON object per line."""

from __future__ import annotations

import sys
from typing import Any, Literal, Protocol, TextIO

from penstock.core.known_secrets import conceal
from penstock.core.text import printable

Format = Literal["console", "json"]


class Log(Protocol):
    """A logger of events with facts."""

    def debug(self, event: str, **facts: Any) -> Any: ...
    def info(self, event: str, **facts: Any) -> Any: ...
    def warning(self, event: str, **facts: Any) -> Any: ...
    def error(self, event: str, **facts: Any) -> Any: ...


_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}


def make(
    format_: Format = "console", level: str = "info", file: TextIO | None = None, **facts: Any
) -> Log:
    """Returns a logger to a file, by default standard error; `facts` are part of every line."""
    import structlog

    output = file or sys.stderr

    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    render: Any
    escape = [] if format_ == "json" else [_escape]
    if format_ == "json":
        render = structlog.processors.JSONRenderer()
    else:
        render = structlog.dev.ConsoleRenderer(
            colors=output.isatty(), pad_event_to=0, pad_level=False, sort_keys=False
        )
    logger: Log = structlog.wrap_logger(
        structlog.PrintLogger(output),
        processors=[structlog.processors.add_log_level, _clean, stamp, *escape, render],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
    ).bind(**facts)
    return logger


def _clean(logger: Any, method: str, event: Any) -> Any:
    """Returns an event without empty facts, and with asterisks in place of known secrets."""
    return {
        key: conceal(value) if isinstance(value, str) else value
        for key, value in event.items()
        if value is not None
    }


def _escape(logger: Any, method: str, event: Any) -> Any:
    """Returns an event whose texts are printable."""
    return {
        key: printable(value) if isinstance(value, str) else value for key, value in event.items()
    }


class Silent:
    """A logger that discards all events."""

    def debug(self, event: str, **facts: Any) -> None: ...
    def info(self, event: str, **facts: Any) -> None: ...
    def warning(self, event: str, **facts: Any) -> None: ...
    def error(self, event: str, **facts: Any) -> None: ...
