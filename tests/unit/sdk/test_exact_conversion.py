"""Conversion of generated values between all pairs of types, against exact arithmetic in Python."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import struct
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.sdk.columns.conform import WrongType, conform_each
from penstock.sdk.columns.conversion import Conversion
from penstock.sdk.columns.scalar_parsing import TimeForm

BAD = "no value"
US, LOCAL, NS, MS = (
    pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.timestamp("ms"),
)  # fmt: skip
EPOCH = dt.datetime(1970, 1, 1)
DAY = 86_400_000_000
INTEGERS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
FLOATS = {pa.float32(): "f", pa.float64(): "d"}
DECIMALS = [pa.decimal128(10, 2), pa.decimal128(38, 10), pa.decimal128(38, 0), pa.decimal128(5, 5)]
TIMES = [US, LOCAL, NS, MS]
TYPES = [pa.bool_(), *INTEGERS, *FLOATS, *DECIMALS, *TIMES, pa.date32()]

near = st.sampled_from([0, 1, 5, 127, 128, 2**24, 2**31, 2**53, 2**63 - 1, 10**15])
whole = st.builds(lambda base, step, sign: sign * (base + step), near, st.integers(-2, 2),
                  st.sampled_from([1, -1]))  # fmt: skip
floats = st.one_of(
    st.floats(), whole.map(float), st.sampled_from([1.005, 0.1, 1e300, 0.5, 2.0**70, 1e22, -0.0])
)
tens = st.integers(-(10**5), 10**5)


def values_of(type_: pa.DataType) -> st.SearchStrategy[Any]:
    """Returns raw values of a type: of times the number in their unit."""
    if type_ == pa.bool_():
        return st.booleans()
    if type_ in INTEGERS:
        bound = 2 ** (INTEGERS[type_] - 1)
        return whole.filter(lambda value: -bound <= value < bound)
    if type_ in FLOATS:
        return floats.map(lambda value: as_float(value, type_))
    if pa.types.is_decimal(type_):
        most = 10**type_.precision - 1
        digits = st.one_of(whole, st.integers(-most, most), tens.map(lambda n: n * 10**type_.scale))
        return digits.filter(lambda n: abs(n) <= most).map(lambda n: scaled(n, type_.scale))
    if type_ == pa.date32():
        return st.integers(-700_000, 2_900_000)
    days = st.integers(-100_000, 100_000)
    fits = whole.filter(lambda value: -(2**63) <= value < 2**63)
    return st.one_of(days.map(lambda day: day * DAY), st.integers(-(2**62), 2**62), fits)


def scaled(unscaled: int, scale: int) -> Decimal:
    return Decimal(unscaled).scaleb(-scale, __import__("decimal").Context(prec=60))


def as_float(value: float, type_: pa.DataType) -> float:
    """Returns the nearest float of a type."""
    if type_ == pa.float64():
        return value
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def array_of(value: Any, type_: pa.DataType) -> pa.Array:
    if pa.types.is_temporal(type_):
        number = pa.int32() if type_ == pa.date32() else pa.int64()
        return pa.array([value], number).view(type_)
    return pa.array([value], type_)


def raw(array: pa.Array) -> Any:
    """Returns the only value of an array: of times the number in their unit."""
    if pa.types.is_temporal(array.type):
        return array.view(pa.int32() if array.type == pa.date32() else pa.int64())[0].as_py()
    return array[0].as_py()


def shortest(value: float, type_: pa.DataType) -> Fraction:
    """Returns a whole float, or the number with the fewest digits that identifies the float."""
    if value.is_integer():
        return Fraction(value)
    for digits in range(1, 18):
        text = f"{value:.{digits - 1}e}"
        if as_float(float(text), type_) == value:
            return Fraction(Decimal(text))
    raise AssertionError


def rational(value: Any, type_: pa.DataType) -> Fraction | None:
    """Returns the number that a value is; None for NaN and infinity."""
    if type_ in FLOATS:
        return shortest(value, type_) if math.isfinite(value) else None
    return Fraction(value)


def micros(value: int, type_: pa.DataType) -> Fraction:
    """Returns microseconds since 1970."""
    if type_ == pa.date32():
        return Fraction(value * DAY)
    return Fraction(value) * {"ns": Fraction(1, 1000), "us": 1, "ms": 1000}[type_.unit]


def expected(value: Any, source: pa.DataType, target: pa.DataType) -> Any:
    """Returns the exact value of another type, or BAD."""
    times = [pa.types.is_temporal(source), pa.types.is_temporal(target)]
    if all(times):
        unit = DAY if target == pa.date32() else micros(1, target)
        number = micros(value, source) / unit
        fits = number.denominator == 1 and -(2**63) <= number < 2**63
        return int(number) if fits else BAD
    if any(times):
        return BAD
    if source in FLOATS and target in FLOATS:
        converted = as_float(value, target)
        same = converted == value or (math.isnan(converted) and math.isnan(value))
        return converted if same else BAD
    number = rational(value, source)
    if number is None or (pa.bool_() in (source, target) and not _is_flag(source, target, number)):
        return BAD
    if target == pa.bool_():
        return bool(number)
    if target in INTEGERS:
        bound = 2 ** (INTEGERS[target] - 1)
        return int(number) if number.denominator == 1 and -bound <= number < bound else BAD
    if target in FLOATS:
        try:
            converted = as_float(float(number), target)
        except OverflowError:
            return BAD
        is_exact = math.isfinite(converted) and (
            Fraction(converted) == number or shortest(converted, target) == number
        )
        return converted if is_exact else BAD
    unscaled = number * 10**target.scale
    fits = unscaled.denominator == 1 and abs(unscaled) < 10**target.precision
    return scaled(int(unscaled), target.scale) if fits else BAD


def _is_flag(source: pa.DataType, target: pa.DataType, number: Fraction) -> bool:
    """Returns whether BOOLEAN and a number are converted: only 0 and 1, and only integers."""
    if source == target:
        return True
    if source == pa.bool_():
        return target in INTEGERS or target in FLOATS
    return source in INTEGERS and number in (0, 1)


@pytest.mark.quick(32)
@pytest.mark.parametrize(
    ("source", "target"), list(itertools.product(TYPES, TYPES)), ids=lambda type_: str(type_)
)
@settings(max_examples=10, deadline=None, database=None, derandomize=True)
@given(data=st.data())
def test_values_are_exact_or_rejected(
    source: pa.DataType, target: pa.DataType, data: st.DataObject
) -> None:
    value = data.draw(values_of(source))
    rows = pa.record_batch([array_of(value, source)], names=["v"])
    decoded = conform_each(rows, pa.schema([("v", target)]))
    found = raw(decoded.rows.column(0)) if decoded.rows.num_rows else BAD
    exact = expected(value, source, target)
    assert found == exact or (found != found and exact != exact), value
    if exact == BAD:
        ((_, error),) = decoded.failures
        assert error.code == "wrong-type"
        assert error.message.startswith('column "v": ') and ") is not " in error.message


NUMBERS: list[Callable[[int], Any]] = [int, Decimal, float]
UNITS = {"seconds": 10**6, "millis": 1000, "micros": 1, "nanos": Fraction(1, 1000)}


@pytest.mark.quick(1)
@pytest.mark.parametrize("unit", UNITS)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(number=st.integers(-(10**12), 10**12), shift=st.integers(0, 9))
def test_numbers_since_1970(unit: Any, number: int, shift: int) -> None:
    value = Decimal(number).scaleb(-shift)
    exact = Fraction(value) * UNITS[unit]
    for nanoseconds in ("reject", "truncate"):
        convert = Conversion(TimeForm(unit, nanoseconds))  # type: ignore[arg-type]
        exact_micros = (
            math.floor(exact) if nanoseconds == "truncate" or exact.denominator == 1 else BAD
        )
        for array in (
            pa.array([value], pa.decimal128(30, 9)),
            pa.array([format(value, "f")]),
            pa.array([int(value) if value == int(value) else float(value)]),
        ):
            try:
                found = convert(array, US).cast(pa.int64())[0].as_py()
            except pa.ArrowInvalid:
                found = BAD
            assert found == exact_micros or abs(exact_micros) >= 2**63, array
        if exact_micros != BAD:
            times = pa.array([exact_micros], pa.int64()).cast(US)
            back = convert(times, pa.decimal128(38, 9))[0].as_py()
            assert Fraction(back) * UNITS[unit] == exact_micros


@pytest.mark.parametrize(
    ("value", "target", "message"),
    [
        (pa.array([1717245296123]), US,
         'column "s.v": 1717245296123 (BIGINT) is not a TIMESTAMP'),
        (pa.array([1.005]), pa.decimal128(10, 2),
         'column "s.v": 1.005 (DOUBLE) is not a DECIMAL(10, 2)'),
        (pa.array([5]), pa.bool_(), 'column "s.v": 5 (BIGINT) is not a BOOLEAN'),
        (pa.array([1], US), pa.date32(),
         'column "s.v": 1970-01-01 00:00:00.000001Z (TIMESTAMP) is not a DATE'),
        (pa.array(["x"]), pa.int32(), 'column "s.v": "x" (STRING) is not an INT'),
    ],
)  # fmt: skip
def test_errors_name_column_value_and_both_types(
    value: pa.Array, target: pa.DataType, message: str
) -> None:
    inner = pa.StructArray.from_arrays([value], ["v"])
    schema = pa.schema([("s", pa.struct([("v", target)]))])
    ((_, error),) = conform_each(pa.record_batch([inner], names=["s"]), schema).failures
    assert error.message == message


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("12", pa.int32(), 12), ("1.2e1", pa.int8(), 12), ("0x1f", pa.int32(), BAD),
        ("300", pa.int8(), BAD), ("1.50", pa.decimal128(10, 2), Decimal("1.50")),
        ("1.005", pa.decimal128(10, 2), BAD), ("0.1", pa.float64(), 0.1),
        ("1e400", pa.float64(), BAD), ("1e39", pa.float32(), BAD), ("true", pa.bool_(), True),
        ("yes", pa.bool_(), BAD), ("", pa.int32(), BAD), ("", pa.float64(), BAD),
        ("2024-01-02 03:04:05", US, dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)),
        ("2024-01-02T03:04:05.1234567", US, BAD), ("1717245296", US, BAD),
        ("2024-01-02", pa.date32(), dt.date(2024, 1, 2)), ("2024-01-02T01:00", pa.date32(), BAD),
        ("x", pa.binary(), b"x"),
    ],
)  # fmt: skip
def test_text_converts_as_in_formats_of_text(text: str, target: pa.DataType, expected: Any) -> None:
    rows = pa.record_batch([pa.array([text]).dictionary_encode()], names=["v"])
    decoded = conform_each(rows, pa.schema([("v", target)]))
    assert [row["v"] for row in decoded.rows.to_pylist()] == ([] if expected == BAD else [expected])
    assert all(WrongType.__name__ not in error.message for _, error in decoded.failures)
