"""Upserts into tables with a unique index beside the primary key, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.connectors.duckdb import DuckdbSink
from penstock.connectors.jdbc import JdbcSink
from penstock.connectors.postgres import PostgresSink
from penstock.connectors.sqlite import SqliteSink
from penstock.core.errors import Permanent
from penstock.sdk import BatchId, Context
from servers.drivers import MARIADB, driver
from servers.mariadb import MariaDb
from servers.postgres import Postgres

COLUMNS = pa.schema([("id", pa.int64()), ("u", pa.string())])
START = [(1, "x", "i"), (2, "y", "i")]
Change = tuple[int, str | None, str]


UNIQUE, DEFERRED = "UNIQUE", "UNIQUE DEFERRABLE INITIALLY DEFERRED"
TABLES = [
    (SqliteSink, UNIQUE), (DuckdbSink, UNIQUE), (PostgresSink, UNIQUE), (PostgresSink, DEFERRED)
]  # fmt: skip


@pytest.fixture(params=TABLES, ids=["sqlite", "duckdb", "postgres", "deferred"])
def apply(request: Any, tmp_path: Path) -> Callable[..., Any]:
    """Returns a function that writes batches to a new table and returns rows and dead letters."""
    target = {"path": str(tmp_path / "db"), "table": "t"}
    component, constraint = request.param
    if component is PostgresSink:
        postgres: Postgres = request.getfixturevalue("postgres")
        target = {**postgres.login, "table": f"{postgres.new_schema()}.t"}
    config = component.config_type.model_validate(target)
    sink = component.create(config, Context("pipeline", "out"))
    sink.primary_key, sink.mode = ("id",), "upsert"
    with closing(sink.connect()) as connection:
        table = connection.dialect.table(sink.table)
        columns = f"id BIGINT PRIMARY KEY, u VARCHAR {constraint}"
        connection.execute(f"CREATE TABLE {table} ({columns})")
        connection.commit()
    sink.prepare(COLUMNS)

    def apply(*batches: Sequence[Change]) -> tuple[list[Any], list[Change]]:
        rejected: list[Change] = []
        with closing(sink.open()) as client:
            for number, changes in enumerate([START, *batches]):
                batch = BatchId("query", number)
                writer = sink.writer(client, batch, 0, COLUMNS)
                ids, texts, operations = zip(*changes, strict=True)
                rows = pa.record_batch([pa.array(ids), pa.array(texts)], schema=COLUMNS)
                failures = writer.write(rows, None, pa.array(operations))
                assert all(failure.error.code == "rejected" for failure in failures)
                rejected += sorted(changes[failure.index] for failure in failures)
                sink.commit(batch, [writer.commit()])
            return [*map(tuple, client.query(f"SELECT * FROM {table} ORDER BY id"))], rejected

    return apply


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([(1, "z", "u"), (3, "x", "i")], [(1, "z"), (2, "y"), (3, "x")]),
        ([(1, "y", "u"), (2, "z", "u"), (3, "x", "i")], [(1, "y"), (2, "z"), (3, "x")]),
        ([(3, "x", "i"), (1, None, "d")], [(2, "y"), (3, "x")]),
        ([(4, "x", "i"), (1, "y", "u"), (2, "z", "u")], [(1, "y"), (2, "z"), (4, "x")]),
        ([(3, "x", "i"), (1, "z", "u")], [(1, "z"), (2, "y"), (3, "x")]),
    ],
    ids=["freed before", "chain", "deleted later", "chain from its end", "freed later"],
)
def test_a_row_takes_the_value_of_another(
    changes: list[Change], expected: list[Any], apply: Callable[..., Any]
) -> None:
    """The last operations of the keys of a batch may have any order."""
    assert apply(changes) == (expected, [])


def test_values_that_are_freed_in_batches(apply: Callable[..., Any]) -> None:
    batches = ([(1, "z", "u")], [(2, "x", "u")], [(1, None, "d")], [(3, "z", "i")])
    assert apply(*batches) == ([(2, "x"), (3, "z")], [])


@pytest.mark.parametrize(
    ("changes", "rejected"),
    [
        ([(3, "x", "i"), (4, "w", "i")], [(3, "x", "i")]),
        ([(2, "x", "u"), (4, "w", "i")], [(2, "x", "u")]),
    ],
    ids=["insert", "update"],
)
def test_a_value_that_another_row_has(
    changes: list[Change], rejected: list[Change], apply: Callable[..., Any]
) -> None:
    """The row is a dead letter, and no row of the table is lost."""
    assert apply(changes) == ([(1, "x"), (2, "y"), (4, "w")], rejected)


def test_rows_that_exchange_their_values(request: Any, apply: Callable[..., Any]) -> None:
    """No order of the two upserts is valid where the constraint applies to each row."""
    changes = [(1, "y", "u"), (2, "x", "u"), (4, "w", "i")]
    expected: Any = ([(1, "x"), (2, "y"), (4, "w")], changes[:2])
    if request.node.callspec.params["apply"] in [(DuckdbSink, UNIQUE), (PostgresSink, DEFERRED)]:
        expected = ([(1, "y"), (2, "x"), (4, "w")], [])
    assert apply(changes) == expected


def test_two_rows_with_one_value(apply: Callable[..., Any]) -> None:
    rows, rejected = apply([(3, "w", "i"), (4, "w", "i")])
    assert len(rows) == 3 and len(rejected) == 1


def test_a_statement_that_would_replace_the_other_row(mariadb: MariaDb) -> None:
    """MySQL and MariaDB replace the row that any unique index finds. By `mysql` see its tests."""
    database = mariadb.new_database()
    with mariadb.client(database=database) as client, client.cursor() as cursor:
        cursor.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, u VARCHAR(9) UNIQUE)")
    target = {
        "url": f"jdbc:mariadb://127.0.0.1:{mariadb.port}/{database}", "jars": [driver(MARIADB)],
        "auth": mariadb.login["auth"], "table": "t",
    }  # fmt: skip
    sink = JdbcSink(JdbcSink.config_type.model_validate(target), Context("pipeline", "out"))
    sink.primary_key, sink.mode = ("id",), "upsert"
    with pytest.raises(Permanent, match="unique index on u beside the primary key id") as caught:
        sink.prepare(COLUMNS)
    assert caught.value.code == "other-unique-index"
    sink.mode = "append"
    sink.prepare(COLUMNS)
