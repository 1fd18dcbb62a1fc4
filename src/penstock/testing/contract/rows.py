"""The rows that connectors are tested with."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = dict[str, Any]

SIMPLE = pa.schema([("id", pa.int64()), ("name", pa.string())])

EVERY_TYPE = pa.schema(
    [
        ("id", pa.int64()),
        ("flag", pa.bool_()),
        ("small", pa.int16()),
        ("count", pa.int32()),
        ("ratio", pa.float32()),
        ("number", pa.float64()),
        ("price", pa.decimal128(20, 4)),
        ("text", pa.string()),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("tags", pa.list_(pa.string())),
        ("where", pa.struct([("city", pa.string()), ("floor", pa.int32())])),
    ]
)

ODD_NAMES = pa.schema(
    [("id", pa.int64())]
    + [
        (name, pa.string())
        for name in ("a b", "select", "Größe", "a.b", "q\"u'o`te", "x" * 60, "😀")
    ]
)


def simple(*ids: int) -> list[Row]:
    """Rows of `SIMPLE`."""
    return [{"id": id_, "name": f"name {id_}"} for id_ in ids]


def every_type() -> list[Row]:
    """Rows of `EVERY_TYPE`: ordinary values, extreme ones, and nulls."""
    at = dt.datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=dt.UTC)
    ordinary: Row = {
        "id": 1, "flag": True, "small": 7, "count": 42, "ratio": 0.5, "number": 2.25,
        "price": Decimal("19.9900"), "text": "plain", "raw": b"\x00\xff", "day": at.date(),
        "at": at, "tags": ["a", "b"], "where": {"city": "Bern", "floor": 3},
    }  # fmt: skip
    extreme: Row = {
        "id": 2, "flag": False, "small": -(2**15), "count": 2**31 - 1, "ratio": -0.0,
        "number": 1.7976931348623157e308, "price": Decimal("-9999999999999999.9999"), "text": "",
        "raw": b"", "day": dt.date(1970, 1, 1), "at": dt.datetime(1969, 12, 31, tzinfo=dt.UTC),
        "tags": [], "where": {"city": None, "floor": None},
    }  # fmt: skip
    return [ordinary, extreme, {"id": 3, **dict.fromkeys(EVERY_TYPE.names[1:])}]


def strange_texts() -> list[Row]:
    """Rows of `SIMPLE` whose text is hard on quoting, framing and encodings."""
    texts = [
        "😀 emoji", "line\nbreak", "carriage\r\nreturn", "tab\t", 'quote " and \\ backslash',
        "comma, semicolon; pipe |", "  spaces  ", "null", "NaN", "'; DROP TABLE x; --", "\u2028",
        "e\u0301 combining", "العربية", "<b>&amp;</b>", "{}", "[1]", "0", "true",
    ]  # fmt: skip
    return [{"id": at, "name": text} for at, text in enumerate(texts)]


def odd_names() -> list[Row]:
    """A row of `ODD_NAMES`."""
    return [{"id": 1, **{name: f"value of {name}" for name in ODD_NAMES.names[1:]}}]


def large() -> list[Row]:
    """A row of `SIMPLE` with a value of a megabyte."""
    return [{"id": 1, "name": "x" * 2**20}]


def by_id(rows: list[Row]) -> list[Row]:
    """Rows in the order of their ids."""
    return sorted(rows, key=lambda row: row["id"])
