"""Conversion and comparison of the values of a test case."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.testing.values import ConversionError, convert_value, matches_value

TIME = pa.timestamp("us", tz="UTC")
POINT = pa.struct([("x", pa.float64()), ("at", TIME)])


@pytest.mark.parametrize(
    ("given", "type_", "expected"),
    [
        (None, pa.int64(), None),
        (3, pa.int32(), 3),
        (3, pa.float64(), 3.0),
        (3.0, pa.int64(), 3),
        ("x", pa.string(), "x"),
        (True, pa.bool_(), True),
        (0.1, pa.decimal128(38, 18), Decimal("0.1")),
        ("12345678901234567890.12", pa.decimal128(22, 2), Decimal("12345678901234567890.12")),
        ("2024-01-01", pa.date32(), date(2024, 1, 1)),
        ("2024-01-01 10:20", TIME, datetime(2024, 1, 1, 10, 20, tzinfo=UTC)),
        ("2024-01-01T10:20:00+02:00", TIME, datetime(2024, 1, 1, 8, 20, tzinfo=UTC)),
        ("2024-01-01T10:20:00.5", pa.timestamp("us"), datetime(2024, 1, 1, 10, 20, 0, 500000)),
        ("é", pa.binary(), "é".encode()),
        ({"hex": "00ff"}, pa.binary(), b"\x00\xff"),
        ({"base64": "AP8="}, pa.binary(), b"\x00\xff"),
        ([1, None], pa.list_(pa.int32()), [1, None]),
        ({"a": 1}, pa.map_(pa.string(), pa.int32()), {"a": 1}),
        ({"1": "x"}, pa.map_(pa.int32(), pa.string()), {1: "x"}),
        ({"x": 1}, POINT, {"x": 1.0}),
        ({"at": "2024-01-01"}, POINT, {"at": datetime(2024, 1, 1, tzinfo=UTC)}),
    ],
)
def test_convert(given: Any, type_: pa.DataType, expected: Any) -> None:
    assert convert_value(given, type_) == expected


@pytest.mark.parametrize(
    ("given", "type_", "message", "route"),
    [
        ("x", pa.int32(), 'expected an INT, found "x"', ()),
        (1.5, pa.int64(), "expected a BIGINT, found 1.5", ()),
        (2**40, pa.int32(), "expected an INT", ()),
        (1, pa.string(), "expected a STRING, found 1", ()),
        (1, pa.bool_(), "expected a BOOLEAN", ()),
        (True, pa.int32(), "expected an INT", ()),
        (5, TIME, "expected a TIMESTAMP", ()),
        ("soon", TIME, "expected a TIMESTAMP", ()),
        ("1.234", pa.decimal128(4, 2), "expected a DECIMAL(4, 2)", ()),
        ({"hex": "0"}, pa.binary(), "expected a BINARY", ()),
        ("x", pa.list_(pa.int32()), "expected an ARRAY<INT>", ()),
        ([1, "x"], pa.list_(pa.int32()), "expected an INT", (1,)),
        ({"x": "y"}, POINT, "expected a DOUBLE", ("x",)),
        ({"y": 1}, POINT, 'there is no field "y"', ("y",)),
        ([1], pa.map_(pa.string(), pa.int32()), "expected a MAP<STRING, INT>", ()),
        ({"z": "x"}, pa.map_(pa.int32(), pa.string()), "expected an INT", ("z",)),
    ],
)
def test_a_conversion_error_has_a_message_and_a_route(
    given: Any, type_: pa.DataType, message: str, route: tuple[str | int, ...]
) -> None:
    with pytest.raises(ConversionError) as caught:
        convert_value(given, type_)
    assert message in caught.value.message
    assert caught.value.route == route


def test_the_hint_for_a_number_in_a_text_column_quotes_it() -> None:
    with pytest.raises(ConversionError) as caught:
        convert_value(1, pa.string())
    assert caught.value.hint == 'Quote the value: "1".'


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (0.3, 0.1 + 0.2),
        (float("nan"), float("nan")),
        ({"x": 1.0}, {"x": 1.0, "at": None}),
        ({"a": 1}, [("a", 1)]),
        ({}, []),
        ([{"x": 1}], [{"x": 1, "y": 2}]),
        (None, None),
    ],
)
def test_matching_values(expected: Any, actual: Any) -> None:
    assert matches_value(expected, actual)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (0.3, 0.31),
        (1.0, float("nan")),
        (None, 0),
        (0, None),
        ({"x": 1}, None),
        ({"a": 1}, [("a", 1), ("b", 2)]),
        ([1], [1, 2]),
        ("a", "A"),
    ],
)
def test_different_values(expected: Any, actual: Any) -> None:
    assert not matches_value(expected, actual)
