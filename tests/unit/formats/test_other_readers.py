"""Files of generated rows are read back, and by readers of other projects."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import arro3.io
import duckdb
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

FORMATS: dict[str, tuple[FileFormat[Any], pa.Schema]] = {
    "csv": (Csv(CsvConfig()), FLAT),
    "json": (Json(JsonConfig()), ALL),
    "json, nulls": (Json(JsonConfig(nulls="keep")), ALL),
    "json, decimals": (Json(JsonConfig(decimals="bytes", timestamps="seconds")), ALL),
    "parquet": (Parquet(ParquetConfig()), ALL),
    "parquet, small groups": (Parquet(ParquetConfig(row_group_rows=2)), ALL),
    "arrow": (Arrow(ArrowConfig()), ALL),
    "arrow, stream": (Arrow(ArrowConfig(layout="stream", compression="lz4")), ALL),
    "avro": (Avro(AvroConfig()), ALL),
    "text": (Text(TextConfig(keep_blank=True)), pa.schema([("text", pa.string())])),
}


def plain(value: Any) -> Any:
    """Returns a value in a form in which NaN is equal to itself, and maps are lists of pairs."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


@pytest.mark.quick(2)
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


COLUMNAR = ["parquet", "parquet, small groups", "arrow", "arrow, stream"]


def polars_rows(name: str, file: io.BytesIO) -> list[dict[str, Any]]:
    """Returns the rows that polars reads. It has lists of entries in place of maps."""
    read: Callable[[io.BytesIO], pl.DataFrame] = {
        "parquet": pl.read_parquet, "arrow": pl.read_ipc, "arrow, stream": pl.read_ipc_stream,
    }[name.removesuffix(", small groups")]  # fmt: skip
    frame = read(file)
    return frame.select(pl.exclude("map")).to_dicts()


def arrow_rs_rows(name: str, file: io.BytesIO) -> list[dict[str, Any]]:
    """Returns the rows that the Rust library of Apache Arrow reads."""
    read: Callable[[io.BytesIO], Any] = {
        "parquet": arro3.io.read_parquet, "arrow": arro3.io.read_ipc,
        "arrow, stream": arro3.io.read_ipc_stream,
    }[name.removesuffix(", small groups")]  # fmt: skip
    rows: list[dict[str, Any]] = pa.table(read(file)).to_pylist()
    return rows


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", COLUMNAR)
@settings(max_examples=15, deadline=None)
@given(rows=rows_of(ALL))
def test_columnar_files(name: str, rows: pa.RecordBatch) -> None:
    file = io.BytesIO(written(FORMATS[name][0], rows))
    without_map = rows.select([column for column in rows.schema.names if column != "map"])
    assert plain(polars_rows(name, file)) == plain(without_map.to_pylist())
    file.seek(0)
    assert plain(arrow_rs_rows(name, file)) == plain(rows.to_pylist())


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(rows=rows_of(ALL))
def test_avro_files(rows: pa.RecordBatch) -> None:
    file = io.BytesIO(written(FORMATS["avro"][0], rows))
    found: list[Any] = list(fastavro.reader(file))
    expected = rows.to_pylist(maps_as_pydicts="strict")
    assert plain(found) == plain(expected)


DUCKDB = {
    "tiny": "TINYINT", "short": "SMALLINT", "int": "INTEGER", "long": "BIGINT", "real": "FLOAT",
    "double": "DOUBLE", "money": "DECIMAL(18, 4)", "exact": "DECIMAL(38, 10)", "yes": "BOOLEAN",
    "text": "VARCHAR", "day": "DATE", "at": "TIMESTAMPTZ", "local": "TIMESTAMP", "list": "DOUBLE[]",
    "struct": "STRUCT(q INTEGER, w VARCHAR)", "structs": "STRUCT(q INTEGER, w VARCHAR)[]",
    "map": "MAP(VARCHAR, BIGINT)",
}  # fmt: skip
"""The types of columns that DuckDB reads from JSON. It has no base64."""


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(rows=rows_of(ALL.remove(ALL.get_field_index("bytes"))))
def test_duckdb(tmp_path_factory: pytest.TempPathFactory, rows: pa.RecordBatch) -> None:
    path = tmp_path_factory.getbasetemp() / "rows"
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    path.write_bytes(written(FORMATS["parquet"][0], rows))
    found = connection.sql(f"SELECT * FROM read_parquet('{path}')").to_arrow_table()
    assert plain(found.to_pylist()) == plain(rows.to_pylist())
    rows = rows.select(list(DUCKDB))
    columns = ", ".join(f"'{name}': '{type_}'" for name, type_ in DUCKDB.items())
    options = f"format = 'newline_delimited', columns = {{{columns}}}"
    for name in ("json", "json, nulls"):
        path.write_bytes(written(FORMATS[name][0], rows))
        found = connection.sql(f"SELECT * FROM read_json('{path}', {options})").to_arrow_table()
        assert plain(found.to_pylist()) == plain(rows.to_pylist())
