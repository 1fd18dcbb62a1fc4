"""Digits and characters of JSON texts are exact, or an error of their payload."""

from __future__ import annotations

import json
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.formats.json import Json, JsonConfig

_CONTEXT = Context(prec=2000)
UNITS = {"seconds": 6, "millis": 3, "micros": 0, "nanos": -3}
TYPES: list[pa.DataType] = [
    pa.int8(), pa.int32(), pa.int64(), pa.decimal128(18, 4), pa.decimal128(32, 0),
    pa.decimal128(38, 10), pa.decimal128(38, 38),
]  # fmt: skip
EXPONENTS = [
    "", "", "e0", "e1", "E+3", "e-1", "e-9", "e-16", "e-20", "e-330", "e18", "e-000330",
]  # fmt: skip
_digits = st.sampled_from(["", "0", "9", "00", "1", "5", "12", "0" * 6, "9" * 7, "0" * 15, "40961"])
_fractions = st.lists(_digits, max_size=4).map("".join)
_numbers = st.builds(
    lambda sign, whole, fraction, exponent: (
        f"{sign}{whole}{'.' + fraction if fraction else ''}{exponent}"
    ),
    st.sampled_from(["", "-"]),
    st.integers(0, 2**64).map(str) | st.sampled_from(["0", "1", "127", "17198438400", str(2**63)]),
    _fractions,
    st.sampled_from(EXPONENTS),
)


def decoded(text: str, type_: pa.DataType, **options: Any) -> Any:
    """Returns the value of a number; None for an error."""
    payloads = pa.array([b'{"a":0}', b'{"a":%b}' % text.encode()], pa.binary())
    schema = pa.schema([pa.field("a", type_)])
    found = Json(JsonConfig(**options)).decode(payloads, schema)
    if found.failures:
        assert [failure.index for failure in found.failures] == [1]
        assert text[:90] in str(found.failures[0].error)
        return None
    return found.rows.column("a")[1]


def expected(text: str, type_: pa.DataType) -> Decimal | None:
    value = Decimal(text)
    if pa.types.is_integer(type_):
        bound = 1 << (type_.bit_width - 1)
        return value if value == value.to_integral_value() and -bound <= value < bound else None
    scaled = value.scaleb(type_.scale, _CONTEXT)
    fits = scaled == scaled.to_integral_value() and abs(scaled) < 10**type_.precision
    return value if fits else None


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(text=_numbers, type_=st.sampled_from(TYPES), quoted=st.booleans())
def test_numbers_are_exact(text: str, type_: pa.DataType, quoted: bool) -> None:
    found = decoded(f'"{text}"' if quoted else text, type_)
    value = expected(text, type_)
    assert (None if found is None else Decimal(found.as_py())) == value


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(text=_numbers, unit=st.sampled_from(list(UNITS)))
def test_times_are_exact(text: str, unit: Any) -> None:
    found = decoded(text, pa.timestamp("us", "UTC"), timestamps=unit)
    exact = Decimal(text).scaleb(UNITS[unit], _CONTEXT)
    whole = exact == exact.to_integral_value() and -(2**63) <= exact < 2**63
    assert (None if found is None else Decimal(found.value)) == (exact if whole else None)


@pytest.mark.parametrize("unit", ["seconds", "millis"])
def test_microseconds_of_far_years_are_written(unit: Any) -> None:
    micros = [2**33 * 10**6 + 1, 17198438400000001, -62135596799999999, 1717245296123456, None]
    type_ = pa.timestamp("us", "UTC")
    for part in (micros, micros[3:]):
        rows = pa.record_batch({"a": pa.array(part, pa.int64()).cast(type_)})
        format_ = Json(JsonConfig(timestamps=unit))
        payloads = format_.encode(rows).payloads
        texts = [json.loads(each, parse_float=Decimal) for each in payloads.to_pylist()]
        assert [
            text.get("a") if text.get("a") is None else text["a"].scaleb(UNITS[unit], _CONTEXT)
            for text in texts
        ] == part
        assert format_.decode(payloads, rows.schema).rows.equals(rows)


CHARACTERS = [0x10000, 0x1F600, 0x1FFFF, 0x20000, 0x2A6D6, 0x2FFFF, 0x30000, 0x40001, 0x10FFFF]


@pytest.mark.parametrize("code", CHARACTERS, ids=hex)
def test_escaped_characters(code: int) -> None:
    value = {"a": chr(code), "b": {chr(code): chr(code)}}
    schema = pa.schema([("a", pa.string()), ("b", pa.map_(pa.string(), pa.string()))])
    for text in (json.dumps(value), json.dumps(value).upper().replace("\\U", "\\u")):
        text = text.replace('"A"', '"a"').replace('"B"', '"b"')
        rows = Json(JsonConfig()).decode(pa.array([text.encode()]), schema).rows
        assert rows.to_pylist(maps_as_pydicts="strict") == [value]


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_not_finite_are_no_binary(text: str) -> None:
    for type_ in (pa.binary(), pa.int64(), pa.timestamp("us", "UTC"), pa.list_(pa.binary())):
        payload = f'{{"a":{f"[{text}]" if pa.types.is_list(type_) else text}}}'.encode()
        found = Json(JsonConfig()).decode(pa.array([payload]), pa.schema([("a", type_)]))
        assert [failure.error.code for failure in found.failures] == ["wrong-type"]


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_not_finite_are_text_within_json_text(text: str) -> None:
    payload = f'{{"a":{{"x":1.0,"y":[{text}]}}}}'.encode()
    rows = Json(JsonConfig()).decode(pa.array([payload]), pa.schema([("a", pa.string())])).rows
    assert rows.to_pylist() == [{"a": f'{{"x":1.0,"y":["{text}"]}}'}]
