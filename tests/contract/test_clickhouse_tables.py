"""Tables of ClickHouse, written and read without Spark."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from crossing import by_hand, hostile, native, native_tables, systems
from crossing.hostile import quoted
from database_tables import read, write
from interruptions import Interruptions, check_cut_responses, check_table
from penstock.connectors.clickhouse import ClickhouseSink, ClickhouseSource
from penstock.connectors.clickhouse import config as clickhouse_config
from penstock.connectors.clickhouse.connection import ClickhouseConnection
from penstock.connectors.clickhouse.literals import literal
from penstock.core.errors import Permanent, PlanError, Transient
from penstock.engine.sinks.sink import SinkTask
from penstock.engine.sinks.sink import write as write_partition
from penstock.engine.tasks.dead_letter_writer import Spool
from penstock.sdk import BatchId, Read
from penstock.sdk.columns.json_mark import is_json
from penstock.sdk.operations import Operation
from servers.certificates import Authority
from servers.clickhouse import PASSWORD, ClickHouse
from servers.gate import Gate

UTC = pa.timestamp("us", tz="UTC")
NOW = dt.datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=dt.UTC)


@pytest.fixture
def options(clickhouse: ClickHouse) -> dict[str, Any]:
    return {**clickhouse.login, "table": clickhouse.new_table()}


def sink(options: dict[str, Any], key: Sequence[str] = (), **more: Any) -> ClickhouseSink:
    made = ClickhouseSink.create(ClickhouseSink.config_type.model_validate({**options, **more}))
    assert isinstance(made, ClickhouseSink)
    if key:
        made.mode, made.primary_key = "upsert", tuple(key)
    return made


def source(options: dict[str, Any], **more: Any) -> ClickhouseSource:
    options = {name: value for name, value in options.items() if name not in more.get("drop", ())}
    more.pop("drop", None)
    made = ClickhouseSource.create(ClickhouseSource.config_type.model_validate({**options, **more}))
    assert isinstance(made, ClickhouseSource)
    made.columns = made.infer_schema()
    return made


def rows_of(table: ClickhouseSource) -> list[dict[str, Any]]:
    with closing(table):
        rows, errors, _ = read(table)
    assert errors == []
    return rows


def batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def numbers(*values: int) -> pa.Array:
    return pa.array(values, pa.int64())


TYPES = """
CREATE TABLE shop.{} (
  id UInt8, u16 UInt16, u32 UInt32, u64 UInt64, i128 Int128, u256 UInt256, f Float32,
  flag Bool, n Decimal(30, 10), wide Decimal(60, 2), s String, low LowCardinality(Nullable(String)),
  fixed FixedString(3), u UUID, e Enum8('a' = 1, 'it\\'s' = 2), four IPv4, six IPv6, day Date,
  far Date32, at DateTime('Europe/Berlin'), fine DateTime64(6, 'Asia/Tokyo'), tags Array(UUID),
  counts Map(String, UInt64), place Tuple(city String, floor Nullable(Int8)),
  pair Tuple(Int8, Date), "inner.n" Array(Int32), j JSON
) ENGINE = MergeTree ORDER BY id
"""
VALUES = """
INSERT INTO shop.{} VALUES (
  255, 65535, 4294967295, 18446744073709551615, -170141183460469231731687303715884105728,
  115792089237316195423570985008687907853269984665640564039457584007913129639935, 0.1, true,
  '12345678901234567890.0123456789', '1234567890123456789012345678901234567890.12', 'ü', NULL,
  'abc', '61f0c404-5cb3-11e7-907b-a6006ad3dba0', 'it\\'s', '127.0.0.1', '2001:db8::1',
  '2149-06-06', '1900-01-01', '2024-02-29 12:00:00', '2024-02-29 12:00:00.123456',
  ['61f0c404-5cb3-11e7-907b-a6006ad3dba0'], {{'a': 1}}, ('Bern', NULL), (1, '2024-02-29'), [7],
  '{{"a": 1}}'
)
"""
EXPECTED = {
    "id": 255, "u16": 65535, "u32": 4294967295, "u64": Decimal(2**64 - 1), "i128": str(-(2**127)),
    "u256": str(2**256 - 1), "f": pytest.approx(0.1), "flag": True,
    "n": Decimal("12345678901234567890.0123456789"),
    "wide": "1234567890123456789012345678901234567890.12", "s": "ü", "low": None, "fixed": b"abc",
    "u": "61f0c404-5cb3-11e7-907b-a6006ad3dba0", "e": "it's", "four": "127.0.0.1",
    "six": "2001:db8::1", "day": dt.date(2149, 6, 6), "far": dt.date(1900, 1, 1),
    "at": dt.datetime(2024, 2, 29, 11, tzinfo=dt.UTC),
    "fine": dt.datetime(2024, 2, 29, 3, 0, 0, 123456, tzinfo=dt.UTC),
    "tags": ["61f0c404-5cb3-11e7-907b-a6006ad3dba0"], "counts": [("a", Decimal(1))],
    "place": {"city": "Bern", "floor": None}, "pair": {"1": 1, "2": dt.date(2024, 2, 29)},
    "inner.n": [7], "j": '{"a":1}',
}  # fmt: skip


def test_types_are_read_and_written(clickhouse: ClickHouse, options: dict[str, Any]) -> None:
    table, copy = options["table"], clickhouse.new_table()
    clickhouse(TYPES.format(table), VALUES.format(table), TYPES.format(copy))
    original = source(options)
    assert is_json(original.columns.field("j"))
    rows = rows_of(original)
    assert rows == [EXPECTED]
    written = pa.RecordBatch.from_pylist(rows, original.columns)
    target = sink({**options, "table": copy})
    assert target.target_schema(written.schema).names == written.schema.names
    assert write(target, written) == {}
    assert rows_of(source({**options, "table": copy})) == [EXPECTED]


def test_values_beyond_a_column_are_rejected(
    clickhouse: ClickHouse, options: dict[str, Any]
) -> None:
    clickhouse(
        f"CREATE TABLE shop.{options['table']} (id Int64, small Nullable(UInt8), "
        "day Nullable(Date), "
        "at Nullable(DateTime), fine DateTime64(3), far Nullable(DateTime64(9)), e Enum8('a' = 1),"
        "n Nullable(Decimal(4, 1)), u Nullable(UUID), fixed Nullable(FixedString(2)),"
        "big Nullable(Int128), list Array(Int8)) ENGINE = MergeTree ORDER BY id"
    )
    good: dict[str, Any] = {
        "id": 0, "small": 255, "day": dt.date(1970, 1, 1), "at": NOW.replace(microsecond=0),
        "fine": NOW.replace(microsecond=123000), "far": NOW, "e": "a", "n": Decimal("-999.9"),
        "u": None, "fixed": "ab", "big": str(2**127 - 1), "list": [127],
    }  # fmt: skip
    bad = [
        {"small": 256}, {"small": -1}, {"day": dt.date(1969, 12, 31)},
        {"day": dt.date(2149, 6, 7)}, {"at": NOW}, {"at": dt.datetime(1969, 1, 1, tzinfo=dt.UTC)},
        {"fine": NOW}, {"fine": dt.datetime(1899, 12, 31, tzinfo=dt.UTC)},
        {"fine": dt.datetime(2300, 1, 1, tzinfo=dt.UTC)}, {"fine": None},
        {"far": dt.datetime(2263, 1, 1, tzinfo=dt.UTC)}, {"e": "b"}, {"n": Decimal(1000)},
        {"u": "no"}, {"fixed": "abc"}, {"big": str(2**127)}, {"big": "1.5"}, {"list": [1, 128]},
        {"list": [None]}, {"list": None},
    ]  # fmt: skip
    schema = pa.schema(
        [
            ("id", pa.int64()), ("small", pa.int32()), ("day", pa.date32()), ("at", UTC),
            ("fine", UTC), ("far", UTC), ("e", pa.string()), ("n", pa.decimal128(10, 1)),
            ("u", pa.string()), ("fixed", pa.string()), ("big", pa.string()),
            ("list", pa.list_(pa.int64())),
        ]
    )  # fmt: skip
    rows = [good, *({**good, **each, "id": place} for place, each in enumerate(bad, 1))]
    of = sink(options)
    written = pa.RecordBatch.from_pylist([*rows, {**good, "id": 99}], schema)
    assert of.target_schema(schema).field("list").type == pa.list_(pa.int64())
    failures = write(of, written)
    assert sorted(failures) == [*range(1, len(rows))]
    assert failures[1] == (
        'column "small" of the type Nullable(UInt8): expected integers from 0 to 255'
    )
    assert failures[3] == (
        'column "day" of the type Nullable(Date): expected dates from 1970-01-01 to 2149-06-06'
    )
    for place, each in enumerate(bad, 1):
        assert f'column "{next(iter(each))}"' in failures[place]
    assert clickhouse(f"SELECT id FROM shop.{options['table']} ORDER BY id") == [(0,), (99,)]
    assert len(clickhouse(f"SELECT DISTINCT _part FROM shop.{options['table']}")) == 1


def test_a_constraint_rejects_a_row(clickhouse: ClickHouse, options: dict[str, Any]) -> None:
    clickhouse(
        f"CREATE TABLE shop.{options['table']} (id Int64, CONSTRAINT c CHECK id < 3) "
        "ENGINE = MergeTree ORDER BY id"
    )
    failures = write(sink(options), batch(id=numbers(1, 2, 3)))
    assert [*failures] == [2]
    assert failures[2].startswith("ClickHouse rejects the row: ")
    assert clickhouse(f"SELECT id FROM shop.{options['table']} ORDER BY id") == [(1,), (2,)]


@pytest.mark.parametrize(
    ("engine", "count"),
    [
        (None, 2),
        ("MergeTree ORDER BY id", 4),
        ("MergeTree ORDER BY id SETTINGS non_replicated_deduplication_window = 10", 2),
    ],
)
def test_a_repeated_batch_has_an_effect_once_if_the_engine_keeps_tokens(
    clickhouse: ClickHouse, options: dict[str, Any], engine: str | None, count: int
) -> None:
    if engine is not None:
        clickhouse(f"CREATE TABLE shop.{options['table']} (id Nullable(Int64)) ENGINE = {engine}"
                   .replace("Nullable(Int64)", "Int64"))  # fmt: skip
    rows = batch(id=numbers(1, 2))
    for _ in range(2):
        assert write(sink(options), rows, 7) == {}
    counted = f"SELECT count() FROM shop.{options['table']}"
    assert clickhouse(counted) == [(count,)]
    assert write(sink(options), rows, 8) == {}
    assert clickhouse(counted) == [(count + 2,)]


def test_merged_rows_are_inserted_once_in_any_division(
    clickhouse: ClickHouse, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that does not fit and a row that the server rejects are dead letters of their own."""
    clickhouse(
        f"CREATE TABLE shop.{options['table']} (id Int64, n UInt8, CONSTRAINT c CHECK id != 13) "
        "ENGINE = MergeTree ORDER BY id SETTINGS non_replicated_deduplication_window = 100"
    )
    monkeypatch.setattr(ClickhouseSink, "max_rows_per_write", 20)
    rows = batch(id=numbers(*range(50)), n=numbers(*([7] * 29), 300, *([7] * 20)))
    for size in (50, 10, 7):
        spool = Spool("p", "q", "out", "sink", directory=str(tmp_path / str(size)))
        task = SinkTask.of(sink(options), spool)
        parts = (rows.slice(start, size) for start in range(0, 50, size))
        receipt = write_partition(task, BatchId("q", 7), 0, parts)
        task.discard_client()
        assert receipt is not None and (receipt["rows"], receipt["bad"]) == (48, 2)
        found = pa.ipc.open_file(next((tmp_path / str(size)).rglob("*.arrow"))).read_all()
        letters = [json.loads(each)["id"] for each in found["payload"].to_pylist()]
        assert sorted(letters) == [13, 29]
    kept = [(number,) for number in range(50) if number not in (13, 29)]
    assert clickhouse(f"SELECT id FROM shop.{options['table']} ORDER BY id") == kept


def test_upserts_and_deletes(clickhouse: ClickHouse, options: dict[str, Any]) -> None:
    of = sink(options, ["id"])
    write(of, batch(id=numbers(1, 2, 3), s=pa.array(["a", "b", "c"])), 0)
    operations = pa.array([Operation.UPDATE.value, Operation.DELETE.value])
    write(of, batch(id=numbers(1, 2), s=pa.array(["new", None])), 1, operations)
    assert [row["s"] for row in rows_of(source(options))] == ["new", "c"]
    rows = clickhouse(f"SELECT id, s FROM shop.{options['table']} FINAL ORDER BY id")
    assert rows == [(1, "new"), (3, "c")]
    found = clickhouse(f"SELECT engine_full FROM system.tables WHERE name = '{options['table']}'")
    assert found[0][0].startswith("ReplacingMergeTree(penstock_version, penstock_deleted) ORDER BY")
    # A new run continues after the versions of the run before, also with lower numbers of batches.
    write(sink(options, ["id"]), batch(id=numbers(3), s=pa.array(["again"])), 0)
    assert (3, "again") in clickhouse(f"SELECT id, s FROM shop.{options['table']} FINAL")
    assert source(options).infer_primary_key() == ("id",)


def test_deletes_that_remove_rows(clickhouse: ClickHouse, options: dict[str, Any]) -> None:
    of = sink(options, ["id", "s"], deletes="remove")
    hostile_text = "it's \\ a"
    write(
        of, batch(id=numbers(1, 2, 3), s=pa.array(["a", hostile_text, "c"]), n=numbers(7, 8, 9)), 0
    )
    operations = pa.array([Operation.UPDATE.value, Operation.DELETE.value])
    write(
        of, batch(id=numbers(1, 2), s=pa.array(["a", hostile_text]), n=numbers(5, 0)), 1, operations
    )
    name = f"shop.{options['table']}"
    assert clickhouse(f"SELECT * FROM {name} FINAL ORDER BY id") == [(1, "a", 5), (3, "c", 9)]
    assert clickhouse(f"SELECT count() FROM {name} WHERE id = 2") == [(0,)]
    other = clickhouse.new_table()
    clickhouse(f"CREATE TABLE shop.{other} (id Int64) ENGINE = MergeTree ORDER BY id")
    with pytest.raises(Permanent, match="does not replace and delete rows") as found:
        sink({**options, "table": other}, ["id"], deletes="remove").prepare(
            pa.schema([("id", pa.int64())])
        )
    assert "ReplacingMergeTree()" in str(found.value.hint)


def test_versions_grow_although_the_clock_is_set_back(
    clickhouse: ClickHouse, options: dict[str, Any]
) -> None:
    write(sink(options, ["id"]), batch(id=numbers(1), s=pa.array(["a"])), 0)
    name = f"shop.{options['table']}"
    clickhouse(f"INSERT INTO {name} VALUES (1, 'later', 9000000000000000, 0)")
    write(sink(options, ["id"]), batch(id=numbers(1), s=pa.array(["b"])), 1)
    assert clickhouse(f"SELECT id, s FROM {name} FINAL") == [(1, "b")]


def test_a_version_of_another_type(clickhouse: ClickHouse, options: dict[str, Any]) -> None:
    clickhouse(
        f"CREATE TABLE shop.{options['table']} (id Int64, v DateTime, d UInt8) "
        "ENGINE = ReplacingMergeTree(v, d) ORDER BY id"
    )
    with pytest.raises(Permanent, match='expected the type UInt64 of the version column "v"'):
        sink(options, ["id"]).prepare(pa.schema([("id", pa.int64())]))


def test_a_table_without_versions_is_no_target_of_upserts(
    clickhouse: ClickHouse, options: dict[str, Any]
) -> None:
    clickhouse(f"CREATE TABLE shop.{options['table']} (id Int64) ENGINE = MergeTree ORDER BY id")
    of = sink(options, ["id"])
    with pytest.raises(Permanent, match="has MergeTree, which does not replace and delete rows"):
        of.prepare(pa.schema([("id", pa.int64())]))


def test_the_key_of_upserts_is_that_of_the_table(
    clickhouse: ClickHouse, options: dict[str, Any]
) -> None:
    clickhouse(
        f"CREATE TABLE shop.{options['table']} (id Int64, b Int64, v UInt64, d UInt8) "
        "ENGINE = ReplacingMergeTree(v, d) ORDER BY (id, b)"
    )
    with pytest.raises(Permanent, match=r"has ORDER BY \(?id, b\)?, and the primary key is id"):
        sink(options, ["id"]).prepare(pa.schema([("id", pa.int64()), ("b", pa.int64())]))


def test_the_columns_of_the_sink_are_not_in_rows(options: dict[str, Any]) -> None:
    of = sink(options, ["id"])
    of.prepare(pa.schema([("id", pa.int64())]))
    columns = pa.schema([("id", pa.int64()), ("penstock_version", pa.int64())])
    with pytest.raises(PlanError, match='column "penstock_version" is written by the sink'):
        of.target_schema(columns)


def test_options_of_a_new_table(clickhouse: ClickHouse, options: dict[str, Any]) -> None:
    of = sink(
        options, order_columns=["s"], column_types={"s": "LowCardinality(String)"},
        engine="MergeTree", settings={"max_threads": 1},
    )  # fmt: skip
    assert write(of, batch(id=numbers(1, 2), s=pa.array(["a", None]))) == {
        1: 'column "s" of the type LowCardinality(String): '
        "the value is null, and the column is not Nullable"
    }
    described = clickhouse(f"DESCRIBE TABLE shop.{options['table']}")
    assert [row[:2] for row in described] == [
        ("id", "Nullable(Int64)"), ("s", "LowCardinality(String)"),
    ]  # fmt: skip
    with pytest.raises(PlanError, match='the rows have no column "x"'):
        sink(options, order_columns=["x"]).check_schema(pa.schema([("id", pa.int64())]))


def test_pages_of_equal_keys(clickhouse: ClickHouse, options: dict[str, Any]) -> None:
    clickhouse(
        f"CREATE TABLE shop.{options['table']} (day Date, id Int64) "
        "ENGINE = MergeTree ORDER BY day",
        f"INSERT INTO shop.{options['table']} VALUES ('2024-01-01', 1), ('2024-01-01', 2), "
        "('2024-01-02', 3)",
    )
    of = source(options, max_records=1)
    with closing(of):
        start, end = of.initial_offset(), of.latest_offset(of.initial_offset())
        pages = []
        while start != end:
            stop = of.limit_batch(start, end)
            pages.append(read_range(of, start, stop))
            start = stop
    assert [sorted(page) for page in pages] == [[1, 2], [3]]


@pytest.mark.parametrize("column", ["id", "f", "n", "day", "at", "fine"])
def test_ranges_of_a_page(clickhouse: ClickHouse, options: dict[str, Any], column: str) -> None:
    """Tasks together read each row of a page once, and no row that comes later."""
    table = f"shop.{options['table']}"
    rows = (
        f"INSERT INTO {table} SELECT number AS id, multiIf(id % 5 = 0, nan, id % 7 = 0, NULL, id) "
        "AS f, id / 3 AS n, toDate('2024-01-01') + id AS day, "
        "toDateTime('2024-03-31 00:00:00') + 60 * id AS at, at AS fine FROM numbers({}, {})"
    )
    clickhouse(
        f"CREATE TABLE {table} (id UInt64, f Nullable(Float64), n Nullable(Decimal(30, 10)), "
        "day Date, at DateTime('Europe/Berlin'), fine DateTime64(6)) "
        "ENGINE = ReplacingMergeTree ORDER BY id",
        rows.format(0, 100),
        rows.format(20, 60),
    )
    of = source(options, max_records=60, partition_column=column, partitions=3)
    with closing(of):
        start, end = of.initial_offset(), of.latest_offset(of.initial_offset())
        clickhouse(rows.format(90, 60))
        pages = []
        while start != end:
            stop = of.limit_batch(start, end)
            parts = of.partitions(start, stop)
            assert len(parts) == 3
            clickhouse(rows.format(150, 60))
            pages.append(read_range(of, start, stop))
            start = stop
    assert [sorted(page) for page in pages] == [[*range(60)], [*range(60, 100)]]


def read_range(of: ClickhouseSource, start: Any, stop: Any) -> list[int]:
    return [
        row["id"]
        for partition in of.partitions(start, stop)
        for each in of.read(partition, Read())
        for row in each.to_pylist()
    ]


@pytest.mark.parametrize(
    ("type_", "keys"),
    [
        ("UInt64", [Decimal(1), Decimal(2**64 - 1)]),
        ("UInt256", ["1", str(2**256 - 1)]),
        ("DateTime('Europe/Berlin')", [dt.datetime(2024, 2, 29, 11, tzinfo=dt.UTC)]),
        ("Decimal(10, 2)", [Decimal("1.00"), Decimal("2.50")]),
    ],
)
def test_rows_of_keys(
    clickhouse: ClickHouse, options: dict[str, Any], type_: str, keys: list[Any]
) -> None:
    clickhouse(
        f"CREATE TABLE shop.{options['table']} (k {type_}) ENGINE = MergeTree ORDER BY k",
        *(f"INSERT INTO shop.{options['table']} VALUES ({literal(key)})" for key in keys),
    )
    of = source(options)
    assert of.columns is not None
    others = {
        "UInt64": Decimal(3), "UInt256": "3", "Decimal(10, 2)": Decimal("1.01"),
        "DateTime('Europe/Berlin')": dt.datetime(2024, 2, 29, 11, 0, 0, 1, dt.UTC),
    }  # fmt: skip
    asked = [*keys, others[type_]]
    with closing(of):
        found = of.read_keys(pa.record_batch([pa.array(asked, of.columns.types[0])], ["k"]), Read())
    assert sorted(row["k"] for batch in found for row in batch.to_pylist()) == keys


def test_new_rows_by_time(clickhouse: ClickHouse, options: dict[str, Any]) -> None:
    clickhouse(
        f"CREATE TABLE shop.{options['table']} (id Int64, at DateTime64(6)) "
        "ENGINE = MergeTree ORDER BY id",
        f"INSERT INTO shop.{options['table']} VALUES (1, '2024-01-01 00:00:00.000001')",
    )
    of = source(options, cursor_columns=["at"], watch=True, interval="1ms")
    with closing(of):
        rows, _, end = read(of)
        clickhouse(
            f"INSERT INTO shop.{options['table']} VALUES (0, '2024-01-01 00:00:00.000002'), "
            "(9, '2200-01-01 00:00:00')"
        )
        more, _, _ = read(of, end)
    assert [row["id"] for row in rows] == [1]
    assert [row["id"] for row in more] == [0]


def test_watch_requires_cursor_columns(clickhouse: ClickHouse, options: dict[str, Any]) -> None:
    clickhouse(f"CREATE TABLE shop.{options['table']} (id Int64) ENGINE = MergeTree ORDER BY id")
    with pytest.raises(PlanError, match="new rows cannot be found"):
        read(source(options, watch=True))


def test_bad_values_of_a_query_are_bad_records(options: dict[str, Any]) -> None:
    query = (
        "SELECT number AS id, if(number = 1, unhex('ff'), 'ok') AS s, "
        "toDateTime64(if(number = 2, '2024-01-01 00:00:00.000000001', '2024-01-01 00:00:00'), 9, "
        "'UTC') AS at FROM numbers(4)"
    )
    of = source(options, query=query, drop=("table",))
    with closing(of):
        rows, errors, _ = read(of)
    assert [row["id"] for row in rows] == [0, 3]
    assert len(errors) == 2


def test_an_unsupported_type_is_an_error_with_its_column(
    clickhouse: ClickHouse, options: dict[str, Any]
) -> None:
    clickhouse(
        f"CREATE TABLE shop.{options['table']} (id Int64, "
        "total AggregateFunction(sum, Int64)) ENGINE = AggregatingMergeTree ORDER BY id"
    )
    with pytest.raises(PlanError, match='column "total": the type AggregateFunction'):
        source(options)


@pytest.mark.parametrize(
    ("query", "code"),
    [("SELEC 1", "rejected"), ("SELECT * FROM nothing", "rejected"),
     ("SELECT throwIf(number = 3) FROM numbers(5)", "rejected")],
)  # fmt: skip
def test_errors_of_queries_are_permanent(options: dict[str, Any], query: str, code: str) -> None:
    with pytest.raises(Permanent) as raised:
        read(source(options, query=query, drop=("table",)))
    assert raised.value.code == code


def test_limits_of_memory_are_transient(options: dict[str, Any]) -> None:
    query = "SELECT groupArray(number) AS a FROM numbers(10000000)"
    with pytest.raises(Transient, match="memory") as raised:
        read(source(options, query=query, drop=("table",), settings={"max_memory_usage": 1000000}))
    assert raised.value.hint == "Raise max_memory_usage in settings, or set max_records."


def test_an_unknown_database_and_table(options: dict[str, Any]) -> None:
    url = options["url"].replace("/shop", "/nowhere")
    with pytest.raises(Permanent, match="nowhere") as raised:
        source({**options, "url": url})
    assert raised.value.code == "unknown-database"
    with pytest.raises(PlanError, match='there is no table "'):
        source(options)


def test_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with ClickHouse(certificate=authority.issue("server")) as server:
        options = {**server.login, "query": "SELECT 1 AS one"}
        trusted = {**options, "tls": {"ca": str(authority.root)}}
        assert rows_of(source(trusted)) == [{"one": 1}]
        with pytest.raises(Permanent) as raised:
            source({**options, "tls": True})
        assert raised.value.code == "tls"


def test_a_stopped_server_is_unreachable() -> None:
    server = ClickHouse()
    with pytest.raises(Transient) as raised:
        source({**server.login, "query": "SELECT 1 AS one"})
    server.close()
    assert raised.value.code == "unreachable"
    assert "made-up-password" not in str(raised.value)


def test_rows_of_every_type(clickhouse: ClickHouse, tmp_path: Path) -> None:
    assert by_hand.check(systems.clickhouse(clickhouse), tmp_path) == []


def test_own_types_are_copied_or_rejected(clickhouse: ClickHouse, tmp_path: Path) -> None:
    assert native.check(native_tables.clickhouse(clickhouse), tmp_path) == []


def test_hostile_names_and_values(clickhouse: ClickHouse) -> None:
    database = clickhouse.new_table()
    clickhouse(f"CREATE DATABASE {database}")

    def options(name: str) -> dict[str, Any]:
        return {**clickhouse.login, "table": f"{database}.{quoted(name)}"}

    target = hostile.Target(ClickhouseSink, ClickhouseSource, options)
    assert target.rejected_columns() == {"a\0b"}
    few = replace(target, names=(*hostile.FEW_NAMES, "x" * 300))
    assert few.rejected_tables() == {"a\0b", "x" * 300}
    target.check_values()


@pytest.mark.parametrize("key", [(), ("id",)])
def test_interrupted_connections(
    options: dict[str, Any], clickhouse: ClickHouse, monkeypatch: pytest.MonkeyPatch,
    key: tuple[str, ...],
) -> None:  # fmt: skip
    monkeypatch.setattr(clickhouse_config, "_MARGIN", 0.0)
    with Gate(clickhouse.port) as gate:
        check = Interruptions(gate, PASSWORD)
        given = check.through(options, timeout="1s")
        check_table(check, ClickhouseSink, ClickhouseSource, given, key=key, looks_up=bool(key))


def test_a_limit_of_connections_is_transient(
    options: dict[str, Any], clickhouse: ClickHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server beyond the limit accepts connections, or closes them, and does not read them."""
    monkeypatch.setattr(clickhouse_config, "_MARGIN", 0.0)
    with Gate(clickhouse.port) as gate:
        of = sink(Interruptions(gate, PASSWORD).through(options, timeout="1s"))
        for limited in (gate.pause, gate.reject):
            limited()
            with pytest.raises(Transient) as found:
                of.connect()
            assert found.value.code == "unreachable"
            assert "max_connections" in str(found.value.hint), found.value.message
            gate.heal()
        of.connect().close()


def test_responses_that_are_cut_between_their_headers(
    options: dict[str, Any], clickhouse: ClickHouse
) -> None:
    """The parser of headers takes such a response for one without rows."""
    with Gate(clickhouse.port) as gate:
        given = Interruptions(gate, PASSWORD).through(options)
        config = ClickhouseSource.config_type.model_validate(given)
        with closing(ClickhouseConnection(config, read_only=True)) as connection:
            query = partial(connection.query, "SELECT number FROM numbers(2)")
            assert check_cut_responses(gate, query) == [(0,), (1,)]


@pytest.mark.parametrize(
    ("settings", "reason", "hint"),
    [
        ("parts_to_throw_insert=1, parts_to_delay_insert=1, max_delay_to_insert=1",
         "Too many parts", "Set batch so that it has more rows and less batches per second."),
        ("min_free_disk_bytes_to_perform_insert=1000000000000000000", "have enough free space",
         "Free disk space of the server."),
    ],
)  # fmt: skip
def test_limits_of_tables_are_transient(
    clickhouse: ClickHouse, options: dict[str, Any], settings: str, reason: str, hint: str
) -> None:
    """A batch is written once the table accepts it, and then only once."""
    name = f"shop.{options['table']}"
    clickhouse(
        f"CREATE TABLE {name} (id Int64) ENGINE = MergeTree ORDER BY id",
        f"SYSTEM STOP MERGES {name}", f"INSERT INTO {name} VALUES (0)",
        f"ALTER TABLE {name} MODIFY SETTING {settings}",
    )  # fmt: skip
    of = sink(options)
    with pytest.raises(Transient, match=reason) as found:
        write(of, batch(id=numbers(1)))
    assert found.value.code == "busy" and found.value.hint == hint
    names = ", ".join(each.partition("=")[0].strip() for each in settings.split(","))
    clickhouse(f"ALTER TABLE {name} RESET SETTING {names}")
    assert write(of, batch(id=numbers(1))) == {}
    assert clickhouse(f"SELECT id FROM {name} ORDER BY id") == [(0,), (1,)]


def test_limits_of_time_and_writing(clickhouse: ClickHouse, options: dict[str, Any]) -> None:
    query = "SELECT sleepEachRow(0.5) AS s FROM numbers(4) SETTINGS max_block_size = 1"
    with pytest.raises(Transient, match="Timeout exceeded"):
        read(source({**options, "timeout": "1s"}, query=query, drop=("table",)))
    clickhouse(f"CREATE TABLE shop.{options['table']} (id Int64) ENGINE = MergeTree ORDER BY id")
    with pytest.raises(Permanent, match="readonly mode") as denied:
        write(sink(options, settings={"readonly": 1}), batch(id=numbers(1)))
    assert denied.value.code == "authorization" and "readonly" in str(denied.value.hint)
