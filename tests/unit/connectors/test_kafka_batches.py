"""Batches of a transactional producer: a batch whose marker is committed is not sent again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.connectors.kafka import transactions
from penstock.connectors.kafka.config import KafkaSinkConfig
from penstock.connectors.kafka.transactions import TransactionalId, TransactionalProducer
from penstock.sdk import BatchId


@pytest.mark.parametrize(("number", "begins"), [(3, False), (4, False), (5, True), (9, True)])
def test_only_a_batch_after_the_marker_begins(
    number: int, begins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    client = SimpleNamespace(
        begin_transaction=lambda: calls.append("begin"), init_transactions=lambda timeout: None
    )
    marker = SimpleNamespace(
        query="q", last_batch=4, send=lambda batch, producer: calls.append("marker")
    )
    monkeypatch.setattr(transactions, "BatchMarker", lambda *_: marker)
    records: Any = SimpleNamespace(producer=client, action="write", tracker=None)
    id_, config = TransactionalId("shop.out.0", "t"), KafkaSinkConfig(brokers="b:1", topic="t")
    producer = TransactionalProducer(id_, config, records)
    assert producer.begin(BatchId("q", number, "content")) is begins
    assert calls == (["begin", "marker"] if begins else [])
