"""Batches of a transactional producer: a batch whose marker is committed is not sent again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.connectors.kafka.transactions import TransactionalProducer
from penstock.sdk import BatchId


@pytest.mark.parametrize(("number", "begins"), [(3, False), (4, False), (5, True), (9, True)])
def test_only_a_batch_after_the_marker_begins(number: int, begins: bool) -> None:
    calls: list[str] = []
    client = SimpleNamespace(begin_transaction=lambda: calls.append("begin"))
    marker = SimpleNamespace(
        query="q", last_batch=4, send=lambda batch, producer: calls.append("marker")
    )
    producer: Any = TransactionalProducer.__new__(TransactionalProducer)
    producer.producer, producer._marker = SimpleNamespace(producer=client, action="write"), marker
    assert producer.begin(BatchId("q", number, "content")) is begins
    assert calls == (["begin", "marker"] if begins else [])
