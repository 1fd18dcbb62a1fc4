"""Columns of JSON text: their declaration, their values and their limits."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.core.errors import PlanError
from penstock.formats.json import Json, JsonConfig
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.columns.json_mark import has_json, is_json
from penstock.sdk.columns.json_text import check_json, parsed_value, text_value


def test_variant_is_marked_text() -> None:
    schema = arrow_schema("a VARIANT NOT NULL, b STRUCT<c: VARIANT>, d ARRAY<VARIANT>, e STRING")
    assert schema.field("a").type == pa.string() and not schema.field("a").nullable
    assert [is_json(field) for field in schema] == [True, False, False, False]
    assert [has_json(field) for field in schema] == [True, True, True, False]
    with pytest.raises(PlanError, match="keys of another type"):
        arrow_schema("a MAP<VARIANT, INT>")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "Expecting"),
        ("NaN", "NaN"),
        ('{"a": 1, "a": 2}', '"a" is repeated'),
        ("[" * 501 + "]" * 501, "too deeply"),
        ("[" * 9000 + "]" * 9000, "too deeply"),
        ("0." + "0" * 901, "too many digits"),
        ('{"a": [1, %s]}' % ("12" * 20), "1212 has more digits than a double"),
        ("0." + "12" * 20, "more digits than a double"),
        ("1e400", "1e400 has more digits than a double"),
        ("1.2345678901234567890e9", "more digits than a double"),
    ],
    ids=["syntax", "nan", "repeated", "deep", "deeper", "digits", *"abcd"],
)
def test_text_without_a_variant(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        check_json(text)


@pytest.mark.parametrize(
    "text", ["1" * 38, "-0." + "1" * 37, "1e-45", "0.1", "1" + "0" * 40, "1.7976931348623157e308"]
)
def test_numbers_that_a_variant_has(text: str) -> None:
    check_json(f"[{text}]")


def test_values_are_parsed_and_written() -> None:
    (field,) = arrow_schema("a STRUCT<b: ARRAY<VARIANT>, c: MAP<STRING, VARIANT>, d: INT>")
    value = {"b": [{"x": 1}, None, "text"], "c": [("k", [1.5])], "d": 1}
    text = text_value(value, field)
    assert text == {"b": ['{"x": 1}', None, '"text"'], "c": [("k", "[1.5]")], "d": 1}
    assert parsed_value(text, field) == value
    with pytest.raises(ValueError, match="Out of range"):
        text_value({"b": [float("nan")]}, field)


@pytest.mark.parametrize(
    ("value", "expected"),
    [('{"b": 1.50, "b": "x"}', '{"b":"x"}'), ('"text"', '"text"'), ("null", None), ("1e5", "1e5")],
    ids=["object", "text", "null", "number"],
)
def test_the_json_format_reads_any_value(value: str, expected: Any) -> None:
    payloads = pa.array([f'{{"id": 1, "a": {value}}}'.encode()])
    decoded = Json(JsonConfig()).decode(payloads, arrow_schema("id LONG, a VARIANT"))
    assert decoded.rows.column("a").to_pylist() == [expected]


def test_the_json_format_rejects_values_without_a_variant() -> None:
    deep = b'{"a": ' + b"[" * 600 + b"]" * 600 + b"}"
    decoded = Json(JsonConfig()).decode(pa.array([b'{"a": 1}', deep]), arrow_schema("a VARIANT"))
    assert decoded.rows.num_rows == 1
    assert [failure.index for failure in decoded.failures] == [1]
