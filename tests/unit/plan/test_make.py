"""From a document to the nodes of a plan, or to all errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from plans import NAMES, ORDERS, memory, planned, sql

from penstock.core.errors import PenstockError, ValidationErrors

PYTHON = {"type": "python", "code": "def transform(batch): return batch"}


def document(transforms: Any, above: str = "made", **more: Any) -> dict[str, Any]:
    sources = {"orders": ORDERS, "names": NAMES}
    return {"sources": sources, "transforms": transforms, "sinks": {"out": memory(above)}, **more}


def errors_of(directory: Path, made: Any) -> list[PenstockError]:
    with pytest.raises(PenstockError) as caught:
        planned(directory, made)
    error = caught.value
    return list(error.errors) if isinstance(error, ValidationErrors) else [error]


def test_nodes_come_after_their_inputs(tmp_path: Path) -> None:
    transforms = {
        "c": sql("SELECT * FROM b JOIN names USING (id)"),
        "b": {"type": "filter", "from": "a", "where": "id > 0"},
        "a": sql("SELECT * FROM Orders"),
    }
    plan = planned(tmp_path, document(transforms, "c"))
    order = list(plan.nodes)
    for node in plan.nodes.values():
        assert all(order.index(name) < order.index(node.name) for name in node.inputs)
    assert {name: plan.nodes[name].inputs for name in "abc"} == {
        "a": ("orders",), "b": ("a",), "c": ("b", "names"),
    }  # fmt: skip
    assert plan.streams == {"orders", "a", "b", "c", "out"}


def test_sink_with_the_name_of_a_node_has_a_key(tmp_path: Path) -> None:
    transforms = {"made": sql("SELECT id, price FROM orders")}
    sinks = {"made": memory("orders"), "orders": memory("made"), "out": memory("made")}
    plan = planned(tmp_path, document(transforms, sinks=sinks))
    assert {name: node.inputs for name, node in plan.nodes.items() if node.kind == "sink"} == {
        "sinks.made": ("orders",), "sinks.orders": ("made",), "out": ("made",),
    }  # fmt: skip
    assert [query.sinks for query in plan.queries] == [("sinks.made", "sinks.orders", "out")]
    made = plan.nodes["sinks.made"]
    assert (made.label, made.route) == ('sink "made" (type: memory)', ("sinks", "made"))
    assert made.component.context.node == "sinks.made" and made.where is not None
    assert made.where.line == plan.pipeline.source_map.key(("sinks", "made")).line


def test_errors_of_a_sink_with_the_name_of_a_node(tmp_path: Path) -> None:
    transforms = {"made": sql("SELECT id, price FROM orders")}
    made = {"type": "memory", "from": "made", "max_record": 3}
    errors = errors_of(tmp_path, document(transforms, sinks={"made": made}))
    assert [error.message for error in errors] == [
        'sink "made" (type: memory) has no option "max_record"'
    ]


def test_rows_above_a_sink_with_the_name_of_a_node(tmp_path: Path) -> None:
    changes = {"type": "memory", "rows": [], "schema": "op STRING, id INT, other INT",
               "primary_key": "id", "operation_column": "op"}  # fmt: skip
    sink = {"type": "memory", "mode": "upsert", "from": "orders", "primary_key": "other"}
    plan = planned(tmp_path, {"sources": {"orders": changes}, "sinks": {"orders": sink}})
    assert plan.nodes["sinks.orders"].inputs == ("orders_rows",)
    assert not plan.nodes["orders_rows"].is_named and plan.nodes["sinks.orders"].is_named


def test_the_state_directory_is_beside_the_file(tmp_path: Path) -> None:
    plan = planned(tmp_path, document({}, "orders"))
    assert plan.state == tmp_path / ".penstock" / "shop"
    elsewhere = planned(tmp_path, document({}, "orders", runtime={"state": "kept"}))
    assert elsewhere.state == tmp_path / "kept" / "shop"


@pytest.mark.parametrize(
    ("text", "stateful"),
    [
        ("SELECT id FROM orders", False),
        ("SELECT DISTINCT id FROM orders", True),
        ("SELECT count(*) AS n FROM orders", True),
        ("SELECT orders.* FROM orders JOIN names USING (id)", False),
        ("SELECT * FROM orders CROSS JOIN (SELECT count(*) AS n FROM names)", False),
    ],
)
def test_rows_are_remembered_of_streams_only(tmp_path: Path, text: str, stateful: bool) -> None:
    plan = planned(tmp_path, document({"made": sql(text)}))
    assert plan.nodes["made"].stateful is stateful


def test_a_cycle_is_named(tmp_path: Path) -> None:
    transforms = {
        "a": sql("SELECT * FROM c"), "b": sql("SELECT * FROM a"),
        "c": sql("SELECT * FROM b UNION ALL SELECT * FROM orders"),
    }  # fmt: skip
    (error,) = errors_of(tmp_path, document(transforms, "c"))
    assert error.code == "cycle"
    assert "contains a cycle" in error.message
    assert all(f"{name} -> " in error.message for name in "abc")
    assert error.where is not None


def test_an_unknown_relation_is_found_in_the_sql(tmp_path: Path) -> None:
    (error,) = errors_of(tmp_path, document({"made": sql("SELECT * FROM oders")}))
    assert (error.code, error.hint) == ("unknown-node", 'did you mean "orders"?')
    assert error.where is not None
    assert error.where.text[error.where.column - 1 :].startswith("oders")


def test_a_transform_reads_something(tmp_path: Path) -> None:
    (error,) = errors_of(tmp_path, document({"made": sql("SELECT 1 AS x")}))
    assert error.code == "missing-option"
    assert "names, orders" in (error.hint or "")


def test_a_function_over_batches_reads_one_node(tmp_path: Path) -> None:
    made = {**PYTHON, "from": ["orders", "names"]}
    assert [error.code for error in errors_of(tmp_path, document({"made": made}))] == [
        "too-many-inputs"
    ]


def test_all_errors_are_reported_at_once(tmp_path: Path) -> None:
    transforms = {"made": sql("SELECT * FROM oders"), "more": {**PYTHON, "from": ["made", "names"]}}
    codes = [error.code for error in errors_of(tmp_path, document(transforms, "more"))]
    assert sorted(codes) == ["too-many-inputs", "unknown-node"]


def test_static_tables_alone_run_nothing(tmp_path: Path) -> None:
    (error,) = errors_of(tmp_path, document({}, "names"))
    assert error.code == "no-stream"


def test_the_sink_of_dead_letters_is_no_node(tmp_path: Path) -> None:
    plan = planned(tmp_path, document({}, "orders", dead_letter={"type": "memory", "name": "x"}))
    assert plan.dead_letter is not None
    assert plan.dead_letter.spec.on_error == "fail"
    assert "dead_letter" not in plan.nodes
