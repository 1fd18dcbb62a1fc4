from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from penstock.connectors.spark import SparkSink, SparkSource
from penstock.sdk import BatchId, Sink
from penstock.testing.contract import SinkContract, SourceContract
from penstock.testing.contract import rows as sample


class TestSparkSource(SourceContract):
    """The source over the rows that Spark has stored; pipelines read the files by Spark."""

    component = SparkSource
    format = None
    unsupported = {"test_pipeline_resumes_after_failure": "Spark reads once, before a record fails"}

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, Any]:
        (tmp_path / "in").mkdir()
        return {"provider": "parquet", "path": str(tmp_path / "in")}

    @pytest.fixture
    def put(self, tmp_path: Path) -> Callable[..., None]:
        count = 0

        def put(rows: list[dict[str, Any]], schema: pa.Schema = sample.SIMPLE) -> None:
            nonlocal count
            count += 1
            for directory in (tmp_path / "in", tmp_path / "state" / "rows"):
                directory.mkdir(parents=True, exist_ok=True)
                table = pa.Table.from_pylist(rows, schema=schema)
                pq.write_table(table, directory / f"part-{count:05}.parquet")

        return put


@pytest.mark.spark
class TestSparkSink(SinkContract):
    component = SparkSink
    format = None
    unsupported = {"test_abort_after_writer_commit": "Spark has no writers to abort"}

    @pytest.fixture(autouse=True)
    def _session(self, penstock_spark: SparkSession) -> None:
        self.session = penstock_spark.newSession()

    @pytest.fixture
    def options(self, tmp_path: Path) -> dict[str, Any]:
        return {"provider": "parquet", "path": str(tmp_path / "out")}

    @pytest.fixture
    def rows(self, tmp_path: Path) -> Callable[[pa.Schema], list[dict[str, Any]]]:
        def rows(schema: pa.Schema) -> list[dict[str, Any]]:
            files = sorted((tmp_path / "out").glob("*.parquet"))
            found = [
                pq.ParquetFile(file, coerce_int96_timestamp_unit="us").read() for file in files
            ]
            return [row for table in found for row in table.cast(schema).to_pylist()]

        return rows

    def write_partitions(
        self, sink: Sink[Any], batch: BatchId, partitions: Any, schema: pa.Schema = sample.SIMPLE
    ) -> list[Any]:
        """Writes the rows as the engine does: as one DataFrame."""
        assert isinstance(sink, SparkSink)
        sink.prepare(schema)
        table = pa.Table.from_pylist([row for rows in partitions for row in rows], schema=schema)
        if table.num_rows:
            sink.write_frame(self.session.createDataFrame(table).coalesce(1), batch)
        return []
