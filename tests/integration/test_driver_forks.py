"""Forks of a driver, whose threads have connections to Java."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock import app
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


PIPELINE = """
name: inferred
runtime: {state: STATE}
sources:
  numbers: {type: memory, rows: [{id: 1}]}
transforms:
  same:
    type: python
    from: numbers
    options: {log: LOG}
    code: |
      import os
      def transform(batch, log):
          with open(log, "a") as file:
              file.write(f"{os.getppid()}\\n")
          return batch
sinks:
  one: {type: blackhole, from: same}
  two: {type: blackhole, from: same}
"""


def test_columns_are_inferred_once(tmp_path: Path, penstock_spark: SparkSession) -> None:
    log, file = tmp_path / "parents", tmp_path / "inferred.yaml"
    file.write_text(PIPELINE.replace("STATE", str(tmp_path)).replace("LOG", str(log)))
    options = app.RunOptions(until="caught_up")
    assert app.run(file, spark=penstock_spark.newSession(), options=options).ending
    parents = log.read_text().split()
    assert parents.count(str(os.getpid())) == 1 and len(parents) > 1
