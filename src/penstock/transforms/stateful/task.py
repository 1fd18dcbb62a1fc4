"""Stateful functions in Spark: the states of a bucket of keys are one value of its state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.core.error_codec import encode_errors
from penstock.core.errors import Rejected
from penstock.sdk.transform import Rejects
from penstock.transforms.group_state import BUCKETS, PACKED, Pack, from_bytes, to_bytes
from penstock.transforms.stateful.keyed_states import FOREVER, Failed, KeyedStates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState

_WATERMARK = "spark.watermarkDelayMs"
_NEVER_LATE = "2262-01-01"
"""A time after all watermarks of data that pandas can represent."""


@dataclass(frozen=True)
class StatefulTask:
    """The calls for the rows of a bucket. `create` returns states without keys.

    `output` are the columns of the result. The rows of failed calls are passed to `rejects`.
    """

    create: Callable[[], KeyedStates]
    output: pa.Schema
    has_event_time: bool
    rejects: Rejects | None = None

    def apply(self, frame: DataFrame, by: tuple[str, ...], output: Any) -> DataFrame:
        """Returns the output for the rows of a stream or of a table."""
        pack = Pack(by) if self.has_event_time else _PackAll(Pack(by))
        packed = frame.mapInArrow(pack, PACKED)
        if not frame.isStreaming:
            grouped = packed.groupBy("bucket")
            return grouped.applyInPandas(self.compute, "rows BINARY").mapInArrow(_unpack, output)
        if self.has_event_time:
            from pyspark.sql.functions import expr

            # Spark reads the watermark of the stream only for a column with this metadata.
            never_late = expr(f"TIMESTAMP '{_NEVER_LATE}'")
            marked = never_late.alias("at", metadata={_WATERMARK: 0})
            packed = packed.select("bucket", "place", "rows", marked)
        # With a timeout of the clock Spark would run batches without rows for ever.
        timeout = "EventTimeTimeout" if self.has_event_time else "NoTimeout"
        states = packed.groupBy("bucket").applyInPandasWithState(
            self.advance, "rows BINARY", "state BINARY", "append", timeout
        )
        return states.mapInArrow(_unpack, output)

    @encode_errors
    def advance(self, key: Any, parts: Iterator[Any], state: GroupState) -> Iterator[Any]:
        """Yields the output for a batch of a bucket, and stores the states."""
        states = self.create()
        if state.exists:
            states.restore(bytes(state.get[0]))
        clock = time.time_ns() // 1000
        now = state.getCurrentWatermarkMs() * 1000 if self.has_event_time else clock
        if not self.has_event_time:
            results = [*states.advance(now), *self._process(states, parts, clock)]
        else:
            results = [*self._process(states, parts, clock), *states.advance(now)]
        state.update((states.save(),))
        due = states.next_time() if self.has_event_time else None
        if due is not None:
            # A time of Spark is in milliseconds: the timer is due once the watermark is past it.
            state.setTimeoutTimestamp(max(-(-due // 1000), state.getCurrentWatermarkMs() + 1))
        yield self._packed(results, int(key[0]))

    @encode_errors
    def compute(self, rows: Any) -> Any:
        """Returns the output for a bucket of a table, whose timers fire at its end."""
        states = self.create()
        results = self._process(states, iter([rows]), time.time_ns() // 1000)
        results += states.advance(FOREVER - 1)
        return self._packed(results, int(rows["bucket"].iloc[0]))

    def _process(
        self, states: KeyedStates, parts: Iterator[Any], clock: int
    ) -> list[pa.RecordBatch | Failed]:
        packed = [pair for part in parts for pair in zip(part["place"], part["rows"], strict=True)]
        ordered = sorted(packed, key=lambda pair: int(pair[0]))
        batches = (batch for _, rows in ordered if rows for batch in from_bytes(rows))
        return [result for batch in batches for result in states.process(batch, clock)]

    def _packed(self, results: list[pa.RecordBatch | Failed], bucket: int) -> Any:
        """Returns results as packed rows in a DataFrame of pandas, and rejects failed rows."""
        import pandas as pd  # type: ignore[import-untyped]

        failed = [each for each in results if isinstance(each, Failed)]
        if failed and self.rejects is not None:
            self.rejects(str(bucket), [(each.rows, Rejected(each.reason)) for each in failed])
        rows = [each for each in results if isinstance(each, pa.RecordBatch)]
        batches = pa.Table.from_batches(rows, self.output).combine_chunks().to_batches()
        return pd.DataFrame({"rows": pd.Series([to_bytes(each) for each in batches], dtype=object)})


@dataclass(frozen=True)
class _PackAll:
    """Packed rows, and no rows of each bucket, whose timers are due by the clock."""

    pack: Pack

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        yield from self.pack(batches)
        context = TaskContext.get()
        if context is None or context.partitionId() == 0:
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(range(BUCKETS), pa.int32()),
                    pa.array([-1] * BUCKETS, pa.int64()),
                    pa.array([b""] * BUCKETS, pa.binary()),
                ],
                names=["bucket", "place", "rows"],
            )


def _unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for rows in batch.column(0).to_pylist():
            yield from from_bytes(rows)
