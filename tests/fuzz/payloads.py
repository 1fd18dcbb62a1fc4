"""Random and mutated payloads for the formats of messages: each is a row or a bad record.

.venv/bin/python tests/fuzz/payloads.py --seed 1 --count 1000
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from fuzzing import main, mutant

from penstock.core.errors import PlanError, RecordError
from penstock.formats.avro import Avro, AvroConfig
from penstock.formats.csv import Csv, CsvConfig
from penstock.formats.json import Json, JsonConfig
from penstock.formats.protobuf import Protobuf, ProtobufConfig
from penstock.formats.raw import Raw, RawConfig
from penstock.formats.text import Text, TextConfig
from penstock.sdk import Format

BATCH = 20
COLUMNS = pa.schema(
    [
        ("id", pa.int64()), ("small", pa.int8()), ("price", pa.float64()), ("name", pa.string()),
        ("cents", pa.decimal128(10, 2)), ("blob", pa.binary()), ("ok", pa.bool_()),
        ("at", pa.timestamp("us", "UTC")), ("day", pa.date32()),
    ]
)  # fmt: skip
NESTED = pa.schema(
    [
        *COLUMNS,
        ("list", pa.list_(pa.field("element", pa.int64()))),
        ("inner", pa.struct([("q", pa.int32()), ("w", pa.string())])),
        ("tags", pa.map_(pa.string(), pa.int64())),
    ]
)
PROTO = """
syntax = "proto3"; package s;
message Inner { int32 q = 1; string w = 2; }
message Row {
  int64 id = 1; double price = 2; string name = 3; bytes blob = 4; bool ok = 5;
  repeated int64 list = 6; Inner inner = 7; map<string, int64> tags = 8; repeated Inner inners = 9;
}
"""
VALUES: dict[str, Any] = {
    "id": 7, "small": 1, "price": 1.5, "name": 'a☂,"b"', "cents": "1.25", "blob": b"\x00\xff",
    "ok": True, "list": [1, 2, None], "inner": {"q": 3, "w": "x"}, "tags": [("k", 4)],
}  # fmt: skip


def formats(directory: Path) -> Iterator[tuple[Format[Any], pa.Schema]]:
    """Yields formats with their columns."""
    for json_options in ({}, {"unknown": "reject"}, {"framing": "lines"}, {"timestamps": "millis"}):
        yield Json(JsonConfig.model_validate(json_options)), NESTED
    for csv_options in (
        {}, {"framing": "lines"}, {"quote": "", "escape": "\\"}, {"encoding": "utf-16"},
    ):  # fmt: skip
        options = {"columns": COLUMNS.names, **csv_options}
        yield Csv(CsvConfig.model_validate(options)), COLUMNS
    file = directory / "row.proto"
    file.write_text(PROTO)
    for proto_options in ({}, {"length_delimited": True}, {"enums": "number"}):
        config = {"schema_file": str(file), "message": "s.Row", **proto_options}
        protobuf = Protobuf(ProtobufConfig.model_validate(config))
        columns = protobuf.declared_schema()
        assert columns is not None
        yield protobuf, columns
    schema = {"type": "record", "name": "R", "fields": [
        {"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]},
        {"name": "cents", "type": {
            "type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "list", "type": {"type": "array", "items": "long"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    ]}  # fmt: skip
    for framing in ("none", "single_object", "container"):
        avro = Avro.create(AvroConfig.model_validate({"schema": schema, "framing": framing}))
        assert isinstance(avro, Avro.__mro__[1])
        columns = avro.declared_schema()
        assert columns is not None
        yield avro, columns
    for framing in ("none", "lines"):
        yield Text(TextConfig.model_validate({"framing": framing})), pa.schema([("v", pa.string())])
    yield Raw(RawConfig()), pa.schema([("v", pa.binary())])


def run(seed: int, count: int) -> Iterator[str]:
    """Decodes `count` payloads of each format. Yields other exceptions and lost payloads."""
    random = Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        for format_, columns in formats(Path(directory)):
            samples = _samples(format_, columns)
            for number in range(0, count, BATCH):
                payloads = [_payload(random, samples) for _ in range(BATCH)]
                problem = _decode(format_, columns, payloads)
                if problem is not None:
                    yield (
                        f"seed {seed}, number {number}, {type(format_).__name__} "
                        f"{format_.config!r}: {problem}\n{payloads!r}"
                    )


def _samples(format_: Format[Any], columns: pa.Schema) -> list[bytes]:
    """Returns payloads of valid rows."""
    rows = [{name: VALUES.get(name) for name in columns.names}, {"id": 1, "list": []}]
    if len(columns) == 1:
        rows = [{columns.names[0]: "text"}]
    samples = []
    for row in rows:
        values = [
            pa.array([row.get(field.name)]).cast(field.type)
            if field.name == "cents"
            else pa.array([row.get(field.name)], field.type)
            for field in columns
        ]
        with suppress(PlanError):
            encoded = format_.encode(pa.RecordBatch.from_arrays(values, schema=columns))
            samples += encoded.payloads.to_pylist()
    return samples or [b'7,1,1.5,"a,b",1.25,AP8=,true,2024-01-01T00:00:00Z,2024-01-01']


def _payload(random: Random, samples: list[bytes]) -> bytes | None:
    match random.randrange(20):
        case 0:
            return None
        case 1:
            return random.randbytes(random.randrange(60))
        case 2:
            return random.choice(samples)
    return mutant(random, random.choice(samples))


def _decode(format_: Format[Any], columns: pa.Schema, payloads: list[bytes | None]) -> str | None:
    """Returns the problem of decoding payloads; None if each is a row or a bad record."""
    array = pa.array(payloads, pa.binary())
    try:
        format_.infer_schema(array)
        rows, index, failures = format_.rows(array, columns)
        rows.validate(full=True)
        records = len(format_.records(array).texts)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if rows.schema != columns or not all(isinstance(f.error, RecordError) for f in failures):
        return "unexpected columns or errors"
    if index is not None and len(index) != rows.num_rows:
        return f"{len(index)} indexes of {rows.num_rows} rows"
    is_container = getattr(format_.config, "framing", "none") == "container"
    if not is_container and rows.num_rows + len(failures) != records:
        return f"{rows.num_rows} rows and {len(failures)} failures of {records} records"
    return None


if __name__ == "__main__":
    main(run)
