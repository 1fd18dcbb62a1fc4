"""The nodes of dynamic tables, the order of their fills, and the rows that they check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import PlanError
from penstock.plan.fingerprint import fingerprint
from penstock.plan.guarantee import guarantee
from penstock.runtime.capture import capture_nodes
from unit.plan.plans import changed, memory, planned, sql

TRANSFERS = {"type": "memory", "rows": [], "schema": "sender STRING, receiver STRING, n INT"}
DATABASE = {
    "type": "postgres", "url": "postgresql://h/d", "table": "wallets",
    "auth": {"username": "u", "password": "very-secret"},
}  # fmt: skip
PIPELINE: dict[str, Any] = {
    "sources": {"transfers": TRANSFERS},
    "transforms": {
        "checked": sql("SELECT * FROM transfers WHERE dynamic_table_check('Second', sender)"),
        "second": {
            "type": "dynamic_table",
            "sql": "SELECT receiver FROM transfers WHERE dynamic_table_check('first', sender)",
        },
        "first": {"type": "dynamic_table", "sql": "SELECT receiver FROM transfers WHERE n > 1"},
    },
    "sinks": {"early": memory("transfers"), "out": memory("checked")},
}


def test_tables_are_filled_before_rows_are_checked(tmp_path: Path) -> None:
    plan = planned(tmp_path, PIPELINE)
    (query,) = plan.queries
    order = [name for name in query.sinks if name != "early"]
    assert order == ["first_fill", "second_fill", "out"]
    assert plan.nodes["checked"].checked_tables == ("second",)
    assert plan.nodes["checked"].inputs == ("transfers",)
    assert {"first", "second"} <= query.dead_letter_nodes


def test_parts_of_a_table_have_free_names(tmp_path: Path) -> None:
    document = changed(
        PIPELINE,
        {"sinks.first_fill": memory("transfers"), "sinks.First_Values": memory("transfers")},
    )
    nodes = planned(tmp_path, document).nodes
    assert nodes["first_fill_2"].dynamic_table == "first" == nodes["first_values_2"].dynamic_table
    assert nodes["first_fill"].dynamic_table is None


def test_secrets_of_a_storage_are_those_of_its_connectors(tmp_path: Path) -> None:
    document = changed(PIPELINE, {"transforms.first.storage": DATABASE})
    plan = planned(tmp_path, document)
    assert "very-secret" not in json.dumps(fingerprint(plan, b"key"))
    assert "very-secret" not in repr([node.component.config for node in plan.nodes.values()])


def test_a_database_may_have_other_values_when_a_batch_is_retried(tmp_path: Path) -> None:
    in_state = planned(tmp_path, PIPELINE)
    found = guarantee(in_state, in_state.nodes["out"])
    assert (found.level, found.notes) == ("exactly once", ())
    stored = planned(tmp_path, changed(PIPELINE, {"transforms.second.storage": DATABASE}))
    assert guarantee(stored, stored.nodes["out"]).level == "at least once"


def test_captures_keep_the_fills_of_checked_tables(tmp_path: Path) -> None:
    """Also those that a fill checks, and if the rows of a fill are captured."""
    plan = planned(tmp_path, PIPELINE)
    (query,) = capture_nodes(plan, ["out"])[0].queries
    assert query.sinks == ("first_fill", "second_fill", "out")
    captured, captures = capture_nodes(plan, ["out", "second_fill"])
    (query,) = captured.queries
    assert query.sinks == ("first_fill", "second_fill", "out", "@second_fill")
    assert captures.keys() == {"out", "second_fill"}


def test_a_table_that_no_captured_node_checks_is_not_filled(tmp_path: Path) -> None:
    plan, _ = capture_nodes(planned(tmp_path, PIPELINE), ["early"])
    assert [query.sinks for query in plan.queries] == [("early",)]


OTHERS = {"sources.others": TRANSFERS}
JOIN = "SELECT a.sender FROM transfers a JOIN others b ON a.n = b.n"
OVER = "SELECT receiver, row_number() OVER (ORDER BY n) FROM transfers"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"transforms.first.sql": "SELECT max(receiver) FROM transfers"}, "state-of-table"),
        ({"transforms.first.sql": OVER}, "state-of-table"),
        ({**OTHERS, "transforms.first.sql": JOIN}, "state-of-table"),
        ({**OTHERS, "transforms.first.sql": "SELECT sender FROM others"}, "different-batches"),
        ({"transforms.first.storage": {**DATABASE, "type": "redis"}}, "no-lookup"),
        ({"transforms.first.storage": {**DATABASE, "schema": "public"}}, "unknown-option"),
        ({"transforms.first.column_type": "TIMESTAMP"}, "wrong-type"),
    ],
)
def test_unsupported_tables_are_errors(tmp_path: Path, changes: dict[str, Any], code: str) -> None:
    with pytest.raises(Exception) as error:
        planned(tmp_path, changed(PIPELINE, changes))
    errors = getattr(error.value, "errors", [error.value])
    assert code in [each.code for each in errors]
    assert all(isinstance(each, PlanError) and each.where is not None for each in errors)
