"""Sizes of rows: those of their values, in any batch."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.sdk.columns.row_sizes import row_sizes

SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        ("lists", pa.list_(pa.list_(pa.binary()))),
        ("map", pa.map_(pa.string(), pa.int32())),
        ("struct", pa.struct([("inner", pa.string()), ("flag", pa.bool_())])),
        ("decimal", pa.decimal128(10, 2)),
        ("nothing", pa.null()),
    ]
)
FIXED = 1 + 16
"""The bytes of a boolean and a decimal, also of a null."""
ROWS: list[tuple[dict[str, Any], int]] = [
    ({}, 0),
    ({"text": "née"}, 4),
    ({"text": "", "decimal": Decimal("1.50")}, 0),
    ({"lists": [[b"ab", b""], None, [b"c"], []]}, 3),
    ({"lists": []}, 0),
    ({"map": {"a": 1, "bc": None}, "struct": {"inner": "xyz", "flag": True}}, 5 + 6 + 3),
    ({"text": "end", "lists": [[b"\0\1"]], "struct": {"inner": None}}, 5),
]


def test_sizes_in_any_batch() -> None:
    rows = [{**row, "map": [*row["map"].items()] if "map" in row else None} for row, _ in ROWS]
    batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
    expected = [size + FIXED for _, size in ROWS]
    for start in range(len(rows)):
        for stop in range(start, len(rows) + 1):
            part = batch.slice(start, stop - start)
            assert row_sizes(part).tolist() == expected[start:stop], (start, stop)


def test_values_below_a_null_have_no_size() -> None:
    texts = pa.ListArray.from_arrays(
        [0, 2, 3], pa.array(["ab", "c", "def"]), mask=pa.array([True, False])
    )
    assert row_sizes(pa.record_batch({"texts": texts})).tolist() == [0, 3]
