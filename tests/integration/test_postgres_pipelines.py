"""Pipelines from the changes of PostgreSQL to tables of databases."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

from pipelines import Workspace

from servers.postgres import PASSWORD, USER, Postgres

PIPELINE = """\
name: shop
connections:
  db:
    url: {url}
    auth: {{username: {user}, password: "${{SHOP_PASSWORD}}"}}
sources:
  orders: {{type: postgres, connection: db, table: {schema}.orders, changes: true, slot: {schema}}}
transforms:
  totals:
    type: sql
    sql: >
      SELECT customer, count(*) AS orders, sum(amount) AS total FROM orders GROUP BY customer
sinks:
  copy: {{type: sqlite, from: orders, path: shop.db, table: orders, mode: upsert}}
  totals_table:
    type: postgres
    connection: db
    from: totals
    table: {schema}.totals
    mode: upsert
    primary_key: [customer]
  maintained_totals:
    type: postgres_aggregate
    connection: db
    from: orders
    table: {schema}.landed_orders
    mode: upsert
    aggregate_table: {schema}.maintained_totals
    group_by: [customer]
    aggregates: {{orders: {{function: count}}, total: {{function: sum, column: amount}}}}
"""
OTHER_TABLE = """\
  customers:
    {{type: postgres, connection: db, table: {schema}.customers, changes: true, slot: {schema}}}
transforms:"""
TOTALS = "SELECT customer, count(*), sum(amount) FROM orders GROUP BY customer ORDER BY customer"


def test_changes_become_a_copy_and_totals(
    postgres: Postgres, workspace: Workspace, monkeypatch: Any
) -> None:
    """Updates and deletes during a run and between runs reach both tables."""
    schema = postgres.new_schema()
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    text = PIPELINE.format(url=postgres.login["url"], user=USER, schema=schema)
    with postgres.client(options=f"-c search_path={schema}") as db:
        db.execute("CREATE TABLE orders (id int PRIMARY KEY, customer text, amount numeric(10, 2))")
        db.execute("INSERT INTO orders SELECT n, 'c' || n % 5, n FROM generate_series(1, 500) n")
        for part in range(2):
            handle = workspace.start(text)
            if part == 0:
                _until(lambda: _copied(workspace) == _orders(db), handle)
            db.execute("UPDATE orders SET amount = amount + 0.5 WHERE id % 3 = 0")
            db.execute("UPDATE orders SET customer = 'c9', id = -id WHERE id % 50 = 0")
            db.execute("DELETE FROM orders WHERE id %% 7 = %s", (part,))
            _until(
                lambda: (
                    _copied(workspace) == _orders(db)
                    and _totals(db) == db.execute(TOTALS).fetchall()
                    and _totals(db, "maintained_totals") == _totals(db)
                ),
                handle,
            )
            handle.stop()
            outcome = handle.wait(60)
            assert outcome is not None and outcome.errors == {}
            db.execute("INSERT INTO orders VALUES (1000 + %s, 'between', 7)", (part,))
        db.execute("SELECT pg_drop_replication_slot(%s)", (schema,))


def test_a_snapshot_larger_than_the_journal(
    postgres: Postgres, workspace: Workspace, monkeypatch: Any
) -> None:
    """A run until the source has caught up reads the journal while it is filled."""
    schema = postgres.new_schema()
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    text = PIPELINE.format(url=postgres.login["url"], user=USER, schema=schema)
    text = text[: text.index("transforms:")] + text[text.index("sinks:") : text.index("  totals_")]
    text = text.replace("changes: true", "changes: true, journal: {max_size: 1MiB}")
    with postgres.client(options=f"-c search_path={schema}") as db:
        db.execute("CREATE TABLE orders (id int PRIMARY KEY, customer text, amount numeric(10, 2))")
        db.execute(
            "INSERT INTO orders SELECT n, repeat('c', 1000), n FROM generate_series(1, 4000) AS n"
        )
        workspace.run(text, until="caught_up")
        assert _copied(workspace) == _orders(db)
        db.execute("SELECT pg_drop_replication_slot(%s)", (schema,))


def test_a_column_that_is_added_during_a_run(
    postgres: Postgres, workspace: Workspace, monkeypatch: Any
) -> None:
    """A copy gains the column in the same run; totals and another table of the slot go on."""
    schema = postgres.new_schema()
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    text = PIPELINE.format(url=postgres.login["url"], user=USER, schema=schema)
    text = text.replace("table: orders, mode", "table: orders, schema_changes: apply, mode")
    text = text.replace("    aggregate_table:", "    schema_changes: apply\n    aggregate_table:")
    text = text.replace("transforms:", OTHER_TABLE.format(schema=schema)).replace(
        "sinks:", "sinks:\n  names: {type: sqlite, from: customers, path: shop.db, mode: upsert, "
        "table: customers}"
    )  # fmt: skip
    with postgres.client(options=f"-c search_path={schema}") as db:
        db.execute("CREATE TABLE orders (id int PRIMARY KEY, customer text, amount numeric(10, 2))")
        db.execute("INSERT INTO orders SELECT n, 'c', n FROM generate_series(1, 50) AS n")
        db.execute("CREATE TABLE customers (name text PRIMARY KEY)")
        db.execute("INSERT INTO customers VALUES ('c')")
        handle = workspace.start(text)
        _until(lambda: len(_totals(db)) == 1 and _copied(workspace) == _orders(db), handle)
        db.execute("ALTER TABLE orders ADD COLUMN note text")
        db.execute("INSERT INTO orders VALUES (51, 'd', 1, 'first'), (52, 'd', 2, 'x')")
        db.execute("INSERT INTO customers VALUES ('d')")
        _until(lambda: _read(workspace, "SELECT name FROM customers") == [("c",), ("d",)], handle)
        _until(lambda: _notes(workspace) == [(51, "first"), (52, "x")], handle)
        _until(lambda: _totals(db) == db.execute(TOTALS).fetchall(), handle)
        _until(lambda: _totals(db, "maintained_totals") == _totals(db), handle)
        db.execute("ALTER TABLE orders ADD COLUMN more int")
        handle.stop()
        outcome = handle.wait(60)
        assert outcome is not None and outcome.errors == {} and outcome.ending == "stopped"
        assert [event.name for event in handle.events()].count("changed schema") == 1
        db.execute("UPDATE orders SET more = id, note = 'last' WHERE id = 52")
        workspace.run(text, until="caught_up")
        assert _notes(workspace) == [(51, "first"), (52, "last")]
        assert _copied(workspace) == _orders(db)
        db.execute("SELECT pg_drop_replication_slot(%s)", (schema,))


TRUNCATED = """\
name: shop
connections:
  db:
    url: {url}
    auth: {{username: {user}, password: "${{SHOP_PASSWORD}}"}}
sources:
  orders:
    {{type: postgres, connection: db, table: {schema}.orders, changes: true, slot: {schema},
      on_truncate: apply, max_records: 20}}
transforms:
  large: {{type: filter, from: orders, where: amount >= 10}}
sinks:
  large_copy: {{type: postgres, connection: db, from: large, table: {schema}.large, mode: upsert}}
  copy: {{type: sqlite, from: orders, path: shop.db, table: orders, mode: upsert}}
"""


def test_a_table_that_is_truncated(
    postgres: Postgres, workspace: Workspace, monkeypatch: Any
) -> None:
    """All targets are emptied, during a run and between runs, and by a batch that is repeated.

    The repeated batch was written to the first sink alone.
    """
    schema = postgres.new_schema()
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    text = TRUNCATED.format(url=postgres.login["url"], user=USER, schema=schema)
    insert = "INSERT INTO orders SELECT n, 'c', n FROM generate_series({}, {}) AS n"
    with postgres.client(options=f"-c search_path={schema}") as db:

        def is_copied() -> bool:
            large = [(id_,) for id_, _, amount in _orders(db) if float(amount) >= 10]
            found = db.execute("SELECT id FROM large ORDER BY id").fetchall()
            return _copied(workspace) == _orders(db) and found == large

        db.execute("CREATE TABLE orders (id int PRIMARY KEY, customer text, amount numeric(10, 2))")
        db.execute("CREATE TABLE large (LIKE orders INCLUDING ALL)")
        db.execute(insert.format(1, 50))
        handle = workspace.start(text)
        _until(is_copied, handle)
        db.execute(f"TRUNCATE orders; {insert.format(5, 15)}; UPDATE orders SET amount = 30")
        db.execute(f"TRUNCATE orders; {insert.format(8, 40)}")
        _until(is_copied, handle)
        handle.stop()
        outcome = handle.wait(60)
        assert outcome is not None and outcome.errors == {}
        shutil.copy(workspace.root / "shop.db", workspace.root / "before.db")
        db.execute("TRUNCATE orders")
        workspace.run(text, until="caught_up")
        assert is_copied() and _copied(workspace) == []
        log = workspace.root / ".penstock/shop/checkpoints/orders/commits"
        max(log.glob("[0-9]*"), key=lambda path: int(path.name)).unlink()
        shutil.copy(workspace.root / "before.db", workspace.root / "shop.db")
        assert len(_copied(workspace)) == 33
        db.execute(insert.format(1, 3))
        workspace.run(text, until="caught_up")
        assert is_copied() and len(_copied(workspace)) == 3
        db.execute("SELECT pg_drop_replication_slot(%s)", (schema,))


def _notes(workspace: Workspace) -> list[Any]:
    return _read(workspace, "SELECT id, note FROM orders WHERE note IS NOT NULL ORDER BY id")


def _read(workspace: Workspace, query: str) -> list[Any]:
    with suppress(sqlite3.Error), closing(sqlite3.connect(workspace.root / "shop.db")) as db:
        return db.execute(query).fetchall()
    return []


def _orders(db: Any) -> list[Any]:
    query = "SELECT id, customer, amount::text FROM orders ORDER BY id"
    return list(db.execute(query).fetchall())


def _totals(db: Any, table: str = "totals") -> list[Any]:
    query = f"SELECT customer, orders, total FROM {table} ORDER BY customer"
    with suppress(Exception):
        return list(db.execute(query).fetchall())
    return []


def _copied(workspace: Workspace) -> list[Any]:
    return _read(workspace, "SELECT id, customer, amount FROM orders ORDER BY id")


def _until(condition: Callable[[], bool], handle: Any, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        ended = handle.wait(0.1)
        assert ended is None and time.monotonic() < deadline, ended
