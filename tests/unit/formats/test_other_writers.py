"""Files of generated rows that other projects write are read here."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import arro3.io
import duckdb
import fastavro
import polars as pl
import pyarrow as pa
import pytest
from format_samples import ALL, FLAT, rows_of
from hypothesis import given, settings
from test_other_readers import plain

from penstock.formats.arrow import Arrow, ArrowConfig
from penstock.formats.avro import Avro, AvroConfig
from penstock.formats.csv import Csv, CsvConfig
from penstock.formats.json import Json, JsonConfig
from penstock.formats.parquet import Parquet, ParquetConfig
from penstock.sdk import FileFormat, Read

ARROW, PARQUET = Arrow(ArrowConfig()), Parquet(ParquetConfig())
DATA = Path(pa.__file__).parent / "tests" / "data"
PYARROW_FILES = sorted([*DATA.glob("*/*.parquet"), *DATA.glob("*/*.feather")])
"""Test files in the package pyarrow (Apache Arrow, Apache License 2.0)."""


def without(schema: pa.Schema, *names: str) -> pa.Schema:
    return pa.schema([field for field in schema if field.name not in names])


def read(
    format_: FileFormat[Any], content: bytes, schema: pa.Schema
) -> tuple[list[dict[str, Any]], Read]:
    """Returns the rows of a file, and the request with rejected records."""
    request = Read()
    found = list(format_.read_file(io.BytesIO(content), schema, "f", request))
    return [row for rows, _ in found for row in rows.to_pylist()], request


WITHOUT_MAP = without(ALL, "map")
Write = Callable[[pl.DataFrame, io.BytesIO], Any]
POLARS: dict[str, tuple[FileFormat[Any], Write]] = {
    "arrow": (ARROW, lambda frame, out: frame.write_ipc(out)),
    "arrow, compressed": (ARROW, lambda frame, out: frame.write_ipc(out, compression="zstd")),
    "arrow, stream": (ARROW, lambda frame, out: frame.write_ipc_stream(out, compression="lz4")),
    "parquet": (PARQUET, lambda frame, out: frame.write_parquet(out)),
    "parquet, small groups": (
        PARQUET, lambda frame, out: frame.write_parquet(out, row_group_size=2, compression="lz4"),
    ),
}  # fmt: skip


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", POLARS)
@settings(max_examples=15, deadline=None)
@given(rows=rows_of(WITHOUT_MAP))
def test_polars(name: str, rows: pa.RecordBatch) -> None:
    format_, write = POLARS[name]
    out = io.BytesIO()
    frame = pl.from_arrow(pa.table(rows))
    assert isinstance(frame, pl.DataFrame)
    write(frame, out)
    found, request = read(format_, out.getvalue(), WITHOUT_MAP)
    assert plain(found) == plain(rows.to_pylist()) and not request.bad


ARROW_RS: dict[str, tuple[FileFormat[Any], Callable[[Any, io.BytesIO], Any]]] = {
    "arrow": (ARROW, lambda rows, out: arro3.io.write_ipc(rows, out, compression="zstd")),
    "arrow, stream": (ARROW, arro3.io.write_ipc_stream),
    "parquet": (PARQUET, arro3.io.write_parquet),
}


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", ARROW_RS)
@settings(max_examples=15, deadline=None)
@given(rows=rows_of(ALL))
def test_the_rust_library_of_apache_arrow(name: str, rows: pa.RecordBatch) -> None:
    format_, write = ARROW_RS[name]
    out = io.BytesIO()
    write(pa.table(rows), out)
    found, request = read(format_, out.getvalue(), ALL)
    assert plain(found) == plain(rows.to_pylist()) and not request.bad


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(rows=rows_of(ALL))
def test_duckdb(tmp_path_factory: pytest.TempPathFactory, rows: pa.RecordBatch) -> None:
    path = tmp_path_factory.getbasetemp() / "written"
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("given_rows", pa.table(rows))
    for options, format_, names in [
        ("FORMAT parquet", PARQUET, ALL.names),
        (
            "FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2",
            PARQUET,
            without(ALL, "tiny", "short", "int").names,  # differences of more than 32 bits
        ),
        ("FORMAT json", Json(JsonConfig()), without(ALL, "bytes", "blobs", "exact").names),
        ("FORMAT json, ARRAY true", Json(JsonConfig()), ["long", "text", "struct", "list"]),
        ("FORMAT csv", Csv(CsvConfig()), without(FLAT, "bytes").names),
    ]:
        quoted = ", ".join(f'"{name}"' for name in names)
        connection.execute(f"COPY (SELECT {quoted} FROM given_rows) TO '{path}' ({options})")
        schema = pa.schema([ALL.field(name) for name in names])
        found, request = read(format_, path.read_bytes(), schema)  # type: ignore[arg-type]
        assert plain(found) == plain(rows.select(names).to_pylist()) and not request.bad, options


def finite(number: float | None) -> float | None:
    """Returns the number that polars writes as JSON: null for infinity."""
    return None if number is None or math.isinf(number) else number


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(rows=rows_of(FLAT))
def test_lines_of_python_and_polars(rows: pa.RecordBatch) -> None:
    schema = pa.schema([FLAT.field(name) for name in ("long", "double", "yes", "text")])
    rows = rows.select(schema.names)
    frame = pl.from_arrow(pa.table(rows))
    assert isinstance(frame, pl.DataFrame)
    expected = rows.to_pylist()
    json_texts = [
        ("\n".join(json.dumps(row) for row in expected), expected),
        (json.dumps(expected, indent=1, ensure_ascii=False), expected),
        (frame.write_ndjson(), [{**row, "double": finite(row["double"])} for row in expected]),
    ]
    for text, values in json_texts:
        found, request = read(Json(JsonConfig()), text.encode(), schema)
        assert found == values and not request.bad
    found, request = read(Csv(CsvConfig()), frame.write_csv().encode(), schema)
    assert found == expected and not request.bad
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_MINIMAL)
    writer.writerow(["text", "double"])
    writer.writerows([row["text"] or "", repr(row["double"] or 0.0)] for row in expected)
    columns = pa.schema([schema.field("text"), schema.field("double")])
    found, request = read(Csv(CsvConfig(nulls=[])), out.getvalue().encode(), columns)
    assert not request.bad
    assert found == [
        {"text": row["text"] or "", "double": row["double"] or 0.0} for row in expected
    ]


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(rows=rows_of(ALL))
def test_fastavro(rows: pa.RecordBatch) -> None:
    types: dict[str, Any] = {
        "tiny": "int", "short": "int", "int": "int", "long": "long", "real": "float",
        "double": "double", "yes": "boolean", "text": "string", "bytes": "bytes",
        "money": {"type": "fixed", "size": 9, "name": "Money", "logicalType": "decimal",
                  "precision": 18, "scale": 4},
        "exact": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10},
        "day": {"type": "int", "logicalType": "date"},
        "at": {"type": "long", "logicalType": "timestamp-micros"},
        "list": {"type": "array", "items": ["double", "null"]},
        "map": {"type": "map", "values": "long"},
    }  # fmt: skip
    fields = [{"name": name, "type": ["null", type_]} for name, type_ in types.items()]
    schema = pa.schema([ALL.field(name) for name in types])
    given_rows = rows.select(schema.names).to_pylist(maps_as_pydicts="strict")
    for codec in ("null", "deflate"):
        out = io.BytesIO()
        avro = fastavro.parse_schema({"type": "record", "name": "Row", "fields": fields})
        fastavro.writer(out, avro, given_rows, codec=codec)
        found, request = read(Avro(AvroConfig()), out.getvalue(), schema)
        expected = rows.select(schema.names).to_pylist()
        assert plain(found) == plain(expected) and not request.bad


@pytest.mark.parametrize("path", PYARROW_FILES, ids=[path.name for path in PYARROW_FILES])
def test_files_of_the_package_pyarrow(path: Path) -> None:
    format_ = PARQUET if path.suffix == ".parquet" else ARROW
    if path.suffix == ".parquet":
        expected = pl.read_parquet(path)
    else:
        expected = pl.read_ipc(path, use_pyarrow=True)
    with path.open("rb") as file:
        schema = format_.infer_file(file)
        assert schema is not None
    found, request = read(format_, path.read_bytes(), schema)
    assert not request.bad and len(found) == len(expected) > 0
    known = (pa.int64(), pa.float64(), pa.string())
    names = [name for name in schema.names if schema.field(name).type in known]
    rows = [{name: row[name] for name in names} for row in found]
    assert rows == expected.select(names).to_dicts()
