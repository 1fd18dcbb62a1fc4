"""Conversion of values in batches equals the conversion of each value, for all pairs of types."""

from __future__ import annotations

import io
from itertools import product
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from penstock.formats.parquet import Parquet, ParquetConfig
from penstock.sdk.columns.conform import conform_each
from penstock.sdk.columns.conversion import Conversion, TextConversion
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.columns.scalar_parsing import TimeForm
from penstock.sdk.record import Read

US, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
FORMS = [
    TimeForm(), TimeForm("seconds"), TimeForm("millis", "truncate"), TimeForm("micros"),
    TimeForm("nanos"), TimeForm("nanos", "truncate"),
]  # fmt: skip
CONVERSIONS = [Conversion(), Conversion(nearest=True), TextConversion()]
OF_TIMES = [*map(Conversion, FORMS[1:]), TextConversion(TimeForm("seconds"))]
NUMBERS = [
    0.5, 123456790528.0, 123456.7, 1099511627776.0, 1e-7, 0.1, 1.5, -0.0, 0.0, 1.0, 1e30, 2.0**24,
    2.0**24 + 2, 2.0**53, 2.0**63, -(2.0**63), 1e38, 1e-300, 96.0, 86400.0, float("inf"),
    float("-inf"), float("nan"), 1.7e308, 16777216.5, 4503599627370496.5,
]  # fmt: skip
WHOLE = [0, 1, -1, 2, 127, 128, 2**24, 2**24 + 1, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
TEXTS = [
    "1.0", "1e0", "1.000000059604644776", "1", "0", "007", "-0", "+1", " 1", "", "0xFF", "1.5",
    "123456790528", "1e-7", "1e30", "96", "inf", "-Infinity", "NaN", "nan", "true", "False", "TRUE",
    "2024-01-02", "2024-01-02T03:04:05Z", "2024-01-02 03:04:05.1234567",
    "999999999999999999", "1000000000000000000", "9223372036854775807", "9223372036854775808", ".5",
    "5.", "1_0", "2024-01-02T03:04:05+01:00", "3.5e38", "0.1", "0.0000000000000000001",
    "YQ==", "x", "12:30:00", "1e400", "٣",
    "16777217.0", "340282356779733661637539395458142568447", "-1.50",
]  # fmt: skip
DECIMALS = ["0", "1", "0.1", "0.0000001", "123456790000", "123456790528", "96", "1.5", "16777217"]
VALUES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False],
    pa.int32(): [value for value in WHOLE if -(2**31) <= value < 2**31],
    pa.int64(): WHOLE,
    pa.uint64(): [value for value in WHOLE if value >= 0] + [2**64 - 1],
    pa.float32(): NUMBERS,
    pa.float64(): NUMBERS,
    pa.decimal128(38, 10): DECIMALS,
    pa.decimal128(38, 0): ["0", "1", "96", "123456790528", "9" * 38, "12345678901", str(2**64 - 1)],
    pa.decimal128(20, 7): DECIMALS,
    US: [0, 1, 10**6, 86_400_000_000, -1, 2**62, -(2**62), 8_589_934_592_000_001],
    pa.timestamp("ns"): [0, 1, 1000, 10**9, 86_400_000_000_000, -1, 2**62],
    pa.date32(): [0, 1, -1, 20_000, 2_900_000],
    pa.time64("us"): [0, 1, 3_600_000_000],
    pa.duration("us"): [0, 1, -1, 10**6],
    pa.string(): TEXTS,
    pa.binary(): [b"1.5", b"1", b"", b"x", b"\xff", b"2024-01-02"],
}
TARGETS = [
    pa.bool_(), pa.int8(), pa.int32(), pa.int64(), pa.float32(), pa.float64(),
    pa.decimal128(20, 2), pa.decimal128(38, 18), pa.decimal128(38, 30), pa.decimal128(38, 38),
    pa.decimal128(20, 0), US, LOCAL, pa.date32(), pa.time64("us"), pa.duration("us"), pa.string(),
    pa.binary(),
]  # fmt: skip


def array_of(values: list[Any], type_: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(type_):
        return pa.array(values, pa.string()).cast(type_)
    if pa.types.is_temporal(type_):
        return pa.array(values, pa.int32() if type_ == pa.date32() else pa.int64()).view(type_)
    if pa.types.is_floating(type_):
        return pa.array(values).cast(type_, safe=False)
    return pa.array(values, type_)


def outcomes(array: pa.Array, type_: pa.DataType, leaf: Conversion) -> list[str]:
    """Returns the text of the bits of each value, or of no value."""
    rows = pa.RecordBatch.from_arrays([array], ["v"])
    decoded = conform_each(rows, pa.schema([("v", type_)]), leaf)
    found = ["bad"] * len(array)
    index = range(len(array)) if decoded.index is None else decoded.index.to_pylist()
    for position, value in zip(index, raw(decoded.rows.column(0)), strict=True):
        found[position] = repr(value)
    return found


def raw(array: pa.Array) -> list[Any]:
    if not pa.types.is_temporal(array.type):
        return list(array.to_pylist())
    return list(array.view(pa.int32() if array.type == pa.date32() else pa.int64()).to_pylist())


@pytest.mark.quick(2)
@pytest.mark.parametrize("source", VALUES, ids=str)
def test_batches(source: pa.DataType) -> None:
    random = Random(str(source))
    array = array_of([*VALUES[source], None], source)
    for target, leaf in product(TARGETS, [*CONVERSIONS, *OF_TIMES]):
        if leaf in OF_TIMES and not (
            pa.types.is_timestamp(source) or pa.types.is_timestamp(target)
        ):
            continue
        alone = [outcomes(array.slice(i, 1), target, leaf)[0] for i in range(len(array))]
        assert alone[-1] == "None", target
        good = [index for index, outcome in enumerate(alone) if outcome != "bad"]
        mixed = random.sample(good, len(good))
        pairs = [mixed[start : start + 2] for start in range(0, len(mixed), 2)]
        for indexes in *pairs, good, random.sample(range(len(array)), len(array)):
            expected = [alone[each] for each in indexes]
            part = array.take(pa.array(indexes))
            assert outcomes(part, target, leaf) == expected, (target, leaf)


@pytest.mark.parametrize(
    ("source", "target", "value", "expected"),
    [
        (pa.float32(), pa.decimal128(20, 2), 123456790528.0, "Decimal('123456790528.00')"),
        (pa.decimal128(38, 10), pa.float32(), "123456790000", "bad"),
        (pa.decimal128(38, 10), pa.float32(), "123456790528", "123456790528.0"),
        (pa.string(), pa.int64(), "1.0", "1"),
        (pa.string(), pa.float32(), "1.000000059604644776", "1.0000001192092896"),
    ],
)
def test_values(source: pa.DataType, target: pa.DataType, value: Any, expected: str) -> None:
    array = array_of([value], source)
    assert outcomes(array, target, Conversion()) == [expected]
    for other in VALUES[source]:
        both = pa.concat_arrays([array, array_of([other], source)])
        assert outcomes(both, target, Conversion())[0] == expected


def test_floats_as_seconds() -> None:
    array = pa.array([123456.7, 1099511627776.0], pa.float32())
    expected = ["123456700000", "1099511627776000000"]
    assert outcomes(array, US, Conversion(TimeForm("seconds"))) == expected


@pytest.mark.parametrize("name", ["BOOLEAN", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10,2)"])
def test_binary_is_no_number(name: str) -> None:
    file = io.BytesIO()
    parquet.write_table(pa.table({"v": pa.array([b"1", None, b"1.5"])}), file)
    read = Read()
    found = Parquet(ParquetConfig()).read_file(file, arrow_schema(f"v {name}"), "f", read)
    assert [row for rows, _ in found for row in rows.to_pylist()] == [{"v": None}]
    article = "an" if name == "INT" else "a"
    expected = f'column "v": 1 (BINARY) is not {article} {name.replace(",", ", ")}'
    assert [bad.error.message for bad in read.bad] == [expected, expected.replace(": 1 ", ": 1.5 ")]
