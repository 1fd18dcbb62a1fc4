"""A plan explained in plain data."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from plans import ORDERS, memory, planned, sql

from penstock import app
from penstock.plan.explain import Column, Explanation, Needs, explain
from penstock.plan.pushdown import Pushdown
from penstock.sdk import Conjunct

FLIGHTS = Path(__file__).parents[3] / "examples/flights/late-flights.yaml"


def explained(columns: dict[str, pa.Schema] | None = None) -> Explanation:
    return explain(app.plan(FLIGHTS), columns)


def test_nodes_read_what_their_sql_names() -> None:
    inputs = {node.name: node.inputs for node in explained().nodes}
    assert inputs["daily"] == ("flights",)
    assert set(inputs["late"]) == {"flights", "airlines"}


def test_state_is_named_by_its_content() -> None:
    states = {node.name: node.state for node in explained().nodes}
    assert states["hourly"] == "groups"
    assert states["late"] is None


@pytest.mark.slow
def test_columns_are_declared_or_analyzed() -> None:
    columns = {node.name: node.columns for node in explained().nodes}
    assert columns["airlines"] == (Column("carrier", "STRING"), Column("name", "STRING"))
    assert columns["late"] is None
    analyzed = explained({"late": pa.schema([("dep_delay", pa.int32())])})
    columns = {node.name: node.columns for node in analyzed.nodes}
    assert columns["late_flights"] == (Column("dep_delay", "INT"),)


def test_queries_have_their_trunk_and_their_checkpoint() -> None:
    queries = {query.name: query for query in explained().queries}
    assert queries["daily"].batch_nodes == ("in_order",)
    assert queries["daily"].stateful == ("daily",)
    assert queries["hourly"].checkpoint.endswith("late-flights/checkpoints/hourly")
    assert all(query.reasons for query in queries.values())


def test_needs_of_a_source_are_sorted() -> None:
    pushdown = Pushdown(frozenset({"dep_delay", "carrier"}), (Conjunct("dep_delay", ">", 60),))
    found = explain(app.plan(FLIGHTS), None, {"flights": {"flights": pushdown}})
    needs = {query.name: query.needs for query in found.queries}
    assert needs["flights"] == (Needs("flights", ("carrier", "dep_delay"), ("dep_delay > 60",)),)
    assert needs["daily"] == ()


def test_a_static_table_is_no_stream() -> None:
    facts = {node.name: node for node in explained().nodes}
    assert facts["airlines"].static and facts["flights"].watermark == "time_hour, up to 1h late"
    assert facts["flights"].format == "csv"


def test_an_updating_query_is_explained(tmp_path: Path) -> None:
    orders = {"type": "files", "path": "*.jsonl", "watch": True, "schema": "id LONG, city STRING"}
    document = {
        "sources": {"orders": orders},
        "transforms": {
            "counts": sql("SELECT city, count(*) AS n FROM orders GROUP BY city"),
            "many": sql("SELECT * FROM counts WHERE n > 3"),
        },
        "sinks": {"out": {"type": "print", "from": "many"}},
    }
    explanation = explain(planned(tmp_path, document))
    (query,) = explanation.queries
    assert (query.output_mode, query.stateful) == ("changes", ("counts",))
    assert query.reasons == (
        "counts keeps groups as state, updated with each batch",
        "results are never final: inserts, updates and deletes of rows are written",
    )
    assert {node.name: node.state for node in explanation.nodes if node.state} == {
        "counts": "groups"
    }


def test_dedupe_is_explained_by_its_keys_and_its_span(tmp_path: Path) -> None:
    nodes = {
        "one": {"type": "dedupe", "from": "orders", "keys": ["id"], "within": "1 hour"},
        "two": {"type": "dedupe", "from": "orders", "keys": ["id"]},
        "three": {"type": "dedupe", "from": "orders", "within": "forever"},
    }
    sinks = {f"{name}_rows": memory(name) for name in nodes}
    document = {"sources": {"orders": ORDERS}, "transforms": nodes, "sinks": sinks}
    found = explain(planned(tmp_path, document))
    states = {node.name: node.state for node in found.nodes if node.type == "dedupe"}
    assert states == {
        "one": "id and the event time of each written row for 1h",
        "two": "id and the event time of each written row for the watermark's delay",
        "three": "all columns of each distinct row for ever",
    }
    (query,) = (each for each in found.queries if each.name == "one")
    assert query.reasons[1] == "rows are written at once, duplicates are dropped"
    (sink,) = (node for node in found.nodes if node.name == "one_rows")
    assert sink.guarantee is not None and "window" not in " ".join(sink.guarantee.notes)
