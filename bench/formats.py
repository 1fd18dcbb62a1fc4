"""Decoding and encoding rates of formats, compared with code on other libraries.

    python bench/formats.py [--rows 200000] [--json]

Prints thousands of rows per CPU second of one core, best of a few runs.
"""

from __future__ import annotations

import argparse
import csv as stdlib_csv
import datetime as dt
import io
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
from pyarrow import json as pyarrow_json

from penstock.formats.avro import Avro, AvroConfig
from penstock.formats.csv import Csv, CsvConfig
from penstock.formats.json import Json, JsonConfig
from penstock.formats.protobuf import Protobuf, ProtobufConfig
from penstock.sdk import Format
from penstock.sdk.columns.avro_types import avro_schema

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("user", pa.string()),
        ("item", pa.string()),
        ("price", pa.float64()),
        ("quantity", pa.int32()),
        ("at", pa.timestamp("us", "UTC")),
        ("country", pa.string()),
        ("express", pa.bool_()),
        ("session", pa.string()),
    ]
)
PROTO = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Order {
  int64 id = 1; string user = 2; string item = 3; double price = 4; int32 quantity = 5;
  google.protobuf.Timestamp at = 6; string country = 7; bool express = 8; string session = 9;
}
"""


def orders(count: int) -> pa.RecordBatch:
    """Rows whose JSON has 189 bytes on average."""
    rng = random.Random(7)
    start = dt.datetime(2024, 1, 2, tzinfo=dt.UTC)
    rows = [
        {
            "id": 1_000_000 + i,
            "user": f"user-{rng.randrange(10**6):06d}",
            "item": f"item-{rng.randrange(10**4):04d}",
            "price": round(rng.random() * 100, 2),
            "quantity": rng.randrange(1, 10),
            "at": start + dt.timedelta(milliseconds=37 * i),
            "country": rng.choice(["DE", "FR", "US", "JP"]),
            "express": rng.random() < 0.5,
            "session": f"{rng.getrandbits(128):032x}",
        }
        for i in range(count)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def best(work: Callable[[], object], runs: int = 5) -> float:
    """CPU seconds of the fastest run."""
    found = []
    for _ in range(runs):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def formats() -> Iterator[tuple[str, Format[Any]]]:
    yield "json", Json(JsonConfig())
    yield "csv", Csv(CsvConfig())
    datum = {k: v for k, v in avro_schema(SCHEMA).items() if not k.startswith("__")}
    yield "avro", Avro(AvroConfig(schema=datum))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "order.proto"
        path.write_text(PROTO)
        yield "protobuf", Protobuf(ProtobufConfig(schema_file=str(path), message="Order"))


def baselines(
    name: str, format_: Format[Any], payloads: list[bytes], rows: pa.RecordBatch
) -> Iterator[tuple[str, Callable[[], object], Callable[[], object] | None]]:
    """Returns the code on other libraries: name, decode, encode."""
    values = rows.to_pylist()
    if name == "json":
        options = pyarrow_json.ParseOptions(explicit_schema=SCHEMA)
        single = pyarrow_json.ReadOptions(use_threads=False)
        yield (
            "pyarrow.json",
            lambda: pyarrow_json.read_json(pa.BufferReader(b"\n".join(payloads)), single, options),
            None,
        )
        yield (
            "json (stdlib)",
            lambda: pa.Table.from_pylist([json.loads(p) for p in payloads]),
            lambda: [json.dumps(row, default=str).encode() for row in rows.to_pylist()],
        )
    elif name == "csv":
        text = b"\n".join(payloads).decode()
        yield (
            "csv (stdlib)",
            lambda: list(stdlib_csv.reader(io.StringIO(text))),
            lambda: stdlib_csv.writer(io.StringIO()).writerows(r.values() for r in values),
        )
    elif isinstance(format_, Avro):
        datum = format_.datum

        def write() -> None:
            for row in values:
                fastavro.schemaless_writer(io.BytesIO(), datum, row)

        def read() -> None:
            for payload in payloads:
                fastavro.schemaless_reader(io.BytesIO(payload), datum, None)

        yield "fastavro (no Arrow)", read, write
    elif isinstance(format_, Protobuf):
        from google.protobuf import message_factory

        kind = message_factory.GetMessageClass(format_.message._message)
        messages = [kind.FromString(payload) for payload in payloads]
        yield (
            "google.protobuf (no Arrow)",
            lambda: [kind.FromString(payload) for payload in payloads],
            lambda: [message.SerializeToString() for message in messages],
        )


def measure(count: int) -> Iterator[dict[str, Any]]:
    """Yields a result for each format and direction."""
    rows = orders(count)
    few = rows.slice(0, min(count, 20_000))
    for name, format_ in formats():
        payloads = format_.encode(rows).payloads
        size = sum(len(p) for p in payloads.slice(0, 1000).to_pylist()) / min(count, 1000)
        yield {
            "format": name,
            "way": "penstock",
            "bytes": round(size),
            "decode": count / best(lambda f=format_, p=payloads: f.decode(p, SCHEMA)),
            "encode": count / best(lambda f=format_: f.encode(rows)),
        }
        some = payloads.slice(0, few.num_rows).to_pylist()
        for way, decode, encode in baselines(name, format_, some, few):
            yield {
                "format": name,
                "way": way,
                "bytes": round(size),
                "decode": few.num_rows / best(decode, 3),
                "encode": few.num_rows / best(encode, 3) if encode else None,
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    results = []
    if not asked.json:
        print(f"{'format':10} {'way':28} {'bytes':>6} {'decode k/s':>11} {'encode k/s':>11}")
    for each in measure(asked.rows):
        results.append(each)
        if not asked.json:
            encode = f"{each['encode'] / 1000:11,.0f}" if each["encode"] else f"{'-':>11}"
            print(
                f"{each['format']:10} {each['way']:28} {each['bytes']:6} "
                f"{each['decode'] / 1000:11,.0f} {encode}"
            )
    if asked.json:
        json.dump(results, sys.stdout, indent=1)
        print()


if __name__ == "__main__":
    main()
