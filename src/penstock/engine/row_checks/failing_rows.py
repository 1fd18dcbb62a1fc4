"""Files of failing rows: tasks report the rows of a stream on which SQL fails.

Catalyst shows that an expression fails, not why. Tasks report the input rows of the transform to
files beside the dead letters of the batch, and the driver determines the errors of these rows.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql.types import StructType

from penstock.core.error_codec import encode_errors
from penstock.engine.reports.report import begin_report
from penstock.engine.tasks import task as spark_task

FOLDER = ".failing"
"""The folder of a batch with a folder for the failing rows of each name."""
NUMBER = "_penstock_number"
"""The column with a random number that identifies an input row, which is last.

An input row that a join or a generator multiplies may fail several times.
"""
_RESULT = ".result-"
"""The part between the name of a node, which has no dot, and the position of an aggregation."""
_COLUMNS = b"columns"
"""The metadata key of the columns in Spark's types, as JSON."""


@dataclass(frozen=True)
class FailingRows:
    """The destination of the rows on which a node fails. `directory` None discards them.

    `name` is that of the node for its input rows, and that of `of_result` for rows of groups.
    `directory` is that of the spool of the query.
    """

    name: str
    columns: StructType
    directory: str | None
    check: int = 0

    def of_result(self, position: int, columns: StructType) -> FailingRows:
        """Returns the destination of the rows of an aggregation of the node.

        `position` is that of the aggregation, from below.
        """
        return replace(self, name=f"{node_of(self.name)}{_RESULT}{position}", columns=columns)

    def of_check(self, check: int) -> FailingRowsWriter:
        """Returns the writer of the rows that fail a check of the node."""
        return FailingRowsWriter(replace(self, check=check))


@dataclass(frozen=True)
class FailingRowsWriter:
    """A function over a column with failing rows, null for the other rows.

    Returns whether a row passes. Publishes the failing rows of a task at its end.
    """

    rows: FailingRows

    @encode_errors
    def __call__(self, columns: Iterator[pa.StructArray]) -> Iterator[pa.BooleanArray]:
        file = _PartitionFile(self.rows)
        for column in columns:
            passing = column.is_null()
            if self.rows.directory is not None and column.null_count < len(column):
                file.write(column.filter(column.is_valid()))
            yield passing
        file.close()


class _PartitionFile:
    """The report of the failing rows of a task, begun with its first row."""

    def __init__(self, rows: FailingRows) -> None:
        batch, partition = spark_task.batch_number(), spark_task.partition()
        folder = Path(rows.directory or "") / str(batch) / FOLDER / rows.name
        self._path = folder / f"{rows.check}-{partition}.arrows"
        self._columns = rows.columns
        self._writer: pa.RecordBatchStreamWriter | None = None

    def write(self, failing: pa.StructArray) -> None:
        batch = pa.RecordBatch.from_struct_array(failing)
        if self._writer is None:
            self._report = begin_report(self._path)
            schema = batch.schema.with_metadata({_COLUMNS: self._columns.json()})
            self._writer = pa.ipc.new_stream(self._report.file, schema)
        self._writer.write_batch(batch)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._report.publish()


def node_of(name: str) -> str:
    """Returns the node of failing rows of a name."""
    return name.partition(_RESULT)[0]


def failing_names(batch: Path) -> list[str]:
    """Returns the names of the failing rows in the spool of a batch (see `FailingRows`)."""
    folder = batch / FOLDER
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def read_failing_rows(batch: Path, name: str, size: int) -> Iterator[tuple[StructType, pa.Table]]:
    """Yields the failing rows of a name, with their columns in Spark's types.

    Each row occurs once. The order is fixed. A table has about `size` rows.
    """
    seen: set[object] = set()
    pending: list[pa.Table] = []
    columns = StructType()
    for path in sorted((batch / FOLDER / name).glob("[!.]*.arrows"), key=_order):
        with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as reader:
            columns = StructType.fromJson(json.loads(reader.schema.metadata[_COLUMNS]))
            for rows in reader:
                pending.append(_unseen(rows, seen))
                if sum(table.num_rows for table in pending) >= size:
                    yield columns, pa.concat_tables(pending)
                    pending = []
    if pending:
        yield columns, pa.concat_tables(pending)


def _unseen(rows: pa.RecordBatch, seen: set[object]) -> pa.Table:
    """Returns the rows with other numbers than those in `seen`, and adds their numbers."""
    fresh = []
    for index, number in enumerate(rows.column(NUMBER).to_pylist()):
        if number not in seen:
            seen.add(number)
            fresh.append(index)
    table = pa.Table.from_batches([rows]).replace_schema_metadata()
    return table.take(pa.array(fresh, pa.int64())).drop_columns([NUMBER])


def _order(path: Path) -> list[int]:
    return [int(part) for part in path.stem.split("-")]


def remove_failing_rows(batch: Path) -> None:
    """Removes the files of a batch."""
    shutil.rmtree(batch / FOLDER, ignore_errors=True)
