"""Rows for the API."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

from penstock.sdk.columns.shown_rows import MAX_CHARACTERS, shown_table


def test_values_are_texts_with_all_digits() -> None:
    table = pa.table(
        {
            "big": pa.array([2**63 - 1, None]),
            "price": pa.array([1.5, float("nan")]),
            "at": pa.array([dt.datetime(2026, 1, 1), None], pa.timestamp("us", "UTC")),
            "nested": pa.array([{"a": [1, None], "b": ""}, None]),
            "text": pa.array(["", 'a "b"\n']),
        }
    )
    shown = shown_table(table)
    assert [each["type"] for each in shown["columns"]] == [
        "BIGINT", "DOUBLE", "TIMESTAMP", "STRUCT<a: ARRAY<BIGINT>, b: STRING>", "STRING",
    ]  # fmt: skip
    assert shown["rows"] == [
        ["9223372036854775807", "1.5", "2026-01-01T00:00:00Z", '{"a": [1, null], "b": ""}', ""],
        [None, "NaN", None, None, 'a "b"\n'],
    ]


def test_long_texts_are_cut_and_invalid_ones_are_shown() -> None:
    invalid = pa.array([b"\xff", b"x" * (MAX_CHARACTERS + 1)]).view(pa.string())
    (first,), (long,) = shown_table(pa.table({"text": invalid}))["rows"]
    assert first == "\ufffd"
    assert long is not None
    assert long.endswith(f"… ({MAX_CHARACTERS + 1:,} characters)")
