"""State moves to RocksDB, or is repartitioned, between two batches, and no row is lost."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pipelines import Row, Workspace, dump

from penstock.engine.checkpoints.offset_log import OffsetLog, last_number
from penstock.engine.checkpoints.state_partitions import StatePartitions
from penstock.engine.checkpoints.state_store import StateStore
from penstock.plan.model import Query
from penstock.runtime import state_stores
from penstock.runtime.handle import RunHandle
from penstock.runtime.state_stores import StateStores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MOVED = "state moved to RocksDB"
UNTIL = "caught_up"
FILES = 3
"""The number of files of all runs: a batch of each."""
SOURCES = """\
name: p
runtime: {partitions: 2}
sources:
  orders:
    type: files
    path: orders/*.jsonl
    order: name
    max_files: 1
    watch: true
    schema: id LONG, city STRING, at TIMESTAMP
    watermark: {column: at, delay: 10 minutes}
  payments:
    type: files
    path: payments/*.jsonl
    order: name
    max_files: 1
    watch: true
    schema: order_id LONG, paid TIMESTAMP
    watermark: {column: paid, delay: 10 minutes}
"""
QUERIES = {
    "hourly": "SELECT window.start AS hour, city, count(*) AS n, collect_list(id) AS ids "
    "FROM orders GROUP BY window(at, '1 hour'), city",
    "sessions": "SELECT session_window.start AS start, city, count(*) AS n "
    "FROM orders GROUP BY session_window(at, '20 minutes'), city",
    "paid": "SELECT id, city, paid FROM orders LEFT JOIN payments "
    "ON id = order_id AND paid BETWEEN at AND at + INTERVAL 30 minutes",
}
NAMES = (*QUERIES, "cities", "recent")
TRANSFORMS = "transforms:\n" + "".join(
    f"  {name}: {{type: sql, sql: {json.dumps(sql)}}}\n" for name, sql in QUERIES.items()
)
PIPELINE = (
    f"{SOURCES}{TRANSFORMS}"
    "  cities: {type: dedupe, from: orders, keys: [city], within: forever}\n"
    "  recent: {type: dedupe, from: orders, keys: [city], within: 1 hour}\n"
    "sinks:\n" + "".join(f"  {name}_out: {{type: memory, from: {name}}}\n" for name in NAMES)
)
NESTED = (
    "SELECT n, count(*) AS cities FROM (SELECT city, count(*) AS n FROM orders GROUP BY city) t "
    "GROUP BY n"
)
TOTALS = f"transforms:\n  totals: {{type: sql, sql: {json.dumps(NESTED)}}}\n"
TOTALS_SINK = "sinks:\n  totals_out: {type: memory, from: totals, mode: upsert}\n"


def time_of(minute: int) -> datetime:
    return datetime(2026, 3, 1, minute // 60, minute % 60, tzinfo=UTC)


def put(workspace: Workspace, first: int, last: int) -> None:
    """Writes the files of these numbers, each with an hour of orders and payments."""
    for number in range(first, last):
        ids = range(number * 12, number * 12 + 12)
        orders = [{"id": i, "city": "abcdefg"[i % 7], "at": time_of(i * 5)} for i in ids]
        payments = [{"order_id": i, "paid": time_of(i * 5 + 7)} for i in ids if i % 3]
        workspace.put(f"payments/{number}.jsonl", map(dump, payments))
        workspace.put(f"orders/{number}.jsonl", map(dump, orders))


def results(workspace: Workspace) -> dict[str, list[Row]]:
    names = [f"{name}_out" for name in NAMES]
    return {n: sorted(workspace.result(n).to_dicts(), key=str) for n in names}


def in_memory(workspace: Workspace) -> set[bool]:
    """Returns whether the states of the queries are in memory."""
    checkpoints = (workspace.root / ".penstock/p/checkpoints").iterdir()
    return {StateStore(path).in_memory for path in checkpoints}


def events(handle: RunHandle, name: str) -> list[Mapping[str, Any]]:
    """Returns the facts of the events of a run that has ended."""
    assert handle.wait(600) is not None
    return [event.facts for event in handle.events() if event.name == name]


def expected() -> dict[str, list[Row]]:
    """Returns the results of all files. The watermark of the orders is 02:45."""
    orders = [{"id": i, "city": "abcdefg"[i % 7], "at": time_of(i * 5)} for i in range(FILES * 12)]
    groups = [
        [i for i in range(h * 12, h * 12 + 12) if i % 7 == c] for h in range(2) for c in range(7)
    ]
    found: dict[str, list[Row]] = {
        "hourly": [{"hour": time_of(ids[0] // 12 * 60), "city": orders[ids[0]]["city"],
                    "n": len(ids), "ids": ids} for ids in groups],
        "sessions": [{"start": each["at"], "city": each["city"], "n": 1} for each in orders[:30]],
        "paid": [{"id": i, "city": each["city"], "paid": time_of(i * 5 + 7) if i % 3 else None}
                 for i, each in enumerate(orders) if i % 3 or i < 27],
        "cities": orders[:7],
        "recent": [each for i, each in enumerate(orders) if i // 7 % 2 == 0],
    }  # fmt: skip
    return {f"{name}_out": sorted(rows, key=str) for name, rows in found.items()}


def test_state_moves_after_a_failed_move(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash after the files of RocksDB are complete, and before Spark reads them."""

    def crash(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(state_stores, "HEAP_SHARE", 1e-9)
    put(workspace, 0, 1)
    with monkeypatch.context() as crashing:
        crashing.setattr(OffsetLog, "replace_setting", crash)
        handle = workspace.start(PIPELINE, until=UNTIL)
        assert events(handle, "state stays in memory")
    assert in_memory(workspace) == {True}
    put(workspace, 1, FILES)
    check = StateStores.check

    begun: list[str] = []
    smallest = {"recent", "cities"}

    def is_next(self: StateStores, name: str) -> bool:
        """Returns whether the larger states have moved, and the size of this one is known."""
        sizes = {
            each: found.state_bytes
            for each, found in dict(self._metrics.progress).items()
            if found.state_bytes and self._can_move(each)
        }
        if begun.count(name) == 1 or name in self._immovable:
            return True
        others = name not in smallest or self._immovable.issuperset({*NAMES} - smallest)
        return others and sizes.get(name) == max(sizes.values(), default=0)

    def check_after_others(self: StateStores, query: Query) -> None:
        """The smallest states move last. A query of short batches would end before its move."""
        begun.append(query.name)
        deadline = time.monotonic() + 60
        while not is_next(self, query.name):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        check(self, query)

    monkeypatch.setattr(StateStores, "check", check_after_others)
    moves = events(workspace.start(PIPELINE, until=UNTIL), MOVED)
    assert {move["query"] for move in moves} == set(NAMES)
    assert any(move["rows"] > 0 for move in moves)
    assert in_memory(workspace) == {False}
    assert results(workspace) == expected()


def test_state_is_repartitioned(workspace: Workspace, penstock_spark: SparkSession) -> None:
    """One query was killed in an earlier repartitioning, and another one in a batch."""
    put(workspace, 0, 2)
    pipeline = PIPELINE.replace("transforms:\n", TOTALS).replace("sinks:\n", TOTALS_SINK)
    rocksdb = pipeline.replace("partitions: 2", "partitions: 2, state_store: rocksdb")
    workspace.run(rocksdb, until=UNTIL)
    checkpoints = workspace.root / ".penstock/p/checkpoints"
    hourly, sessions = StatePartitions(checkpoints / "hourly"), checkpoints / "sessions/commits"
    hourly.repartition(penstock_spark, 4)
    (checkpoints / f"hourly/commits/{hourly.committed}").unlink()
    (sessions / f"{last_number(sessions)}").unlink()
    assert hourly.interrupted
    put(workspace, 2, FILES)
    handle = workspace.start(pipeline.replace("partitions: 2", "partitions: 3"), until=UNTIL)
    found = events(handle, "state repartitioned")
    done = [(each["query"], each["before"], each["partitions"]) for each in found]
    others = [(name, 2, 3) for name in ("cities", "orders_changes", "paid", "recent", "sessions")]
    assert sorted(done) == sorted([("hourly", 4, 4), ("hourly", 4, 3), *others])
    assert results(workspace) == expected()
    totals = {row["n"]: row["cities"] for row in workspace.result("totals_out").to_dicts()}
    assert totals == {5: 6, 6: 1}
    for path in checkpoints.iterdir():
        assert StatePartitions(path).number == 3
        assert path.name == "orders_changes" or (path / "state/0/2").exists()
