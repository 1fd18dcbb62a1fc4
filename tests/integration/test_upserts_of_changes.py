"""Sinks that upsert the same changes, compared with the events applied one after another."""

from __future__ import annotations

import json
import random
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest

import iceberg_tables
from change_events import interleaved, random_events
from database_tables import rows_of_table
from penstock import app
from penstock.connectors import memory
from penstock.connectors.clickhouse import ClickhouseSource
from penstock.connectors.duckdb import DuckdbSource
from penstock.connectors.mysql import MysqlSource
from penstock.connectors.postgres import PostgresSource
from penstock.connectors.sqlite import SqliteSource
from servers.clickhouse import ClickHouse
from servers.ferretdb import FerretDb
from servers.mariadb import MariaDb
from servers.postgres import Postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("number", pa.int64())])
Rows = list[tuple[Any, ...]]


def applied(events: list[dict[str, Any]]) -> Rows:
    """Applies events one after another. Returns the rows that are left."""
    table: dict[int, dict[str, Any]] = {}
    for event in events:
        if event.get("before") is not None:
            del table[event["before"]["id"]]
        if event.get("after") is not None:
            assert event["after"]["id"] not in table
            table[event["after"]["id"]] = event["after"]
    return sorted((row["id"], row["name"], row["number"]) for row in table.values())


def rows_of(sink: dict[str, Any], ferretdb: FerretDb, name: str) -> Rows:
    """Returns the rows of a target."""
    sources: dict[str, Any] = {
        "sqlite": SqliteSource, "duckdb": DuckdbSource, "postgres": PostgresSource,
        "mysql": MysqlSource, "clickhouse": ClickhouseSource,
    }  # fmt: skip
    kind = sink["type"]
    if kind in sources:
        options = {key: sink[key] for key in ("url", "auth", "path", "table") if key in sink}
        rows = rows_of_table(sources[kind], options, COLUMNS)
    elif kind == "delta":
        rows = deltalake.DeltaTable(sink["path"]).to_pyarrow_table().to_pylist()
    elif kind == "iceberg":
        rows = iceberg_tables.rows_of(sink, COLUMNS)
    elif kind == "mongodb":
        with closing(ferretdb.client()) as client:
            rows = [*client["shop"][sink["collection"]].find({}, {"_id": 0})]
    else:
        rows = memory.tables[name].to_pylist()
    return sorted(tuple(row[column] for column in COLUMNS.names) for row in rows)


def test_rows_that_take_over_keys(
    tmp_path: Path, penstock_spark: SparkSession, postgres: Postgres, mariadb: MariaDb,
    clickhouse: ClickHouse, ferretdb: FerretDb,
) -> None:  # fmt: skip
    """Rows move to keys that other rows have left, within a batch and between batches."""
    rng = random.Random(7)
    histories = [random_events(rng, 40, first) for first in range(0, 10_000, 1_000)]
    events = interleaved(rng, histories)
    source = {
        "type": "memory", "payloads": [json.dumps(each) for each in events], "batches": 3,
        "schema": "id BIGINT NOT NULL, name STRING, number BIGINT", "primary_key": "id",
        "format": "debezium_json", "partitions": 3,
    }  # fmt: skip
    marked, removed = clickhouse.new_table(), clickhouse.new_table()
    options: dict[str, dict[str, Any]] = {
        "sqlite": {"path": str(tmp_path / "db.sqlite"), "table": "t"},
        "duckdb": {"path": str(tmp_path / "db.duckdb"), "table": "t"},
        "postgres": {**postgres.login, "table": f"{postgres.new_schema()}.t"},
        "mysql": {**mariadb.login, "table": f"{mariadb.new_database()}.t"},
        "clickhouse": {**clickhouse.login, "table": marked},
        "clickhouse removed": {**clickhouse.login, "table": removed, "deletes": "remove"},
        "delta": {"path": str(tmp_path / "delta")},
        "iceberg": iceberg_tables.catalog_options(tmp_path),
        "mongodb": {**ferretdb.login, "collection": ferretdb.new_collection()},
        "memory": {"name": f"{tmp_path.name} copy"},
    }
    sinks = {
        name.replace(" ", "_"): {
            "type": name.split()[0], "from": "rows", "mode": "upsert", "primary_key": "id", **more
        }
        for name, more in options.items()
    }  # fmt: skip
    path = tmp_path / "copies.json"
    parts = {"sources": {"rows": source}, "sinks": sinks}
    state = {"runtime": {"state": str(tmp_path / "state")}}
    path.write_text(json.dumps({"name": "copies", **state, **parts}))
    outcome = app.run(app.plan(path), spark=penstock_spark.newSession())
    assert (outcome.ending, outcome.errors) == ("complete", {})
    expected = applied(events)
    for name, sink in sinks.items():
        assert rows_of(sink, ferretdb, f"{tmp_path.name} copy") == expected, name
