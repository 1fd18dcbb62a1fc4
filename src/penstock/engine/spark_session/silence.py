"""Silence of PySpark and Py4J: their messages about the end of the JVM are of no use to users."""

from __future__ import annotations

import logging
import sys
from socketserver import BaseServer
from typing import Any

_NOISY = ("py4j", "SQLQueryContextLogger", "DataFrameQueryContextLogger")


def silence_threads() -> None:
    """Silences PySpark's threads while the JVM ends."""
    from pyspark import SparkContext

    if SparkContext._gateway is not None:
        SparkContext._gateway._gateway_client.is_connected = False
    context = SparkContext._active_spark_context
    server: Any = context and context._accumulatorServer
    if server is not None:
        server._BaseServer__shutdown_request = True


def silence_accumulators() -> None:
    """Silences the server of accumulators about a connection that ends with the JVM."""
    from pyspark import accumulators

    for server in (accumulators.AccumulatorTCPServer, accumulators.AccumulatorUnixServer):
        if server.handle_error is not _report_unless_closed:
            setattr(server, "handle_error", _report_unless_closed)  # noqa: B010


def _report_unless_closed(server: BaseServer, request: Any, address: Any) -> None:
    if not isinstance(sys.exc_info()[1], EOFError | OSError):
        BaseServer.handle_error(server, request, address)


def silence_py4j() -> None:
    """Silences py4j, including messages that bypass its logger."""
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_not_from_py4j)


def _not_from_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname
