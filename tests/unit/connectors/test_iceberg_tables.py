"""Tables of Iceberg, written without Spark, and read by other clients."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyiceberg import types as it
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema

from crossing import hostile
from crossing.hostile import quoted
from iceberg_tables import TABLE, catalog_options, client, rows_of
from lake_tables import receipts_of, write, write_at_once
from penstock.connectors.iceberg import IcebergSink, IcebergSource
from penstock.connectors.iceberg.errors import convert_errors
from penstock.core.errors import OptionError, Permanent, PlanError, Transient
from penstock.engine.sinks.sink_preparation import schema_changes
from penstock.sdk import BatchId, Context, compare_schemas
from penstock.sdk.columns.json_mark import json_field
from penstock.sdk.columns.rows import batch_of

UTC = pa.timestamp("us", tz="UTC")
NOW = dt.datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=dt.UTC)


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    return catalog_options(tmp_path)


def sink(
    options: Any, key: Sequence[str] = (), owner: str = "one", mode: Any = "append", **more: Any
) -> IcebergSink:
    config: Any = IcebergSink.config_type.model_validate({**options, **more})
    made = IcebergSink.create(config, Context(owner=owner))
    assert isinstance(made, IcebergSink)
    made.validate()
    made.mode, made.primary_key = ("upsert" if key else mode), tuple(key)
    return made


def table_of(options: Any) -> Any:
    return client(options).load_table(TABLE)


def read(options: Any) -> list[dict[str, Any]]:
    """Returns the rows as PyIceberg reads them, in the order of their first column."""
    rows: list[dict[str, Any]] = table_of(options).scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: str(next(iter(row.values()))))


def read_by_polars(options: Any) -> list[dict[str, Any]]:
    """Returns the rows as the reader of Polars reads them, in the order of their first column."""
    found = polars.scan_iceberg(table_of(options), reader_override="native").collect().to_dicts()
    return sorted(found, key=lambda row: str(next(iter(row.values()))))


def snapshots(options: Any) -> list[Any]:
    return list(table_of(options).snapshots())


def create(options: Any, schema: Any, **properties: str) -> Any:
    catalog = client(options)
    catalog.create_namespace_if_not_exists("shop")
    return catalog.create_table(TABLE, schema=schema, properties=properties)


@pytest.mark.slow
def test_types_are_written_without_loss(options: Any) -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()), ("small", pa.int8()), ("d", pa.float64()), ("f", pa.float32()),
            ("n", pa.decimal128(38, 18)), ("m", pa.decimal128(9, 2)), ("s", pa.string()),
            ("raw", pa.binary()), ("at", UTC), ("local", pa.timestamp("us")), ("day", pa.date32()),
            ("flag", pa.bool_()), ("a b.ü", pa.string()), ("texts", pa.list_(pa.string())),
            ("deep", pa.list_(pa.list_(pa.int32()))),
            ("where", pa.struct([('ci"ty', pa.string()), ("at", UTC), ("l", pa.list_(UTC))])),
            ("tags", pa.map_(pa.string(), pa.decimal128(38, 18))),
            ("list", pa.list_(pa.struct([("x", pa.int16()), ("y", pa.timestamp("us"))]))),
            json_field(pa.field("j", pa.string())),
        ]
    )  # fmt: skip
    local = dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
    row = {
        "id": -(2**63), "small": -128, "d": -0.0, "f": 0.5, "m": Decimal("-1234567.89"),
        "n": Decimal("12345678901234567890.000000000000000001"), "s": "a\0b😀'\"", "raw": b"\\x\0",
        "at": NOW, "local": local, "day": dt.date(1, 1, 1), "a b.ü": "x",
        "flag": False, "texts": ["", None], "deep": [[1], [], None],
        "where": {'ci"ty': "Bern", "at": NOW, "l": [NOW, None]},
        "tags": [("a", Decimal("1.5")), ("b", None)], "list": [{"x": 1, "y": local}, None],
        "j": {"k": [1.5, "x"]},
    }  # fmt: skip
    batch = batch_of([row, {**dict.fromkeys(row), "id": 1}], schema)
    for key in ([], ["id"]):
        assert write(sink(options, key), batch, 1 if key else 0) == {}
    assert not compare_schemas(schema, sink(options).target_schema(schema) or pa.schema([]))
    expected = batch.to_pylist()
    expected[1]["list"] = []  # PyIceberg reads null lists of structs as empty lists.
    assert read(options) == expected
    (task,) = table_of(options).scan().plan_files()
    assert parquet.read_table(task.file.file_path)["list"][1].as_py() is None
    assert [snapshot.summary.operation.value for snapshot in snapshots(options)] == [
        "append", "overwrite",
    ]  # fmt: skip


@pytest.mark.slow
def test_other_clients_read_the_files(options: Any) -> None:
    schema = pa.schema(
        [("id", pa.int64()), ("n", pa.decimal128(18, 4)), ("at", UTC), ("s d", pa.string())]
    )
    row = {"id": 1, "n": Decimal("1.5"), "at": NOW, "s d": "x"}
    made = sink(options, partition_by=["bucket(4, id)", "month(at)"])
    assert not write(made, batch_of([row, {**row, "id": 2, "s d": None}], schema), parts=2)
    assert read_by_polars(options) == read(options) == [row, {**row, "id": 2, "s d": None}]


@pytest.mark.slow
def test_types_of_other_writers(options: Any) -> None:
    fields = [
        it.NestedField(1, "u", it.UUIDType(), required=True),
        it.NestedField(2, "t", it.TimeType(), required=False),
        it.NestedField(3, "b", it.FixedType(3), required=False),
        it.NestedField(4, "us", it.ListType(5, it.UUIDType(), element_required=False)),
    ]
    create(options, Schema(*fields))
    schema = pa.schema(
        [("u", pa.string()), ("t", pa.string()), ("b", pa.binary()), ("us", pa.list_(pa.string()))]
    )
    one = "12345678-1234-5678-1234-567812345678"
    rows: list[dict[str, Any]] = [
        {"u": one, "t": "23:59:59.000001", "b": b"abc", "us": [one, None]},
        {"u": one.upper(), "t": "00:00", "b": None, "us": None},
        {"u": "no", "t": None, "b": None, "us": None},
        {"u": one, "t": "24:00:00", "b": None, "us": None},
        {"u": one, "t": None, "b": b"ab", "us": None},
        {"u": None, "t": None, "b": None, "us": None},
    ]
    batch = batch_of(rows, schema)
    target = sink(options).target_schema(schema)
    assert target is not None and not compare_schemas(schema, target)
    bad = write(sink(options), batch)
    assert bad[5] == 'column "u": expected a value, found null' and sorted(bad) == [2, 3, 4, 5]
    assert '"no"' in bad[2] and 'column "t"' in bad[3]
    found = read(options)
    assert [row["u"] for row in found] == [uuid.UUID(one)] * 2
    assert {row["t"] for row in found} == {dt.time(23, 59, 59, 1), dt.time(0, 0)}
    changed = batch_of([{**rows[0], "t": "01:00:00"}], schema)
    assert not write(sink(options, ["u"]), changed, 1)
    assert [row["t"] for row in read(options)] == [dt.time(1)]


@pytest.mark.slow
def test_partitions(options: Any) -> None:
    schema = pa.schema(
        [("s", pa.string()), ("i", pa.int32()), ("d", pa.date32()), ("at", UTC), ("n", pa.int64()),
         ("m", pa.decimal128(9, 2))]
    )  # fmt: skip
    names = ["truncate(2, s)", "bucket(3, i)", "years(d)", "hour(at)", "n", "truncate(10, m)"]
    row = {"s": "a/b=ü", "i": -7, "d": dt.date(1969, 12, 31), "at": NOW.replace(year=1968), "n": 1,
           "m": Decimal("-0.05")}  # fmt: skip
    rows = [row, dict.fromkeys(row), {**row, "s": "a/x"}, {**row, "at": NOW}]
    made = sink(options, partition_by=names)
    assert not write(made, batch_of(rows, schema))
    assert len(read(options)) == 4 and all(row in read(options) for row in rows)
    files = [task.file for task in table_of(options).scan().plan_files()]
    partitions = sorted(
        (tuple(file.partition[index] for index in range(6)) for file in files), key=repr
    )
    hours = int(NOW.timestamp() // 3600)
    old = int(NOW.replace(year=1968).timestamp() // 3600)
    assert len(partitions) == 3
    assert {(each[0], each[2], each[4], each[5]) for each in partitions} == {
        ("a/", -1, 1, Decimal("-0.10")), (None, None, None, None),
    }  # fmt: skip
    assert {each[3] for each in partitions} == {None, old, hours}
    assert table_of(options).scan(row_filter="i = -7 and n = 1").to_arrow().num_rows == 3
    write(sink(options, partition_by=names), batch_of(rows, schema), 1)
    with pytest.raises(OptionError, match=r"partitioned by truncate\(2, s\), bucket\(3, i\), year"):
        write(sink(options, partition_by=["s"]), batch_of(rows, schema), 2)
    for wrong, message in (
        ("x", 'unknown column "x"'), ("week(at)", "unknown transform week"),
        ("bucket(at)", r"expected bucket\(NUMBER, COLUMN\)"), ("day(s)", '"s" has the type'),
        ("hours(d)", '"d" has the type'),
    ):  # fmt: skip
        with pytest.raises(PlanError, match=message):
            sink(options, partition_by=[wrong]).check_schema(schema)


@pytest.mark.slow
def test_readers_skip_files_by_statistics(options: Any) -> None:
    for number, start in enumerate((0, 100)):
        rows = pa.record_batch({"id": range(start, start + 3), "s": ["b", None, "a"]})
        write(sink(options), rows, number)
    found = list(table_of(options).scan(row_filter="id > 50").plan_files())
    assert [task.file.record_count for task in found] == [3]
    assert dict(found[0].file.null_value_counts) == {1: 0, 2: 1}


@pytest.mark.slow
def test_a_batch_is_one_snapshot_and_written_once(options: Any) -> None:
    rows = pa.record_batch({"id": [1, 2, 3]})
    for number in (0, 1, 1, 0):
        assert not write(sink(options), rows, number, parts=3)
    assert [row["id"] for row in read(options)] == [1, 1, 2, 2, 3, 3]
    assert [snapshot.summary["penstock.batch"] for snapshot in snapshots(options)] == ["0", "1"]
    assert sink(options).last_batch("q") == BatchId("q", 1)
    made = sink(options, owner="two")
    made.commit(BatchId("q", 5, "digest"), receipts_of(made, rows)[0])
    assert made.last_batch("q") == BatchId("q", 5, "digest")
    assert sink(options).last_batch("q") == BatchId("q", 1)


@pytest.mark.slow
def test_expired_snapshots_do_not_hide_batches(options: Any) -> None:
    rows = pa.record_batch({"id": [1]})
    made = sink(options)
    receipts, _ = receipts_of(made, rows)
    made.commit(BatchId("q", 0), receipts)
    table_of(options).append(pa.table({"id": [2]}))
    table = table_of(options)
    table.maintenance.expire_snapshots().by_id(table.snapshots()[0].snapshot_id).commit()
    sink(options).commit(BatchId("q", 0), receipts)
    assert [row["id"] for row in read(options)] == [1, 2]
    made.commit(BatchId("other", 0), receipts_of(made, rows)[0])
    marks = [name for name in table_of(options).properties if name.startswith("penstock.")]
    assert len(marks) == 1 and marks[0].endswith("/other")


@pytest.mark.slow
def test_a_failure_between_write_and_commit(options: Any) -> None:
    rows = pa.record_batch({"id": [1, 2]})
    receipts_of(sink(options), rows, parts=2)
    assert read(options) == []
    assert not write(sink(options), rows, parts=2)
    assert len(read(options)) == 2 and len(snapshots(options)) == 1
    home = Path(options["catalog"]["warehouse"])
    made = sink(options)
    writer = made.writer(made.open(), BatchId("q", 1), 0, rows.schema)
    files = {*home.rglob("*.parquet")}
    writer.write(rows)
    writer.abort()
    assert {*home.rglob("*.parquet")} == files


@pytest.mark.slow
def test_changes(options: Any) -> None:
    made = sink(options, ["a", "b"], partition_by=["bucket(3, a)"])
    first = pa.record_batch(
        {"a": [1, 1, 2, None], "b": ["x", "y", "x", "x"], "n": [1, 2, 3, 4], "p": ["u"] * 4}
    )
    assert write(made, first, parts=2) == {
        3: "expected a value in the primary key, found null in a"
    }
    second = pa.record_batch(
        {"a": [1, 2, None, 9], "b": ["x", "x", "z", "q"], "n": [7, 8, 9, 0], "p": ["", "v"] * 2}
    )
    assert list(write(made, second, 1, pa.array(["d", "u", "d", "d"]))) == [2]
    assert read(options) == read_by_polars(options) == [
        {"a": 1, "b": "y", "n": 2, "p": "u"}, {"a": 2, "b": "x", "n": 8, "p": "v"},
    ]  # fmt: skip
    assert {*table_of(options).schema().identifier_field_ids} == {1, 2}
    gone = pa.record_batch({"a": [9], "b": ["q"], "n": [0], "p": ["u"]})
    for _ in range(2):
        write(made, gone, 2, pa.array(["d"]))
        assert made.last_batch("q") == BatchId("q", 2) and len(snapshots(options)) == 2
    home = Path(options["catalog"]["warehouse"])
    assert not [*home.rglob("*staged*")]
    used = {task.file.file_path for each in snapshots(options) for task in scan(options, each)}
    assert {str(file) for file in home.rglob("*.parquet")} == used


def scan(options: Any, snapshot: Any) -> Any:
    return table_of(options).scan(snapshot_id=snapshot.snapshot_id).plan_files()


@pytest.mark.slow
def test_keys_of_any_type(options: Any) -> None:
    columns: dict[str, list[Any]] = {
        "i": [-(2**63), -1, 2**63 - 1], "s": ["", "it's \"x\" %_\\", "😀"],
        "b": [b"", b"\xff", b"a"],
        "d": [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31)],
        "at": [NOW.replace(day=1, year=year) for year in (1, 1970, 9999)],
        "l": [NOW.replace(tzinfo=None, day=1, year=year) for year in (1, 1970, 9999)],
        "n": [Decimal("-1.10"), Decimal("0.00"), Decimal("99.99")],
        "f": [-1.5, 0.25, 1e300],
    }  # fmt: skip
    for name, values in columns.items():
        table = {**options, "table": f"shop.t_{name}"}
        made = sink(table, [name])
        assert not write(made, pa.record_batch({name: values, "v": [1, 2, 3]}), parts=3)
        changes = pa.record_batch({name: values, "v": [4, 5, 6]})
        assert not write(made, changes, 1, pa.array(["d", "u", "u"]), parts=2)
        found = rows_of(table, pa.schema([("v", pa.int64())]))
        assert sorted(row["v"] for row in found) == [5, 6], name


@pytest.mark.slow
def test_many_keys(options: Any) -> None:
    made = sink(options, ["id", "s"])
    write(made, pa.record_batch({"id": range(1000), "s": ["x"] * 1000, "v": [0] * 1000}))
    changed = pa.record_batch({"id": range(500, 1500), "s": ["x"] * 1000, "v": [1] * 1000})
    write(made, changed, 1)
    write(made, pa.record_batch({"id": [1], "s": ["y"], "v": [2]}), 2)
    write(made, pa.record_batch({"id": [1, 3], "s": ["x", "y"], "v": [3, 3]}), 3)
    found = [row["v"] for row in rows_of(options, pa.schema([("v", pa.int64())]))]
    assert [found.count(value) for value in range(4)] == [499, 1000, 1, 2]


@pytest.mark.slow
def test_upserts_keep_other_columns(options: Any) -> None:
    create(options, pa.schema([("Id", pa.int64()), ("kept", pa.string()), ("n", pa.int64())]))
    table_of(options).append(pa.table({"Id": [1, 7], "kept": ["x", "y"], "n": [1, 1]}))
    made = sink(options, ["id"])
    rows = pa.record_batch({"id": [1, 2], "n": pa.array([5, 6], pa.int32())})
    target = made.target_schema(rows.schema)
    assert target is not None and not compare_schemas(rows.schema, target)
    assert not write(made, rows)
    assert read(options) == [
        {"Id": 1, "kept": "x", "n": 5}, {"Id": 2, "kept": None, "n": 6},
        {"Id": 7, "kept": "y", "n": 1},
    ]  # fmt: skip


@pytest.mark.slow
def test_replaced_tables(options: Any) -> None:
    made = sink(options, mode="replace")
    made.commit(BatchId("q", 0), [])
    write(made, pa.record_batch({"id": [1, 2]}), parts=2)
    write(made, pa.record_batch({"id": [3]}), 1)
    assert read(options) == [{"id": 3}] and len(snapshots(options)) == 2
    for _ in range(2):
        made.commit(BatchId("q", 2), [])
    assert read(options) == [] and len(snapshots(options)) == 3


def test_columns_that_do_not_fit(options: Any) -> None:
    create(options, Schema(it.NestedField(1, "id", it.LongType(), required=True),
                           it.NestedField(2, "s", it.StringType(), required=False)))  # fmt: skip
    with pytest.raises(PlanError, match='"id" is required by the target'):
        _prepare(sink(options), pa.schema([("s", pa.string())]))
    with pytest.raises(PlanError, match='"s" is BIGINT in the rows and STRING in the target'):
        _prepare(sink(options), pa.schema([("id", pa.int64()), ("s", pa.int64())]))
    for type_ in (pa.duration("us"), pa.list_(pa.duration("us")), pa.struct([])):
        with pytest.raises(PlanError, match=r'column "s.*": Iceberg has no type for'):
            sink(options).check_schema(pa.schema([("s", type_)]))
    with pytest.raises(PlanError, match='"S" differs from "s" only by case'):
        sink(options).check_schema(pa.schema([("s", pa.int64()), ("S", pa.int64())]))


def _prepare(made: IcebergSink, columns: pa.Schema) -> None:
    node: Any = type("Node", (), {"sink": made, "label": "sink out", "where": None})
    schema_changes(node, columns)


@pytest.mark.slow
def test_new_and_wider_columns(options: Any) -> None:
    write(sink(options), pa.record_batch({"A": pa.array([1], pa.int32())}))
    rows = pa.record_batch({"a": [2**40], "new column": [["x"]], "at": pa.array([None], UTC)})
    made = sink(options, schema_changes="apply")
    changes = compare_schemas(rows.schema, made.target_schema(rows.schema) or pa.schema([]))
    with pytest.raises(PlanError, match='"new column" ARRAY<STRING> is missing'):
        sink(options).change_schema(changes)
    for _ in range(2):
        made.change_schema(changes)
    write(made, rows, 1)
    assert read(options) == [
        {"A": 1, "new column": None, "at": None}, {"A": 2**40, "new column": ["x"], "at": None},
    ]  # fmt: skip
    wide = pa.schema([("a", pa.int64()), ("at", pa.string())])
    with pytest.raises(PlanError, match=r'"at" is .* in the'):
        made.change_schema(
            compare_schemas(wide, pa.schema([("a", pa.int64()), ("at", pa.int32())]))
        )
        _prepare(made, wide)


@pytest.mark.slow
def test_columns_and_partitions_that_change_during_a_run(options: Any) -> None:
    made = sink(options, ["id"])
    write(made, pa.record_batch({"id": [1]}))
    schema = pa.schema([("id", pa.int64()), ("gone", pa.int64())])
    with pytest.raises(Permanent, match='the table has no column "gone"'):
        made.writer(made.open(), BatchId("q", 1), 0, schema)
    plain = sink(options, owner="plain")
    receipts, _ = receipts_of(plain, pa.record_batch({"id": [2]}))
    with table_of(options).update_spec() as update:
        update.add_identity("id")
    with pytest.raises(Permanent, match=r"the partitions of shop\.orders were changed"):
        plain.commit(BatchId("q", 0), receipts)


def test_errors_name_the_option(options: Any, tmp_path: Path) -> None:
    made = sink(options, create=False)
    for call in (made.check, lambda: made.prepare(pa.schema([("a", pa.int64())]))):
        with pytest.raises(OptionError, match=r'there is no table of Iceberg "shop\.orders"'):
            call()
    sink(options).check()
    assert not Path(options["catalog"]["path"]).exists()
    (tmp_path / "file").write_text("")
    wrong = {**options["catalog"], "path": str(tmp_path / "file" / "db")}
    with pytest.raises(Permanent, match="not a directory"):
        sink(options, catalog=wrong).check()
    catalog, https = options["catalog"], {"type": "rest", "url": "https://h"}
    for more, message in (
        ({"table": "orders"}, "expected a namespace and a table"),
        ({"catalog": {**catalog, "url": "postgresql://x/y"}}, "either path or url"),
        ({"catalog": {**catalog, "type": "nosuch"}}, "nosuch|type"),
        ({"catalog": {**catalog, "properties": {"token": "x"}}}, "token is set by another option"),
        ({"table_properties": {"format-version": "3"}}, "expected format-version 2"),
        ({"catalog": {"type": "rest", "url": "http://u:p@h"}}, "expected the user in auth"),
        ({"catalog": {"type": "rest", "url": "http://h", "tls": True}}, "URL with a TLS scheme"),
        (
            {"catalog": {**https, "tls": {"verify_hostname": False}}},
            "verify_hostname: false requires tls.verify: false",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            sink(options, **more)
    with pytest.raises(OptionError, match="ca is not supported"):
        sink(options, storage={"tls": {"ca": "x"}})


def test_tables_that_are_not_written_to(options: Any) -> None:
    create(options, pa.schema([("id", pa.int64())]), **{"format-version": "1"})
    for call in (sink(options).check, lambda: write(sink(options), pa.record_batch({"id": [1]}))):
        with pytest.raises(Permanent, match="has version 1 of the format"):
            call()


@pytest.mark.slow
def test_two_pipelines_on_one_table(options: Any) -> None:
    """Checks concurrent commits of appends and upserts, which all conflict."""
    write(sink(options, owner="first"), pa.record_batch({"id": [9], "by": ["first"]}))
    write_at_once(partial(sink, options), 2)
    found = [(row["by"], row["id"]) for row in read(options)]
    expected = [("a", i) for i in (0, 1, 1, 2)] + [("first", 9)]
    assert sorted(found) == sorted([*expected, *((by, i) for by in "bc" for i in range(3))])


@pytest.mark.slow
def test_conflicts_end_as_transient(options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.record_batch({"id": [1]})
    made = sink(options, ["id"])
    receipts, _ = receipts_of(made, rows)
    files = {*Path(options["catalog"]["warehouse"]).rglob("*.parquet")}

    def fail(*args: Any) -> None:
        raise CommitFailedException("the reference main has changed")

    monkeypatch.setattr("penstock.connectors.iceberg.committing.commit", fail)
    monkeypatch.setattr("penstock.sdk.lakes.commits.time.sleep", lambda seconds: None)
    with pytest.raises(Transient, match="another writer has changed the same rows"):
        made.commit(BatchId("q", 0), receipts)
    assert {*Path(options["catalog"]["warehouse"]).rglob("*.parquet")} == files


def test_errors_of_libraries() -> None:
    import requests
    import sqlalchemy.exc
    from pyiceberg import exceptions

    locked = sqlalchemy.exc.OperationalError("UPDATE", {}, Exception("database is locked"))
    for error, kind, code in (
        (exceptions.UnauthorizedError("no"), Permanent, "authorization"),
        (exceptions.ServiceUnavailableError("busy"), Transient, "unavailable"),
        (exceptions.CommitStateUnknownException("lost"), Transient, "unavailable"),
        (requests.exceptions.ConnectionError("rejected"), Transient, "unavailable"),
        (locked, Transient, "unavailable"),
        (OSError("AWS Error ACCESS_DENIED during HeadObject"), Permanent, "authorization"),
    ):
        with pytest.raises(kind) as caught, convert_errors("open", TABLE):
            raise error
        assert getattr(caught.value, "code", None) == code and getattr(caught.value, "hint", None)


@pytest.mark.slow
def test_hostile_names_and_values(tmp_path: Path) -> None:
    options = catalog_options(tmp_path)
    target = hostile.Target(
        IcebergSink, IcebergSource, lambda name: {**options, "table": f"shop.{quoted(name)}"},
        looks_up=False, names=(*hostile.FEW_NAMES, "a.b", "x" * 300),
    )  # fmt: skip
    assert target.rejected_tables() == {"a\0b", "x" * 300}
    assert replace(target, names=hostile.NAMES).rejected_columns() == {"a\0b"}
    target.check_values()
