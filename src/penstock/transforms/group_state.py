"""Handlers with state over a stream: a state for each group, in the state of Spark.

Rows are packed by buckets of groups, because the state of each bucket is read and written once in a
batch. A bucket has a handler for each group.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from penstock.handlers.dispatch import Dispatch
from penstock.handlers.group import GroupBy
from penstock.handlers.handler import Chain, Handler
from penstock.handlers.metadata import with_time
from penstock.handlers.rows import Indexes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState
    from pyspark.sql.types import DataType

RESULT = "result"
"""The column that a handler adds."""
BUCKETS = 32
_PARTS = 2**32
"""The maximum number of batches of Arrow in a partition."""


def handler_names(columns: int, by: Sequence[int]) -> list[str]:
    """Returns the names of columns in a handler.

    Those of grouping columns are part of the state, and do not depend on other columns.
    """
    return [f"by{by.index(i)}" if i in by else f"c{i}" for i in range(columns)]


def apply_by_group(
    frame: DataFrame, create: Callable[[], Handler], by: Sequence[int], time: int,
    name: str, kind: DataType,
) -> DataFrame:  # fmt: skip
    """Returns the rows of a stream or of a table with a column that a handler of each group adds.

    `by` and `time` are the positions of columns, whose names in the handler are `handler_names`.
    The handler adds `RESULT`, which is returned as `name`.
    """
    from pyspark.sql.types import StructField, StructType

    names = handler_names(len(frame.columns), by)
    grouping = tuple(names[index] for index in by)
    plain = frame.toDF(*names)
    output = StructType([*plain.schema.fields, StructField(RESULT, kind)])
    packed = plain.mapInArrow(Packed(grouping), Packed.DDL).groupBy("bucket")
    task = _Task(create, grouping, names[time])
    if frame.isStreaming:
        computed = packed.applyInPandasWithState(
            task.advance, "rows BINARY", "state BINARY", "append", "NoTimeout"
        )
    else:
        computed = packed.applyInPandas(task.compute, "rows BINARY")
    return computed.mapInArrow(_unpack, output).toDF(*frame.columns, name)


@dataclass(frozen=True)
class Packed:
    """The rows of each bucket in a batch of Arrow as one value, with their place in the input.

    `by` are the columns of the group.
    """

    DDL: ClassVar = "bucket INT, place BIGINT, rows BINARY"

    by: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        first = (context.partitionId() if context else 0) * _PARTS
        for number, batch in enumerate(batches):
            if not batch.num_rows:
                continue
            buckets = self._buckets(batch)
            found = np.unique(buckets)
            rows = [to_bytes(batch.filter(pa.array(buckets == each))) for each in found]
            places = np.full(len(found), first + number)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(found, pa.int32()),
                    pa.array(places, pa.int64()),
                    pa.array(rows, pa.binary()),
                ],
                names=["bucket", "place", "rows"],
            )

    def _buckets(self, batch: pa.RecordBatch) -> Indexes:
        """Returns the bucket of each row, by the texts of its group."""
        codes = np.zeros(batch.num_rows, np.int64)
        for name in self.by:
            values = batch.column(batch.schema.get_field_index(name)).dictionary_encode("encode")
            texts = [_text(value).encode() for value in values.dictionary.to_pylist()]
            hashes = np.array([zlib.crc32(text) for text in texts], np.int64)
            codes = codes * 31 % (2**31) + hashes[values.indices.to_numpy(zero_copy_only=False)]
        return codes % BUCKETS


def _text(value: object) -> str:
    return "0" if value == 0 else str(value)


@dataclass(frozen=True)
class _Task:
    """The handler of a bucket over the rows of a batch."""

    create: Callable[[], Handler]
    by: tuple[str, ...]
    time: str

    def advance(self, key: Any, parts: Iterator[Any], state: GroupState) -> Iterator[Any]:
        """Yields the output for the parts of a batch, and stores the state."""
        handler = Dispatch(self.create)
        if state.exists:
            handler.load(bytes(state.get[0]))
        output = self._output(handler, parts)
        state.update((handler.save(),))
        yield output

    def compute(self, rows: Any) -> Any:
        """Returns the output for the rows of a table."""
        return self._output(Dispatch(self.create), [rows])

    def _output(self, handler: Handler, parts: Iterable[Any]) -> Any:
        """Returns packed output rows as a DataFrame of pandas, for parts that are such frames."""
        import pandas as pd  # type: ignore[import-untyped]

        packed = [pair for part in parts for pair in zip(part["place"], part["rows"], strict=True)]
        ordered = sorted(packed, key=lambda pair: int(pair[0]))
        outputs = Chain([GroupBy(self.by), handler]).handle_all(
            [self._with_time(batch) for _, rows in ordered for batch in from_bytes(rows)]
        )
        return pd.DataFrame({"rows": [to_bytes(output) for output in outputs]})

    def _with_time(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.replace_schema_metadata(with_time(batch.schema, self.time).metadata)


def _unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for rows in batch.column(0).to_pylist():
            yield from from_bytes(rows)


def to_bytes(batch: pa.RecordBatch) -> bytes:
    """Returns a batch as a stream of Arrow."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    value: bytes = sink.getvalue().to_pybytes()
    return value


def from_bytes(rows: bytes) -> list[pa.RecordBatch]:
    """Returns the batches of a stream of Arrow."""
    return list(pa.ipc.open_stream(rows))
