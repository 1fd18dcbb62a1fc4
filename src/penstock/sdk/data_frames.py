"""Sources and sinks that Spark itself reads and writes, as DataFrames."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.core.errors import PenstockError, PlanError, StateError
from penstock.core.files.durable import replace_durably
from penstock.sdk.capability import Capability
from penstock.sdk.columns.conform import conform
from penstock.sdk.component import C
from penstock.sdk.record import Read
from penstock.sdk.replayable_source import ReplayableSource
from penstock.sdk.sink import BatchId, Sink, Writer
from penstock.sdk.source import Offset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS = 10_000
_ORIGIN = "_ORIGIN"
_COMPLETE = "_SUCCESS"
"""The file that Spark writes when all others are complete."""


class DataFrameSource(ReplayableSource[C]):
    """A source whose rows Spark reads once, before the first batch of a pipeline.

    The rows are stored in the state directory as Parquet, so they can be read again in the same
    parts. Define `frame`.
    """

    capabilities = frozenset({Capability.REPLAY, Capability.BOUNDED, Capability.ROWS})
    parallelism = "a partition of the DataFrame"
    acknowledges = None

    @abstractmethod
    def frame(self, session: SparkSession) -> DataFrame:
        """Returns the rows. Raises OptionError, Transient or Permanent."""

    @property
    @abstractmethod
    def origin(self) -> str:
        """The format, place and options of the rows, without secrets."""

    @abstractmethod
    def translate_error(self, error: Exception) -> PenstockError | None:
        """Returns the error of Penstock for one of Spark; None for another error."""

    def take_snapshot(self, session: SparkSession) -> None:
        """Reads and stores the rows, unless an earlier run has done so.

        Raises StateError if the earlier run has read another origin.
        """
        directory = self._directory
        digest, file = hashlib.sha256(self.origin.encode()).hexdigest(), directory / _ORIGIN
        if (directory / _COMPLETE).exists() and file.exists():
            if file.read_text(encoding="utf-8") == digest:
                return
            raise StateError(
                "the rows were read with other options by an earlier run", code="changed-plan",
                hint="Run with --fresh to read the rows again, or restore the options.",
            )  # fmt: skip
        own = session.newSession()
        own.conf.set("spark.sql.session.timeZone", "UTC")
        own.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        try:
            self.frame(own).write.mode("overwrite").parquet(str(directory))
        except Exception as error:
            translated = self.translate_error(error)
            if translated is None:
                raise
            raise translated from error
        replace_durably(file, digest)

    def infer_schema(self) -> pa.Schema | None:
        files = self._files() if self.context.state is not None else []
        return pq.read_schema(files[0]).remove_metadata() if files else None

    def metadata_schema(self) -> pa.Schema:
        return pa.schema([])

    def is_bounded(self) -> bool:
        return True

    def initial_offset(self) -> Offset:
        return {"files": 0}

    def latest_offset(self, start: Offset) -> Offset:
        return {"files": len(self._files())}

    def min_offset(self, first: Offset, second: Offset) -> Offset:
        return min(first, second, key=lambda offset: int(offset["files"]))

    def partitions(self, start: Offset, end: Offset) -> Sequence[str]:
        return [str(path) for path in self._files()[start["files"] : end["files"]]]

    def read(self, partition: str, read: Read) -> Iterator[pa.RecordBatch]:
        assert self.columns is not None
        with pq.ParquetFile(partition) as file:
            for batch in file.iter_batches(_ROWS):
                yield conform(batch, self.columns)

    def _files(self) -> list[Path]:
        return sorted(self._directory.glob("*.parquet"))

    @property
    def _directory(self) -> Path:
        if self.context.state is None:
            raise PlanError(
                f'the source "{self.context.node}" is read by Spark before a run, and has no state '
                "directory here",
                code="not-running",
                hint="Use it in a run, or read it with spark.read.",
            )
        return self.context.state / "rows"


class DataFrameSink(Sink[C]):
    """A sink that Spark writes. Define `write_frame`. It has no writers in tasks."""

    capabilities = frozenset({Capability.ROWS})

    @abstractmethod
    def write_frame(self, rows: DataFrame, batch: BatchId) -> None:
        """Writes the rows of a batch. Raises OptionError, Transient or Permanent."""

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        raise NotImplementedError("Spark writes the rows of this sink")
