"""Rows from the pipeline file and rows kept in the process."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors import memory
from penstock.connectors.memory.sink import MemorySinkConfig
from penstock.connectors.memory.source import MemorySourceConfig
from penstock.core.errors import UserError
from penstock.sdk import BatchId, Context, Read


@pytest.fixture(autouse=True)
def _clean() -> Any:
    memory.clear()
    yield
    memory.clear()


def source(**options: Any) -> memory.MemorySource:
    return memory.MemorySource(MemorySourceConfig.model_validate(options), Context(node="in"))


def read(of: memory.MemorySource, request: Read | None = None) -> list[Any]:
    start = of.initial_offset()
    return [
        row
        for part in of.partitions(start, of.latest_offset(start))
        for batch in of.read(part, request or Read())
        for row in batch.to_pylist()
    ]


def test_the_schema_of_rows() -> None:
    made = source(rows=[{"a": 1}, {"b": "x", "a": None}, {"t": dt.datetime(2024, 1, 1), "n": None}])
    assert made.schema() == pa.schema(
        [
            ("a", pa.int64()),
            ("b", pa.string()),
            ("t", pa.timestamp("us", tz="UTC")),
            ("n", pa.string()),
        ]
    )
    with pytest.raises(UserError, match="different types"):
        source(rows=[{"a": 1}, {"a": "x"}]).schema()


def test_declared_columns() -> None:
    made = source(rows=[{"at": "2024-01-02T03:04:05Z", "d": "2024-01-02", "n": "7", "p": "1.50"}])
    made.columns = pa.schema(
        [
            ("at", pa.timestamp("us", tz="UTC")), ("d", pa.date32()), ("n", pa.int32()),
            ("p", pa.decimal128(10, 2)), ("missing", pa.string()),
        ]
    )  # fmt: skip
    (row,) = read(made)
    assert row["at"].isoformat() == "2024-01-02T03:04:05+00:00"
    assert (str(row["d"]), row["n"], str(row["p"]), row["missing"]) == (
        "2024-01-02",
        7,
        "1.50",
        None,
    )


def test_a_row_that_does_not_fit_is_a_bad_record() -> None:
    made = source(rows=[{"a": 1}, {"a": "x"}, {"a": 3}])
    made.columns = pa.schema([("a", pa.int64())])
    request = Read(metadata=("position",))
    assert read(made, request) == [{"a": 1, "position": 1}, {"a": 3, "position": 3}]
    (bad,) = request.bad
    assert (bad.payload, bad.origin, bad.position) == (b'{"a": "x"}', "in", 2)


def test_rows_or_payloads() -> None:
    for options in ({}, {"rows": [], "payloads": []}):
        with pytest.raises(ValueError, match="either rows or payloads"):
            MemorySourceConfig.model_validate(options)


def sink(**options: Any) -> memory.MemorySink:
    return memory.MemorySink(MemorySinkConfig.model_validate(options), Context(node="out"))


def write(to: memory.MemorySink, number: int, *ids: int, query: str = "q") -> None:
    schema = pa.schema([("id", pa.int64())])
    writer = to.writer(None, BatchId(query, number), 0, schema)
    writer.write(pa.record_batch([list(ids)], schema=schema))
    to.commit(BatchId(query, number), [writer.commit()])


def test_the_table_is_named_after_the_node() -> None:
    write(sink(), 0, 1, 2)
    write(sink(), 0, 1, 2)
    write(sink(), 1, 3)
    assert memory.tables["out"].column("id").to_pylist() == [1, 2, 3]


def test_only_the_newest_rows_are_kept() -> None:
    kept = sink(max_records=3, name="last")
    for number in range(5):
        write(kept, number, number * 2, number * 2 + 1)
        write(kept, number, 99)
    assert memory.tables["last"].column("id").to_pylist() == [7, 8, 9]


def change(to: memory.MemorySink, number: int, rows: dict[int, str], *operations: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    batch = pa.record_batch([list(rows), list(rows.values())], schema=schema)
    writer = to.writer(None, BatchId("q", number), 0, schema)
    writer.write(batch, None, pa.array(operations) if operations else None)
    for _ in range(2):
        to.commit(BatchId("q", number), [writer.commit()])


def test_an_upsert_replaces_and_deletes_rows_by_key() -> None:
    upserts = sink(name="changed")
    upserts.mode, upserts.primary_key = "upsert", ("id",)
    change(upserts, 0, {1: "a", 2: "b", 3: "c"})
    change(upserts, 1, {2: "", 1: "a2", 4: "d"}, "d", "u", "i")
    change(upserts, 2, {4: ""}, "d")
    table = memory.tables["changed"]
    assert table.column_names == ["id", "name"]
    assert {row["id"]: row["name"] for row in table.to_pylist()} == {1: "a2", 3: "c"}
    change(upserts, 3, {1: "", 3: ""}, "d", "d")
    assert memory.tables["changed"].num_rows == 0


def test_a_replacing_batch_is_the_whole_table() -> None:
    replaces = sink(name="replaced")
    replaces.mode = "replace"
    change(replaces, 0, {1: "a", 2: "b"})
    change(replaces, 1, {3: "c"})
    assert memory.tables["replaced"].to_pylist() == [{"id": 3, "name": "c"}]


def test_an_upsert_by_a_struct_replaces_rows() -> None:
    upserts = sink(name="changed")
    upserts.mode, upserts.primary_key = "upsert", ("key",)
    for number, value in enumerate(("a", "b")):
        keys = [{"x": [1], "y": {"z": None}}, {"x": [number], "y": {"z": "c"}}]
        rows = pa.RecordBatch.from_pylist([{"key": key, "value": value} for key in keys])
        writer = upserts.writer(None, BatchId("q", number), 0, rows.schema)
        writer.write(rows)
        upserts.commit(BatchId("q", number), [writer.commit()])
    values = memory.tables["changed"].column("value").to_pylist()
    assert values == ["a", "b", "b"]
