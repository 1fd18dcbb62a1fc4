"""Points of InfluxDB: types, hostile texts, rejected rows, and errors of the server."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pipelines import Workspace, dump

from crossing import by_hand, systems
from interruptions import Interruptions
from penstock.connectors.http.influxdb import InfluxdbSink
from penstock.core.errors import PenstockError, Permanent, flatten_errors
from penstock.sdk import BatchId, Failure
from servers.gate import Gate
from servers.influxdb import PASSWORD, USER, Influxdb, VictoriaMetrics

AUTH = {"username": USER, "password": PASSWORD}
START = datetime(2026, 3, 1, 10, tzinfo=UTC)
PARTS = ["a", "B", " ", ",", "=", '"', "'", "\\", "\n", "é", "☂", "#", "/", "$", "{", "\t", "\0"]


@contextmanager
def opened(server: Influxdb, database: str, columns: pa.Schema, **options: Any) -> Iterator[Any]:
    """Yields a function that writes rows and returns the failures."""
    given = {"url": server.url, "auth": AUTH, "database": database, "measurement": "m"}
    sink = InfluxdbSink(InfluxdbSink.config_type.model_validate({**given, **options}))
    sink.check_schema(columns)
    client = sink.open()
    writer = sink.writer(client, BatchId("q", 0), 0, columns)

    def write(rows: Sequence[dict[str, Any]]) -> Sequence[Failure]:
        return writer.write(pa.RecordBatch.from_pylist(list(rows), schema=columns))

    try:
        yield write
    finally:
        client.close()


def points(server: Influxdb, database: str, measurement: str = "m") -> list[dict[str, Any]]:
    found = server.query(f'SELECT * FROM "{measurement}"', database)
    names, values = (found[0]["columns"], found[0]["values"]) if found else ([], [])
    return [dict(zip(names, each, strict=True)) for each in values]


def test_generated_texts(influxdb: Influxdb) -> None:
    """Texts come back as they are, or the row is a dead letter; no row changes another."""
    chosen, database = random.Random(1), influxdb.create_database()
    columns = pa.schema([("id", pa.int64()), ("t", pa.string()), ("f", pa.string())])
    rows = [
        {
            "id": number,
            "t": "".join(chosen.choices(PARTS, k=chosen.randrange(4))),
            "f": "".join(chosen.choices(PARTS, k=chosen.randrange(6))),
        }
        for number in range(3000)
    ]
    with opened(influxdb, database, columns, tags={"a,b= c": "t"}, fields=["id", "f"]) as write:
        failed = {failure.index: failure.error.message for failure in write(rows)}
    found = {p["id"]: (p["a,b= c"], p["f"]) for p in points(influxdb, database)}
    assert found == {r["id"]: (r["t"] or None, r["f"]) for r in rows if r["id"] not in failed}
    assert set(failed.values()) == {
        'the tag "a,b= c" has a line break, or a backslash before a comma, an equals sign, a space '
        "or the end, which InfluxDB cannot store"
    }
    assert len(failed) < 1500


def test_generated_names_of_measurements(influxdb: Influxdb) -> None:
    chosen, database = random.Random(2), influxdb.create_database()
    columns = pa.schema([("id", pa.int64()), ("name", pa.string())])
    names: list[str | None] = ["".join(chosen.choices(PARTS, k=n % 4)) for n in range(1200)]
    rows = [{"id": number, "name": name} for number, name in enumerate([*names, None])]
    with opened(influxdb, database, columns, measurement="{name}") as write:
        failed = {failure.index for failure in write(rows)}
    found = {
        (series["name"], value[series["columns"].index("id")])
        for series in influxdb.query("SELECT id FROM /.*/", database)
        for value in series["values"]
    }
    assert found == {(row["name"], row["id"]) for row in rows if row["id"] not in failed}
    assert len(rows) - 1 in failed
    for name in filter(None, names):
        assert (names.index(name) in failed) == bool(re.search(r"^[#\t\0]|\n|\\([,= \"]|$)", name))


def test_types_and_times(influxdb: Influxdb) -> None:
    database = influxdb.create_database()
    columns = pa.schema(
        [
            ("at", pa.timestamp("us", "UTC")), ("i", pa.int64()), ("d", pa.float64()),
            ("f", pa.float32()), ("b", pa.bool_()), ("n", pa.decimal128(10, 2)),
            ("day", pa.date32()), ("x", pa.int64()), ("u", pa.uint64()),
        ]
    )  # fmt: skip
    good = {
        "at": START, "i": 2**63 - 1, "d": 1e300, "f": 0.5, "b": True, "n": 12,
        "day": START.date(), "x": 2**53,
    }  # fmt: skip
    rows: list[dict[str, Any]] = [
        good,
        {"at": START + timedelta(microseconds=1), "i": -(2**63)},
        good | {"at": None},
        good | {"at": datetime(1600, 1, 1, tzinfo=UTC)},
        good | {"at": datetime(2300, 1, 1, tzinfo=UTC)},
        good | {"d": float("nan")},
        good | {"d": float("-inf")},
        good | {"x": 2**53 + 1},
        {"at": START},
        good | {"x": -(2**53) - 1},
        good | {"u": 2**63},
    ]
    fields = {
        **{name: name for name in "idfb"}, "n": {"column": "n", "type": "float"}, "day": "day",
        "x": {"column": "x", "type": "float"}, "u": {"column": "u", "type": "float"},
    }  # fmt: skip
    with opened(influxdb, database, columns, fields=fields, timestamp="at") as write:
        failures = write(rows)
    assert {failure.index: failure.error.message for failure in failures} == {
        2: 'the time "at" is null',
        3: 'the time "at" is not between 1677-09-21 and 2262-04-11',
        4: 'the time "at" is not between 1677-09-21 and 2262-04-11',
        5: 'column "d": nan is not finite',
        6: 'column "d": -inf is not finite',
        7: f'column "x": {2**53 + 1} is not exact in a float of 64 bits',
        8: "all fields of the point are null",
        9: f'column "x": {-(2**53) - 1} is not exact in a float of 64 bits',
        10: f'column "u": {2**63} is not exact in a float of 64 bits',
    }
    first, second = points(influxdb, database)
    nanoseconds = int(START.timestamp()) * 10**9
    assert first == {
        "time": nanoseconds, "i": 2**63 - 1, "d": 1e300, "f": 0.5, "b": True, "n": 12,
        "day": "2026-03-01", "x": 2**53,
    }  # fmt: skip
    assert (second["time"], second["i"], second["b"]) == (nanoseconds + 1000, -(2**63), None)


@pytest.mark.parametrize(
    ("precision", "time"), [("ns", 1234567000), ("us", 1234567), ("ms", 1234), ("s", 1)]
)
def test_precision(influxdb: Influxdb, precision: str, time: int) -> None:
    database = influxdb.create_database()
    columns = pa.schema([("at", pa.timestamp("us")), ("n", pa.int64()), ("v", pa.int64())])
    row = {"at": datetime(1970, 1, 1, 0, 0, 1, 234567), "n": time, "v": 1}
    unit = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}[precision]
    for column in ("at", "n"):
        options = {"timestamp": column, "precision": precision, "measurement": f"by_{column}"}
        with opened(influxdb, database, columns, fields=["v"], **options) as write:
            assert write([row]) == []
        assert points(influxdb, database, f"by_{column}") == [{"time": time * unit, "v": 1}]


def test_rows_that_the_server_rejects(influxdb: Influxdb) -> None:
    """Other rows of the request are stored, once."""
    database = influxdb.create_database()
    ints = pa.schema([("id", pa.string()), ("v", pa.int64())])
    with opened(influxdb, database, ints, tags=["id"]) as write:
        assert write([{"id": "a", "v": 1}]) == []
    texts = pa.schema([("id", pa.string()), ("v", pa.string()), ("w", pa.int64())])
    rows = [{"id": str(n), "v": "x" if n % 40 == 7 else None, "w": n} for n in range(100)]
    with opened(influxdb, database, texts, tags=["id"]) as write:
        failures = write(rows)
        large = write([{"id": "l", "v": "y" * 70_000, "w": 1}, {"id": "m", "v": None, "w": 101}])
    assert [(failure.index, failure.error.code) for failure in failures] == [
        (7, "http-400"), (47, "http-400"), (87, "http-400"),
    ]  # fmt: skip
    assert "field type conflict" in failures[0].error.message
    assert [failure.index for failure in large] == [0]
    found = sorted(p["w"] for p in points(influxdb, database) if p["w"] is not None)
    assert found == [n for n in range(102) if n % 40 != 7 and n != 100]


@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_a_large_body_is_divided(influxdb: Influxdb, compression: str) -> None:
    database = influxdb.create_database()
    columns = pa.schema([("v", pa.string())])
    rows = [{"v": str(number) + "y" * 50_000} for number in range(60)]
    with opened(influxdb, database, columns, compression=compression) as write:
        assert write(rows) == []
    assert {point["v"] for point in points(influxdb, database)} == {row["v"] for row in rows}


def test_errors_of_the_server(influxdb: Influxdb) -> None:
    options = {"url": influxdb.url, "auth": AUTH, "database": "missing", "measurement": "m"}
    sink = InfluxdbSink(InfluxdbSink.config_type.model_validate(options))
    with pytest.raises(Permanent) as raised:
        sink.check()
    assert raised.value.code == "http-404"
    assert raised.value.hint == 'Create the database "missing", or correct the options.'


@pytest.mark.spark
def test_a_pipeline(workspace: Workspace, influxdb: Influxdb) -> None:
    """A batch that is written again changes nothing."""
    database = influxdb.create_database()
    text = f"""\
sources:
  readings:
    type: files
    path: in/*.jsonl
    schema: at TIMESTAMP, station STRING, celsius DOUBLE, humidity INT
sinks:
  points:
    type: influxdb
    from: readings
    url: {influxdb.url}
    auth: {{username: {USER}, password: {PASSWORD}}}
    database: {database}
    measurement: readings
    tags: [station]
    timestamp: at
"""
    rows = [
        {"at": (START + timedelta(seconds=n)).isoformat(), "station": f"s{n % 3}", "celsius": n / 2}
        for n in range(30)
    ]
    workspace.put("in/0.jsonl", map(dump, [*rows, {"at": rows[0]["at"], "station": "s9"}]))
    workspace.run(text)
    workspace.run(text, fresh=True)
    found = points(influxdb, database, "readings")
    assert sorted(point["celsius"] for point in found) == [n / 2 for n in range(30)]
    assert {letter["code"] for letter in workspace.dead_letters()} == {"no-value"}


def test_writes_of_influxdb_2(victoria_metrics: VictoriaMetrics) -> None:
    columns = pa.schema(
        [("at", pa.timestamp("us", "UTC")), ("room", pa.string()), ("v", pa.float64())]
    )
    options = {
        "url": victoria_metrics.url, "auth": {"token": "made-up"}, "bucket": "b", "org": "o",
        "measurement": "penstock", "tags": ["room"], "timestamp": "at", "precision": "ms",
    }  # fmt: skip
    sink = InfluxdbSink(InfluxdbSink.config_type.model_validate(options))
    sink.check_schema(columns)
    client = sink.open()
    rows = [{"at": START + timedelta(seconds=n), "room": "a b,c", "v": n + 0.5} for n in range(5)]
    writer = sink.writer(client, BatchId("q", 0), 0, columns)
    assert writer.write(pa.RecordBatch.from_pylist(rows, schema=columns)) == []
    client.close()
    (series,) = victoria_metrics.values("penstock_v")
    assert series["metric"]["room"] == "a b,c"
    assert series["values"] == [row["v"] for row in rows]
    assert series["timestamps"] == [int(row["at"].timestamp() * 1000) for row in rows]


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        ({"tags": ["rooom"]}, ['tags.rooom: unknown column "rooom"']),
        ({"tags": {"time": "room"}}, ['"time" cannot be the name of a tag in InfluxDB']),
        ({"tags": ["list"]}, ['tags.list: column "list" has the type ARRAY<STRING>']),
        (
            {"tags": ["room"], "fields": ["room", "v", "d"]},
            ['"room" is a tag and a field', 'fields.d: column "d" has the type DECIMAL(9, 2)'],
        ),
        ({"fields": {"x": {"column": "room", "type": "float"}}}, [
            'fields.x: column "room" has the type STRING',
        ]),
        ({"timestamp": "room", "fields": ["v"]}, [
            'timestamp: column "room" has the type STRING',
        ]),
        ({"measurement": "#m"}, ["'#m' cannot be the name of a measurement in InfluxDB"]),
        ({"fields": {"a\n": "v"}}, ['"a\n" cannot be the name of a field in InfluxDB']),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_the_columns(options: dict[str, Any], messages: list[str]) -> None:
    columns = pa.schema(
        [
            ("room", pa.string()), ("v", pa.float64()), ("d", pa.decimal128(9, 2)),
            ("list", pa.list_(pa.string())),
        ]
    )  # fmt: skip
    given = {"url": "http://localhost:1", "database": "d", "measurement": "m", "fields": ["v"]}
    sink = InfluxdbSink(InfluxdbSink.config_type.model_validate({**given, **options}))
    with pytest.raises(PenstockError) as raised:
        sink.check_schema(columns)
    assert [error.message for error in flatten_errors(raised.value)] == messages


def test_a_measurement_may_have_the_name_of_a_field() -> None:
    options = {"url": "http://localhost:1", "database": "d", "measurement": "v", "fields": ["v"]}
    sink = InfluxdbSink(InfluxdbSink.config_type.model_validate(options))
    sink.check_schema(pa.schema([("v", pa.float64())]))


def test_values_of_every_type(influxdb: Influxdb, tmp_path: Path) -> None:
    assert by_hand.check(systems.influxdb(influxdb), tmp_path) == []


def test_interrupted_connections(influxdb: Influxdb) -> None:
    database = influxdb.create_database()
    columns = pa.schema([("at", pa.timestamp("us", "UTC")), ("id", pa.int64())])
    with Gate(influxdb.port) as gate:
        check = Interruptions(gate, PASSWORD)
        options = check.through(
            {"url": influxdb.url}, timestamp="at", timeout="1s", retry={"attempts": 1}
        )

        def write_batch(number: int) -> None:
            ids = range(number * 20, (number + 1) * 20)
            with opened(influxdb, database, columns, **options) as write:
                assert write([{"at": START + timedelta(seconds=i), "id": i} for i in ids]) == []

        check.check_writes(write_batch)
    found = [point["id"] for point in points(influxdb, database)]
    assert found == [*range(check.batches * 20)]
