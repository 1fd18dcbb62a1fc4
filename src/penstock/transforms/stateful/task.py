"""Stateful functions in Spark: the states of a bucket of keys are one value of its state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.transforms.group_state import PACKED, Pack, from_bytes, to_bytes
from penstock.transforms.stateful.keyed_states import FOREVER, Failed, KeyedStates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState

REASON, ROW = "_penstock_reason", "_penstock_row"
"""The columns of the output for a failed call: its reason, and its row as JSON."""
_WATERMARK = "spark.watermarkDelayMs"
_NEVER_LATE = "2262-01-01"
"""A time after all watermarks of data that pandas can represent."""


def with_reasons(columns: pa.Schema) -> pa.Schema:
    """Returns the columns of the output, and those of failed calls."""
    return pa.schema([*columns, pa.field(REASON, pa.string()), pa.field(ROW, pa.string())])


@dataclass(frozen=True)
class StatefulTask:
    """The calls for the rows of a bucket. `create` returns states without keys.

    `output` are the columns of the result.
    """

    create: Callable[[], KeyedStates]
    output: pa.Schema
    has_event_time: bool

    def apply(self, frame: DataFrame, by: tuple[str, ...], output: Any) -> DataFrame:
        """Returns the output for the rows of a stream or of a table, with failed calls."""
        packed = frame.mapInArrow(Pack(by), PACKED)
        if not frame.isStreaming:
            grouped = packed.groupBy("bucket")
            return grouped.applyInPandas(self.compute, "rows BINARY").mapInArrow(_unpack, output)
        if self.has_event_time:
            from pyspark.sql.functions import expr

            # Spark reads the watermark of the stream only for a column with this metadata.
            never_late = expr(f"TIMESTAMP '{_NEVER_LATE}'")
            marked = never_late.alias("at", metadata={_WATERMARK: 0})
            packed = packed.select("bucket", "place", "rows", marked)
        timeout = "EventTimeTimeout" if self.has_event_time else "ProcessingTimeTimeout"
        states = packed.groupBy("bucket").applyInPandasWithState(
            self.advance, "rows BINARY", "state BINARY", "append", timeout
        )
        return states.mapInArrow(_unpack, output)

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
        due = states.next_time()
        if due is not None and self.has_event_time:
            # A time of Spark is in milliseconds: the timer is due once the watermark is past it.
            state.setTimeoutTimestamp(max(-(-due // 1000), state.getCurrentWatermarkMs() + 1))
        elif due is not None:
            state.setTimeoutDuration(max(1, -(-(due - clock) // 1000)))
        yield self._packed(results)

    def compute(self, rows: Any) -> Any:
        """Returns the output for a bucket of a table, whose timers fire at its end."""
        states = self.create()
        results = self._process(states, iter([rows]), time.time_ns() // 1000)
        return self._packed([*results, *states.advance(FOREVER - 1)])

    def _process(
        self, states: KeyedStates, parts: Iterator[Any], clock: int
    ) -> list[pa.RecordBatch | Failed]:
        packed = [pair for part in parts for pair in zip(part["place"], part["rows"], strict=True)]
        ordered = sorted(packed, key=lambda pair: int(pair[0]))
        batches = (batch for _, rows in ordered for batch in from_bytes(rows))
        return [result for batch in batches for result in states.process(batch, clock)]

    def _packed(self, results: list[pa.RecordBatch | Failed]) -> Any:
        """Returns results as packed rows in a DataFrame of pandas, adjacent rows together."""
        import pandas as pd  # type: ignore[import-untyped]

        schema, tables = with_reasons(self.output), list[pa.Table]()
        for result in results:
            if isinstance(result, Failed):
                row = {REASON: result.reason, ROW: result.row}
                tables.append(pa.Table.from_pylist([row], schema=_nullable(schema)))
            else:
                nulls = pa.nulls(result.num_rows, pa.string())
                columns = [*result.columns, nulls, nulls]
                tables.append(pa.Table.from_arrays(columns, schema=_nullable(schema)))
        batches = pa.concat_tables(tables).combine_chunks().to_batches() if tables else []
        return pd.DataFrame({"rows": pd.Series([to_bytes(each) for each in batches], dtype=object)})


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])


def _unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for rows in batch.column(0).to_pylist():
            yield from from_bytes(rows)
