"""Sample rows and payloads of the contract."""

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
        ("name", pa.string()),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("tags", pa.list_(pa.string())),
        ("where", pa.struct([("city", pa.string()), ("floor", pa.int32())])),
    ]
)

SPECIAL_NAMES = pa.schema(
    [("id", pa.int64())]
    + [
        (name, pa.string())
        for name in ("a b", "select", "Größe", "a.b", "q\"u'o`te", "x" * 60, "😀")
    ]
)
"""Column names that need quoting."""

RAW = pa.schema([("value", pa.binary())])
"""The column of opaque payloads in the format `raw`."""
MEGABYTE = 2**20


def make_rows(*ids: int) -> list[Row]:
    """Returns rows of `SIMPLE` with these ids."""
    return [{"id": id_, "name": f"name {id_}"} for id_ in ids]


def make_typed_rows() -> list[Row]:
    """Returns rows of `EVERY_TYPE`: ordinary values, extreme values, and nulls."""
    at = dt.datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=dt.UTC)
    ordinary: Row = {
        "id": 1, "flag": True, "small": 7, "count": 42, "ratio": 0.5, "number": 2.25,
        "price": Decimal("19.9900"), "name": "plain", "raw": b"\x00\xff", "day": at.date(),
        "at": at, "tags": ["a", "b"], "where": {"city": "Bern", "floor": 3},
    }  # fmt: skip
    extreme: Row = {
        "id": 2, "flag": False, "small": -(2**15), "count": 2**31 - 1, "ratio": -0.0,
        "number": 1.7976931348623157e308, "price": Decimal("-9999999999999999.9999"), "name": "",
        "raw": b"", "day": dt.date(1970, 1, 1), "at": dt.datetime(1969, 12, 31, tzinfo=dt.UTC),
        "tags": [], "where": {"city": None, "floor": None},
    }  # fmt: skip
    return [ordinary, extreme, {"id": 3, **dict.fromkeys(EVERY_TYPE.names[1:])}]


def make_special_texts() -> list[Row]:
    """Returns rows of `SIMPLE` with text that requires care in quoting, framing and encodings."""
    texts = [
        "😀 emoji", "line\nbreak", "carriage\r\nreturn", "tab\t", 'quote " and \\ backslash',
        "comma, semicolon; pipe |", "  spaces  ", "null", "NaN", "'; DROP TABLE x; --", "\u2028",
        "e\u0301 combining", "العربية", "<b>&amp;</b>", "{}", "[1]", "0", "true",
    ]  # fmt: skip
    return [{"id": index, "name": text} for index, text in enumerate(texts)]


def make_payloads(kind: str, max_size: int) -> list[bytes]:
    """Returns payloads of a kind: `bytes`, `text` or `lines`.

    The largest payload has `max_size` bytes, at most 1 MiB.
    """
    texts = [row["name"] for row in make_special_texts()]
    if kind == "lines":
        texts = [text for text in texts if not set(text) & {"\n", "\r"}]
    else:
        texts.append("")
    payloads = [text.encode() for text in texts]
    if kind == "bytes":
        payloads += [b"\0", b"\xff\xfe", bytes(range(256)), bytes(range(256)) * 16]
    return [*payloads, b"x" * min(max_size, MEGABYTE)]


def make_special_names() -> list[Row]:
    """Returns a row of `SPECIAL_NAMES`."""
    return [{"id": 1, **{name: f"value of {name}" for name in SPECIAL_NAMES.names[1:]}}]


def make_large_row(id_: int = 1) -> list[Row]:
    """Returns a row of `SIMPLE` with a value of 1 MiB."""
    return [{"id": id_, "name": "x" * MEGABYTE}]


def sort_by_id(rows: list[Row]) -> list[Row]:
    """Returns the rows in the order of their ids."""
    return sorted(rows, key=lambda row: row["id"])


def make_versions(keys: int, versions: int = 8) -> list[Row]:
    """Returns rows of `SIMPLE` in several versions, each with the IDs below `keys`."""
    return [
        {"id": key, "name": f"version {version}"}
        for version in range(versions)
        for key in range(keys)
    ]


Change = tuple[str, Row]
"""An operation and its row of `SIMPLE`."""


def make_changes() -> list[Change]:
    """Returns changes of all kinds: new keys, keys that change, unknown and repeated ones."""
    named = [
        ("i", 1, "a"), ("i", 2, "b"), ("i", 3, "c"), ("i", 1, "a"),
        ("ub", 1, "a"), ("u", 4, "a of another key"),
        ("d", 9, None), ("u", 8, "never inserted"),
        ("d", 2, None), ("i", 2, "inserted again"), ("i", 2, "inserted again"),
        ("i", 5, "e"), ("u", 5, "e2"), ("d", 5, None), ("d", 5, None),
        ("ub", 3, "c"), ("u", 3, "c2"), ("ub", 3, "c2"), ("u", 3, "c3"),
        ("d", 6, None), ("i", 6, "f"), ("d", 7, None), ("i", 7, "g"), ("d", 7, None),
    ]  # fmt: skip
    return [(operation, {"id": id_, "name": name}) for operation, id_, name in named]


def apply_changes(changes: list[Change]) -> list[Row]:
    """Returns the rows of a table after changes, in the order of their ids."""
    table: dict[Any, Row] = {}
    for operation, row in changes:
        if operation in ("ub", "d"):
            table.pop(row["id"], None)
        else:
            table[row["id"]] = row
    return sort_by_id([*table.values()])


def deduplicate(rows: list[Row]) -> list[Row]:
    """Returns the distinct rows, compared by all columns, in the order of their ids."""
    return sort_by_id([*{repr(sorted(row.items())): row for row in rows}.values()])
