"""Plans of sources with `on_truncate: apply`: the targets that a truncation can empty."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from plans import planned, sql

from penstock.core.error_codec import EncodedError
from penstock.core.errors import PenstockError, flatten_errors
from penstock.engine.sources.datasource import PenstockDataSource

TABLE = {"changes": True, "primary_key": "id", "schema": "id INT, n INT"}
ORDERS = {"type": "postgres", "url": "postgresql://host/shop", "table": "orders", **TABLE}
APPLY = {**ORDERS, "on_truncate": "apply"}
LINES = {"type": "mysql", "url": "mysql://host/shop", "table": "lines", **TABLE}
FILE = {"type": "sqlite", "path": "shop.db", "mode": "upsert"}
STEPS = {"type": "steps", "from": "texts", "window": {"size": 3, "slide": 2, "rest": "keep"},
         "steps": [{"type": "sql", "query": "SELECT 1 AS id FROM flow"}],
         "output": {"rows": "id INT"}, "operation_column": "_op", "primary_key": "id"}  # fmt: skip
SERVER = {"type": "postgres", "url": "postgresql://host/copy", "mode": "upsert"}
SUMS = {"type": "postgres_aggregate", "url": "postgresql://host/copy", "table": "landing",
        "aggregate_table": "sums", "aggregates": {"total": {"function": "sum", "column": "n"}},
        "mode": "upsert"}  # fmt: skip
LARGE = {"type": "filter", "from": "orders", "where": "n > 1"}


def document(**parts: Any) -> dict[str, Any]:
    return {
        "sources": {"orders": APPLY, **parts.get("sources", {})},
        "transforms": {"large": LARGE, **parts.get("transforms", {})},
        "sinks": {"copy": {**FILE, "from": "large", "table": "orders"}, **parts.get("sinks", {})},
    }  # fmt: skip


def test_stateless_transforms_of_one_stream_lead_to_tables(tmp_path: Path) -> None:
    names = {"type": "memory", "static": True, "rows": [{"n": 1, "name": "a"}]}
    route = {"type": "route", "from": "orders", "outputs": {"few": "n < 9"}, "default": "many"}
    joined = sql("SELECT large.*, name FROM large LEFT JOIN names ON large.n = names.n")
    joined["primary_key"] = "id"
    both = sql("SELECT * FROM large UNION ALL SELECT * FROM orders.few", primary_key="id")
    both["sql"] = both["sql"].replace("orders.few", "parts.few")
    some = sql("SELECT o.id, o.n, o._op AS _op FROM orders o WHERE n > 1")
    plan = planned(
        tmp_path,
        document(
            sources={"lines": LINES, "names": names},
            transforms={"parts": route, "joined": joined, "both": both, "some": some},
            sinks={
                "few": {**SERVER, "from": "parts.few", "table": "orders"},
                "many": {**SERVER, "from": "parts.many", "table": "many"},
                "cased": {**SERVER, "from": "some", "table": "Many"},
                "first": {**SERVER, "from": "orders", "table": "a.lines"},
                "second": {**SERVER, "from": "orders", "table": "b.lines"},
                "named": {**FILE, "from": "joined", "table": "named"},
                "twice": {**FILE, "from": "both", "table": "twice"},
                "lines_copy": {**FILE, "from": "lines", "table": "lines"},
            },
        ),
    )
    roots = {name: query.root for query in plan.queries for name in query.sinks}
    assert roots.pop("lines_copy") == "lines" and {*roots.values()} == {"orders"}


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"transforms": {"counts": sql("SELECT n, count(*) AS c FROM orders GROUP BY n")},
          "sinks": {"out": {**FILE, "from": "counts", "table": "counts"}}},
         'transform "counts" (type: sql) keeps earlier rows in its state'),
        ({"transforms": {"all": sql("SELECT * FROM large UNION ALL SELECT * FROM lines",
                                    primary_key="id")},
          "sources": {"lines": LINES},
          "sinks": {"out": {**FILE, "from": "all", "table": "all"}}},
         'transform "all" (type: sql) merges rows of several streams'),
        ({"sinks": {"out": {**FILE, "from": "orders", "table": "by_n", "primary_key": "n"}}},
         'sink "out" (type: sqlite) has another primary key than its rows'),
        ({"transforms": {"kept": sql("SELECT id, n, 'u' AS _op FROM orders")},
          "sinks": {"out": {**FILE, "from": "kept", "table": "history"}}},
         'transform "kept" (type: sql) computes the operations of its rows'),
        ({"transforms": {"kept": {**sql("SELECT id, n, 'u' AS kind FROM large"),
                                  "operation_column": "kind"}},
          "sinks": {"out": {**FILE, "from": "kept", "table": "history"}}},
         'transform "kept" (type: sql) computes the operations of its rows'),
        ({"sources": {"lines": LINES},
          "sinks": {"out": {**SERVER, "from": "orders", "table": "sums"},
                    "sums": {**SUMS, "from": "lines"}}},
         'sink "out" (type: postgres) has the table of sink "sums"'),
        ({"sinks": {"out": {**SERVER, "from": "orders", "table": "public.orders",
                            "url": "postgres://HOST:5432/shop"}}},
         'sink "out" (type: postgres) has the table of source "orders"'),
        ({"sources": {"lines": LINES},
          "sinks": {"out": {**SERVER, "from": "orders", "table": "a"},
                    "lines_copy": {**SERVER, "from": "lines", "table": "a",
                                   "url": "postgresql://host:5432/copy"}}},
         'sink "out" (type: postgres) has the table of sink "lines_copy"'),
        ({"transforms": {"seen": {"type": "dynamic_table", "column": "id",
                                  "sql": "SELECT id, _op FROM orders",
                                  "primary_key": "id"}}},
         'dynamic table "seen" keeps values of earlier rows'),
        ({"transforms": {"texts": sql("SELECT to_json(struct(*)) AS __value__ FROM orders"),
                         "windows": STEPS},
          "sinks": {"out": {**FILE, "from": "windows", "table": "windows"}}},
         'transform "windows" (type: steps) keeps earlier rows in its state'),
        ({"sinks": {"out": {"type": "print", "from": "orders"}}},
         'sink "out" (type: print) keeps rows that are deleted'),
        ({"transforms": {"dropped": {"type": "drop", "from": "orders", "columns": ["_op"]}},
          "sinks": {"out": {**FILE, "from": "dropped", "table": "history"}}},
         'sink "out" (type: sqlite) keeps rows that are deleted'),
        ({"sinks": {"out": {"type": "kafka", "from": "orders", "brokers": "host:1", "topic": "t",
                            "mode": "upsert"}}},
         'sink "out" (type: kafka) cannot remove all rows of its target at once'),
        ({"sources": {"lines": LINES},
          "sinks": {"out": {**FILE, "from": "lines", "table": "main.ORDERS"}}},
         'sink "copy" (type: sqlite) has the table of sink "out"'),
    ],
)  # fmt: skip
def test_targets_that_cannot_be_emptied(
    tmp_path: Path, parts: dict[str, Any], problem: str
) -> None:
    with pytest.raises(PenstockError) as caught:
        planned(tmp_path, document(**parts))
    (error,) = flatten_errors(caught.value)
    assert error.code == "unsupported-truncation" and error.where is not None
    end = ', and source "orders" (type: postgres) has on_truncate: apply'
    assert error.message == problem + end
    assert error.hint is not None and 'on_truncate: fail or ignore on source "orders"' in error.hint
    assert error.hint.endswith("the operation column and the primary key of the source.")
    sources = {**parts.get("sources", {}), "orders": {**ORDERS, "on_truncate": "ignore"}}
    planned(tmp_path, document(**{**parts, "sources": sources}))


def test_programs_without_a_plan() -> None:
    options = {"type": "postgres", "url": APPLY["url"], "table": "t", "changes": "true"}
    source = PenstockDataSource({**options, "schema": "id INT", "on_truncate": "apply"})
    with pytest.raises(EncodedError, match="on_truncate: apply requires a pipeline"):
        source.schema()
    assert PenstockDataSource({**options, "schema": "id INT"}).schema().names == ["id", "_op"]
