"""Damaged Parquet files: rows are read short in no case, and no value costs other rows."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from penstock.formats.parquet import Parquet, ParquetConfig, row_groups
from penstock.sdk import Read

COLUMNS = pa.schema([("id", pa.int64()), ("text", pa.string())])
REQUIRED = pa.schema([field.with_nullable(False) for field in COLUMNS])
TWO_VALUES, THREE_VALUES, FIVE_VALUES = b"\x15\x04", b"\x15\x06", b"\x16\x0a"
"""Counts of values as Thrift encodes them: of a page, and of a row group or file."""


def content(rows: int, group: int = 1_000_000) -> bytes:
    table = pa.table({"id": range(rows), "text": [f"t{n}" for n in range(rows)]}, schema=REQUIRED)
    out = io.BytesIO()
    parquet.write_table(
        table, out, row_group_size=group, use_dictionary=False, compression="none",
        write_statistics=False, store_schema=False,
    )  # fmt: skip
    return out.getvalue()


def read(
    file: bytes, schema: pa.Schema = COLUMNS, columns: Any = None
) -> tuple[list[Any], list[tuple[int, str, str]]]:
    request = Read(columns)
    found = Parquet(ParquetConfig()).read_file(io.BytesIO(file), schema, "f", request)
    rows = [row for batch, _ in found for row in batch.to_pylist()]
    return rows, [(bad.position, bad.error.code, bad.error.message) for bad in request.bad]


def short_page(file: bytes) -> bytes:
    """Removes a value from the first page with three values."""
    return file.replace(b"\x2c" + THREE_VALUES, b"\x2c" + TWO_VALUES, 1)


def test_rows_of_a_row_group_with_a_short_column_are_an_error() -> None:
    rows, bad = read(short_page(content(5, group=3)))
    assert [row["id"] for row in rows] == [3, 4]
    assert bad == [
        (1, "corrupt-file", 'row group 1 is damaged: expected 3 rows, found 2 in column "id"')
    ]


def test_short_column_that_is_not_read_is_no_error() -> None:
    rows, bad = read(short_page(content(5, group=3)), columns=frozenset(["text"]))
    assert [row["text"] for row in rows] == ["t0", "t1", "t2", "t3", "t4"] and not bad


def test_short_column_of_a_large_row_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_groups, "BUFFER_BYTES", 1)
    rows, bad = read(short_page(content(5, group=3)))
    assert [row["id"] for row in rows] == [3, 4] and [position for position, *_ in bad] == [1]
    assert read(content(5, group=3))[0] == read(content(5))[0]


def wrong_counts() -> list[bytes]:
    """Returns files of five rows whose metadata states two for the file, a row group, or both."""
    file = content(5)
    start = len(file) - 8 - int.from_bytes(file[-8:-4], "little")
    places = [place for place in range(start, len(file)) if file[place : place + 2] == FIVE_VALUES]
    first, last = bytearray(file), bytearray(file)
    both = bytearray(file)
    for damaged, changed in ((first, places[:1]), (last, places[-1:]), (both, places)):
        for place in changed:
            damaged[place + 1] = 4
    both[places[1] + 1] = 10
    return [bytes(first), bytes(last), bytes(both)]


@pytest.mark.parametrize("file", wrong_counts(), ids=["file", "row group", "both"])
def test_rows_are_not_lost_by_a_wrong_number_of_rows(file: bytes) -> None:
    rows, bad = read(file)
    assert len(rows) == 5 or bad


def test_undecodable_row_group_costs_no_row_of_others() -> None:
    file = bytearray(content(9, group=3))
    page = file.index(b"\x2c" + THREE_VALUES, file.index(b"t2"))
    file[page - 4 : page + 4] = b"\xff" * 8
    rows, bad = read(bytes(file))
    assert [row["id"] for row in rows] == [0, 1, 2, 6, 7, 8]
    assert [(position, code) for position, code, _ in bad] == [(4, "corrupt-file")]
    assert 'row group 2 is damaged: column "id": ' in bad[0][2]


@pytest.mark.quick(1)
@pytest.mark.parametrize("rows", [10, 100_000])
def test_text_that_is_not_utf8_costs_only_its_row(rows: int) -> None:
    file = content(rows).replace(b"\x02\0\0\0t7", b"\x02\0\0\0t\xff")
    found, bad = read(file)
    assert [row["id"] for row in found] == [n for n in range(rows) if n != 7]
    assert bad == [(8, "not-utf8", 'column "text" is not UTF-8')]


def test_nested_text_that_is_not_utf8_costs_only_its_row() -> None:
    values = {
        "list": [["a"], ["b", "wrong"], None, []],
        "struct": [{"s": "wrong"}, {"s": "a"}, None, {"s": None}],
        "map": [[("a", "b")], None, [("c", "wrong")], [("d", "e")]],
        "id": [0, 1, 2, 3],
    }
    types = {
        "list": pa.list_(pa.string()),
        "struct": pa.struct([("s", pa.string())]),
        "map": pa.map_(pa.string(), pa.string()),
        "id": pa.int64(),
    }
    out = io.BytesIO()
    table = pa.table(values, schema=pa.schema(types))
    parquet.write_table(table, out, use_dictionary=False, compression="none")
    file = out.getvalue().replace(b"wrong", b"wro\xffg")
    rows, bad = read(file, table.schema)
    assert [row["id"] for row in rows] == [3]
    assert bad == [
        (1, "not-utf8", 'column "struct" is not UTF-8'),
        (2, "not-utf8", 'column "list" is not UTF-8'),
        (3, "not-utf8", 'column "map" is not UTF-8'),
    ]
