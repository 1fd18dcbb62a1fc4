"""Types of Parquet and Arrow files: unsigned integers are kept, times of day are errors."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.core.errors import PlanError
from penstock.sdk.columns.conform import conform, conform_each
from penstock.sdk.encoding.arrow_files import spark_compatible

MAXIMA = {
    "a": (pa.uint8(), 2**8 - 1),
    "b": (pa.uint16(), 2**16 - 1),
    "c": (pa.uint32(), 2**32 - 1),
    "d": (pa.uint64(), 2**64 - 1),
}


def test_unsigned_integers_keep_their_values() -> None:
    rows = pa.RecordBatch.from_pydict(
        {name: pa.array([value], type_) for name, (type_, value) in MAXIMA.items()}
    )
    found = conform(rows, spark_compatible(rows.schema)).to_pylist()
    assert found == [{name: value for name, (_, value) in MAXIMA.items()}]


def test_nanoseconds_are_kept_or_errors_of_their_rows() -> None:
    times = pa.array([1_000, 1_001], pa.timestamp("ns"))
    rows = pa.RecordBatch.from_pydict({"at": times})
    decoded = conform_each(rows, spark_compatible(rows.schema))
    assert decoded.rows.column("at").cast(pa.int64()).to_pylist() == [1]
    assert [(each.index, each.error.code) for each in decoded.failures] == [(1, "wrong-type")]


@pytest.mark.parametrize(
    "type_", [pa.time64("ns"), pa.time32("ms"), pa.duration("us"), pa.list_(pa.time64("us"))]
)
def test_times_of_day_and_durations_are_errors(type_: pa.DataType) -> None:
    with pytest.raises(PlanError, match='column "t" is ') as caught:
        spark_compatible(pa.schema({"id": pa.int64(), "t": type_}))
    assert caught.value.code == "unsupported-type"
    assert caught.value.hint == "Declare the columns in schema, without t or with t STRING."


def test_the_hint_for_times_of_day_works() -> None:
    rows = pa.RecordBatch.from_pydict({"t": pa.array([1_500], pa.time64("us"))})
    found = conform(rows, pa.schema({"t": pa.string()})).to_pylist()
    assert found == [{"t": "00:00:00.001500"}]
