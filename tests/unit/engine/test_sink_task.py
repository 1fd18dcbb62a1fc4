"""Clients of sinks in the process that writes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from penstock.engine.sink import SinkTask, write
from penstock.engine.spool import Spool
from penstock.sdk import BatchId, Config, Sink, Transient, Writer

ROWS = pa.RecordBatch.from_pydict({"id": [1]})
clients: list[FragileClient] = []


class FragileClient:
    def __init__(self) -> None:
        self.broken, self.closed = False, threading.Event()

    def close(self) -> None:
        self.closed.set()
        raise OSError("the other side has left already")


class FragileWriter(Writer):
    def __init__(self, client: FragileClient) -> None:
        self._client = client

    def write(self, rows: pa.RecordBatch, payloads: Any = None) -> list[Any]:
        if self._client.broken:
            raise Transient("made up")
        return []

    def commit(self) -> dict[str, Any]:
        return {}


class FragileSink(Sink[Config]):
    """A sink whose client may be broken."""

    def open(self) -> FragileClient:
        clients.append(FragileClient())
        return clients[-1]

    def writer(
        self, client: FragileClient, batch: BatchId, partition: int, schema: pa.Schema
    ) -> FragileWriter:
        return FragileWriter(client)


@pytest.fixture
def task() -> Iterator[SinkTask]:
    clients.clear()
    task = SinkTask.of(FragileSink(Config()), Spool("made_up", "query", "sink", "sink"))
    yield task
    task.forget()


def written(task: SinkTask, number: int) -> None:
    write(task, BatchId("query", number), 0, iter([ROWS]))


def test_a_client_is_kept_between_batches(task: SinkTask) -> None:
    written(task, 0)
    written(task, 1)
    (client,) = clients
    assert not client.closed.is_set()


def test_a_client_that_failed_is_closed_and_another_made(task: SinkTask) -> None:
    written(task, 0)
    clients[0].broken = True
    with pytest.raises(Transient):
        written(task, 1)
    assert clients[0].closed.wait(30)
    written(task, 1)
    assert len(clients) == 2 and not clients[1].closed.is_set()
