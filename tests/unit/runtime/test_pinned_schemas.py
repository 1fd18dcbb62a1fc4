"""Inferred columns: pinned in the state directory, and compared with the last run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

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
