"""Inferred columns: pinned in the state directory, and compared with the last run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from penstock import app
from penstock.core.errors import PenstockError, StateError
from penstock.plan.fingerprint import fingerprint
from penstock.plan.model import Plan
from penstock.runtime.state.compatibility import check_changes
from penstock.runtime.state.directory import StateDirectory
from penstock.runtime.state.schemas import apply_pins, resolve_schemas

HOURLY = "SELECT window.start, count(*) AS n FROM orders GROUP BY window(at, '1 hour')"


def plan(directory: Path, **source: Any) -> Plan:
    orders = {"type": "files", "path": "in", "format": "json", "watermark": {"column": "at"}}
    document = {
        "name": "shop",
        "sources": {"orders": {**orders, **source}},
        "transforms": {"hourly": {"type": "sql", "sql": HOURLY}},
        "sinks": {"out": {"type": "print", "from": "hourly"}},
    }
    path = directory / "shop.yaml"
    path.write_text(json.dumps(document))
    return app.plan(path)


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    """The state directory after a run with inferred columns."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.json").write_text('{"id": 1, "at": "2024-01-01T00:00:00Z"}\n')
    state = StateDirectory(tmp_path / "state")
    first = plan(tmp_path)
    with state.locked():
        assert [schema.node for schema in resolve_schemas(first, state)] == ["orders"]
        state.write("plan.json", fingerprint(first, state.key()))
    return state


def test_inferred_columns_of_an_unchanged_pipeline_are_the_same(
    state: StateDirectory, tmp_path: Path
) -> None:
    second = plan(tmp_path)
    assert second.nodes["orders"].source.columns is None
    assert apply_pins(second, state)
    assert check_changes(second, state) == []


def test_declared_columns_are_compared_with_inferred_columns(
    state: StateDirectory, tmp_path: Path
) -> None:
    same = plan(tmp_path, schema="id LONG, at TIMESTAMP")
    assert apply_pins(same, state)
    assert check_changes(same, state) == []
    other = plan(tmp_path, schema="id STRING, at TIMESTAMP")
    assert apply_pins(other, state)
    with pytest.raises(StateError) as raised:
        check_changes(other, state)
    assert raised.value.code == "changed-plan"
    assert 'source "orders": columns changed' in str(raised.value.detail)


def test_columns_without_a_pin_are_unknown(state: StateDirectory, tmp_path: Path) -> None:
    with state.locked():
        state.write("schemas.json", {})
    undeclared = plan(tmp_path)
    assert not apply_pins(undeclared, state)
    assert undeclared.nodes["orders"].source.columns is None


def test_no_columns_are_pinned_if_those_of_a_source_are_unknown(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.json").write_text('{"id": 1, "at": "2024-01-01T00:00:00Z"}\n')
    (tmp_path / "none").mkdir()
    (tmp_path / "none/a.json").touch()
    path = tmp_path / "shop.json"
    files = {"type": "files", "format": "json"}
    document = {
        "sources": {"orders": {**files, "path": "in"}, "empty": {**files, "path": "none"}},
        "sinks": {
            "one": {"type": "print", "from": "orders"},
            "two": {"type": "print", "from": "empty"},
        },
    }
    path.write_text(json.dumps(document))
    state = StateDirectory(tmp_path / "state")
    errors: dict[str, PenstockError] = {}
    with state.locked():
        found = resolve_schemas(app.plan(path), state, errors=errors)
    assert [schema.node for schema in found] == ["orders"]
    assert errors["empty"].code == "missing-schema"
    assert state.read("schemas.json") is None


def changes(directory: Path, **source: Any) -> Plan:
    users = {"type": "files", "path": "changes", "format": "debezium_json", "primary_key": ["id"]}
    document = {
        "name": "shop",
        "sources": {"users": {k: v for k, v in {**users, **source}.items() if v is not None}},
        "sinks": {"out": {"type": "print", "from": "users"}},
    }
    path = directory / "changes.yaml"
    path.write_text(json.dumps(document))
    return app.plan(path)


@pytest.fixture
def state_of_changes(tmp_path: Path) -> StateDirectory:
    """The state directory after a run with the inferred columns of changes."""
    (tmp_path / "changes").mkdir()
    event = '{"op": "c", "before": null, "after": {"id": 1, "kind": "x"}}\n'
    (tmp_path / "changes/a.json").write_text(event)
    state = StateDirectory(tmp_path / "state")
    with state.locked():
        resolve_schemas(changes(tmp_path), state)
    return state


def columns_of(plan: Plan) -> list[str]:
    columns = plan.nodes["users"].source.columns
    assert columns is not None
    return [field.name for field in columns]


def test_the_operation_column_of_pinned_columns_is_renamed(
    state_of_changes: StateDirectory, tmp_path: Path
) -> None:
    same, renamed = changes(tmp_path), changes(tmp_path, operation_column="change")
    assert apply_pins(same, state_of_changes)
    assert apply_pins(renamed, state_of_changes)
    assert columns_of(same) == ["id", "kind", "_op"]
    assert columns_of(renamed) == ["id", "kind", "change"]


def test_pinned_columns_without_an_operation_gain_it(
    state_of_changes: StateDirectory, tmp_path: Path
) -> None:
    with state_of_changes.locked():
        pins = state_of_changes.read("schemas.json") or {}
        del pins["users"]["operation"]
        state_of_changes.write("schemas.json", pins)
    renamed = changes(tmp_path, operation_column="change")
    assert apply_pins(renamed, state_of_changes)
    assert columns_of(renamed) == ["id", "kind", "_op", "change"]


def test_pinned_columns_with_a_column_of_the_name_are_unknown(
    state_of_changes: StateDirectory, tmp_path: Path
) -> None:
    assert not apply_pins(changes(tmp_path, operation_column="kind"), state_of_changes)


def test_a_table_of_changes_has_no_column_with_the_name_of_the_operation(tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "_OP": ["x"]})
    write_deltalake(tmp_path / "t", rows, configuration={"delta.enableChangeDataFeed": "true"})
    table = {"type": "delta", "path": "t", "format": None, "changes": True}
    with pytest.raises(PenstockError, match='the rows have the column "_OP"') as raised:
        resolve_schemas(changes(tmp_path, **table), None)
    assert raised.value.code == "duplicate-column"
    renamed = changes(tmp_path, **table, operation_column="change")
    resolve_schemas(renamed, None)
    assert columns_of(renamed) == ["id", "_OP", "change"]
