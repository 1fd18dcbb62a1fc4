"""Dynamic tables: filled in step with the rows that are checked, and changed from outside."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from integration.pipelines import Row, Workspace, dump
from penstock import app
from penstock.runtime.handle import RunHandle
from servers.postgres import Postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PIPELINE = """\
sources:
  transfers:
    {type: files, path: in/*.jsonl, max_files: 1, order: name,
     schema: "id INT, sender STRING, receiver STRING, token STRING, amount STRING"}
transforms:
  holders: {type: dynamic_table, sql: "SELECT receiver FROM transfers WHERE token = 'usd'"}
  paid:
    type: dynamic_table
    sql: SELECT receiver FROM transfers WHERE dynamic_table_check('holders', sender)
  amounts:
    {type: dynamic_table, sql: "SELECT CAST(amount AS INT) FROM transfers", column_type: BIGINT,
     storage: {type: sqlite, path: shop.db, table: amounts}, column: amount, time_column: seen,
     cache: {ttl: 1h}}
  blocked: {type: dynamic_table, storage: {type: sqlite, path: shop.db, table: blocked}}
  checked:
    type: sql
    sql: |
      SELECT id, dynamic_table_check('HOLDERS', sender) AS holder,
        dynamic_table_check('paid', sender) AS paid,
        dynamic_table_check('holders', CASE WHEN id = 1 THEN array()
          WHEN id <> 6 THEN array(NULL, sender, receiver) END) AS any_holder,
        dynamic_table_check('amounts', id) AS amount, dynamic_table_check('blocked', NULL) AS empty
      FROM transfers WHERE NOT dynamic_table_check('blocked', coalesce(sender, receiver))
  # A table can be joined, too.
  paying: {type: lookup, from: transfers, table: paid, on: {sender: value}, columns: {of: value}}
  pairs: {type: sql, sql: "SELECT id, of FROM paying WHERE of IS NOT NULL"}
sinks:
  pairs: {type: sqlite, from: pairs, path: out.db, table: pairs}
  out: {type: sqlite, from: checked, path: out.db, table: out, create: CREATE}
"""
BATCHES: list[list[Row]] = [
    [
        {"id": 1, "sender": "a", "receiver": "b", "token": "eur", "amount": "2"},
        {"id": 2, "sender": "b", "receiver": "c", "token": "usd", "amount": "x"},
        {"id": 3, "sender": "c", "receiver": "d", "token": "eur", "amount": "5"},
    ],
    [
        {"id": 4, "sender": "d", "receiver": "e", "token": "eur", "amount": "2"},
        {"id": 5, "sender": "it's", "receiver": "ü", "token": "eur", "amount": None},
        {"id": 6, "sender": None, "receiver": "it's", "token": "usd", "amount": "6"},
        {"id": 7, "sender": "mal", "receiver": "a", "token": "usd", "amount": "7"},
    ],
]
# `c` receives dollars in the first batch, and `a` in the second one, which does not change row 1.
EXPECTED = {
    1: (0, 0, 0, 0, None),
    2: (0, 0, 1, 1, None),
    3: (1, 0, 1, 0, None),
    4: (0, 1, 0, 0, None),
    5: (1, 0, 1, 1, None),
    6: (None, None, None, 1, None),
}


def query(path: Path, *statements: str) -> list[tuple[object, ...]]:
    """Returns the rows of the last statement."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            rows = connection.execute(statement).fetchall()
    return rows


def test_checks_are_in_step_with_fills_across_a_restart(
    workspace: Workspace, penstock_spark: SparkSession
) -> None:
    """The first run ends between the fills of its first batch and the sink."""
    shop = workspace.root / "shop.db"
    query(
        shop, "CREATE TABLE blocked (value TEXT PRIMARY KEY)", "INSERT INTO blocked VALUES ('mal')"
    )
    for number, batch in enumerate(BATCHES):
        workspace.put(f"in/{number}.jsonl", map(dump, batch))
    failing = workspace.start(PIPELINE.replace("CREATE", "false")).wait(120)
    assert failing is not None and [e.code for e in failing.errors.values()] == ["unknown-table"]
    assert query(shop, "SELECT amount FROM amounts ORDER BY 1") == [(2,), (5,)]
    workspace.run(PIPELINE.replace("CREATE", "true"))
    rows = query(workspace.root / "out.db", "SELECT * FROM out")
    assert {id_: tuple(values) for id_, *values in rows} == EXPECTED
    assert len(rows) == len(EXPECTED)
    assert query(workspace.root / "out.db", "SELECT * FROM pairs") == [(4, "d")]
    amounts = query(shop, "SELECT amount, seen IS NOT NULL FROM amounts ORDER BY 1")
    assert amounts == [(2, 1), (5, 1), (6, 1), (7, 1)]
    dead_letters = {(each["node"], each["payload"]) for each in workspace.dead_letters()}
    assert len(dead_letters) == 1, dead_letters
    query(shop, "DELETE FROM amounts")
    plan = app.plan(workspace.root / workspace.file)
    preview = app.preview(plan, ["checked"], rows=9, timeout=60, spark=penstock_spark)
    assert preview.error is None
    shown = {row["id"]: tuple(row.values())[1:] for row in preview.tables["checked"].to_pylist()}
    assert shown == EXPECTED
    assert query(shop, "SELECT * FROM amounts") == []
    values = workspace.root / ".penstock/pipeline/nodes/holders/values.db"
    assert query(values, "SELECT value FROM dynamic_table ORDER BY 1") == [
        ("a",),
        ("c",),
        ("it's",),
    ]


CHANGES = """\
sources:
  members:
    {type: files, path: in/*.jsonl, max_files: 1, order: name, schema: "op STRING, name STRING",
     operation_column: op, primary_key: [name]}
transforms:
  active: {type: dynamic_table, sql: SELECT name FROM members}
  rows: {type: drop, from: members, columns: [op]}
  checked:
    {type: sql, sql: "SELECT name, dynamic_table_check('active', array('ann')) AS ann,
       dynamic_table_check('active', 'bob') AS bob FROM rows"}
sinks:
  out: {type: memory, from: checked, name: out}
"""


def test_deletes_remove_values(workspace: Workspace) -> None:
    batches = ["i ann", "i bob", "d ann", "i ann"]
    for number, change in enumerate(batches):
        op, name = change.split()
        workspace.put(f"in/{number}.jsonl", [dump({"op": op, "name": name})])
    workspace.run(CHANGES)
    assert workspace.result().select("ann", "bob").rows() == [
        (True, False), (True, True), (False, True), (True, True),
    ]  # fmt: skip


OUTSIDE = """\
connections:
  shop: {{type: postgres, url: "{url}", auth: {{username: {username}, password: {password}}}}}
sources:
  orders:
    {{type: files, path: in/*.jsonl, watch: true, max_files: 1, schema: "user STRING, vip BOOLEAN"}}
transforms:
  vips:
    type: dynamic_table
    sql: SELECT user FROM orders WHERE vip
    storage: {{connection: shop, table: "{schema}.vips"}}
    column: name
    time_column: added
  checked: {{type: sql, sql: "SELECT user, dynamic_table_check('vips', user) AS vip FROM orders"}}
sinks:
  out: {{type: memory, from: checked, name: out}}
"""


def test_a_table_of_postgres_is_changed_from_outside(
    workspace: Workspace, handles: list[RunHandle], postgres: Postgres
) -> None:
    schema, login = postgres.new_schema(), postgres.login

    def put(number: int, **rows: bool) -> None:
        lines = [dump({"user": user, "vip": vip}) for user, vip in rows.items()]
        workspace.put(f"in/{number}.jsonl", lines)

    put(0, ann=False, bob=True, cy=False)
    url, auth = login["url"], login["auth"]
    handles.append(workspace.start(OUTSIDE.format(url=url, schema=schema, **auth)))
    workspace.await_rows(handles[0], "out", 3)
    with postgres.client() as client:
        client.execute(f"INSERT INTO {schema}.vips VALUES ('ann')")
        client.execute(f"DELETE FROM {schema}.vips WHERE name = 'bob'")
    put(1, ann=False, bob=False, cy=False)
    workspace.await_rows(handles[0], "out", 6)
    assert sorted(workspace.result().rows()) == [
        ("ann", False), ("ann", True), ("bob", False), ("bob", True), ("cy", False), ("cy", False),
    ]  # fmt: skip
