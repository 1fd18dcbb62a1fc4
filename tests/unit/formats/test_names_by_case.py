"""Names that differ only by case, by one rule in all formats and in nested fields."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from penstock.connectors.files import FilesSource, FilesSourceConfig
from penstock.core.errors import DecodeError, Permanent, PlanError
from penstock.formats.arrow import Arrow, ArrowConfig
from penstock.formats.avro import Avro, AvroConfig
from penstock.formats.csv import Csv, CsvConfig
from penstock.formats.debezium import DebeziumJson, DebeziumJsonConfig
from penstock.formats.json import Json, JsonConfig
from penstock.formats.parquet import Parquet, ParquetConfig
from penstock.formats.protobuf import Protobuf, ProtobufConfig
from penstock.sdk import Context, Read
from penstock.sdk.columns.ddl import arrow_schema
from penstock.sdk.columns.names import AmbiguousName, find_name
from penstock.sdk.columns.rows import batch_of, infer_rows

Row = dict[str, Any]
INNER = pa.struct([("itemid", pa.int64())])
FLAT = pa.schema([("userid", pa.int64()), ("name", pa.string())])
NESTED = pa.schema([("userid", pa.int64()), ("s", INNER), ("l", pa.list_(INNER))])


def parquet_file(row: Row) -> bytes:
    out = io.BytesIO()
    parquet.write_table(table(row), out)
    return out.getvalue()


def arrow_file(row: Row) -> bytes:
    out = io.BytesIO()
    with ipc.new_file(out, table(row).schema) as writer:
        writer.write_table(table(row))
    return out.getvalue()


def table(row: Row) -> pa.Table:
    return pa.table([pa.array([value]) for value in row.values()], names=list(row))


def avro_file(row: Row) -> bytes:
    def type_of(value: Any, name: str) -> Any:
        if isinstance(value, dict):
            fields = [{"name": k, "type": type_of(v, f"{name}_{k}")} for k, v in value.items()]
            return {"type": "record", "name": name, "fields": fields}
        if isinstance(value, list):
            return {"type": "array", "items": type_of(value[0], f"{name}_item")}
        return "long" if isinstance(value, int) else "string"

    out = io.BytesIO()
    fastavro.writer(out, type_of(row, "R"), [row])
    return out.getvalue()


def csv_file(row: Row) -> bytes:
    return "\n".join([",".join(row), ",".join(map(str, row.values()))]).encode()


def json_file(row: Row) -> bytes:
    return json.dumps(row).encode()


def debezium_file(row: Row) -> bytes:
    return json.dumps({"op": "c", "after": row}).encode()


FILES: dict[str, tuple[Any, Callable[[Row], bytes]]] = {
    "json": (Json.create(JsonConfig()), json_file),
    "json, closed": (Json.create(JsonConfig(unknown="reject")), json_file),
    "csv": (Csv(CsvConfig()), csv_file),
    "avro": (Avro.create(AvroConfig()), avro_file),
    "parquet": (Parquet(ParquetConfig()), parquet_file),
    "arrow": (Arrow(ArrowConfig()), arrow_file),
    "debezium": (DebeziumJson(DebeziumJsonConfig()), debezium_file),
}


def read(name: str, row: Row, schema: pa.Schema, **options: Any) -> list[Any]:
    """Returns the rows of a file with one row, and the errors of records."""
    format_, write = FILES[name]
    if name == "debezium":
        schema = schema.append(pa.field("_op", pa.string()))
    request = Read(**options)
    found: list[Any] = [
        {key: value for key, value in found.items() if key != "_op"}
        for rows, _ in format_.read_file(io.BytesIO(write(row)), schema, "in.x", request)
        for found in rows.to_pylist()
    ]
    return found + [bad.error for bad in request.bad]


@pytest.mark.parametrize("name", FILES)
def test_columns(name: str) -> None:
    assert read(name, {"UserId": 7, "NAME": "x"}, FLAT) == [{"userid": 7, "name": "x"}]
    assert read(name, {"USERID": 7, "name": "x"}, FLAT) == [{"userid": 7, "name": "x"}]


@pytest.mark.parametrize("name", [name for name in FILES if name != "csv"])
def test_nested_fields(name: str) -> None:
    row = {"UserID": 7, "S": {"ItemId": 8}, "L": [{"itemID": 9}]}
    expected = {"userid": 7, "s": {"itemid": 8}, "l": [{"itemid": 9}]}
    assert read(name, row, NESTED) == [expected]


@pytest.mark.parametrize("name", FILES)
def test_equal_name_comes_first(name: str) -> None:
    schema = pa.schema([("userid", pa.int64())])
    if name == "json, closed":
        schema = pa.schema([*schema, ("other", pa.int64())])
    row = {"UserId": 1, "userid": 2, "USERID": 3}
    assert [found["userid"] for found in read(name, row, schema)] == [2]


@pytest.mark.parametrize("name", FILES)
def test_several_names_are_an_error(name: str) -> None:
    row = {"UserId": 1, "USERID": 3, "name": "x"}
    try:
        (error,) = read(name, row, FLAT)
        assert (isinstance(error, DecodeError) and "json" in name) or name == "debezium"
    except Permanent as raised:
        error = raised
        assert error.message.startswith("cannot read in.x: ")
    assert error.code == "ambiguous-column"
    assert '"UserId"' in error.message and '"USERID"' in error.message


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_names_are_those_of_columns_in_use(name: str) -> None:
    row = {"UserId": 7, "Name": "x"}
    found = read(name, row, FLAT, columns=frozenset(["name"]))
    assert found == [{"userid": None, "name": "x"}]


def test_blocks_of_json_with_other_spellings() -> None:
    keys = ["userid"] * 20 + ["UserId"] * 20 + ["USERID", "userid", "UserId"] * 5
    lines = [json.dumps({key: number, "n": None}) for number, key in enumerate(keys)]
    schema = pa.schema([("userid", pa.int64()), ("n", pa.int64())])
    for payloads in (lines, lines[20:40], lines[:20]):
        array = pa.array([line.encode() for line in payloads])
        decoded = FILES["json"][0].decode(array, schema)
        expected = [json.loads(line) for line in payloads]
        found = decoded.rows.column("userid").to_pylist()
        assert found == [next(iter(row.values())) for row in expected]
    strange = [b'{"t":"UserId","n":1}', '{"GRÖSSE":2,"t":null}'.encode()]
    schema = pa.schema([("größe", pa.int64()), ("grösse", pa.int64()), ("userid", pa.int64())])
    found = FILES["json"][0].decode(pa.array(strange), schema).rows.to_pylist()
    assert [row["grösse"] for row in found] == [None, 2]


def test_fields_within_columns_with_another_spelling() -> None:
    schema = pa.schema([("l", pa.list_(INNER)), ("m", pa.map_(pa.string(), INNER))])
    payload = b'{"L":[{"itemid":1},{"ItemId":2}],"M":{"itemid":{"ITEMID":3}}}'
    (row,) = FILES["json"][0].decode(pa.array([payload]), schema).rows.to_pylist()
    assert row == {"l": [{"itemid": 1}, {"itemid": 2}], "m": [("itemid", {"itemid": 3})]}


@pytest.mark.slow
def test_bulk_and_single_reading_of_json_have_the_same_names() -> None:
    random = Random(5)
    inner = pa.struct([("id", pa.int64()), ("name", pa.string())])
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("s", inner),
            ("l", pa.list_(inner)),
            ("m", pa.map_(pa.string(), inner)),
        ]
    )

    def generated(names: list[str]) -> Row:
        row: Row = {}
        for name in names * random.choice([1, 2]):
            if random.random() < 0.8:
                key = "".join(random.choice([each, each.upper()]) for each in name)
                row[random.choice([name, key])] = random.choice([None, values[name]()])
        return row

    values: dict[str, Callable[[], Any]] = {
        "id": lambda: random.randrange(9),
        "name": lambda: random.choice(["id", "ID", "x"]),
        "s": lambda: generated(["id", "name"]),
        "l": lambda: [generated(["id", "name"]) for _ in range(2)],
        "m": lambda: {key: generated(["id"]) for key in ("id", "ID")},
    }
    for _ in range(100):
        payloads = pa.array([json_file(generated(schema.names)) for _ in range(4)])
        bulk, single = (
            FILES[name][0].decode(payloads, schema) for name in ("json", "json, closed")
        )
        assert bulk.rows == single.rows
        assert [f.index for f in bulk.failures] == [f.index for f in single.failures]


def test_required_columns_of_json() -> None:
    schema = pa.schema([pa.field("userid", pa.int64(), nullable=False)])
    assert read("json", {"UserId": 7}, schema) == [{"userid": 7}]


@pytest.mark.slow
def test_protobuf(tmp_path: Path) -> None:
    file = tmp_path / "row.proto"
    file.write_text('syntax = "proto3"; message R { int64 userId = 1; string name = 2; }')
    format_ = Protobuf.create(
        ProtobufConfig.model_validate({"schema_file": str(file), "message": "R"})
    )
    rows = pa.RecordBatch.from_pylist([{"userid": 7, "name": "x"}], schema=FLAT)
    encoded = format_.encode(rows)
    assert format_.decode(encoded.payloads, FLAT).rows.to_pylist() == rows.to_pylist()


def test_sinks_of_avro() -> None:
    fields = [{"name": "UserId", "type": "long"}, {"name": "Name", "type": "string"}]
    datum = {"type": "record", "name": "R", "fields": fields}
    format_: Any = Avro.create(AvroConfig.model_validate({"schema": datum}))
    rows = pa.RecordBatch.from_pylist([{"userid": 7, "name": "x"}], schema=FLAT)
    assert format_.decode(format_.encode(rows).payloads, FLAT).rows == rows


def test_names_of_fields_without_a_header() -> None:
    named = Csv(CsvConfig(columns=["NAME", "UserId"], header=False))
    rows, _, failures = named.decode(pa.array([b"x,7"]), FLAT)
    assert rows.to_pylist() == [{"userid": 7, "name": "x"}] and not failures
    assert named.encode(rows).payloads.to_pylist() == [b"x,7"]
    twice = Csv(CsvConfig(columns=["NAME", "Name", "userid"]))
    with pytest.raises(PlanError, match='one column "name", found "NAME", "Name"'):
        twice.decode(pa.array([b"x,y,7"]), FLAT)


def test_header_with_a_name_twice() -> None:
    content = io.BytesIO(b"userid,name,userid\n1,x,2\n")
    with pytest.raises(Permanent, match='in the header, found "userid", "userid"'):
        list(Csv(CsvConfig()).read_file(content, FLAT, "in.csv", Read()))
    content = io.BytesIO(b"userid,name,x,x\n1,y,2,3\n")
    ((rows, _),) = Csv(CsvConfig()).read_file(content, FLAT, "in.csv", Read())
    assert rows.to_pylist() == [{"userid": 1, "name": "y"}]


def test_rows_of_python() -> None:
    rows = [{"UserId": 1, "Name": "x"}, {"userid": 2}, {"userid": None, "USERID": 3}]
    assert [row["userid"] for row in batch_of(rows, FLAT).to_pylist()] == [1, 2, 3]
    with pytest.raises(DecodeError, match='found "USERID", "UserId"'):
        batch_of([{"UserId": 1, "USERID": 2}], FLAT)
    assert infer_rows([{"UserId": 1}, {"userid": 2}]).names == ["UserId"]
    with pytest.raises(PlanError, match='"userid" differs from "UserId" only by case'):
        infer_rows([{"UserId": 1, "userid": 2}])


def test_rule() -> None:
    assert find_name("b", ["a", "B"]) == 1
    assert find_name("b", ["B", "b"]) == 1
    assert find_name("b", ["a"]) == -1
    for names in (["B", "B"], ["b", "B", "b"]):
        with pytest.raises(AmbiguousName):
            find_name("b", names)


def test_declared_fields_that_differ_only_by_case() -> None:
    for columns in ("s STRUCT<Id: INT, id: INT>", "l ARRAY<STRUCT<id: INT, ID: INT>>"):
        with pytest.raises(PlanError, match="only by case") as raised:
            arrow_schema(columns)
        assert raised.value.code == "ambiguous-column"


def test_directories_of_columns(tmp_path: Path) -> None:
    directory = tmp_path / "in" / "Day=2024-01-02"
    directory.mkdir(parents=True)
    (directory / "a.jsonl").write_bytes(json_file({"UserId": 7}))
    config = FilesSourceConfig.model_validate({"path": [str(tmp_path / "in" / "**")]})
    source = FilesSource(config, Context(state=tmp_path / "state", base=tmp_path))
    source.format = FILES["json"][0]
    source.columns = pa.schema([("userid", pa.int64()), ("day", pa.string())])
    start = source.initial_offset()
    rows = [
        row for part in source.partitions(start, source.latest_offset(start))
        for batch in source.read(part, Read()) for row in batch.to_pylist()
    ]  # fmt: skip
    assert rows == [{"userid": 7, "day": "2024-01-02"}]
