"""Rows of every type: an ordinary one, and for each extreme value a row that has it.

The ID of a row names its column and its value, as `price: largest`.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa

from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.columns.json_mark import has_json, is_json

Row = dict[str, Any]
COLUMNS: Mapping[str, str] = {
    "id": "STRING NOT NULL",
    "flag": "BOOLEAN",
    "tiny": "TINYINT",
    "small": "SMALLINT",
    "medium": "INT",
    "big": "BIGINT",
    "single": "FLOAT",
    "double": "DOUBLE",
    "price": "DECIMAL(38, 18)",
    "whole": "DECIMAL(38, 0)",
    "text": "STRING",
    "raw": "BINARY",
    "day": "DATE",
    "at": "TIMESTAMP",
    "local": "TIMESTAMP_NTZ",
    "numbers": "ARRAY<BIGINT>",
    "prices": "ARRAY<DECIMAL(38, 18)>",
    "texts": "ARRAY<STRING>",
    "raws": "ARRAY<BINARY>",
    "times": "ARRAY<TIMESTAMP>",
    "grid": "ARRAY<ARRAY<INT>>",
    "place": "STRUCT<city: STRING, price: DECIMAL(38, 18), ratio: DOUBLE, raw: BINARY, day: DATE, "
    "at: TIMESTAMP, visits: ARRAY<STRUCT<n: BIGINT, by: STRING>>>",
    "tags": "MAP<STRING, BIGINT>",
    "rates": "MAP<INT, DECIMAL(38, 18)>",
    "body": "VARIANT",
    "bodies": "ARRAY<VARIANT>",
}
SCHEMA = arrow_schema(COLUMNS)
LARGEST = Decimal("12345678901234567890.123456789012345678")
WIDEST = Decimal(10**38 - 1)
EVENING = dt.datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=dt.UTC)
ORDINARY: Row = {
    "flag": True, "tiny": 1, "small": 2, "medium": 3, "big": 4, "single": 0.5, "double": 0.25,
    "price": Decimal("19.990000000000000000"), "whole": Decimal(7), "text": "plain",
    "raw": b"\x00\xff", "day": dt.date(2024, 2, 29), "at": EVENING.replace(microsecond=123000),
    "local": EVENING.replace(microsecond=123000, tzinfo=None), "numbers": [1, 2],
    "prices": [Decimal("0.500000000000000000")], "texts": ["a"], "raws": [b"a"],
    "times": [EVENING.replace(microsecond=0)], "grid": [[1]],
    "place": {
        "city": "Bern", "price": Decimal("1.500000000000000000"), "ratio": 0.5, "raw": b"b",
        "day": dt.date(2024, 2, 29), "at": EVENING.replace(microsecond=0),
        "visits": [{"n": 1, "by": "ann"}],
    },
    "tags": [("a", 1)], "rates": [(1, Decimal("0.100000000000000000"))], "body": '{"a":1}',
    "bodies": ["1"],
}  # fmt: skip
_PLACE = ORDINARY["place"]
_TIMES: Mapping[str, dt.datetime] = {
    "first": dt.datetime(1, 1, 1, tzinfo=dt.UTC),
    "last": dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
    "microsecond before 1970": dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
    "second before 1900": dt.datetime(1899, 12, 31, 23, 59, 59, tzinfo=dt.UTC),
    "Julian": dt.datetime(1582, 10, 4, tzinfo=dt.UTC),
    "after 2038": dt.datetime(2038, 1, 19, 3, 14, 8, tzinfo=dt.UTC),
    "after 2299": dt.datetime(2300, 1, 1, tzinfo=dt.UTC),
    "microseconds": EVENING,
    "hour of summer time": dt.datetime(2024, 3, 31, 2, 30, tzinfo=dt.UTC),
}
_HUGE = 1.7976931348623157e308
VALUES: Mapping[str, Mapping[str, Any]] = {
    "flag": {"false": False},
    "tiny": {"smallest": -(2**7), "largest": 2**7 - 1},
    "small": {"smallest": -(2**15), "largest": 2**15 - 1},
    "medium": {"smallest": -(2**31), "largest": 2**31 - 1},
    "big": {"smallest": -(2**63), "largest": 2**63 - 1, "beyond doubles": 2**53 + 1},
    "single": {
        "largest": 3.4028234663852886e38, "subnormal": 1.401298464324817e-45,
        "tenth": 0.10000000149011612, "minus zero": -0.0, "NaN": float("nan"),
        "infinity": float("inf"), "minus infinity": float("-inf"),
    },
    "double": {
        "largest": _HUGE, "subnormal": 5e-324, "third": 1 / 3, "minus zero": -0.0,
        "whole": 1e15, "NaN": float("nan"), "infinity": float("inf"),
        "minus infinity": float("-inf"),
    },
    "price": {
        "largest": LARGEST, "smallest": LARGEST.copy_negate(),
        "last digit": Decimal("0.000000000000000001"),
        "34 digits": Decimal("1234567890123456.123456789012345678"), "zero": Decimal("0E-18"),
    },
    "whole": {
        "largest": WIDEST, "smallest": WIDEST.copy_negate(), "beyond doubles": Decimal(2**53 + 1),
    },
    "text": {
        "empty": "", "space": " ", "spaces at its end": "a  ", "NULL": "NULL", "null": "null",
        "\\N": "\\N", "NUL": "a\0b", "control": "\x01\x1b\x7f", "quotes": "'\"`\\''\"\"",
        "lines": "a\nb\r\nc\rd\n", "tab": "\ta\t", "SQL": "'; DROP TABLE x; --",
        "template": "{id} ${HOME} %s %(a)s", "emoji": "😀", "combining": "e\u0301",
        "byte order mark": "\ufeffa", "separator": "\u2028", "no character": "\uffff",
        "upper case": "PLAIN", "number of 256 bits": str(2**256 - 1), "number": "007",
        "infinity": "infinity", "zero date": "0000-00-00", "long": "ü" * 70_000, "JSON": '{"a": 1}',
    },
    "raw": {
        "empty": b"", "NUL": b"\0", "all bytes": bytes(range(256)), "hex": b"\\x00",
        "long": bytes(range(256)) * 300,
    },
    "day": {
        **{name: time.date() for name, time in _TIMES.items() if not time.time()},
        "last": dt.date(9999, 12, 31), "before 1970": dt.date(1969, 12, 31),
        "after 2149": dt.date(2149, 6, 7), "before 1900": dt.date(1899, 12, 31),
    },
    "at": _TIMES,
    "local": {name: time.replace(tzinfo=None) for name, time in _TIMES.items()},
    "numbers": {"empty": [], "null inside": [1, None], "extremes": [-(2**63), 2**63 - 1]},
    "prices": {"extremes": [LARGEST, None, LARGEST.copy_negate()]},
    "texts": {"hostile": ["", None, "NULL", 'a,"b\\', "{}", "'", "\n"], "empty": []},
    "raws": {"bytes": [b"", None, b"\0\xff", b"\\x00"]},
    "times": {"extremes": [_TIMES["first"], _TIMES["last"]], "microseconds": [EVENING, None]},
    "grid": {"empty inside": [[], [1, None]], "null inside": [None]},
    "place": {
        "nulls inside": dict.fromkeys(_PLACE),
        "digits": {**_PLACE, "price": LARGEST},
        "NaN inside": {**_PLACE, "ratio": float("nan")},
        "infinity inside": {**_PLACE, "ratio": float("-inf")},
        "third": {**_PLACE, "ratio": 1 / 3},
        "bytes": {**_PLACE, "raw": b"\0\xff"},
        "times": {**_PLACE, "day": dt.date(1, 1, 1), "at": _TIMES["microsecond before 1970"]},
        "hostile": {**_PLACE, "city": "'\"\\\n😀"},
        "big": {**_PLACE, "visits": [{"n": 2**63 - 1, "by": None}, None]},
        "no visits": {**_PLACE, "visits": []},
    },
    "tags": {
        "empty": [], "hostile": [("", -(2**63)), ("a.b", 2), ("$a", None), ("'\"\\", 3)],
        "NUL in a key": [("a\0b", 1)],
    },
    "rates": {"digits": [(-(2**31), LARGEST), (2, None)]},
    "body": {
        "null": "null", "text": '"a\\nb\\u00fc"', "number": "1.50", "true": "true",
        "big": str(2**63 - 1), "wide": "12345678901234567890.123456789012345678",
        "empty": "{}", "list": '[1,[],{"b":null}]', "hostile": '{"":"","a.b":1,"$a":"\\"\\\\"}',
        "unlike numbers": "[1,1.0,0.1]",
    },
    "bodies": {
        "texts and numbers": ['"1"', "1", '"a\\n"', None], "objects": ['{"a":"1","b":[1.5]}'],
    },
}  # fmt: skip


def declaration(columns: Iterable[str]) -> str:
    """Returns columns as a source declares them."""
    return ", ".join(f"{name} {COLUMNS[name]}" for name in columns)


@cache
def wide_rows() -> pa.RecordBatch:
    """Returns all rows."""
    rows = [{"id": "ordinary", **ORDINARY}]
    for name in SCHEMA.names[1:]:
        values = {**VALUES[name], "is null": None}
        rows += [{**ORDINARY, "id": f"{name}: {value}", name: values[value]} for value in values]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def exact(rows: pa.RecordBatch | pa.Table) -> dict[str, dict[str, str]]:
    """Returns the texts of all values by ID and column: equal texts are equal values.

    `-0.0` differs from `0.0`, and `NaN` equals `NaN`. Maps are compared without the order of their
    keys, and VARIANT as JSON.
    """
    texts: dict[str, dict[str, str]] = {}
    for row in rows.to_pylist():
        id_ = row["id"]
        assert id_ not in texts, f"the row {id_!r} is there twice"
        texts[id_] = {
            field.name: _text(row[field.name], field) for field in rows.schema if field.name != "id"
        }
    return texts


def _text(value: Any, field: pa.Field) -> str:
    if value is None:
        return "NULL"
    if is_json(field):
        return json.dumps(json.loads(value, parse_float=_number, parse_int=_number), sort_keys=True)
    if pa.types.is_list(field.type) and has_json(field):
        return str([_text(item, field.type.value_field) for item in value])
    if pa.types.is_map(field.type):
        return repr(sorted(value))
    return repr(value)


def _number(text: str) -> str:
    """Returns the plain digits of a number: equal numbers have equal digits."""
    digits = f"{Decimal(text):f}"
    return f"number {digits.rstrip('0').rstrip('.') if '.' in digits else digits}"


def differences(
    expected: Mapping[str, Mapping[str, str]], found: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """Returns the values that differ, and the rows that only one of both has."""
    lines = [f"{id_}: missing" for id_ in expected if id_ not in found]
    lines += [f"{id_}: unexpected" for id_ in found if id_ not in expected]
    for id_ in expected.keys() & found.keys():
        for column, text in expected[id_].items():
            if found[id_].get(column) != text:
                got = str(found[id_].get(column))
                lines.append(f"{id_}: {column} is {got[:120]}, expected {text[:120]}")
    return sorted(lines)
