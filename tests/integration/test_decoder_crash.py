"""Payloads and files that end the worker process during their decoding."""

from __future__ import annotations

import base64
import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from penstock.connectors.files import FilesSource, FilesSourceConfig
from penstock.engine.catalyst.columns import to_spark
from penstock.engine.sources.datasource import PenstockDataSource
from penstock.engine.sources.source import SourceTask
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.sdk import Context
from penstock.sdk.forked import CRASHED

pytestmark = pytest.mark.spark

COLUMNS = pa.schema([("n", pa.int64())])
MODULE = """
import os

import pyarrow as pa

from penstock.connectors.memory.source import MemorySourceConfig
from penstock.formats.json import JsonConfig
from penstock.formats.json.plain import PlainJson
from penstock.formats.parquet import Parquet, ParquetConfig
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


class CrashingParquet(Parquet):
    def _batches(self, file, schema, origin, read):
        if origin.endswith("crash.parquet"):
            os.abort()
        yield from super()._batches(file, schema, origin, read)


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


def topic_with_a_crash(tmp_path: Path, crashing: Any) -> Any:
    payloads = [f'{{"n":{n}}}' for n in range(100)]
    payloads[41] = "crash"
    return crashing.topic(payloads)


def files_with_a_crash(tmp_path: Path, crashing: Any) -> Any:
    directory = tmp_path / "in"
    directory.mkdir()
    files = {"a": range(41), "b-crash": [41], "c": range(42, 100)}
    for name, numbers in files.items():
        pq.write_table(
            pa.table({"n": pa.array(numbers, pa.int64())}), directory / f"{name}.parquet"
        )
    config = FilesSourceConfig(path=str(directory), order="name")
    source = FilesSource(config, Context(state=tmp_path / "state"))
    source.format = crashing.CrashingParquet(crashing.ParquetConfig())
    return source


@pytest.mark.parametrize(
    ("make_source", "dead_letter_of_crash"),
    [(topic_with_a_crash, (b"crash", 41)), (files_with_a_crash, (None, 1))],
    ids=["payload", "file"],
)
def test_content_that_crashes_a_worker_becomes_a_dead_letter(
    tmp_path: Path,
    penstock_spark: SparkSession,
    crashing: Any,
    make_source: Callable[[Path, Any], Any],
    dead_letter_of_crash: tuple[bytes | None, int],
) -> None:
    source = make_source(tmp_path, crashing)
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
    assert (letter["code"], letter["payload"], letter["position"]) == (
        CRASHED,
        *dead_letter_of_crash,
    )
