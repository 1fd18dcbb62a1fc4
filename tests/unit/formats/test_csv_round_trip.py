"""CSV files are read back with the options they were written with, also by DuckDB."""

from __future__ import annotations

import io
import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import format_samples as samples
import pyarrow as pa
import pytest
from format_samples import FLAT
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from penstock.core.errors import PlanError
from penstock.formats.csv import Csv, CsvConfig
from penstock.sdk import Read

TEXT = pa.schema([("text", pa.string())])
PIECES = ["", "a", "NA", "#", "-", '"', "'", "\\", ",", ";", "\n", "\r\n", " ", "\ufeff", "é", "0"]
TEXTS = st.none() | st.lists(st.sampled_from(PIECES), max_size=4).map("".join)
OPTIONS = st.fixed_dictionaries(
    {
        "delimiter": st.sampled_from([",", ";", "\t", "|", "-", "0", "a"]),
        "quote": st.sampled_from(['"', "'", ""]),
        "escape": st.sampled_from(["", "\\", '"']),
        "nulls": st.sampled_from([[""], ["NA"], ["NA", ""], ["a,b", "\\N"], ["-", "#"], []]),
        "comment": st.sampled_from(["", "#", "-", "é"]),
        "header": st.booleans(),
        "timestamps": st.sampled_from(["iso", "seconds", "millis", "micros"]),
    }
)


@st.composite
def tables(draw: st.DrawFn) -> pa.RecordBatch:
    """Returns rows of some columns, among them texts with special characters."""
    names = draw(st.lists(st.sampled_from(FLAT.names), max_size=4, unique=True))
    schema = pa.schema([FLAT.field(name) for name in names])
    count = draw(st.integers(0, 4))
    columns = {}
    for name in names:
        drawn = draw(samples.rows_of(pa.schema([schema.field(name)])))
        assume(drawn.num_rows >= count)
        columns[name] = drawn.column(0).slice(0, count)
    if not names or draw(st.booleans()):
        columns[draw(st.sampled_from(["other", "#", "-a", "x y"]))] = pa.array(
            draw(st.lists(TEXTS, min_size=count, max_size=count)), pa.string()
        )
    return pa.record_batch(columns)


def write(format_: Csv, rows: pa.RecordBatch) -> tuple[bytes, pa.RecordBatch]:
    """Returns a file, and the rows in it."""
    out = io.BytesIO()
    writer = format_.file_writer(out, rows.schema)
    encoded = writer.write(rows)
    writer.close()
    failed = {failure[0] for failure in encoded.failures} if encoded else set()
    kept = [index for index in range(rows.num_rows) if index not in failed]
    return out.getvalue(), rows.take(pa.array(kept, pa.int64()))


def read(format_: Csv, file: bytes, schema: pa.Schema) -> list[dict[str, Any]]:
    request = Read()
    found = format_.read_file(io.BytesIO(file), schema, "f", request)
    rows = [row for batch, _ in found for row in batch.to_pylist()]
    assert not request.bad
    return rows


def comparable(rows: pa.RecordBatch) -> list[dict[str, Any]]:
    return [
        {name: "NaN" if isinstance(value, float) and math.isnan(value) else value
         for name, value in row.items()}
        for row in rows.to_pylist()
    ]  # fmt: skip


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(rows=tables(), options=OPTIONS)
def test_every_option(rows: pa.RecordBatch, options: dict[str, Any]) -> None:
    try:
        format_ = Csv(CsvConfig(**options))
    except ValidationError:
        assume(False)
    try:
        file, kept = write(format_, rows)
    except PlanError:
        assert not options["quote"]
        return
    assert read(format_, file, rows.schema) == comparable(kept)
    if options["quote"] and options["nulls"] in ([""], ["NA", ""]):
        lossless = not any(name in ("long", "int", "tiny", "short") for name in rows.schema.names)
        assert kept.num_rows == rows.num_rows or not lossless


def test_without_special_options_every_row_is_written() -> None:
    rows = pa.record_batch({"n": [None, 1], "s": ["NA", None]})
    for nulls in (["NA"], ["NA", "x"], ["", "NA"]):
        assert write(Csv(CsvConfig(nulls=nulls)), rows)[1] == rows


@pytest.mark.parametrize(
    ("options", "file"),
    [
        ({}, b'a,b\n,""\n1,x\n'),
        ({"nulls": ["NA"]}, b'a,b\nNA,""\n1,x\n'),
        ({"nulls": ["NA", ""]}, b'a,b\n,""\n1,x\n'),
        ({"comment": "a"}, b'"a",b\n,""\n1,x\n'),
        ({"comment": "1", "quote": "'"}, b"a,b\n,''\n'1',x\n"),
    ],
)
def test_written_files(options: dict[str, Any], file: bytes) -> None:
    rows = pa.record_batch({"a": [None, 1], "b": ["", "x"]})
    assert write(Csv(CsvConfig(**options)), rows) == (file, rows)


def test_row_that_would_not_be_read_back_is_an_error() -> None:
    rows = pa.record_batch({"n": [0, 1, None], "s": ["a", "b,", "c"]})
    assert write(Csv(CsvConfig(nulls=["0"])), rows)[1] == rows.slice(1)
    assert write(Csv(CsvConfig(nulls=[])), rows)[1] == rows.slice(0, 2)
    assert write(Csv(CsvConfig(quote="")), rows)[1] == rows.take([0, 2])


@pytest.mark.parametrize("header", [True, False])
def test_blank_lines_are_nulls_of_a_single_column(header: bool) -> None:
    format_ = Csv(CsvConfig(header=header))
    rows = pa.record_batch({"text": [None, "a", "", None]})
    file, kept = write(format_, rows)
    assert kept == rows and file == b"text\n" * header + b'\na\n""\n\n'
    assert read(format_, file, TEXT) == rows.to_pylist()
    assert read(Csv(CsvConfig()), b"\n\ntext,b\n\nx,1\n\n", TEXT) == [{"text": "x"}]


def test_comment_character_within_a_quoted_field() -> None:
    file = b'# it\'s "one\ntext,n\n"a\n# b\n#c",1\n# d\n"#e",2\n#f\n'
    format_ = Csv(CsvConfig(comment="#"))
    assert [row["text"] for row in read(format_, file, TEXT)] == ["a\n# b\n#c", "#e"]
    assert format_.header(io.BytesIO(file)) == b"text,n"


def test_escape_outside_quotes_is_text_in_each_block() -> None:
    format_ = Csv(CsvConfig(header=False, escape="\\"))
    assert read(format_, b"a\\b\n", TEXT) == [{"text": "a\\b"}]
    assert [row["text"] for row in read(format_, b'a\\b\n"c\\"d"\n', TEXT)] == ["a\\b", 'c"d']


@pytest.mark.parametrize("micros", [9_007_199_254_740_993, -62_135_596_800_000_001, 1])
@pytest.mark.parametrize("unit", ["seconds", "millis", "micros"])
def test_times_as_numbers_are_exact(unit: Any, micros: int) -> None:
    format_ = Csv(CsvConfig(timestamps=unit))
    rows = pa.record_batch({"at": pa.array([micros], pa.timestamp("us", "UTC"))})
    file, kept = write(format_, rows)
    ((found, _),) = format_.read_file(io.BytesIO(file), rows.schema, "f", Read())
    assert found == kept == rows


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(rows=tables(), options=OPTIONS)
def test_duckdb_reads_the_same_rows(rows: pa.RecordBatch, options: dict[str, Any]) -> None:
    plain = {"escape": "", "header": True, "quote": '"', "timestamps": "iso", "comment": ""}
    options = {**options, **plain}
    assume(options["nulls"] and "a,b" not in options["nulls"] and rows.num_columns > 1)
    assume(options["delimiter"] in ",;|\t")
    file, kept = write(Csv(CsvConfig(**options)), rows)
    assume(kept.num_rows)
    texts = [
        kept.schema.get_field_index(n)
        for n in kept.schema.names
        if pa.types.is_string(kept.schema.field(n).type)
    ]
    with TemporaryDirectory() as directory:
        path = Path(directory) / "a.csv"
        path.write_bytes(file)
        found = duckdb.read_csv(
            str(path), sep=options["delimiter"], quotechar='"', escapechar='"', header=True,
            all_varchar=True, na_values=options["nulls"],
            allow_quoted_nulls=False, auto_detect=False, parallel=False,
            columns=dict.fromkeys(kept.schema.names, "VARCHAR"), strict_mode=True,
        ).fetchall()  # fmt: skip
    expected = kept.to_pylist()
    assert len(found) == len(expected)
    for row, values in zip(expected, found, strict=True):
        for index in texts:
            assert values[index] == list(row.values())[index]
