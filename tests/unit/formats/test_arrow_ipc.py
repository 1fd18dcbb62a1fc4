"""Arrow IPC files of other programs, and damaged ones."""

from __future__ import annotations

import datetime as dt
import io
from pathlib import Path
from typing import Any

import arro3.core
import arro3.io
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import ipc

from penstock.formats.arrow import Arrow, ArrowConfig
from penstock.sdk import Read
from penstock.sdk.columns.ddl import arrow_schema

COLUMNS = arrow_schema("id BIGINT, name STRING")
ROWS = [{"id": 1, "name": "ada"}, {"id": 2, "name": None}, {"id": 3, "name": "tom"}]
TABLE = pa.Table.from_pylist(ROWS, COLUMNS)


def read(file: bytes, schema: pa.Schema = COLUMNS, *columns: str) -> tuple[list[Any], list[Any]]:
    request = Read(frozenset(columns) or None)
    found = Arrow(ArrowConfig()).read_file(io.BytesIO(file), schema, "f", request)
    rows = [row for batch, _ in found for row in batch.to_pylist()]
    return rows, [(bad.position, bad.error.code) for bad in request.bad]


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
@pytest.mark.parametrize("compatible", [pl.CompatLevel.oldest(), pl.CompatLevel.newest()])
@pytest.mark.parametrize("layout", ["file", "stream"])
def test_files_of_polars(compression: Any, compatible: Any, layout: str) -> None:
    frame = pl.DataFrame(
        {
            "id": [1, 2],
            "name": ["ada", None],
            "kind": pl.Series(["a", "b"], dtype=pl.Categorical),
            "at": [dt.datetime(2024, 1, 2, 3, 4, 5), None],
            "list": [["x"], None],
        }
    )
    out = io.BytesIO()
    write = frame.write_ipc if layout == "file" else frame.write_ipc_stream
    write(out, compression=compression, compat_level=compatible)
    schema = arrow_schema(
        "id BIGINT, name STRING, kind STRING, at TIMESTAMP_NTZ, list ARRAY<STRING>"
    )
    rows, bad = read(out.getvalue(), schema)
    assert rows == frame.to_dicts() and not bad
    assert Arrow(ArrowConfig()).infer_file(out) == schema


def test_files_of_arrow_rs(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    arro3.io.write_ipc(arro3.core.Table.from_arrow(TABLE), path)
    assert read(path.read_bytes()) == (ROWS, [])
    without_footer = path.read_bytes()[:-20]
    assert read(without_footer) == (ROWS, [(3, "not-arrow")])


def compressed(*batches: pa.Table) -> bytes:
    out = io.BytesIO()
    with ipc.new_file(out, COLUMNS, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        for batch in batches:
            writer.write_table(batch)
    return out.getvalue()


def test_damaged_batch_costs_no_row_of_others() -> None:
    texts = pa.table({"id": [4, 5], "name": ["x" * 500, "y" * 500]}, schema=COLUMNS)
    file = bytearray(compressed(TABLE, texts, TABLE))
    place = compressed(TABLE, texts).rindex(b"\x28\xb5\x2f\xfd")
    file[place : place + 4] = b"\xff" * 4
    rows, bad = read(bytes(file))
    assert [row["id"] for row in rows] == [1, 2, 3, 1, 2, 3] and bad == [(4, "corrupt-file")]
    rows, bad = read(bytes(file), COLUMNS, "id")
    assert [row["id"] for row in rows] == [1, 2, 3, 4, 5, 1, 2, 3] and not bad


def test_truncated_file_is_an_error_after_its_last_batch() -> None:
    file = compressed(TABLE)
    end = file.rindex(b"\xff\xff\xff\xff\0\0\0\0")
    for truncated in (file[:end], file[: end + 8], file[:-1]):
        assert read(truncated) == (ROWS, [(3, "not-arrow")])


def test_text_that_is_not_utf8_costs_only_its_row() -> None:
    out = io.BytesIO()
    with ipc.new_file(out, COLUMNS) as writer:
        writer.write_table(TABLE)
    file = out.getvalue().replace(b"adatom", b"ad\xfftom")
    assert read(file) == (ROWS[1:], [(1, "not-utf8")])
