"""Numbers of all magnitudes as decimals: a value is exact, or it does not fit."""

from __future__ import annotations

import io
import itertools
import random
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from penstock.formats.csv import Csv, CsvConfig
from penstock.sdk.columns.conform import conform_each
from penstock.sdk.columns.conversion import TextConversion, cast
from penstock.sdk.columns.decimal_arrays import decimal_array, reduce_scale
from penstock.sdk.columns.rows import array_of
from penstock.sdk.record import Read

EXACT = Context(prec=200)
TARGETS = [
    pa.decimal128(38, 0), pa.decimal128(38, 2), pa.decimal128(38, 6), pa.decimal128(38, 10),
    pa.decimal128(38, 18), pa.decimal128(38, 30), pa.decimal128(38, 37), pa.decimal128(38, 38),
    pa.decimal128(20, 2), pa.decimal128(18, 18), pa.decimal128(5, -2), pa.int64(), pa.int32(),
]  # fmt: skip
SOURCES = [
    pa.decimal128(38, 0), pa.decimal128(38, 10), pa.decimal128(38, 37), pa.decimal128(20, 2),
    pa.decimal128(10, -3), pa.decimal256(76, 0), pa.decimal256(76, 30), pa.decimal256(70, 50),
]  # fmt: skip
COLUMNS = [type_ for type_ in TARGETS if pa.types.is_integer(type_) or type_.scale >= 0]
WRAPPED = ["969890095556717129979978", "500000000000000000000", "96", "1.5", "12345678901", "9.5"]


def fits(value: Decimal, type_: pa.DataType) -> bool:
    exact = Fraction(value)
    if pa.types.is_integer(type_):
        bound = 2 ** (type_.bit_width - 1)
        return exact.denominator == 1 and -bound <= exact < bound
    unscaled = exact * Fraction(10) ** type_.scale
    return unscaled.denominator == 1 and abs(unscaled) < 10**type_.precision


def check(array: pa.Array, values: Sequence[Decimal], type_: pa.DataType, leaf: Any = cast) -> None:
    """Checks that the values that fit are equal, and that the others are failures."""
    decoded = conform_each(
        pa.RecordBatch.from_arrays([array], ["v"]), pa.schema([("v", type_)]), leaf
    )
    expected = {index: value for index, value in enumerate(values) if fits(value, type_)}
    found = range(len(values)) if decoded.index is None else decoded.index.to_pylist()
    assert dict(zip(found, decoded.rows.column(0).to_pylist(), strict=True)) == expected
    assert {failure.index for failure in decoded.failures} == set(range(len(values))) - {*expected}


def generated(type_: pa.DataType, target: pa.DataType, count: int = 10) -> list[Decimal]:
    """Returns values of a decimal type with digits of all numbers, and those around its bounds.

    Each target has other values.
    """
    generator = random.Random(f"{type_} {target}")
    most = 10**type_.precision - 1
    unscaled = [
        generator.randrange(10 ** generator.randint(1, type_.precision)) for _ in range(count)
    ]
    unscaled += [10**digits for digits in range(type_.precision)] + [most, 0]
    signed = [number * generator.choice([1, -1]) for number in unscaled]
    return [Decimal(number).scaleb(-type_.scale, EXACT) for number in signed]


def texts(target: pa.DataType) -> list[str]:
    """Returns numbers in plain digits and with exponents, other ones for each target."""
    generator = random.Random(str(target))
    found = list(WRAPPED)
    for _ in range(15):
        digits = str(generator.randrange(10 ** generator.randint(1, 40)))
        point = generator.randint(0, len(digits))
        plain = f"{digits[:point] or '0'}.{digits[point:]}" if digits[point:] else digits
        exponent = generator.choice(["", "", f"e{generator.randint(-60, 60)}"])
        found.append(generator.choice(["", "-"]) + plain + exponent)
    return found


@pytest.mark.quick(2)
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_decimals(target: pa.DataType) -> None:
    for source in SOURCES:
        values = generated(source, target)
        values += [Decimal(text) for text in WRAPPED if fits(Decimal(text), source)]
        check(pa.array(values, source), values, target)


@pytest.mark.quick(2)
@pytest.mark.parametrize("target", COLUMNS, ids=str)
def test_texts(target: pa.DataType) -> None:
    found = texts(target)
    values = [Decimal(text) for text in found]
    check(pa.array(found), values, target)
    plain = [text for text in found if "e" not in text]
    for text, value in zip(plain, map(Decimal, plain), strict=True):
        check(pa.array([text]), [value], target, TextConversion())


@pytest.mark.quick(2)
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_integers_and_floats(target: pa.DataType) -> None:
    generator = random.Random(str(target))
    integers = [generator.randrange(2 ** generator.randint(1, 63)) for _ in range(30)]
    check(pa.array(integers, pa.int64()), [Decimal(value) for value in integers], target)
    floats = [generator.uniform(-1, 1) * 10.0 ** generator.randint(-30, 15) for _ in range(30)]
    floats += [float(value) * 10.0 ** generator.randint(0, 60) for value in integers]
    floats += [float(text) for text in WRAPPED]
    exact = [Decimal(value) if value == int(value) else Decimal(repr(value)) for value in floats]
    check(pa.array(floats), exact, target)


@pytest.mark.slow
def test_values_of_python() -> None:
    for target in COLUMNS[:9]:
        values = [Decimal(text) for text in [*texts(target), "3.12e-27", "5.2e-64"]]
        good = [value for value in values if fits(value, target)]
        assert array_of(good, target).to_pylist() == good
        assert decimal_array([*good, None], target).to_pylist() == [*good, None]
        for value in (value for value in values if not fits(value, target)):
            for convert in array_of, decimal_array:
                with pytest.raises(pa.ArrowInvalid):
                    convert([value], target)


@pytest.mark.parametrize(("type_", "precision"), [(pa.decimal128, 38), (pa.decimal256, 76)])
def test_scale_is_reduced_exactly(type_: Any, precision: int) -> None:
    """Arrow divides some of these numbers incorrectly by powers of ten from 10^10 on."""
    for bits, places in itertools.product(range(32, 129, 32), range(1, 38)):
        number = 2**bits - 1
        if number * 10**places < 10**precision:
            found = pa.array([EXACT.scaleb(Decimal(number * 10**places), -places)])
            found = reduce_scale(found.cast(type_(precision, places)), 0)
            assert found.to_pylist() == [number], (bits, places)


def test_whole_floats_beside_others() -> None:
    """The shortest text of a large float is another whole number: 123456790."""
    floats = pa.array([0.5, 123456792.0, None], pa.float32())
    found = cast(floats, pa.decimal128(20, 2))
    assert found.to_pylist() == [Decimal("0.5"), Decimal(123456792), None]


@pytest.mark.quick(2)
@pytest.mark.parametrize("target", COLUMNS, ids=str)
def test_csv(target: pa.DataType) -> None:
    wrap = pow(5, -30, 2**98) % 2**98  # times 10^30 is 2^30 in 128 bits
    found = [*texts(target), f"{wrap}e30", f"{wrap}0e29", "1e-300", " 1 ", "0xFF"]
    values = [None if text == "0xFF" else Decimal(text.strip()) for text in found]
    good = {
        index: value
        for index, value in enumerate(values)
        if value is not None and fits(value, target)
    }
    assert read_csv(found, target) == good
    for index, text in enumerate(found):
        assert read_csv([text], target) == ({0: good[index]} if index in good else {})


def read_csv(texts: list[str], type_: pa.DataType) -> dict[int, Any]:
    """Returns the values by line; the other lines are dead letters."""
    read = Read()
    file = io.BytesIO("\n".join(["v", *texts, ""]).encode())
    found = {
        number - 2: value
        for rows, numbers in Csv(CsvConfig()).read_file(file, pa.schema([("v", type_)]), "f", read)
        for number, value in zip(numbers.to_pylist(), rows.column(0).to_pylist(), strict=True)
    }
    assert len(found) + len(read.bad) == len(texts)
    return found
