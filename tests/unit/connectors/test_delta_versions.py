"""Versions of tables of Delta Lake, written by another client and read without Spark."""

from __future__ import annotations

import base64
import datetime as dt
import json
import os
import string
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lake_tables import columns_of, read
from penstock.connectors.delta import DeltaSource
from penstock.core.errors import OptionError, Permanent
from penstock.sdk import Read

UTC = pa.timestamp("us", tz="UTC")
NOW = dt.datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=dt.UTC)
FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "a 'b?#%ü")


def source(path: str, **options: Any) -> DeltaSource:
    made = DeltaSource.create(DeltaSource.config_type.model_validate({"path": path, **options}))
    assert isinstance(made, DeltaSource)
    made.validate()
    return made


def put(path: str, *ids: int, mode: Any = "append", **options: Any) -> None:
    write_deltalake(path, pa.table({"id": ids, "s": [f"s{i}" for i in ids]}), mode=mode, **options)


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["id"] for row in rows)


def test_types_are_read_without_loss(path: str) -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()), ("b", pa.int8()), ("n", pa.decimal128(38, 18)), ("at", UTC),
            ("raw", pa.binary()), ("local", pa.timestamp("us")), ("deep", pa.list_(pa.list_(UTC))),
            ("where", pa.struct([("x", pa.list_(pa.struct([("y", pa.float32())])))])),
            ("tags", pa.map_(pa.string(), pa.decimal128(38, 18))),
            ("ps", pa.string()), ("pd", pa.date32()), ("pt", UTC), ("pn", pa.decimal128(38, 18)),
            ("pb", pa.bool_()), ("pl", pa.timestamp("us")), ("pi", pa.int16()),
        ]
    )  # fmt: skip
    local = dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
    row = {
        "id": 1, "b": -128, "n": Decimal("12345678901234567890.000000000000000001"), "at": NOW,
        "raw": b"\0\xff", "local": local, "deep": [[NOW, None], None],
        "where": {"x": [{"y": 0.5}, None]}, "tags": [("a", None), ("b", Decimal("1.5"))],
        "ps": "a/b=ü %20?'", "pd": dt.date(1, 1, 1), "pt": NOW, "pb": False, "pi": -1,
        "pn": Decimal("0.000000000000000001"), "pl": local,
    }  # fmt: skip
    rows = [row, {**dict.fromkeys(row), "id": 2}]
    names = [name for name in row if len(name) == 2 and name[0] == "p"]
    table = pa.Table.from_pylist(rows, schema=schema)
    write_deltalake(path, table, partition_by=names)
    made = source(path)
    found, offset = read(made)
    assert sorted(found, key=lambda each: each["id"]) == rows
    write_deltalake(path, table, mode="append")
    assert sorted(read(made, offset)[0], key=lambda each: each["id"]) == rows
    only = Read(frozenset({"id", "pi"}), metadata=("commit_version", "position", "origin"))
    (first, second) = sorted(read(made, offset, only)[0], key=lambda each: each["id"])
    assert (first["n"], first["pi"], first["commit_version"], first["position"]) == (None, -1, 1, 1)
    assert second["origin"].startswith(f"{path}/ps=")


def test_appended_versions(path: str) -> None:
    put(path, 1)
    put(path, 2)
    made = source(path, watch=True, interval="1ms")
    rows, offset = read(made)
    assert ids(rows) == [1, 2] and made.lag(made.initial_offset(), offset) == 2
    assert read(made, offset) == ([], offset)
    put(path, 3)
    DeltaTable(path).optimize.compact()
    DeltaTable(path).alter.add_columns([_field("new")])
    put(path, 4, schema_mode="merge")
    asked = Read(metadata=("commit_version", "commit_timestamp", "path"))
    rows, offset = read(made, offset, asked)
    assert [(row["id"], row["commit_version"]) for row in rows] == [(3, 2), (4, 5)]
    log = Path(path, "_delta_log", f"{2:020d}.json").read_text().splitlines()
    (time,) = [json.loads(line)["commitInfo"]["timestamp"] for line in log if "commitInfo" in line]
    assert rows[0]["commit_timestamp"].timestamp() * 1000 == pytest.approx(time)
    made.columns = columns_of(source(path))
    assert [row["new"] for row in read(made)[0]] == [None] * 4
    made.columns = pa.schema([("new", pa.int64())])
    assert read(source(path))[0] and read(made)[0] == [{"new": None}] * 4


def _field(name: str) -> Any:
    from deltalake import Field
    from deltalake.schema import PrimitiveType

    return Field(name, PrimitiveType("integer"), nullable=True)


def test_one_version(path: str) -> None:
    for id_ in range(3):
        put(path, id_)
    made = source(path, version=1)
    rows, offset = read(made)
    assert ids(rows) == [0, 1] and read(made, offset) == ([], offset)
    followed = source(path, version=1, watch=True, interval="1ms")
    assert ids(read(followed)[0]) == [0, 1, 2]
    time = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
    for version in range(3):  # The time of a version is that of its file.
        seconds = time.timestamp() + 10 * (version - 1)
        os.utime(Path(path, "_delta_log", f"{version:020d}.json"), (seconds, seconds))
    for text in (time.isoformat(), time.replace(tzinfo=None).isoformat()):
        assert ids(read(source(path, timestamp=text))[0]) == [0, 1]
    before = time - dt.timedelta(seconds=10, milliseconds=1)
    with pytest.raises(OptionError, match=r"has no version at 2024-04-30T23:59:49\.999") as early:
        source(path, timestamp=before.isoformat()).initial_offset()
    assert early.value.option == ("timestamp",)
    assert "2024-04-30T23:59:50.000+00:00 or later" in str(early.value.hint)
    assert ids(read(source(path, timestamp="2024-04-30T23:59:50Z"))[0]) == [0]
    with pytest.raises(OptionError, match="the last version of the table is 2"):
        source(path, version=3).check()
    with pytest.raises(ValueError, match="either version or timestamp"):
        source(path, version=3, timestamp="2024-01-01T00:00:00")
    with pytest.raises(OptionError, match="there is no table of Delta Lake at"):
        source(f"{path}x").check()


def test_limits(path: str) -> None:
    for id_ in range(3):
        put(path, id_)
    made = source(path, max_files=2)
    start = made.initial_offset()
    put(path, 3)
    put(path, 4)
    end = made.latest_offset(start)
    steps, offset = [], start
    while offset != end:
        step = made.limit_batch(offset, end)
        steps.append(made.lag(offset, step))
        assert made.min_offset(step, offset) == offset != step
        offset = step
    assert steps == [2, 2, 1]
    assert made.lag(start, source(path, max_size="1 B").limit_batch(start, end)) == 1


def test_changed_rows_are_an_error_without_changes(path: str) -> None:
    put(path, 1, 2)
    made = source(path)
    _, offset = read(made)
    DeltaTable(path).delete("id = 1")
    with pytest.raises(Permanent, match=r"version 1 .* removes or changes rows \(DELETE\)") as bad:
        read(made, offset)
    assert bad.value.code == "changed-rows" and "changes: true" in (bad.value.hint or "")
    assert [row["id"] for row in read(source(path))[0]] == [2]


@pytest.mark.parametrize(("feed", "partitions"), [(True, []), (True, ["s"]), (False, ["s"])])
def test_changes(path: str, feed: bool, partitions: list[str]) -> None:
    options = {"partition_by": partitions} if partitions else {}
    put(path, 1, 2, 3, configuration=FEED if feed else {}, **options)
    made = source(path, changes=True)
    made.primary_key = ("id",)
    assert made.carries_operations and made.has_complete_changes
    rows, offset = read(made)
    assert sorted((row["id"], row["_op"]) for row in rows) == [(1, "i"), (2, "i"), (3, "i")]
    table = DeltaTable(path)
    table.update(updates={"s": "'x'"}, predicate="id = 2")
    table.delete("id = 1")
    put(path, 4)
    merged = pa.table({"id": [3, 5], "s": ["y", "z"]})
    merge = DeltaTable(path).merge(merged, "t.id = s.id", "s", "t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    put(path, 6, mode="overwrite")
    rows, end = read(made, offset, Read(metadata=("commit_version",)))
    if feed:
        found = [(row["commit_version"], row["_op"], row["id"], row["s"]) for row in rows[:7]]
        assert found[:4] == [
            (1, "ub", 2, "s2"), (1, "u", 2, "x"), (2, "d", 1, "s1"), (3, "i", 4, "s4"),
        ]  # fmt: skip
        assert sorted(found[4:]) == [(4, "i", 5, "z"), (4, "u", 3, "y"), (4, "ub", 3, "s3")]
        assert found[4][1] == "ub"
    state: dict[int, str] = {1: "s1", 2: "s2", 3: "s3"}
    for row in rows:
        if row["_op"] in ("d", "ub"):
            assert state.pop(row["id"]) == row["s"]
        else:
            assert row["id"] not in state
            state[row["id"]] = row["s"]
    assert state == {6: "s6"}
    limited = source(path, changes=True, max_files=1)
    step = limited.limit_batch(offset, end)
    assert step["version"] == 2 and step["file"] == 0


def test_removed_versions_and_files(path: str) -> None:
    for id_ in range(4):
        put(path, id_)
    made = source(path, version=0, watch=True, interval="1ms")
    _, end = read(made)
    start = {**end, "version": 1}
    names = [*DeltaTable(path).get_add_actions().column("path").to_pylist()]
    Path(path, names[1]).unlink()
    with pytest.raises(Permanent, match="was removed before being read") as gone:
        read(made, start)
    assert gone.value.code == "data-gone"
    DeltaTable(path).create_checkpoint()
    Path(path, "_delta_log", f"{2:020d}.json").unlink()
    again = source(path, version=0, watch=True, on_data_loss="continue")
    again.columns, asked = made.columns, Read()
    rows, _ = read(again, start, asked)
    assert len(rows) + len(asked.bad) == 3 and 3 > len(rows) > 0
    assert {bad.error.code for bad in asked.bad} == {"data-gone"}
    with pytest.raises(Permanent, match=r"version 2 of .* was removed"):
        source(path).partitions(start, end)


def test_a_table_that_is_created_again(path: str, tmp_path: Path) -> None:
    put(path, 1)
    made = source(path, watch=True, interval="1ms")
    _, offset = read(made)
    Path(path).rename(tmp_path / "old")
    for _ in range(3):
        put(path, 2)
    with pytest.raises(Permanent, match="was deleted and created again"):
        read(source(path), offset)
    Path(path).rename(tmp_path / "older")
    with pytest.raises(Permanent, match="was deleted"):
        source(path).latest_offset(offset)


def deletion_vector(*rows: int) -> dict[str, Any]:
    """Returns the deletion vector of rows: a Roaring bitmap within the log."""
    data = struct.pack("<IQI", 1681511377, 1, 0)
    data += struct.pack("<IIHHI", 12346, 1, 0, len(rows) - 1, 16)
    data += struct.pack(f"<{len(rows)}H", *rows)
    digits, letters = string.digits, string.ascii_lowercase + string.ascii_uppercase
    b85 = digits + string.ascii_uppercase + string.ascii_lowercase + "!#$%&()*+-;<=>?@^_`{|}~"
    z85 = digits + letters + ".-:+=^!/*?&<>()[]{}@%$#"
    text = base64.b85encode(data + bytes(-len(data) % 4)).decode()
    return {
        "storageType": "i", "pathOrInlineDv": text.translate(str.maketrans(b85, z85)),
        "sizeInBytes": len(data), "cardinality": len(rows),
    }  # fmt: skip


def test_deletion_vectors(path: str) -> None:
    table = pa.table({"id": range(5), "p": ["a b"] * 5})
    write_deltalake(path, table, partition_by=["p"])
    lines = Path(path, "_delta_log", f"{0:020d}.json").read_text().splitlines()
    (add,) = [action["add"] for action in map(json.loads, lines) if "add" in action]
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    actions = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {"remove": {**add, "deletionTimestamp": 1}},
        {"add": {**add, "deletionVector": deletion_vector(1, 3)}},
    ]
    text = "\n".join(map(json.dumps, actions))
    Path(path, "_delta_log", f"{1:020d}.json").write_text(text)
    rows, _ = read(source(path), asked=Read(metadata=("position",)))
    assert [(row["id"], row["position"]) for row in rows] == [(0, 1), (2, 3), (4, 5)]
    first = read(source(path, version=0, changes=True))
    with pytest.raises(Permanent, match="changes as deletion vectors"):
        read(source(path, changes=True), first[1])


def test_unsupported_tables(path: str) -> None:
    put(path, 1)
    made = source(path, watch=True, interval="1ms")
    _, offset = read(made)
    vector = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    add = {
        "path": "x", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True,
        "deletionVector": vector,
    }  # fmt: skip
    Path(path, "_delta_log", f"{1:020d}.json").write_text(json.dumps({"add": add}))
    with pytest.raises(Permanent, match="changes as deletion vectors"):
        made.partitions(offset, {**offset, "version": 2})
