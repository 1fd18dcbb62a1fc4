"""Pipelines from tables of ClickHouse to tables of ClickHouse."""

from __future__ import annotations

from typing import Any

from pipelines import Workspace

from servers.clickhouse import PASSWORD, USER, ClickHouse

PIPELINE = """\
name: shop
connections:
  db:
    url: {url}
    auth: {{username: {user}, password: "${{SHOP_PASSWORD}}"}}
sources:
  orders: {{type: clickhouse, connection: db, table: {table}, max_records: 200}}
transforms:
  priced: {{type: sql, sql: "SELECT id, customer, amount * 100 AS cents FROM orders"}}
sinks:
  copy:
    type: clickhouse
    connection: db
    from: priced
    table: {table}_copy
    mode: upsert
    primary_key: [id]
    column_types: {{cents: Nullable(UInt16)}}
"""


def test_rows_are_copied_and_bad_ones_are_dead_letters(
    clickhouse: ClickHouse, workspace: Workspace, monkeypatch: Any
) -> None:
    table = clickhouse.new_table()
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    clickhouse(
        f"CREATE TABLE shop.{table} (id Int64, customer LowCardinality(String), amount Int64) "
        "ENGINE = MergeTree ORDER BY id",
        f"INSERT INTO shop.{table} SELECT number, 'c' || toString(number % 5), number "
        "FROM numbers(1000)",
    )
    text = PIPELINE.format(url=clickhouse.login["url"], user=USER, table=table)
    workspace.run(text)
    found = clickhouse(f"SELECT count(), max(cents), uniq(customer) FROM shop.{table}_copy FINAL")
    assert found == [(656, 65500, 5)]
    letters = workspace.dead_letters("shop")
    assert len(letters) == 344
    assert {letter["code"] for letter in letters} == {"wrong-type"}
