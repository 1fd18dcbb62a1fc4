"""A payload that ends the worker process during its decoding."""

from __future__ import annotations

import base64
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from penstock.engine.columns import to_spark
from penstock.engine.datasource import PenstockDataSource
from penstock.engine.source import SourceTask
from penstock.engine.spool import Spool
from penstock.sdk.forked import CRASHED

pytestmark = pytest.mark.spark

COLUMNS = pa.schema([("n", pa.int64())])
MODULE = """
import os

import pyarrow as pa

from penstock.connectors.memory import MemorySourceConfig
from penstock.formats.json import JsonConfig
from penstock.formats.json.plain import PlainJson
from penstock.sdk import Capability, ReplayableSource


class CrashingJson(PlainJson):
    def decode(self, payloads, schema):
        if b"crash" in payloads.to_pylist():
            os.abort()
        return super().decode(payloads, schema)


class Topic(ReplayableSource):
    config_type = MemorySourceConfig
    capabilities = frozenset({Capability.BYTES})

    def initial_offset(self):
        return {"end": 0}

    def latest_offset(self, start):
        return {"end": len(self.config.payloads)}

    def partitions(self, start, end):
        return [(start["end"], end["end"])] if start != end else []

    def read(self, partition, read):
        positions = list(range(*partition))
        payloads = [self.config.payloads[position].encode() for position in positions]
        yield pa.record_batch(
            {"payload": payloads, "origin": ["topic"] * len(payloads), "position": positions}
        )


def topic(payloads):
    source = Topic(MemorySourceConfig(payloads=payloads))
    source.format = CrashingJson(JsonConfig())
    return source
"""


@pytest.fixture
def crashing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of a format that crashes. Its classes are pickled by value."""
    (tmp_path / "crashing_json.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("crashing_json")
    cloudpickle.register_pickle_by_value(module)
    yield module
    cloudpickle.unregister_pickle_by_value(module)


def test_payload_that_crashes_a_worker_becomes_a_dead_letter(
    tmp_path: Path, penstock_spark: SparkSession, crashing: Any
) -> None:
    payloads = [f'{{"n":{n}}}' for n in range(100)]
    payloads[41] = "crash"
    source = crashing.topic(payloads)
    source.columns = COLUMNS
    spool = Spool("p", "q", "topic", "decode", directory=str(tmp_path / "spool"))
    task = SourceTask(source, COLUMNS, {}, spool)
    packed = base64.b64encode(cloudpickle.dumps(task)).decode()
    session = penstock_spark.newSession()
    session.conf.set("spark.sql.streaming.queryEvolution.enableSourceEvolution", "false")
    session.conf.set("spark.sql.streaming.offsetLog.formatVersion", "1")
    session.dataSource.register(PenstockDataSource)
    rows = (
        session.readStream.format("penstock")
        .schema(to_spark(COLUMNS))
        .option("secret.task", packed)
        .load()
    )
    collected: list[int] = []
    query = (
        rows.writeStream.foreachBatch(
            lambda batch, _: collected.extend(r.n for r in batch.collect())
        )
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(collected) == [n for n in range(100) if n != 41]
    (file,) = (tmp_path / "spool").glob("*/*.arrow")
    (letter,) = pa.ipc.open_file(file).read_all().to_pylist()
    assert (letter["code"], letter["payload"], letter["position"]) == (CRASHED, b"crash", 41)
