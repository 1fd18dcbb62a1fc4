"""Types of Parquet and Arrow files that Spark does not have: converted, or errors."""

from __future__ import annotations

import datetime as dt
import io
import uuid
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from penstock.core.errors import PlanError
from penstock.formats.arrow import Arrow, ArrowConfig
from penstock.formats.parquet import Parquet, ParquetConfig
from penstock.sdk import FileFormat, Read
from penstock.sdk.columns.conform import conform, conform_each
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.encoding.arrow_files import spark_compatible

INT = pa.int64()
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


UUID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
SECOND = dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
LOCAL = SECOND.replace(tzinfo=None)
TEXT = "2024-01-02 03:04:05"


def extended(type_: pa.BaseExtensionType, *values: Any) -> pa.Array:
    return pa.ExtensionArray.from_storage(type_, pa.array(values, type_.storage_type))


CONVERSIONS: list[tuple[pa.Array, str, list[Any]]] = [
    (extended(pa.uuid(), UUID.bytes, None), "STRING", [str(UUID), None]),
    (extended(pa.uuid(), UUID.bytes), "BINARY", [UUID.bytes]),
    (extended(pa.json_(), '{"a": 1}'), "STRING", ['{"a": 1}']),
    (extended(pa.bool8(), 1, 0, None), "BOOLEAN", [True, False, None]),
    (
        pa.ListArray.from_arrays([0, 1], extended(pa.uuid(), UUID.bytes)),
        "ARRAY<STRING>",
        [[str(UUID)]],
    ),
    (pa.array([TEXT, "2024-01-02T04:04:05+01:00"]), "TIMESTAMP", [SECOND, SECOND]),
    (pa.array([TEXT, "2024-01-02T04:04:05+01:00"]), "TIMESTAMP_NTZ", [LOCAL, LOCAL]),
    (pa.array([TEXT], pa.large_string()), "TIMESTAMP", [SECOND]),
    (pa.array([TEXT], pa.string_view()), "TIMESTAMP", [SECOND]),
    (pa.array([TEXT, None]).dictionary_encode(), "TIMESTAMP", [SECOND, None]),
    (pa.array([[TEXT]]), "ARRAY<TIMESTAMP>", [[SECOND]]),
    (pa.array([Decimal("1.25")], pa.decimal256(60, 2)), "DECIMAL(38, 2)", [Decimal("1.25")]),
    (pa.array([Decimal("1.25")], pa.decimal256(60, 2)), "STRING", ["1.25"]),
    (pa.array([Decimal("1.25")], pa.decimal32(5, 2)), "DECIMAL(5, 2)", [Decimal("1.25")]),
    (pa.array([Decimal(1200)], pa.decimal128(5, -2)), "DECIMAL(7, 0)", [Decimal(1200)]),
    (pa.array([[1, 2], None, []], pa.list_view(pa.int64())), "ARRAY<BIGINT>", [[1, 2], None, []]),
    (pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), "ARRAY<BIGINT>", [[1, 2], None]),
    (pa.RunEndEncodedArray.from_arrays([2, 3], ["a", None]), "STRING", ["a", "a", None]),
    (
        pa.DictionaryArray.from_arrays(
            pa.array([1, None, 0], pa.uint32()), pa.array(["a", "b"], pa.string_view())
        ),
        "STRING",
        ["b", None, "a"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("array", "declared", "expected"), CONVERSIONS, ids=[f"{a.type} {d}" for a, d, _ in CONVERSIONS]
)
def test_values_of_types_that_spark_does_not_have(
    array: pa.Array, declared: str, expected: list[Any]
) -> None:
    schema = arrow_schema({"c": declared})
    for format_, file in files_of(array):
        read = Read()
        found = format_.read_file(io.BytesIO(file), schema, "f", read)
        assert [value for rows, _ in found for value in rows.column(0).to_pylist()] == expected
        assert not read.bad


@pytest.mark.parametrize("array", [array for array, *_ in CONVERSIONS])
def test_inferred_types_are_types_of_spark(array: pa.Array) -> None:
    for format_, file in files_of(array):
        if pa.types.is_decimal256(array.type):
            with pytest.raises(PlanError, match="has no counterpart in Spark"):
                format_.infer_file(io.BytesIO(file))
            continue
        schema = format_.infer_file(io.BytesIO(file))
        assert schema is not None
        ((rows, _),) = format_.read_file(io.BytesIO(file), schema, "f", Read())
        assert rows.num_rows == len(array) and "extension" not in str(schema)


def files_of(array: pa.Array) -> list[tuple[FileFormat[Any], bytes]]:
    """Returns the formats that can hold an array, each with a file of it."""
    table = pa.table({"c": array})
    out = io.BytesIO()
    with ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    files: list[tuple[FileFormat[Any], bytes]] = [(Arrow(ArrowConfig()), out.getvalue())]
    with suppress(pa.ArrowNotImplementedError, OSError):
        parquet.write_table(table, out := io.BytesIO())
        files.append((Parquet(ParquetConfig()), out.getvalue()))
    return files


@pytest.mark.parametrize("type_", [pa.decimal256(76, 40), pa.sparse_union([pa.field("a", INT)])])
def test_columns_that_are_not_read_may_have_any_type(type_: pa.DataType) -> None:
    table = pa.table({"c": pa.nulls(1, type_), "id": [7]})
    out = io.BytesIO()
    with ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    found = Arrow(ArrowConfig()).read_file(out, arrow_schema("id BIGINT"), "f", Read())
    assert [row for rows, _ in found for row in rows.to_pylist()] == [{"id": 7}]
