"""Failures of one batch: rows that a sink has are not sent to it again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock import app
from penstock.connectors import memory
from penstock.connectors.memory import MemorySink
from penstock.core.errors import Transient
from penstock.runtime.dead_letters.store import DeadLetters
from penstock.runtime.outcome import Outcome
from penstock.sdk import BatchId, Receipt
from servers.web import Web

pytestmark = [pytest.mark.chaos, pytest.mark.spark]

ROWS = 400


class Place:
    """A pipeline with an at-least-once sink. The value 0 fails in its SQL."""

    def __init__(self, root: Path, spark: SparkSession, web: Web) -> None:
        self._root, self._spark, self._web = root, spark, web
        self._name = web.new_name()
        memory.clear()

    def run(self, values: Sequence[int], *, second: bool) -> Outcome:
        pipeline = {
            "name": "down",
            "runtime": {
                "state": str(self._root / "state"),
                "restart": {"attempts": 1, "backoff": "10ms"},
            },
            "sources": {
                "numbers": {
                    "type": "memory", "partitions": 4, "schema": "id LONG",
                    "rows": [{"id": value} for value in values],
                }
            },
            "transforms": {
                "ratios": {"type": "sql", "sql": "SELECT id, 1000 div id AS ratio FROM numbers"}
            },
            "sinks": {
                "first": {
                    "type": "http", "from": "ratios", "framing": "lines",
                    "url": f"{self._web.url}/kept/{self._name}",
                },
                **({"second": {"type": "memory", "from": "numbers"}} if second else {}),
            },
        }  # fmt: skip
        file = self._root / "down.yaml"
        file.write_text(json.dumps(pipeline))
        return app.run(file, spark=self._spark.newSession())

    def sent(self) -> list[int]:
        bodies = self._web.bodies(self._name)
        return sorted(json.loads(line)["id"] for body in bodies for line in body.splitlines())

    def dead_letters(self) -> list[Any]:
        dead_letters = (
            DeadLetters(self._root / "state" / "down" / "dead_letters").read().to_pylist()
        )
        return [(letter["node"], json.loads(letter["payload"])["id"]) for letter in dead_letters]


@pytest.fixture
def place(tmp_path: Path, penstock_spark: SparkSession, web_server: Web) -> Place:
    return Place(tmp_path, penstock_spark, web_server)


def test_second_sink_is_down(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its failures end an attempt of the query, and then the run."""
    commit = MemorySink.commit
    failures: list[int] = []

    def fail_twice(sink: MemorySink, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        if len(failures) < 2:
            failures.append(batch.number)
            raise Transient("the second sink is down")
        commit(sink, batch, receipts)

    monkeypatch.setattr(MemorySink, "commit", fail_twice)
    values = range(40)
    assert place.run(values, second=True).errors
    assert failures == [0, 0]
    assert not place.run(values, second=True).errors
    assert place.sent() == [*range(1, 40)]
    assert sorted(memory.tables["second"].column("id").to_pylist()) == [*values]
    assert place.dead_letters() == [("ratios", 0)]


def test_bad_row_among_good_ones(place: Place) -> None:
    assert not place.run([*range(1, ROWS), 0], second=False).errors
    assert place.sent() == [*range(1, ROWS)]
    assert place.dead_letters() == [("ratios", 0)]
