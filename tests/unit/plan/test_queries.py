"""The division of a plan into queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from plans import HOURLY, MORE, NAMES, ORDERS, memory, planned, sql, upserts

from penstock import app
from penstock.core.errors import PlanError
from penstock.plan.graph import upstream
from penstock.plan.model import Plan, Query
from penstock.plan.queries import end_nodes, shared_nodes

SOURCES = {"orders": ORDERS, "more": MORE, "names": NAMES}
NO_WATERMARK = {key: value for key, value in ORDERS.items() if key != "watermark"}


def plan(directory: Path, transforms: Any, sinks: Any, sources: Any = SOURCES) -> Plan:
    return planned(directory, {"sources": sources, "transforms": transforms, "sinks": sinks})


def queries(plan: Plan) -> dict[str, Query]:
    return {query.name: query for query in plan.queries}


def test_sinks_below_one_source_share_a_query(tmp_path: Path) -> None:
    transforms = {
        "dear": sql("SELECT * FROM orders WHERE price > 5"),
        "named": sql("SELECT * FROM dear JOIN names USING (id)"),
    }
    sinks = {"all": memory("orders"), "few": memory("named")}
    (query,) = plan(tmp_path, transforms, sinks).queries
    assert (query.name, query.root, query.output_mode) == ("orders", "orders", "append")
    assert query.stream_nodes == ("orders",)
    assert query.batch_nodes == ("names", "dear", "named")
    assert query.sinks == ("all", "few")


def test_state_is_a_trunk_with_all_above_it(tmp_path: Path) -> None:
    transforms = {
        "late": sql("SELECT * FROM hourly WHERE n > 1"),
        "hourly": sql(HOURLY.format("wide")),
        "wide": sql("SELECT * FROM orders WHERE price > 0"),
    }
    sinks = {"all": memory("orders"), "counts": memory("hourly"), "many": memory("late")}
    made = queries(plan(tmp_path, transforms, sinks))
    assert set(made) == {"orders", "hourly"}
    assert made["hourly"].stream_nodes == ("orders", "wide", "hourly")
    assert made["hourly"].batch_nodes == ("late",)
    assert made["hourly"].sinks == ("counts", "many")
    assert made["orders"].sinks == ("all",)


def test_state_below_state_is_a_trunk_of_its_own(tmp_path: Path) -> None:
    transforms = {
        "once": {"type": "dedupe", "from": "orders"},
        "hourly": sql(HOURLY.format("once")),
    }
    sinks = {"rows": memory("once"), "counts": memory("hourly")}
    made = queries(plan(tmp_path, transforms, sinks))
    assert {name: query.stream_nodes for name, query in made.items()} == {
        "once": ("orders", "once"),
        "hourly": ("orders", "once", "hourly"),
    }


def test_two_streams_meet_in_a_trunk(tmp_path: Path) -> None:
    transforms = {
        "both": sql("SELECT * FROM orders UNION ALL SELECT * FROM more"),
        "dear": sql("SELECT * FROM both WHERE price > 5"),
    }
    (query,) = plan(tmp_path, transforms, {"out": memory("dear")}).queries
    assert (query.name, query.stream_nodes, query.batch_nodes) == (
        "both", ("orders", "more", "both"), ("dear",),
    )  # fmt: skip


def test_branches_of_one_source_meet_below_it(tmp_path: Path) -> None:
    transforms = {
        "cheap": sql("SELECT * FROM orders WHERE price < 1"),
        "dear": sql("SELECT * FROM orders WHERE price > 5"),
        "both": sql("SELECT * FROM cheap UNION ALL SELECT * FROM dear"),
    }
    (query,) = plan(tmp_path, transforms, {"out": memory("both")}).queries
    assert (query.name, query.stream_nodes) == ("orders", ("orders",))


def test_scope_batch_needs_the_same_batches(tmp_path: Path) -> None:
    both = sql("SELECT * FROM orders UNION ALL SELECT * FROM more", scope="batch")
    with pytest.raises(PlanError) as caught:
        plan(tmp_path, {"both": both}, {"out": memory("both")})
    assert caught.value.code == "different-batches"
    assert "more, orders" in caught.value.message
    assert caught.value.where is not None


def test_a_source_with_the_name_of_an_updating_query(tmp_path: Path) -> None:
    changes = {"type": "memory", "rows": [{"op": "i", "id": 1}], "schema": "op STRING, id LONG",
               "operation_column": "op", "primary_key": "id"}  # fmt: skip
    made = plan(
        tmp_path,
        {"total": sql("SELECT count(*) AS n FROM orders"), "same": sql("SELECT id FROM orders")},
        {
            name: {"type": "print", "from": from_}
            for name, from_ in (("totals", "total"), ("copy", "orders_changes"), ("all", "same"))
        },
        {"orders": changes, "orders_changes": {"type": "memory", "rows": [{"id": 1}]}},
    )
    assert {each.name: each.sinks for each in made.queries} == {
        "orders_changes_": ("totals",), "orders_changes": ("copy",), "orders": ("all",)
    }  # fmt: skip
    reports = {each.name: each.dead_letter_nodes for each in made.queries}
    assert reports == {
        "orders_changes_": {"orders", "total", "totals"},
        "orders_changes": {"orders_changes", "copy"},
        "orders": {"same", "all"},
    }


def test_a_node_reports_in_one_query(tmp_path: Path) -> None:
    transforms = {
        "wide": sql("SELECT * FROM orders WHERE price > 0"),
        "hourly": sql(HOURLY.format("wide")),
    }
    sinks = {"counts": memory("hourly"), "all": memory("wide")}
    made = plan(tmp_path, transforms, sinks)
    first, second = made.queries
    assert first.dead_letter_nodes | second.dead_letter_nodes == {
        "orders",
        "wide",
        "hourly",
        "counts",
        "all",
    }
    assert not first.dead_letter_nodes & second.dead_letter_nodes
    assert "orders" in first.dead_letter_nodes


@pytest.mark.parametrize(
    ("source", "transform", "options", "mode"),
    [
        (ORDERS, HOURLY.format("orders"), {}, "append"),
        (ORDERS, HOURLY.format("orders"), {"mode": "upsert"}, "update"),
        (NO_WATERMARK, "SELECT count(*) AS n FROM orders", {}, "update"),
        (NO_WATERMARK, "SELECT count(*) AS n FROM orders", {"mode": "append"}, "append"),
        (NO_WATERMARK, "SELECT id AS n FROM orders", {"mode": "upsert"}, "append"),
    ],
)
def test_the_output_mode(
    tmp_path: Path, source: Any, transform: str, options: Any, mode: str
) -> None:
    sinks = {"out": {**upserts("made"), **options}}
    made = plan(tmp_path, {"made": sql(transform)}, sinks, {"orders": source})
    assert [query.output_mode for query in made.queries] == [mode]
    if mode == "update":
        assert made.nodes["out"].sink.mode == "upsert"


def test_dedupe_appends_without_a_watermark(tmp_path: Path) -> None:
    once = {"type": "dedupe", "from": "orders", "within": "forever", "keys": ["id"]}
    sinks = {"out": {**upserts("once"), "primary_key": ["id"]}}
    (query,) = plan(tmp_path, {"once": once}, sinks, {"orders": NO_WATERMARK}).queries
    assert query.output_mode == "append"


def test_updates_and_appends_of_one_trunk_are_two_queries(tmp_path: Path) -> None:
    sinks = {"kept": memory("hourly"), "current": {**upserts("hourly"), "mode": "upsert"}}
    made = plan(tmp_path, {"hourly": sql(HOURLY.format("orders"))}, sinks)
    modes = {name: (query.output_mode, query.sinks) for name, query in queries(made).items()}
    assert modes == {
        "hourly": ("append", ("kept",)),
        "hourly_updates": ("update", ("current",)),
    }
    assert made.nodes["current"].sink.mode == "upsert"
    alone = plan(tmp_path, {"hourly": sql(HOURLY.format("orders"))}, {"current": sinks["current"]})
    assert [query.name for query in alone.queries] == ["hourly"]


def test_shared_nodes_and_ends(tmp_path: Path) -> None:
    transforms = {
        "all": sql("SELECT *, 1 / price AS x FROM orders"),
        "one": sql("SELECT * FROM all WHERE id = 1"),
        "two": sql("SELECT * FROM all JOIN names USING (id)"),
    }
    made = plan(tmp_path, transforms, {"first": memory("one"), "second": memory("two")})
    (query,) = made.queries
    assert shared_nodes(query, made.nodes) == ["all"]
    assert end_nodes(query, made.nodes) == ["all", "one", "two"]
    assert upstream(["second"], made.nodes) == {"two", "all", "names", "orders"}


def test_the_only_end_of_a_stateful_query_is_its_trunk(tmp_path: Path) -> None:
    transforms = {
        "hourly": sql(HOURLY.format("orders")), "late": sql("SELECT * FROM hourly WHERE n > 1"),
    }  # fmt: skip
    made = plan(tmp_path, transforms, {"out": memory("late")})
    (query,) = made.queries
    assert end_nodes(query, made.nodes) == ["hourly"]


@pytest.mark.parametrize(
    ("query", "final"),
    [
        ("SELECT id, count(*) AS n FROM orders GROUP BY id", True),
        ("SELECT count(*) AS n FROM orders", True),
        ("SELECT at, count(*) AS n FROM orders GROUP BY at", False),
        ("SELECT * FROM hourly ORDER BY n", True),
        ("SELECT n FROM hourly LIMIT 3", True),
        ("SELECT hour, sum(n) AS n FROM hourly GROUP BY hour", False),
        ("SELECT n AS window, max(hour) AS n FROM hourly GROUP BY window", True),
        ("SELECT window(at, '1 hour') AS w, count(*) AS n FROM orders GROUP BY w", False),
        ("SELECT DISTINCT id FROM orders", True),
        ("SELECT DISTINCT id, at FROM orders", False),
        ("SELECT DISTINCT * FROM orders", False),
        ("SELECT id FROM orders UNION SELECT id FROM names", True),
        ("SELECT id FROM orders WHERE id IN (SELECT n FROM hourly)", True),
        ("SELECT id FROM orders WHERE id IN (SELECT id FROM names)", False),
        ("SELECT o.id FROM orders o LEFT JOIN names n ON o.id = n.id", False),
        ("SELECT id, rank() OVER (ORDER BY price) AS place FROM orders", True),
        ("SELECT hour, sum(n) OVER (PARTITION BY n) AS so_far FROM hourly", True),
        ("SELECT id, count(*) AS n, rank() OVER (ORDER BY id) AS p FROM orders GROUP BY id", True),
    ],
)
def test_rows_that_no_watermark_completes_are_final_at_the_end(
    tmp_path: Path, query: str, final: bool
) -> None:
    transforms = {"hourly": sql(HOURLY.format("orders")), "result": sql(query)}
    made = plan(tmp_path, transforms, {"out": memory("result")})
    assert [each.whole_input for each in made.queries if "out" in each.sinks] == [final]


SHIFT = {
    "type": "python",
    "from": "orders",
    "schema": "id LONG, at TIMESTAMP",
    "code": "def transform(batch): return batch.select(['id', 'at'])",
}
WATERMARK = {"column": "at", "delay": "1 minute"}


@pytest.mark.parametrize(
    ("function", "whole_input"), [(SHIFT, True), ({**SHIFT, "watermark": WATERMARK}, False)]
)
def test_windows_below_a_function_are_final_at_the_end(
    tmp_path: Path, function: dict[str, Any], whole_input: bool
) -> None:
    orders = ORDERS if whole_input else NO_WATERMARK
    transforms = {"shift": function, "hourly": sql(HOURLY.format("shift"))}
    made = plan(tmp_path, transforms, {"out": memory("hourly")}, {"orders": orders})
    assert [each.whole_input for each in made.queries] == [whole_input]


def test_the_last_batch_of_one_source_closes_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hourly, out = {"hourly": sql(HOURLY.format("orders"))}, {"out": memory("hourly")}
    one_source = plan(tmp_path, hourly, out)
    assert one_source.closes_windows_at_once
    monkeypatch.setattr(one_source.nodes["orders"].source, "partitioned", True)
    assert not one_source.closes_windows_at_once
    other = {**hourly, "all": sql("SELECT id FROM orders")}
    two_queries = plan(tmp_path, other, {**out, "all_out": memory("all")})
    computed = {**SHIFT, "watermark": WATERMARK}
    shifted = {"shift": computed, "hourly": sql(HOURLY.format("shift"))}
    no_windows = plan(tmp_path, {"all": other["all"]}, {"out": memory("all")})
    others = [two_queries, no_windows, plan(tmp_path, shifted, out, {"orders": NO_WATERMARK})]
    assert [each.closes_windows_at_once for each in others] == [False] * 3


@pytest.mark.parametrize("sink", [memory("hourly"), upserts("hourly")], ids=["append", "update"])
def test_a_function_does_not_keep_the_watermark_of_endless_input(
    tmp_path: Path, sink: dict[str, Any]
) -> None:
    kafka = {"type": "kafka", "brokers": "localhost:1", "topic": "orders", "format": "json"}
    orders = {**kafka, "schema": ORDERS["schema"], "watermark": WATERMARK}
    transforms = {
        "shift": SHIFT,
        "few": sql("SELECT * FROM shift WHERE id > 1"),
        "hourly": sql(HOURLY.format("few")),
    }
    with pytest.raises(PlanError, match='does not keep the watermark of source "orders"') as raised:
        plan(tmp_path, transforms, {"out": sink}, {"orders": orders})
    error = raised.value
    assert (error.code, error.message.split(" does")[0]) == (
        "lost-watermark",
        'transform "shift" (type: python)',
    )
    assert error.hint is not None and "watermark: {column: at, delay: 1m}" in error.hint
    del orders["watermark"]
    transforms["shift"] = {**SHIFT, "watermark": WATERMARK}
    (query,) = plan(tmp_path, transforms, {"out": sink}, {"orders": orders}).queries
    assert query.stream_nodes == ("orders", "shift", "few", "hourly")


def test_an_inner_join_of_streams_appends_to_topics_without_a_key(tmp_path: Path) -> None:
    kafka = {"type": "kafka", "brokers": "localhost:1", "format": "json"}
    sources = {
        name: {**kafka, "topic": name, "schema": "id INT, n INT"} for name in ("orders", "items")
    }
    both = {"both": sql("SELECT orders.id FROM orders JOIN items ON orders.id = items.id")}
    sink = {**kafka, "topic": "both", "from": "both"}
    (query,) = plan(tmp_path, both, {"out": sink}, sources).queries
    assert query.output_mode == "append"
    upsert = {**sink, "mode": "upsert", "primary_key": ["id"]}
    (query,) = plan(tmp_path, both, {"out": upsert}, sources).queries
    assert query.output_mode == "update"


@pytest.mark.parametrize("condition", ["JOIN items ON orders.n < items.n", "CROSS JOIN items"])
def test_a_join_without_an_equality_is_updating_on_endless_input(
    tmp_path: Path, condition: str
) -> None:
    kafka = {"type": "kafka", "brokers": "localhost:1", "format": "json"}
    columns = {"schema": "id INT, n INT, at TIMESTAMP", "watermark": WATERMARK}
    sources = {name: {**kafka, "topic": name, **columns} for name in ("orders", "items")}
    both = {"both": sql(f"SELECT orders.id FROM orders {condition}")}
    sink = {"type": "print", "from": "both"}
    (query,) = plan(tmp_path, both, {"out": sink}, sources).queries
    assert query.updating
    bounded = {name: {**ORDERS} for name in ("orders", "items")}
    (query,) = plan(tmp_path, both, {"out": sink}, bounded).queries
    assert query.whole_input and not query.updating


@pytest.mark.slow
def test_a_join_of_hidden_windows_below_groups_names_the_views(tmp_path: Path) -> None:
    """A join compares windows that views do not select, but not in a query of changes."""
    table = (
        "CREATE TABLE t (k STRING, at TIMESTAMP, WATERMARK FOR at AS at) "
        "WITH (connector = 'kafka', bootstrap_servers = 'localhost:1', topic = 't', "
        "type = 'source', format = 'json');\n"
    )
    counts = "SELECT k, count(*) AS n{} FROM t GROUP BY k, tumble(INTERVAL '1 minute')"
    views = "CREATE VIEW a AS {0};\nCREATE VIEW b AS {0};\n"
    groups = "SELECT a.n, count(*) AS c FROM {} a JOIN {} b ON a.n = b.n GROUP BY a.n"
    script = tmp_path / "p.sql"
    script.write_text(table + views.format(counts.format("")) + groups.format("a", "b"))
    with pytest.raises(PlanError, match='the windows of "a" and "b"') as caught:
        app.plan(script)
    assert caught.value.code == "hidden-window"
    window = ", tumble(INTERVAL '1 minute') AS window"
    for text in (
        views.format(counts.format(window)) + groups.format("a", "b"),
        groups.format(f"({counts.format('')})", f"({counts.format('')})"),
        groups.format(f"({counts.format(window)})", f"({counts.format(window)})"),
    ):
        script.write_text(table + text)
        (query,) = app.plan(script).queries
        assert query.updating and len(query.stream_nodes) == 3


@pytest.mark.parametrize(
    ("runtime", "updating"),
    [
        ({"master": "spark://node:7077", "state": "s3://bucket/states"}, True),
        ({"master": "spark://node:7077"}, False),
        ({"master": "local[2]", "state": "s3://bucket/states"}, False),
    ],
)
def test_groups_of_a_cluster_are_in_an_object_store(
    runtime: dict[str, str], updating: bool, tmp_path: Path
) -> None:
    document = {
        "runtime": runtime,
        "sources": {"a": {"type": "generate", "rate": 1, "fields": {"n": "sequence"}}},
        "transforms": {"t": sql("SELECT n, count(*) AS c FROM a GROUP BY n")},
        "sinks": {"out": upserts("t")},
    }
    plan = planned(tmp_path, document)
    assert (plan.nodes["t"].updating, plan.queries[0].updating) == (updating, updating)
