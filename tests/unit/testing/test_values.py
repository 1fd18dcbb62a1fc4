"""Values of a case as those of their columns."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.testing.values import Misfit, same, typed

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
def test_a_value_is_read_as_its_columns_type(given: Any, type_: pa.DataType, expected: Any) -> None:
    assert typed(given, type_) == expected


@pytest.mark.parametrize(
    ("given", "type_", "problem", "steps"),
    [
        ("x", pa.int32(), "is an INT, which 'x' is not", ()),
        (1.5, pa.int64(), "is a BIGINT, which 1.5 is not", ()),
        (2**40, pa.int32(), "is an INT", ()),
        (1, pa.string(), "is a STRING, which 1 is not", ()),
        (1, pa.bool_(), "is a BOOLEAN", ()),
        (True, pa.int32(), "is an INT", ()),
        (5, TIME, "is a TIMESTAMP", ()),
        ("soon", TIME, "is a TIMESTAMP", ()),
        ("1.234", pa.decimal128(4, 2), "is a DECIMAL(4, 2)", ()),
        ({"hex": "0"}, pa.binary(), "is a BINARY", ()),
        ("x", pa.list_(pa.int32()), "is an ARRAY<INT>", ()),
        ([1, "x"], pa.list_(pa.int32()), "is an INT", (1,)),
        ({"x": "y"}, POINT, "is a DOUBLE", ("x",)),
        ({"y": 1}, POINT, 'has no field "y"', ("y",)),
        ([1], pa.map_(pa.string(), pa.int32()), "is a MAP<STRING, INT>", ()),
        ({"z": "x"}, pa.map_(pa.int32(), pa.string()), "is an INT", ("z",)),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(
    given: Any, type_: pa.DataType, problem: str, steps: tuple[str | int, ...]
) -> None:
    with pytest.raises(Misfit) as caught:
        typed(given, type_)
    assert problem in caught.value.problem
    assert caught.value.steps == steps


def test_a_number_for_text_is_to_be_quoted() -> None:
    with pytest.raises(Misfit) as caught:
        typed(1, pa.string())
    assert caught.value.hint == 'quote it: "1"'


@pytest.mark.parametrize(
    ("expected", "got"),
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
def test_alike(expected: Any, got: Any) -> None:
    assert same(expected, got)


@pytest.mark.parametrize(
    ("expected", "got"),
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
def test_not_alike(expected: Any, got: Any) -> None:
    assert not same(expected, got)
