"""Inferred types hold each value of the sample exactly."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import ipc, parquet

from penstock.connectors.files import FilesSource, FilesSourceConfig
from penstock.core.errors import PlanError
from penstock.formats.arrow import Arrow, ArrowConfig
from penstock.formats.avro import Avro, AvroConfig
from penstock.formats.csv import Csv, CsvConfig
from penstock.formats.debezium import DebeziumJson, DebeziumJsonConfig
from penstock.formats.json import Json, JsonConfig
from penstock.formats.parquet import Parquet, ParquetConfig
from penstock.sdk import Context, FileFormat, Read

JSON = Json.create(JsonConfig())
CSV = Csv(CsvConfig())
BIG, HUGE = 2**53 + 1, 2**64 + 1


def infer(format_: Any, content: bytes) -> dict[str, pa.DataType]:
    schema = format_.infer_file(io.BytesIO(content))
    return dict(zip(schema.names, schema.types, strict=True))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1", "2.5"], pa.float64()), (["1", str(BIG)], pa.int64()),
        (["1234567890123456789"], pa.int64()), ([str(BIG), "2.5"], pa.string()),
        ([str(HUGE), "1"], pa.decimal128(38, 0)), (["9" * 39], pa.string()),
        (["-" + "9" * 19], pa.decimal128(38, 0)), ([str(HUGE), "1.5"], pa.string()),
        (["40.767936706542969", "1e22", "0.1"], pa.float64()),
        (["3.14159265358979323846", "1"], pa.decimal128(38, 20)), (["1e400"], pa.string()),
        (["0.1234567890123456789", "12.345678901234567890123"], pa.decimal128(38, 21)),
    ],
)  # fmt: skip
def test_numbers(texts: list[str], expected: pa.DataType) -> None:
    csv = "\n".join(["a", *texts]).encode()
    assert infer(CSV, csv) == {"a": expected}
    lines = "\n".join(f'{{"a": {text}, "b": [{{"c": {text}}}]}}' for text in texts).encode()
    nested = pa.list_(pa.field("element", pa.struct([("c", expected)])))
    assert infer(JSON, lines) == {"a": expected, "b": nested}


numbers = st.one_of(
    st.integers(-(10**40), 10**40), st.integers(2**53 - 3, 2**53 + 3),
    st.integers(2**63 - 3, 2**63 + 3), st.decimals(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False).map(repr), st.integers(-9, 9),
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)
@given(values=st.lists(numbers, min_size=1, max_size=4))
def test_inferred_columns_hold_all_numbers(values: list[Any]) -> None:
    texts = [str(value).replace("E", "e") for value in values]
    for format_, content in (
        (CSV, "\n".join(["a", *texts]).encode()),
        (JSON, "\n".join(f'{{"a":{text}}}' for text in texts).encode()),
    ):
        schema = format_.infer_file(io.BytesIO(content))
        request = Read()
        rows = [
            value for rows, _ in format_.read_file(io.BytesIO(content), schema, "f", request)
            for value in rows.column("a").to_pylist()
        ]  # fmt: skip
        assert not request.bad and len(rows) == len(texts)
        for text, value in zip(texts, rows, strict=True):
            digits = len(Decimal(text).as_tuple().digits)
            found = f"{value:.{digits - 1}e}" if isinstance(value, float) else value
            assert Decimal(found) == Decimal(text), (text, value)


def test_the_last_line_is_part_of_the_sample() -> None:
    assert list(infer(JSON, b'{"a":1}\n{"a":2,"b":3}')) == ["a", "b"]
    assert infer(CSV, b"a,b\n1,x\n2.5,1") == {"a": pa.float64(), "b": pa.string()}
    assert infer(CSV, b"a,b\n1,2") == {"a": pa.int64(), "b": pa.int64()}
    debezium = DebeziumJson(DebeziumJsonConfig())
    events = b'{"op":"c","after":{"a":1}}\n{"op":"c","after":{"a":2,"b":3}}'
    assert list(infer(debezium, events)) == ["a", "b", "_op"]


def test_the_sample_spans_blocks() -> None:
    long = "x" * 300_000
    lines = [json.dumps({"a": long, **({"b": 1} if i == 9 else {})}) for i in range(10)]
    assert list(infer(JSON, "\n".join(lines).encode())) == ["a", "b"]
    records = [f"{long},{1 if i < 9 else 'x'}" for i in range(10)]
    assert infer(CSV, "\n".join(["a,b", *records]).encode())["b"] == pa.string()


def source(directory: Path, format_: FileFormat[Any], *contents: bytes) -> FilesSource:
    (directory / "in").mkdir()
    for number, content in enumerate(contents):
        (directory / "in" / f"{number}.x").write_bytes(content)
    config = FilesSourceConfig.model_validate({"path": [str(directory / "in")]})
    files = FilesSource(config, Context(state=directory / "state", base=directory))
    files.format = format_
    return files


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        ([f"a\n{BIG}", "a\n1.5"], pa.string()), (["a\n1", "a\n1.5"], pa.float64()),
        ([f"a\n{HUGE}", "a\n1"], pa.decimal128(38, 0)), (["Ab\n1", "aB\n2"], pa.int64()),
    ],
)  # fmt: skip
def test_several_files(tmp_path: Path, contents: list[str], expected: pa.DataType) -> None:
    schema = source(tmp_path, CSV, *map(str.encode, contents)).infer_schema()
    assert schema is not None and schema.types == [expected]
    assert not schema.field(0).metadata


def arrow_file(table: pa.Table) -> bytes:
    out = io.BytesIO()
    with ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def parquet_file(table: pa.Table) -> bytes:
    out = io.BytesIO()
    parquet.write_table(table, out)
    return out.getvalue()


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1], pa.time64("us")), pa.array([1], pa.duration("us")),
        pa.array([Decimal(1)], pa.decimal256(60, 0)),
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
        pa.array([{"t": 1}], pa.struct([("t", pa.time64("us"))])),
    ],
    ids=lambda values: str(values.type),
)  # fmt: skip
def test_unsupported_type_is_not_a_damaged_file(tmp_path: Path, values: pa.Array) -> None:
    table = pa.table({"id": [1], "odd": values})
    with pytest.raises(PlanError, match=r'0\.x: column "odd" is ') as raised:
        source(tmp_path, Arrow(ArrowConfig()), arrow_file(table)).infer_schema()
    assert raised.value.code == "unsupported-type"


def avro_file(names: list[str]) -> bytes:
    out = io.BytesIO()
    fields = [{"name": name, "type": "int"} for name in names]
    fastavro.writer(out, {"type": "record", "name": "R", "fields": fields}, [])
    return out.getvalue()


TWO = pa.table([[1], [2]], names=["Id", "id"])


@pytest.mark.parametrize(
    ("format_", "content"),
    [
        (CSV, b"Id,id\n1,2\n"), (JSON, b'{"Id":1,"id":2}\n'),
        (JSON, b'{"s":{"Id":1,"id":2}}\n'), (Arrow(ArrowConfig()), arrow_file(TWO)),
        (Parquet(ParquetConfig()), parquet_file(TWO)),
        (Avro.create(AvroConfig()), avro_file(["Id", "id"])),
    ],
    ids=["csv", "json", "nested", "arrow", "parquet", "avro"],
)  # fmt: skip
def test_names_that_differ_only_by_case_are_an_error(
    tmp_path: Path, format_: Any, content: bytes
) -> None:
    with pytest.raises(PlanError) as raised:
        source(tmp_path, format_, content).infer_schema()
    assert raised.value.code == "ambiguous-column"
    assert raised.value.message.endswith('0.x: column "id" differs from "Id" only by case')


def test_header_with_a_name_twice(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r'0\.x: column "a" occurs twice'):
        source(tmp_path, CSV, b"a,b,a\n1,2,3\n").infer_schema()
