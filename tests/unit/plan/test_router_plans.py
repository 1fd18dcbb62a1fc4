"""The nodes of routers and of their outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unit.plan.plans import changed, memory, planned, sql

ORDERS = {"type": "memory", "rows": [], "schema": "id INT, amount INT"}
ROUTER = {
    "type": "route", "from": "orders", "outputs": {"large": "amount > 9", "odd": "id % 2 = 1"},
    "default": "other", "on_error": "drop", "primary_key": ["id"],
}  # fmt: skip
PIPELINE: dict[str, Any] = {
    "sources": {"orders": ORDERS},
    "transforms": {"router": ROUTER, "query": sql("SELECT odd.id FROM Router.odd")},
    "sinks": {"a": memory("router.large"), "b": memory("query"), "c": memory("router.other")},
}


def test_outputs_are_nodes_of_one_query(tmp_path: Path) -> None:
    plan = planned(tmp_path, PIPELINE)
    assert plan.nodes["router"].inputs == ("orders",)
    assert plan.nodes["router.large"].inputs == ("router",)
    assert plan.nodes["query"].inputs == ("router.odd",)
    (query,) = plan.queries
    assert query.sinks == ("a", "b", "c") and "router" in query.batch_nodes
    assert plan.nodes["router"].on_error == "drop"
    assert plan.nodes["router.odd"].route == ("transforms", "router")
    assert plan.nodes["a"].primary_key == ("id",)
    assert not plan.warnings


def test_outputs_of_changes_keep_operations(tmp_path: Path) -> None:
    source = {**ORDERS, "schema": "id INT, amount INT, _op STRING", "operation_column": "_op"}
    sinks = {f"sinks.{name}.mode": "upsert" for name in "abc"}
    plan = planned(tmp_path, changed(PIPELINE, {"sources.orders": source, **sinks}))
    assert plan.nodes["router.other"].operation == "_op" == plan.nodes["c"].operation
    large: Any = plan.nodes["router.large"].component
    assert large.changes is not None and large.config.timeless


def test_rows_of_a_random_route_differ_between_runs(tmp_path: Path) -> None:
    document = changed(PIPELINE, {"transforms.router.outputs.odd": "rand() > 0.5"})
    plan = planned(tmp_path, document)
    assert not plan.nodes["router"].deterministic
    assert not plan.nodes["router.odd"].component.config.timeless
