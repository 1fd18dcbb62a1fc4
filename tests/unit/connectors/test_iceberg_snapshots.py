"""Snapshots of tables of Iceberg, written by another client and read without Spark."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyiceberg import types as it
from pyiceberg.io.pyarrow import parquet_files_to_data_files
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
)
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record

from iceberg_tables import TABLE, catalog_options, client
from lake_tables import columns_of, read
from penstock.connectors.iceberg import IcebergSource
from penstock.connectors.iceberg.client import TableAccess
from penstock.connectors.iceberg.compacting import combine
from penstock.connectors.iceberg.values import to_file_values
from penstock.core.errors import OptionError, Permanent
from penstock.sdk import Read
from penstock.sdk.columns.conform import rebuild
from penstock.sdk.lakes.compaction import Compacted

UTC = pa.timestamp("us", tz="UTC")
NOW = dt.datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=dt.UTC)
SIMPLE = pa.schema([("id", pa.int64()), ("s", pa.string())])


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    return catalog_options(tmp_path)


def source(options: Any, **more: Any) -> IcebergSource:
    config: Any = IcebergSource.config_type.model_validate({**options, **more})
    made = IcebergSource.create(config)
    assert isinstance(made, IcebergSource)
    made.validate()
    return made


def table_of(options: Any) -> Any:
    return client(options).load_table(TABLE)


def create(options: Any, schema: Any = SIMPLE, **properties: str) -> Any:
    catalog = client(options)
    catalog.create_namespace_if_not_exists("shop")
    return catalog.create_table(TABLE, schema=schema, properties=properties)


def put(options: Any, *ids: int) -> int:
    """Appends rows. Returns the ID of the snapshot."""
    table = table_of(options)
    table.append(pa.table({"id": ids, "s": [f"s{i}" for i in ids]}, schema=SIMPLE))
    return int(table.metadata.current_snapshot_id)


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["id"] for row in rows)


def watched(options: Any, **more: Any) -> IcebergSource:
    return source(options, watch=True, interval="1ms", **more)


@pytest.mark.slow
def test_types_are_read_without_loss(options: Any) -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()), ("n", pa.decimal128(38, 18)), ("m", pa.decimal128(9, 2)),
            ("at", UTC), ("raw", pa.binary()), ("local", pa.timestamp("us")), ("u", pa.uuid()),
            ("t", pa.time64("us")), ("b", pa.binary(3)), ("deep", pa.list_(pa.list_(UTC))),
            ("where", pa.struct([("x", pa.list_(pa.struct([("y", pa.float32())])))])),
            ("us", pa.list_(pa.uuid())), ("tags", pa.map_(pa.string(), pa.decimal128(38, 18))),
        ]
    )  # fmt: skip
    local = dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
    number = uuid.UUID("12345678-1234-5678-1234-567812345678")
    row = {
        "id": 1, "n": Decimal("12345678901234567890.000000000000000001"), "m": Decimal("-0.05"),
        "at": NOW, "raw": b"\0\xff", "local": local, "u": number.bytes,
        "t": dt.time(23, 59, 59, 1), "b": b"abc", "deep": [[NOW, None], None],
        "where": {"x": [{"y": 0.5}, None]}, "us": [number.bytes, None],
        "tags": [("a", None), ("b", Decimal("1.5"))],
    }  # fmt: skip
    create(options, schema)
    plain = [f.with_type(pa.binary(16)) if f.name == "u" else f for f in schema]
    plain[11] = pa.field("us", pa.list_(pa.binary(16)))
    rows = pa.Table.from_pylist([row, {"id": 2}], schema=pa.schema(plain))
    table_of(options).append(
        pa.table(
            [rebuild(each, f.type, to_file_values) for each, f in zip(rows, schema, strict=True)],
            schema,
        )
    )
    made = source(options)
    found, offset = read(made)
    text = str(number)
    assert found[0] == {**row, "u": text, "t": "23:59:59.000001", "us": [text, None]}
    assert found[1] == {**dict.fromkeys(row), "id": 2}
    assert read(made, offset) == ([], offset)
    only = Read(frozenset({"id"}), metadata=("snapshot_id", "position", "origin", "path"))
    (first, second) = read(source(options), None, only)[0]
    assert (first["n"], first["position"], second["position"]) == (None, 1, 2)
    assert first["origin"] == first["path"] and first["snapshot_id"]


def test_nanoseconds(options: Any) -> None:
    """Checks a table of version 3, which PyIceberg does not write: its metadata are edited."""
    schema = Schema(
        it.NestedField(1, "id", it.LongType(), required=False),
        it.NestedField(2, "at", it.TimestamptzType(), required=False),
        it.NestedField(3, "x", it.LongType(), required=False),
    )
    create(options, schema)
    table_of(options).append(pa.table({"id": [1, 2], "at": pa.array([NOW, NOW], UTC)}))
    (task,) = table_of(options).scan().plan_files()
    times = pa.array([1_000, 1_001], pa.timestamp("ns", tz="UTC"))
    ids_of = [{b"PARQUET:field_id": str(number).encode()} for number in (1, 2)]
    fields = [
        pa.field("id", pa.int64(), True, ids_of[0]), pa.field("at", times.type, True, ids_of[1]),
    ]  # fmt: skip
    parquet.write_table(pa.table([[1, 2], times], pa.schema(fields)), task.file.file_path)
    path = Path(table_of(options).metadata_location)
    metadata = json.loads(path.read_text())
    metadata |= {"format-version": 3, "next-row-id": 2}
    metadata["schemas"][0]["fields"][1]["type"] = "timestamptz_ns"
    metadata["schemas"][0]["fields"][2]["initial-default"] = 7
    path.write_text(json.dumps(metadata))
    asked = Read()
    found, _ = read(source(options), None, asked)
    assert [(row["id"], row["x"]) for row in found] == [(1, 7)]
    assert [bad.error.code for bad in asked.bad] == ["wrong-type"]
    assert ids(read(source(options, nanoseconds="truncate"))[0]) == [1, 2]


@pytest.mark.slow
def test_appended_snapshots(options: Any) -> None:
    create(options)
    put(options, 1)
    put(options, 2)
    made = watched(options)
    rows, offset = read(made)
    assert ids(rows) == [1, 2] and made.lag(made.initial_offset(), offset) == 2
    assert read(made, offset) == ([], offset)
    third = put(options, 3)
    assert combine(access(options), 1 << 20) == Compacted(3, 1)
    put(options, 4)
    asked = Read(metadata=("sequence_number", "snapshot_id", "committed_at"))
    rows, offset = read(made, offset, asked)
    assert [(row["id"], row["sequence_number"]) for row in rows] == [(3, 3), (4, 5)]
    assert rows[0]["snapshot_id"] == third
    assert rows[0]["committed_at"] <= rows[1]["committed_at"] <= dt.datetime.now(dt.UTC)
    assert ids(read(source(options))[0]) == [1, 2, 3, 4]


def access(options: Any) -> TableAccess:
    return TableAccess.of(source(options).config)


def test_an_empty_table(options: Any) -> None:
    create(options)
    made = watched(options)
    rows, offset = read(made)
    assert rows == []
    put(options, 1)
    put(options, 2)
    rows, end = read(made, offset)
    assert ids(rows) == [1, 2] and ids(read(made, end)[0]) == []


@pytest.mark.slow
def test_one_snapshot(options: Any) -> None:
    create(options)
    numbers = [put(options, id_) for id_ in range(3)]
    made = source(options, snapshot=numbers[1])
    rows, offset = read(made)
    assert ids(rows) == [0, 1] and read(made, offset) == ([], offset)
    assert ids(read(watched(options, snapshot=numbers[1]))[0]) == [0, 1, 2]
    assert ids(read(source(options, snapshot="earliest"))[0]) == [0, 1, 2]
    assert source(options, snapshot="earliest").initial_offset()["snapshot"] == numbers[0]
    first = table_of(options).snapshots()[1].timestamp_ms
    time = dt.datetime.fromtimestamp(first / 1000, dt.UTC)
    for text in (time.isoformat(), time.replace(tzinfo=None).isoformat()):
        assert len(read(source(options, timestamp=text))[0]) >= 2
    with pytest.raises(OptionError, match="the table has no snapshot 7") as bad:
        source(options, snapshot=7).check()
    assert str(numbers[2]) in (bad.value.hint or "")
    with pytest.raises(OptionError, match="no snapshot at 2024-01-01"):
        source(options, timestamp="2024-01-01T00:00:00").check()
    with pytest.raises(ValueError, match="either snapshot or timestamp"):
        source(options, snapshot=3, timestamp="2024-01-01T00:00:00")
    for wrong in ("shop.order", "nowhere.orders"):
        with pytest.raises(OptionError, match=f'there is no table of Iceberg "{wrong}"'):
            source({**options, "table": wrong}).check()
    missing = {**options["catalog"], "path": f"{options['catalog']['path']}x"}
    with pytest.raises(OptionError, match="there is no table"):
        source(options, catalog=missing).check()
    assert not Path(missing["path"]).exists()


@pytest.mark.slow
def test_limits(options: Any) -> None:
    create(options)
    for id_ in range(3):
        put(options, id_)
    made: Any = source(options, max_files=2)
    start = made.initial_offset()
    put(options, 3)
    put(options, 4)
    end = made.latest_offset(start)
    steps, offset, found = [], start, []
    while offset != end:
        step = made.limit_batch(offset, end)
        steps.append(made.lag(offset, step))
        assert made.min_offset(step, offset) == offset != step
        made.columns = SIMPLE
        again = source(options)
        for part in again.partitions(offset, step):
            found += [row for batch in made.read(part, Read()) for row in batch.to_pylist()]
        offset = step
    assert steps == [2, 2, 1] and [row["id"] for row in found] == [0, 1, 2, 3, 4]
    assert made.lag(start, source(options, max_size="1 B").limit_batch(start, end)) == 1


@pytest.mark.slow
def test_changed_rows_are_an_error_without_changes(options: Any) -> None:
    create(options)
    put(options, 1, 2)
    made = source(options)
    _, offset = read(made)
    table_of(options).delete("id = 1")
    with pytest.raises(Permanent, match=r"removes or changes rows \(overwrite\)") as bad:
        read(made, offset)
    assert bad.value.code == "changed-rows" and "changes: true" in (bad.value.hint or "")
    assert ids(read(source(options))[0]) == [2]


@pytest.mark.slow
def test_changes(options: Any) -> None:
    create(options)
    put(options, 1, 2)
    put(options, 3)
    made = source(options, changes=True)
    made.primary_key = ("id",)
    assert made.carries_operations and made.has_complete_changes
    rows, offset = read(made)
    assert sorted((row["id"], row["_op"]) for row in rows) == [(1, "i"), (2, "i"), (3, "i")]
    table_of(options).delete("id = 1")
    put(options, 4)
    table_of(options).overwrite(pa.table({"id": [2], "s": ["x"]}, schema=SIMPLE), "id = 2")
    combine(access(options), 1 << 20)
    rows, end = read(made, offset)
    state: dict[int, str] = {1: "s1", 2: "s2", 3: "s3"}
    for row in rows:
        if row["_op"] == "d":
            assert state.pop(row["id"]) == row["s"]
        else:
            assert row["id"] not in state
            state[row["id"]] = row["s"]
    assert state == {2: "x", 3: "s3", 4: "s4"}
    limited = source(options, changes=True, max_files=1)
    step = limited.limit_batch(offset, end)
    assert step["file"] == 0 and step["version"] > offset["version"]


@pytest.mark.slow
def test_renamed_and_new_columns(options: Any) -> None:
    schema = pa.schema([("id", pa.int32()), ("s", pa.string()),
                        ("w", pa.struct([("a", pa.int32()), ("b", pa.string())]))])  # fmt: skip
    create(options, schema)
    table_of(options).append(pa.table({"id": [1], "s": ["x"], "w": [{"a": 5, "b": "y"}]}, schema))
    made = watched(options)
    _, offset = read(made)
    with table_of(options).update_schema() as update:
        update.rename_column("s", "renamed")
        update.rename_column("w.a", "c")
        update.update_column("id", it.LongType())
    with table_of(options).update_schema() as update:
        update.add_column(("s",), it.StringType())
        update.add_column(("w", "d"), it.StringType())
    new = table_of(options)
    new.append(pa.table({
        "id": [2**40], "w": [{"c": 6, "b": "z", "d": "d"}], "renamed": ["r"], "s": ["new"],
    }, schema=new.schema().as_arrow()))  # fmt: skip
    asked = Read()
    rows, _ = read(made, offset, asked)
    assert rows == [] and "1099511627776" in str(asked.bad[0].error)
    made.columns = columns_of(made).set(0, pa.field("id", pa.int64()))
    made.columns = pa.schema([("id", pa.int64()), *[schema.field(i) for i in (1, 2)]])
    rows, _ = read(made, offset)
    assert rows == [{"id": 2**40, "s": "r", "w": {"a": 6, "b": "z"}}]
    rows, _ = read(source(options))
    assert rows == [
        {"id": 1, "renamed": "x", "w": {"c": 5, "b": "y", "d": None}, "s": None},
        {"id": 2**40, "renamed": "r", "w": {"c": 6, "b": "z", "d": "d"}, "s": "new"},
    ]  # fmt: skip


@pytest.mark.slow
def test_files_of_other_writers(options: Any, tmp_path: Path) -> None:
    """Checks files without IDs, and without the columns of their partition."""
    table = create(options)
    with table.update_spec() as update:
        update.add_field("s", IdentityTransform(), "s")
    path = tmp_path / "old.parquet"
    parquet.write_table(pa.table({"id": pa.array([1], pa.int64())}), path)
    table = table_of(options)
    names = table.schema().name_mapping.model_dump_json()
    with table.transaction() as transaction:
        transaction.set_properties({"schema.name-mapping.default": names})
        with transaction.update_snapshot().fast_append() as snapshot:
            (file,) = parquet_files_to_data_files(table.io, table.metadata, iter([str(path)]))
            file.partition[0] = "hive"
            snapshot.append_data_file(file)
    assert read(source(options))[0] == [{"id": 1, "s": "hive"}]


@pytest.mark.slow
def test_expired_snapshots_and_removed_files(options: Any) -> None:
    create(options)
    numbers = [put(options, id_) for id_ in range(4)]
    made = watched(options, snapshot=numbers[0])
    made.columns = SIMPLE
    start = made.initial_offset()
    first = {**start, "version": 2, "last": numbers[0]}
    end = made.latest_offset(start)
    table_of(options).maintenance.expire_snapshots().by_ids(numbers[1:2]).commit()
    for call in (lambda: source(options).partitions(first, end), lambda: read(made, first)):
        with pytest.raises(Permanent, match="were expired before being read") as gone:
            call()
        assert gone.value.code == "data-gone"
    again = watched(options, snapshot=numbers[2], on_data_loss="continue", max_files=1)
    again.columns, asked = SIMPLE, Read()
    rows, _ = read(again, first, asked)
    assert ids(rows) == [2, 3] and [bad.error.code for bad in asked.bad] == ["data-gone"]
    step = again.limit_batch(first, end)
    assert again.lag(first, step) + again.lag(step, end) == 3
    for task in table_of(options).scan(row_filter="id = 3").plan_files():
        Path(task.file.file_path).unlink()
    asked = Read()
    assert ids(read(again, first, asked)[0]) == [2] and len(asked.bad) == 2
    with pytest.raises(Permanent, match="was removed before being read"):
        read(source(options))


@pytest.mark.slow
def test_tables_that_are_rolled_back_or_created_again(options: Any) -> None:
    create(options)
    numbers = [put(options, id_) for id_ in range(2)]
    made = watched(options)
    _, offset = read(made)
    table_of(options).manage_snapshots().rollback_to_snapshot(numbers[0]).commit()
    put(options, 7)
    with pytest.raises(Permanent, match="was rolled back behind the snapshot that was read last"):
        read(made, offset)
    client(options).drop_table(TABLE)
    create(options)
    with pytest.raises(Permanent, match="was deleted and created again"):
        read(made, offset)
    client(options).drop_table(TABLE)
    with pytest.raises(Permanent, match="was deleted"):
        read(made, offset)


class _Deletes(_FastAppendFiles):
    """A snapshot with a delete file, which PyIceberg does not write."""

    def _manifests(self) -> Any:
        (file,) = self._added_data_files
        with ManifestWriterV2(
            self.spec(0), self.schema(), self.new_manifest_output(), self._snapshot_id, "null"
        ) as writer:
            writer.content = lambda: ManifestContent.DELETES  # type: ignore[method-assign]
            writer.add(ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED, snapshot_id=self._snapshot_id,
                sequence_number=None, file_sequence_number=None, data_file=file,
            ))  # fmt: skip
        return [writer.to_manifest_file(), *self._existing_manifests()]


def add_deletes(options: Any, path: Path, rows: pa.Table, content: Any) -> None:
    parquet.write_table(rows, path)
    table = table_of(options)
    is_equality = content == DataFileContent.EQUALITY_DELETES
    file = DataFile.from_args(
        content=content, file_path=str(path), file_format=FileFormat.PARQUET, partition=Record(),
        record_count=rows.num_rows, file_size_in_bytes=path.stat().st_size,
        equality_ids=[1] if is_equality else None, lower_bounds={}, upper_bounds={},
    )  # fmt: skip
    file.spec_id = 0
    transaction = table.transaction()
    snapshot = _Deletes(Operation.DELETE, transaction, table.io)
    snapshot.append_data_file(file)
    snapshot.commit()
    transaction.commit_transaction()


@pytest.mark.slow
def test_position_deletes(options: Any, tmp_path: Path) -> None:
    create(options)
    put(options, 0, 1, 2, 3, 4)
    made = source(options, changes=True)
    _, offset = read(made)
    (task,) = table_of(options).scan().plan_files()
    rows = pa.table({"file_path": [task.file.file_path] * 2, "pos": pa.array([1, 3], pa.int64())})
    add_deletes(options, tmp_path / "d.parquet", rows, DataFileContent.POSITION_DELETES)
    found, _ = read(source(options), None, Read(metadata=("position",)))
    assert [(row["id"], row["position"]) for row in found] == [(0, 1), (2, 3), (4, 5)]
    with pytest.raises(Permanent, match="has changes as delete files"):
        read(made, offset)
    put(options, 5)
    assert combine(access(options), 1 << 20) == Compacted(2, 1)
    assert ids(read(source(options))[0]) == [0, 2, 4, 5]


@pytest.mark.slow
def test_equality_deletes_are_an_error(options: Any, tmp_path: Path) -> None:
    create(options)
    put(options, 1)
    rows = pa.table({"id": pa.array([1], pa.int64())})
    add_deletes(options, tmp_path / "d.parquet", rows, DataFileContent.EQUALITY_DELETES)
    for call in (lambda: read(source(options)), lambda: combine(access(options), 1 << 20)):
        with pytest.raises(Permanent, match="it has equality deletes") as bad:
            call()
        assert bad.value.code == "unsupported-table" and bad.value.hint


def test_unsupported_tables(options: Any) -> None:
    create(options, **{"format-version": "1"})
    with pytest.raises(Permanent, match="has version 1 of the format"):
        source(options).check()
