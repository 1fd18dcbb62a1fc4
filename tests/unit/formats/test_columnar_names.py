"""Parquet and Arrow files without any declared column."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pytest
from format_samples import batch, written

from penstock.core.errors import Permanent
from penstock.formats.arrow import Arrow, ArrowConfig
from penstock.formats.parquet import Parquet, ParquetConfig
from penstock.sdk import FileFormat, Read

FORMATS: list[FileFormat[Any]] = [Parquet(ParquetConfig()), Arrow(ArrowConfig())]
ROWS = batch([{"Id": 1, "name": "x"}], pa.schema([("Id", pa.int64()), ("name", pa.string())]))


def read(format_: FileFormat[Any], schema: pa.Schema, *columns: str) -> list[dict[str, Any]]:
    request = Read(frozenset(columns) if columns else None)
    content = io.BytesIO(written(format_, ROWS))
    return [
        row for rows, _ in format_.read_file(content, schema, "file", request)
        for row in rows.to_pylist()
    ]  # fmt: skip


@pytest.mark.parametrize("format_", FORMATS, ids=["parquet", "arrow"])
def test_file_without_any_declared_column(format_: FileFormat[Any]) -> None:
    schema = pa.schema([("nam", pa.int64()), ("at", pa.int64())])
    with pytest.raises(Permanent) as raised:
        read(format_, schema)
    assert raised.value.message == (
        'cannot read file: expected one of the columns "nam", "at", found "Id", "name"'
    )
    assert raised.value.hint == 'did you mean "name"?'
    some = pa.schema([("name", pa.string()), ("at", pa.int64())])
    assert [row["at"] for row in read(format_, some, "at")] == [None]
    assert read(format_, pa.schema([])) == [{}]
