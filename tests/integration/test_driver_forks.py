"""Forks of a driver whose threads have connections to Java."""

from __future__ import annotations

import os
import socket
import threading
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock.sdk.forked import iterate_forked

pytestmark = pytest.mark.spark


class Caller(threading.Thread):
    """A thread that calls Java, and waits until it is closed."""

    def __init__(self, session: SparkSession) -> None:
        super().__init__(daemon=True)
        self._java: Any = session._jvm
        self._called, self._closed = threading.Event(), threading.Event()
        self.connection: socket.socket | None = None

    def run(self) -> None:
        self._java.java.lang.System.nanoTime()
        gateway: Any = SparkContext._gateway
        descriptor = gateway._gateway_client.get_thread_connection().socket.fileno()
        self.connection = socket.socket(fileno=os.dup(descriptor))
        self._called.set()
        self._closed.wait()

    def __enter__(self) -> Caller:
        self.start()
        assert self._called.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self.join(60)


def is_open(connection: socket.socket) -> bool:
    try:
        return connection.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True


def test_a_fork_closes_no_connection_of_another_thread(penstock_spark: SparkSession) -> None:
    with Caller(penstock_spark) as caller:
        assert caller.connection is not None
        with caller.connection:
            assert list(iterate_forked(lambda: iter([1]))) == [1]
            assert is_open(caller.connection)
