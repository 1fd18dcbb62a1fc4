"""Handlers with state over a stream: a state for each group, in the state of Spark.

Rows are packed by buckets of groups, because the state of each bucket is read and written once in a
batch. A bucket has a handler for each group.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.core.error_codec import encode_errors
from penstock.core.errors import PlanError, Rejected
from penstock.handlers.dispatch import ByGroup
from penstock.handlers.errors import HandlerError
from penstock.handlers.handler import Dropped, Handler
from penstock.handlers.roles import Roles
from penstock.handlers.rows import Indexes, aligned
from penstock.handlers.stream import FAILED
from penstock.sdk import Rejects

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState
    from pyspark.sql.types import DataType, StructType

RESULT = "result"
"""The column that a handler adds."""
BUCKETS = 32
PACKED = "bucket INT, place BIGINT, rows BINARY"
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
    task = BucketTask(partial(ByGroup, grouping, create), Roles(names[time]))
    return apply_by_bucket(plain, task, grouping, output).toDF(*frame.columns, name)


def apply_by_bucket(
    frame: DataFrame, task: BucketTask, by: Sequence[str], output: StructType
) -> DataFrame:
    """Returns the columns `output` of the rows that the handler of each bucket returns.

    The groups `by` are divided among buckets. Without `by` there is a single bucket.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    packed = frame.mapInArrow(Pack(tuple(by)), PACKED).groupBy("bucket")
    if frame.isStreaming:
        computed = packed.applyInPandasWithState(
            task.advance, "rows BINARY", "state BINARY", "append", "NoTimeout"
        )
    else:
        computed = packed.applyInPandas(task.compute, "rows BINARY")
    return computed.mapInArrow(_Unpack(to_arrow_schema(output, timezone="UTC")), output)


@dataclass(frozen=True)
class Pack:
    """The rows of each bucket in a batch of Arrow as one value, with their place in the input."""

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
class BucketTask:
    """The handler of a bucket over the rows of a batch, whose columns have roles.

    Rows that the handler drops are passed to `rejects`.
    """

    create: Callable[[], Handler]
    roles: Roles
    rejects: Rejects | None = None

    @encode_errors
    def advance(self, key: Any, parts: Iterator[Any], state: GroupState) -> Iterator[Any]:
        """Yields the output for the parts of a batch, and stores the state."""
        handler = self.create()
        if state.exists:
            handler.load(bytes(state.get[0]))
        output = self._output(handler, parts, int(key[0]))
        state.update((handler.save(),))
        yield output

    @encode_errors
    def compute(self, rows: Any) -> Any:
        """Returns the output for the rows of a table."""
        return self._output(self.create(), [rows], int(rows["bucket"].iloc[0]))

    @encode_errors
    def apply(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields the output of a handler without state, for the rows of a partition."""
        from pyspark import TaskContext

        context = TaskContext.get()
        handler, dropped = self.create(), list[Dropped]()
        for batch in batches:
            yield from self._handled(handler, [batch])
            dropped += handler.take_dropped()
        self._reject(dropped, context.partitionId() if context else 0)

    def _output(self, handler: Handler, parts: Iterable[Any], bucket: int) -> Any:
        """Returns packed output rows as a DataFrame of pandas, for parts that are such frames."""
        import pandas as pd  # type: ignore[import-untyped]

        packed = [pair for part in parts for pair in zip(part["place"], part["rows"], strict=True)]
        ordered = sorted(packed, key=lambda pair: int(pair[0]))
        rows = [batch for _, packed in ordered for batch in from_bytes(packed)]
        outputs = self._handled(handler, rows)
        self._reject(handler.take_dropped(), bucket)
        return pd.DataFrame({"rows": [to_bytes(output) for output in outputs]})

    def _handled(self, handler: Handler, rows: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """Returns the output of a handler. Raises PlanError."""
        try:
            return handler.handle_all([self.roles.apply(batch) for batch in rows])
        except HandlerError as error:
            raise PlanError(error.message, code=FAILED) from error

    def _reject(self, dropped: Sequence[Dropped], part: int) -> None:
        failures = [(each.rows, Rejected(each.reason, code=each.code)) for each in dropped]
        if failures and self.rejects is None:
            raise failures[0][1]
        if failures and self.rejects is not None:
            self.rejects(str(part), failures)


@dataclass(frozen=True)
class _Unpack:
    """Packed rows as rows of a schema."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for rows in batch.column(0).to_pylist():
                yield from (aligned(each, self.schema) for each in from_bytes(rows))


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
