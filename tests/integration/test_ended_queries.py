"""Ended queries leave nothing in a process that continues: threads, connections, sessions."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import app
from penstock.engine.catalyst.java_releases import RELEASED_TOGETHER

pytestmark = pytest.mark.spark

PIPELINE = """
name: short
runtime: {state: %s}
sources:
  numbers: {type: memory, rows: [{id: 1}]}
sinks:
  out: {type: blackhole, from: numbers}
"""
QUERY = """
SELECT /*+ BROADCAST(keys) */ count(*), (SELECT max(id) FROM range(3)) AS max
FROM range(9) AS numbers JOIN range(3) AS keys ON numbers.id % 3 = keys.id
GROUP BY keys.id
"""
"""A query with a shuffle, a broadcast and a subquery: Spark has a pool of threads for each."""


def test_ended_queries(tmp_path: Path, penstock_spark: SparkSession) -> None:
    threads: list[int] = []
    monitors: list[int] = []
    connections: list[int] = []
    sessions: list[Any] = []
    for number in range(4):
        file = tmp_path / f"{number}.yaml"
        file.write_text(PIPELINE % (tmp_path / str(number)))
        session = penstock_spark.newSession()
        sessions.append(_reference(session))
        assert app.run(file, spark=session, options=app.RunOptions(until="caught_up")).ending
        threads.append(threading.active_count())
        monitors.append(sum(name.startswith("Idle Worker Monitor") for name in _threads(session)))
        connections.append(_connections(session).size())
    session = penstock_spark.newSession()
    sessions.append(_reference(session))
    assert len(session.sql(QUERY).collect()) == 3
    session = penstock_spark.newSession()
    # Those of earlier tests may end meanwhile.
    for counts in (threads, monitors, connections):
        assert counts[3] <= max(counts[:3]), (threads, monitors, connections)
    # Threads of the first run have its session. The connection of the last run remains.
    _await_freed(session, [sessions[1], sessions[2], sessions[4]])


def _reference(session: Any) -> Any:
    return session._jvm.java.lang.ref.WeakReference(session._jsparkSession)


def _threads(session: Any) -> Iterator[str]:
    for thread in session._jvm.java.lang.Thread.getAllStackTraces().keySet():
        yield str(thread.getName())


def _connections(session: Any) -> Any:
    java, gateway = session._jvm, session.sparkContext._gateway
    field = java.java.lang.Class.forName("py4j.CallbackClient").getDeclaredField("connections")
    field.setAccessible(True)
    return field.get(gateway.java_gateway_server.getCallbackClient())


def _await_freed(session: Any, references: list[Any]) -> None:
    """Waits until Java has freed objects, less than the minute after which idle threads end."""
    deadline = time.monotonic() + 30
    while not all(reference.refersTo(None) for reference in references):
        assert time.monotonic() < deadline
        gc.collect()
        known = session.sparkContext._gateway.java_gateway_server.getGateway().getBindings()
        for _ in range(RELEASED_TOGETHER):
            known.keySet()
        session._jvm.java.lang.System.gc()
        time.sleep(0.1)
