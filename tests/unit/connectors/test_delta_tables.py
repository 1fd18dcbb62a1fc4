"""Tables of Delta Lake, written without Spark, and read by other clients."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from crossing import hostile
from lake_tables import receipts_of, write, write_at_once
from penstock.connectors.delta import DeltaSink, DeltaSource
from penstock.connectors.delta.committing import Commit
from penstock.connectors.delta.errors import convert_errors
from penstock.core.errors import OptionError, Permanent, PlanError, Transient
from penstock.engine.sinks.sink_preparation import schema_changes
from penstock.sdk import BatchId, Context, compare_schemas
from penstock.sdk.columns.json_mark import json_field
from penstock.sdk.columns.rows import batch_of
from penstock.sdk.lakes.commits import Conflict

UTC = pa.timestamp("us", tz="UTC")
NOW = dt.datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=dt.UTC)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "a 'b?#%ü")


def sink(path: str, key: Sequence[str] = (), owner: str = "one", **options: Any) -> DeltaSink:
    made = DeltaSink.create(
        DeltaSink.config_type.model_validate({"path": path, **options}), Context(owner=owner)
    )
    assert isinstance(made, DeltaSink)
    if key:
        made.mode, made.primary_key = "upsert", tuple(key)
    return made


def read(path: str) -> list[dict[str, Any]]:
    """Returns the rows as delta-rs reads them, in the order of their first column."""
    rows: list[dict[str, Any]] = DeltaTable(path).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: str(next(iter(row.values()))))


def versions(path: str) -> int:
    return int(DeltaTable(path).version())


def test_types_are_written_without_loss(path: str) -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()), ("small", pa.int8()), ("d", pa.float64()), ("f", pa.float32()),
            ("n", pa.decimal128(38, 18)), ("s", pa.string()), ("raw", pa.binary()), ("at", UTC),
            ("local", pa.timestamp("us")), ("day", pa.date32()), ("flag", pa.bool_()),
            ("texts", pa.list_(pa.string())), ("deep", pa.list_(pa.list_(pa.int32()))),
            ("where", pa.struct([('ci"ty', pa.string()), ("at", UTC), ("l", pa.list_(UTC))])),
            ("tags", pa.map_(pa.string(), pa.decimal128(38, 18))),
            ("list", pa.list_(pa.struct([("x", pa.int16()), ("y", pa.timestamp("us"))]))),
            json_field(pa.field("j", pa.string())),
        ]
    )  # fmt: skip
    local = dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
    row = {
        "id": -(2**63), "small": -128, "d": -0.0, "f": 0.5,
        "n": Decimal("12345678901234567890.000000000000000001"), "s": "a\0b😀'\"", "raw": b"\\x\0",
        "at": NOW, "local": local, "day": dt.date(1, 1, 1),
        "flag": False, "texts": ["", None], "deep": [[1], [], None],
        "where": {'ci"ty': "Bern", "at": NOW, "l": [NOW, None]},
        "tags": [("a", Decimal("1.5")), ("b", None)], "list": [{"x": 1, "y": local}, None],
        "j": {"k": [1.5, "x"]},
    }  # fmt: skip
    batch = batch_of([row, {**dict.fromkeys(row), "id": 1}], schema)
    for key in ([], ["id"]):
        assert write(sink(path, key), batch, 1 if key else 0) == {}
    assert sink(path).target_schema(schema) is not None
    assert not compare_schemas(schema, sink(path).target_schema(schema) or schema)
    assert read(path) == batch.to_pylist() and versions(path) == 2


def test_partitions(path: str) -> None:
    schema = pa.schema(
        [
            ("s", pa.string()), ("i", pa.int32()), ("b", pa.bool_()), ("d", pa.date32()),
            ("n", pa.decimal128(38, 18)), ("at", UTC), ("l", pa.timestamp("us")),
            ("v", pa.int64()),
        ]
    )  # fmt: skip
    names = schema.names[:-1]
    row = {
        "s": "a/b=ü %20?", "i": -1, "b": True, "d": dt.date(2024, 2, 29),
        "n": Decimal("0.000000000000000001"), "at": NOW, "l": NOW.replace(tzinfo=None), "v": 1,
    }  # fmt: skip
    rows = [row, {**dict.fromkeys(names), "v": 2}, {**row, "s": "x" * 300, "v": 3},
            {**row, "s": "", "v": 4}, {**row, "v": 5}]  # fmt: skip
    made = sink(path, partition_by=names)
    bad = write(made, batch_of(rows, schema))
    assert list(bad) == [3] and 'column "s"' in bad[3]
    found = sorted(read(path), key=lambda row: row["v"])
    assert found == [rows[0], rows[1], rows[2], rows[4]]
    table = DeltaTable(path)
    assert table.metadata().partition_columns == names and len(table.file_uris()) == 3
    with pytest.raises(OptionError, match="the table is partitioned by s, i"):
        write(sink(path, partition_by=["s"]), batch_of(rows, schema), 1)
    for wrong, message in ((["x"], 'unknown column "x"'), (schema.names, "all columns")):
        with pytest.raises(PlanError, match=message):
            sink(path, partition_by=wrong).check_schema(schema)
    with pytest.raises(PlanError, match='"f" has the type'):
        sink(path, partition_by=["f"]).check_schema(pa.schema([("f", pa.float64()), *schema]))


def test_readers_skip_files_by_statistics(path: str) -> None:
    for number, start in enumerate((0, 100)):
        columns = {
            "id": range(start, start + 3), "s": ["b", None, "a" * start],
            "at": pa.array([NOW, None, NOW], UTC),
        }  # fmt: skip
        write(sink(path), pa.record_batch({k: pa.array(v) for k, v in columns.items()}), number)
    (old, new) = pa.table(DeltaTable(path).get_add_actions()).to_pylist()[::-1]
    assert (old["num_records"], old["min"]["id"], new["max"]["id"]) == (3, 0, 102)
    assert new["null_count"]["s"] == 1
    log = Path(path, "_delta_log", f"{2:020d}.json").read_text()
    bounds = json.loads(json.loads(log.splitlines()[1])["add"]["stats"])
    assert bounds["maxValues"] == {"id": 102, "at": "2024-02-29T23:59:59.124Z"}
    assert bounds["minValues"]["at"] == "2024-02-29T23:59:59.123Z"


@pytest.mark.slow
def test_a_batch_is_one_version_and_written_once(path: str) -> None:
    rows = pa.record_batch({"id": [1, 2, 3]})
    for number in (0, 1, 1, 0):
        assert not write(sink(path), rows, number, parts=3)
    assert [row["id"] for row in read(path)] == [1, 1, 2, 2, 3, 3]
    assert versions(path) == 2 and sink(path).last_batch("q") == BatchId("q", 1)
    for content in ("", "0123456", "0" * 32, "x" * 7 * 4):
        made = sink(path, owner=content)
        made.commit(BatchId("q", 5, content), receipts_of(made, rows)[0])
        assert made.last_batch("q") == BatchId("q", 5, content)
    assert sink(path).last_batch("q") == BatchId("q", 1)


def test_a_failure_between_write_and_commit(path: str) -> None:
    rows = pa.record_batch({"id": [1, 2]})
    receipts_of(sink(path), rows, parts=2)
    assert read(path) == []
    assert not write(sink(path), rows, parts=2)
    assert len(read(path)) == 2 and versions(path) == 1
    writer = sink(path).writer(sink(path).open(), BatchId("q", 1), 0, rows.schema)
    files = {*Path(path).glob("*.parquet")}
    writer.write(rows)
    writer.abort()
    assert {*Path(path).glob("*.parquet")} == files


@pytest.mark.slow
def test_changes(path: str) -> None:
    made = sink(path, ["a", "b"], partition_by=["p"])
    first = pa.record_batch(
        {"a": [1, 1, 2, None], "b": ["x", "y", "x", "x"], "n": [1, 2, 3, 4], "p": ["u"] * 4}
    )
    assert write(made, first, parts=2) == {
        3: "expected a value in the primary key, found null in a"
    }
    second = pa.record_batch(
        {"a": [1, 2, None, 9], "b": ["x", "x", "z", "q"], "n": [7, 8, 9, 0], "p": ["", "v"] * 2}
    )
    bad = write(made, second, 1, pa.array(["d", "u", "d", "d"]))
    assert list(bad) == [2]
    assert read(path) == [
        {"a": 1, "b": "y", "n": 2, "p": "u"}, {"a": 2, "b": "x", "n": 8, "p": "v"},
    ]  # fmt: skip
    assert versions(path) == 2
    gone = pa.record_batch({"a": [9], "b": ["q"], "n": [0], "p": ["u"]})
    for _ in range(2):
        write(made, gone, 2, pa.array(["d"]))
        assert made.last_batch("q") == BatchId("q", 2) and versions(path) == 3
    files = {Path(name).name for name in DeltaTable(path).file_uris()}
    assert not [file for file in Path(path).glob("*-*.parquet") if file.name not in files]


@pytest.mark.slow
def test_keys_of_any_type(path: str) -> None:
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
        table = f"{path}/{name}"
        made = sink(table, [name])
        assert not write(made, pa.record_batch({name: values, "v": [1, 2, 3]}), parts=3)
        changes = pa.record_batch({name: values, "v": [4, 5, 6]})
        assert not write(made, changes, 1, pa.array(["d", "u", "u"]), parts=2)
        found = sorted(read(table), key=lambda row: row["v"])
        assert found == [{name: values[1], "v": 5}, {name: values[2], "v": 6}]


def test_upserts_keep_other_columns(path: str) -> None:
    write_deltalake(path, pa.table({"Id": [1], "kept": ["x"], "n": pa.array([1], pa.int64())}))
    made = sink(path, ["id"])
    rows = pa.record_batch({"id": [1, 2], "n": pa.array([5, 6], pa.int32())})
    target = made.target_schema(rows.schema)
    assert target is not None and not compare_schemas(rows.schema, target)
    assert not write(made, rows)
    assert read(path) == [{"Id": 1, "kept": "x", "n": 5}, {"Id": 2, "kept": None, "n": 6}]


def test_replaced_tables(path: str) -> None:
    made = sink(path)
    made.mode = "replace"
    made.commit(BatchId("q", 0), [])
    write(made, pa.record_batch({"id": [1, 2]}), parts=2)
    write(made, pa.record_batch({"id": [3]}), 1)
    assert read(path) == [{"id": 3}] and versions(path) == 2
    made.commit(BatchId("q", 2), [])
    made.commit(BatchId("q", 2), [])
    assert read(path) == [] and versions(path) == 3


def test_rows_that_cannot_be_stored(path: str) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), False), pa.field("s", pa.string())])
    DeltaTable.create(path, schema)
    rows = pa.record_batch({"id": [1, None, 3], "s": ["a", "b", "c"]})
    assert write(sink(path), rows) == {1: 'column "id": expected a value, found null'}
    assert len(read(path)) == 2
    with pytest.raises(PlanError, match='"id" is required by the target'):
        _prepare(sink(path), pa.schema([("s", pa.string())]))
    with pytest.raises(PlanError, match='"s" is BIGINT in the rows and STRING in the target'):
        _prepare(sink(path), pa.schema([("id", pa.int64()), ("s", pa.int64())]))
    for type_ in (pa.duration("us"), pa.time64("us"), pa.list_(pa.duration("us")), pa.struct([])):
        with pytest.raises(PlanError, match=r'column "s.*": Delta Lake has no type for'):
            sink(path).check_schema(pa.schema([("s", type_)]))
    with pytest.raises(PlanError, match='"S" differs from "s" only by case'):
        sink(path).check_schema(pa.schema([("s", pa.int64()), ("S", pa.int64())]))


def _prepare(made: DeltaSink, columns: pa.Schema) -> None:
    node: Any = type("Node", (), {"sink": made, "label": "sink out", "where": None})
    schema_changes(node, columns)


def test_new_columns(path: str) -> None:
    write(sink(path), pa.record_batch({"A": [1]}))
    rows = pa.record_batch({"a": [2], "new column": [["x"]], "at": pa.array([None], UTC)})
    made = sink(path, schema_changes="apply")
    changes = compare_schemas(rows.schema, made.target_schema(rows.schema) or pa.schema([]))
    with pytest.raises(PlanError, match='"new column" ARRAY<STRING> is missing'):
        sink(path).change_schema(changes)
    for _ in range(2):
        made.change_schema(changes)
    write(made, rows, 1)
    assert read(path) == [
        {"A": 1, "new column": None, "at": None}, {"A": 2, "new column": ["x"], "at": None},
    ]  # fmt: skip


def test_columns_that_are_dropped_during_a_run(path: str) -> None:
    made = sink(path, ["id"])
    write(made, pa.record_batch({"id": [1]}))
    schema = pa.schema([("id", pa.int64()), ("gone", pa.int64())])
    with pytest.raises(Permanent, match='the table has no column "gone"'):
        made.writer(made.open(), BatchId("q", 1), 0, schema)


def test_errors_name_the_option(path: str, tmp_path: Path) -> None:
    made = sink(path, create=False)
    for call in (made.check, lambda: made.prepare(pa.schema([("a", pa.int64())]))):
        with pytest.raises(OptionError, match="there is no table of Delta Lake at"):
            call()
    sink(path).check()
    assert not Path(path).exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(Permanent, match="not a directory"):
        sink(str(tmp_path / "file" / "t")).check()
    for options, message in (
        ({"path": "hdfs://b/t", "storage": {}}, "storage requires the URL of an object store"),
        ({"path": "gs://b/t", "storage": {"region": "r"}}, "storage.region excludes gs://"),
        ({"path": "az://b/t", "storage": {}}, "expected a URL with the account of Azure"),
        ({"path": "/a%20b"}, "cannot have an encoded character"),
        ({"path": "s3://b/t", "storage": {"tls": {"ca": "x"}}}, "ca is not supported"),
    ):
        with pytest.raises(OptionError, match=message):
            sink(**options).validate()


def test_tables_with_rules_are_not_written_to(path: str, tmp_path: Path) -> None:
    write_deltalake(path, pa.table({"id": [1]}))
    DeltaTable(path).alter.add_constraint({"positive": "id > 0"})
    for call in (sink(path).check, lambda: write(sink(path), pa.record_batch({"id": [1]}))):
        with pytest.raises(Permanent, match='it has the constraint "positive"'):
            call()


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (OSError("GET http://b403/x in 403.1ms - HTTP error"), Transient, "unavailable"),
        (OSError("GET http://b/x - 403 Forbidden"), Permanent, "authorization"),
        (
            OSError("AWS Error UNKNOWN (HTTP status 400) during HeadObject"),
            Permanent,
            "authorization",
        ),
        (OSError("Bucket 'lake' not found"), Permanent, "unknown-bucket"),
        (PermissionError(13, "Permission denied"), Permanent, "authorization"),
        (OSError(28, "No space left on device"), Transient, "unavailable"),
    ],
)
def test_errors_of_storage(error: OSError, kind: type[Exception], code: str) -> None:
    with pytest.raises(kind) as caught, convert_errors("open", "s3://lake/t"):
        raise error
    assert getattr(caught.value, "code", None) == code and getattr(caught.value, "hint", None)


@pytest.mark.slow
def test_two_pipelines_on_one_table(path: str) -> None:
    """Checks concurrent commits of appends and upserts, of which the latter conflict."""
    write_at_once(partial(sink, path), 3)
    found = [(row["by"], row["id"]) for row in read(path)]
    expected = [("a", i) for i in (0, 1, 1, 2, 2, 3)]
    assert sorted(found) == [*expected, *((by, i) for by in "bc" for i in range(4))]


def test_conflicts_end_as_transient(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise Conflict("rows were deleted")

    monkeypatch.setattr(Commit, "_add", fail)
    monkeypatch.setattr("penstock.sdk.lakes.commits.time.sleep", lambda seconds: None)
    with pytest.raises(Transient, match="another writer has changed the same rows"):
        write(sink(path), pa.record_batch({"id": [1]}))


@pytest.mark.slow
def test_hostile_names_and_values(tmp_path: Path) -> None:
    target = hostile.Target(
        DeltaSink, DeltaSource, lambda name: {"path": f"{tmp_path}/t{name}"}, looks_up=False,
        names=(*hostile.FEW_NAMES, "x" * 300),
    )  # fmt: skip
    rejected = {hostile.MARKS, "\\", "x\ny", "a\0b", "x" * 300}
    assert target.rejected_tables() == rejected
    assert replace(target, names=hostile.NAMES).rejected_columns() == {"a\0b"}
    target.check_values()
