"""Files of generated rows are read back, and by readers of other projects; theirs are read here."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import fastavro
import polars as pl
import pyarrow as pa
import pytest
from format_samples import ALL, FLAT, rows_of, written
from hypothesis import given, settings

from penstock.formats.arrow import Arrow, ArrowConfig
from penstock.formats.avro import Avro, AvroConfig
from penstock.formats.csv import Csv, CsvConfig
from penstock.formats.json import Json, JsonConfig
from penstock.formats.parquet import Parquet, ParquetConfig
from penstock.formats.text import Text, TextConfig
from penstock.sdk import FileFormat, Read

SIMPLE = pa.schema([FLAT.field(name) for name in ("long", "double", "yes", "text", "day", "local")])
FORMATS: dict[str, tuple[FileFormat[Any], pa.Schema]] = {
    "csv": (Csv(CsvConfig()), FLAT),
    "json": (Json(JsonConfig()), ALL),
    "json, nulls": (Json(JsonConfig(nulls="keep")), ALL),
    "parquet": (Parquet(ParquetConfig()), ALL),
    "parquet, small groups": (Parquet(ParquetConfig(row_group_rows=2)), ALL),
    "arrow": (Arrow(ArrowConfig()), ALL),
    "arrow, stream": (Arrow(ArrowConfig(layout="stream", compression="lz4")), ALL),
    "avro": (Avro(AvroConfig()), ALL),
    "text": (Text(TextConfig(keep_blank=True)), pa.schema([("text", pa.string())])),
}


def plain(value: Any) -> Any:
    """Returns a value in a form in which NaN is equal to itself."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=20, deadline=None)
@given(rows=rows_of(ALL))
def test_rows_are_read_back(name: str, rows: pa.RecordBatch) -> None:
    format_, schema = FORMATS[name]
    rows = rows.select(schema.names)
    out, request = io.BytesIO(), Read()
    writer = format_.file_writer(out, schema)
    encoded = writer.write(rows)
    writer.close()
    failed = {failure[0] for failure in encoded.failures} if encoded else set()
    kept = [row for index, row in enumerate(rows.to_pylist()) if index not in failed]
    out.seek(0)
    found = [
        row for batch, _ in format_.read_file(out, schema, "f", request)
        for row in batch.to_pylist()
    ]  # fmt: skip
    assert plain(found) == plain(kept) and not request.bad
    assert name == "text" or not failed


@settings(max_examples=20, deadline=None)
@given(rows=rows_of(SIMPLE))
def test_polars_and_fastavro_read_the_same_rows(rows: pa.RecordBatch) -> None:
    expected = plain(rows.to_pylist())
    files = {
        name: io.BytesIO(written(FORMATS[name][0], rows)) for name in ("parquet", "arrow", "avro")
    }
    assert plain(pl.read_parquet(files["parquet"]).to_dicts()) == expected
    assert plain(pl.read_ipc(files["arrow"]).to_dicts()) == expected
    found = [dict(row) for row in fastavro.reader(files["avro"])]  # type: ignore[arg-type]
    assert plain(found) == expected


DATA = Path(pa.__file__).parent / "tests" / "data"
PYARROW_FILES = sorted([*DATA.glob("*/*.parquet"), *DATA.glob("*/*.feather")])
"""Test files in the package pyarrow (Apache Arrow, Apache License 2.0)."""


@pytest.mark.parametrize("path", PYARROW_FILES, ids=[path.name for path in PYARROW_FILES])
def test_files_of_the_package_pyarrow(path: Path) -> None:
    if path.suffix == ".parquet":
        format_: FileFormat[Any] = Parquet(ParquetConfig())
        expected = pl.read_parquet(path)
    else:
        format_ = Arrow(ArrowConfig())
        expected = pl.read_ipc(path, use_pyarrow=True)
    request = Read()
    with path.open("rb") as file:
        schema = format_.infer_file(file)
        assert schema is not None
        file.seek(0)
        found = [rows for rows, _ in format_.read_file(file, schema, path.name, request)]
    assert not request.bad and sum(rows.num_rows for rows in found) == len(expected) > 0
    names = [name for name in schema.names if schema.field(name).type in (INT, DOUBLE, STRING)]
    rows = [row for batch in found for row in batch.select(names).to_pylist()]
    assert rows == expected.select(names).to_dicts()


INT, DOUBLE, STRING = pa.int64(), pa.float64(), pa.string()
