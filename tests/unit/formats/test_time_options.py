"""Numbers and nanoseconds as timestamps: the same in all formats."""

from __future__ import annotations

import io
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from penstock.core.errors import DecodeError
from penstock.formats.arrow import Arrow, ArrowConfig
from penstock.formats.avro import Avro, AvroConfig
from penstock.formats.csv import Csv, CsvConfig
from penstock.formats.json import Json, JsonConfig
from penstock.formats.parquet import Parquet, ParquetConfig
from penstock.formats.protobuf import Protobuf, ProtobufConfig
from penstock.sdk import FileFormat, Read
from penstock.sdk.columns.rows import batch_of

AT = pa.schema([("at", pa.timestamp("us", "UTC"))])
FORMATS: dict[str, Any] = {
    "json": (Json, JsonConfig), "csv": (Csv, CsvConfig), "avro": (Avro, AvroConfig),
    "parquet": (Parquet, ParquetConfig), "arrow": (Arrow, ArrowConfig),
}  # fmt: skip
BEYOND_FLOATS = 2**53 + 1


def content(name: str, value: Any, logical: str | None = None) -> bytes:
    """Returns a file with the column `at`: an integer, or nanoseconds of the file's type."""
    out = io.BytesIO()
    if name == "json":
        return json.dumps({"at": value}).encode()
    if name == "csv":
        return f"at\n{value}\n".encode()
    if name == "avro":
        type_ = {"type": "long", **({"logicalType": logical} if logical else {})}
        schema = {"type": "record", "name": "R", "fields": [{"name": "at", "type": type_}]}
        fastavro.writer(out, schema, [{"at": value}])
        return out.getvalue()
    table = pa.table({"at": pa.array([value], pa.timestamp("ns", "UTC") if logical else None)})
    if name == "parquet":
        parquet.write_table(table, out, use_deprecated_int96_timestamps=logical == "int96")
    else:
        with ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
    return out.getvalue()


def read(name: str, file: bytes, **options: Any) -> list[int | str | None]:
    """Returns microseconds, or the code and the hint of an error."""
    class_, config = FORMATS[name]
    format_: FileFormat[Any] = class_.create(config(**options))
    request = Read()
    found = [
        time for rows, _ in format_.read_file(io.BytesIO(file), AT, "file", request)
        for time in rows.column("at").cast(pa.int64()).to_pylist()
    ]  # fmt: skip
    return found + [f"{bad.error.code}: {bad.error.hint}" for bad in request.bad]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("unit", "number", "micros"),
    [
        ("seconds", 1717245296, 1717245296_000_000),
        ("millis", 1717245296123, 1717245296123_000),
        ("micros", BEYOND_FLOATS, BEYOND_FLOATS),
        ("nanos", 1717245296123456000, 1717245296123456),
    ],
)
def test_numbers_have_the_unit_of_an_option(name: str, unit: str, number: int, micros: int) -> None:
    file = content(name, number)
    assert read(name, file, timestamps=unit) == [micros]
    hint = "Set timestamps to the unit of the numbers: seconds, millis, micros or nanos."
    assert read(name, file) == [f"wrong-type: {hint}"]


NANOS = 1717245296_123456_789
MICROS = NANOS // 1000
TEXT = "2024-06-01T12:34:56.123456789Z"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("json", content("json", TEXT)), ("csv", content("csv", TEXT)),
        ("avro", content("avro", NANOS, "timestamp-nanos")),
        ("parquet", content("parquet", NANOS, "ns")),
        ("parquet", content("parquet", NANOS, "int96")), ("arrow", content("arrow", NANOS, "ns")),
    ],
    ids=["json", "csv", "avro", "parquet", "int96", "arrow"],
)  # fmt: skip
def test_nanoseconds_are_truncated_by_an_option(name: str, file: bytes) -> None:
    assert read(name, file) == ["wrong-type: Set nanoseconds: truncate."]
    assert read(name, file, nanoseconds="truncate") == [MICROS]


@pytest.mark.parametrize("name", FORMATS)
def test_fractions_of_numbers(name: str) -> None:
    file = content(name, NANOS)
    assert read(name, file, timestamps="nanos")[0] != MICROS
    assert read(name, file, timestamps="nanos", nanoseconds="truncate") == [MICROS]
    before = content(name, -1)
    assert read(name, before, timestamps="nanos", nanoseconds="truncate") == [-1]


@pytest.mark.parametrize(
    "text", ["1717245296.1234567", "1717245296.123456", "1e400", "1e30", "1717245296"]
)
def test_fractions_of_seconds_in_text(text: str) -> None:
    exact = Decimal(text) * 10**6
    is_exact = exact < 2**63 and exact == int(exact)
    for name in ("json", "csv"):
        file = b'{"at":%s}' % text.encode() if name == "json" else content(name, text)
        found = read(name, file, timestamps="seconds")
        assert (found == [int(exact)]) if is_exact else str(found[0]).startswith("wrong-type")
        if text.endswith("4567"):
            assert read(name, file, timestamps="seconds", nanoseconds="truncate") == [int(exact)]


def test_values_of_python_have_no_assumed_unit() -> None:
    for value, type_, reason in [
        (1717245296123, pa.timestamp("us", "UTC"), "(BIGINT) is not a TIMESTAMP"),
        (5, pa.date32(), "(BIGINT) is not a DATE"), (1e300, pa.float32(), "is not a FLOAT"),
    ]:  # fmt: skip
        with pytest.raises(DecodeError, match=f'column "v": .* {re.escape(reason)}'):
            batch_of([{"v": value}], pa.schema([("v", type_)]))
    assert batch_of([{"v": 0.1}], pa.schema([("v", pa.float32())])).num_rows == 1


PROTO = """
syntax = "proto3"; import "google/protobuf/timestamp.proto";
message R { google.protobuf.Timestamp at = 1; repeated google.protobuf.Timestamp others = 2; }
"""
SECONDS, YEAR_3000 = 1717245296, 32503680000


def timestamp(seconds: int, nanos: int) -> bytes:
    """Returns the field `at` of a message of `PROTO`."""
    inner = b"\x08" + _varint(seconds) + b"\x10" + _varint(nanos)
    return b"\x0a" + _varint(len(inner)) + inner


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


@pytest.mark.slow
def test_nanoseconds_of_protobuf(tmp_path: Path) -> None:
    file = tmp_path / "row.proto"
    file.write_text(PROTO)
    payloads = [timestamp(SECONDS, nanos) for nanos in (0, 123456000, 123456789)]
    array = pa.array([*payloads, timestamp(YEAR_3000, 1000)], pa.binary())
    exact = [SECONDS * 10**6, SECONDS * 10**6 + 123456, YEAR_3000 * 10**6 + 1]
    for nanoseconds in ("reject", "truncate"):
        options = {"schema_file": str(file), "message": "R", "nanoseconds": nanoseconds}
        format_ = Protobuf.create(ProtobufConfig.model_validate(options))
        rows, _, failures = format_.decode(array, AT)
        found = rows.column("at").cast(pa.int64()).to_pylist()
        if nanoseconds == "truncate":
            assert found == [*exact[:2], exact[1], exact[2]] and not failures
        else:
            assert found == exact
            assert [failure.index for failure in failures] == [2]
            assert failures[0].error.hint == "Set nanoseconds: truncate."
        assert format_.declared_schema().field("at").type == AT.field("at").type
