"""Functions that threads of Java call, and the connections of these threads."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engine.spark_session.ended_queries import forget_ended


class Callback:
    """A function that the thread of a query calls for each batch.

    py4j opens a connection and starts a thread of Python for each thread of Java that calls Python.
    Both remain after the end of the thread of Java, until `close`.
    """

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function
        self._connection: Any = None

    def __call__(self, *arguments: Any) -> None:
        client: Any = getattr(SparkContext._gateway, "_gateway_client", None)
        if hasattr(client, "get_thread_connection"):
            self._connection = client.get_thread_connection()
        self._function(*arguments)

    def close(self) -> int | None:
        """Closes the connection, which ends the thread of Python. Returns its port in Java."""
        connected = getattr(self._connection, "socket", None)
        self._connection = None
        if connected is None:
            return None
        with suppress(OSError):
            port: int = connected.getpeername()[1]
            connected.shutdown(socket.SHUT_RDWR)
            return port
        return None


_open: list[tuple[StreamingQuery, Callback]] = []
_lock = threading.Lock()


def keep_until_end(query: StreamingQuery, callback: Callback) -> None:
    """Closes the callback of a query some time after the end of the query: at the next call.

    The objects of Java that hold the query are freed then, too.
    """
    with _lock:
        _open.append((query, callback))
        ended = [entry for entry in _open[:-1] if not _is_active(entry[0])]
        for entry in ended:
            _open.remove(entry)
        ports = [entry[1].close() for entry in ended]
    if ended:
        with suppress(Py4JError, OSError):
            forget_ended([port for port in ports if port is not None])


def _is_active(query: StreamingQuery) -> bool:
    try:
        return query.isActive
    except Exception:
        return False
