"""Primary keys that a system declares and the pipeline does not."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from penstock import app
from penstock.core.errors import PenstockError, UserError
from penstock.plan.model import Plan
from penstock.runtime.state.pipeline import open_state
from penstock.runtime.state.primary_keys import apply_stored_keys, resolve_primary_keys
from penstock.testing.suite import load_cases

PIPELINE = """\
name: shop
sources:
  orders: {type: sqlite, path: shop.db, table: orders}
transforms:
  paid: {type: filter, from: orders, where: amount > 0}
sinks:
  copy: {type: memory, from: paid, mode: upsert}
"""


def plan(directory: Path, text: str = PIPELINE) -> Plan:
    (directory / "shop.yaml").write_text(text)
    return app.plan(directory / "shop.yaml")


def create_table(directory: Path, key: str) -> None:
    with closing(sqlite3.connect(directory / "shop.db")) as db:
        db.execute("DROP TABLE IF EXISTS orders")
        db.execute(f"CREATE TABLE orders (id INT, line INT, amount REAL{key})")


def test_the_key_reaches_the_sink(tmp_path: Path) -> None:
    unknown = plan(tmp_path)
    assert unknown.nodes["copy"].unknown_key and not unknown.nodes["copy"].sink.primary_key
    create_table(tmp_path, ", PRIMARY KEY (line, id)")
    known = app.with_primary_keys(unknown)
    assert known.nodes["copy"].sink.primary_key == ("line", "id")
    assert not any(node.unknown_key for node in known.nodes.values())
    assert app.with_primary_keys(known) is known


def test_a_table_without_a_key_is_an_error_of_the_sink(tmp_path: Path) -> None:
    create_table(tmp_path, "")
    with pytest.raises(UserError, match="has mode: upsert and no primary key") as caught:
        app.with_primary_keys(plan(tmp_path))
    assert caught.value.where is not None and caught.value.where.line == 7


def test_a_declared_key_is_not_read(tmp_path: Path) -> None:
    text = PIPELINE.replace("table: orders}", "table: orders, primary_key: [id]}")
    known = plan(tmp_path, text)
    assert known.nodes["copy"].sink.primary_key == ("id",)
    assert app.with_primary_keys(known) is known


def test_a_key_outside_of_the_declared_columns_is_not_used(tmp_path: Path) -> None:
    create_table(tmp_path, ", PRIMARY KEY (line, id)")
    text = PIPELINE.replace("mode: upsert", "mode: append")
    for columns, key in (("id INT, amount DOUBLE", []), ("ID INT, line INT", ["line", "ID"])):
        declared = text.replace("table: orders}", f'table: orders, schema: "{columns}"}}')
        declared = declared.replace("where: amount > 0", "where: id > 0")
        known = app.with_primary_keys(plan(tmp_path, declared))
        assert [*known.nodes["orders"].spec.primary_key] == key


def test_a_missing_table_is_an_error_of_the_source(tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match="cannot open the database") as caught:
        app.with_primary_keys(plan(tmp_path))
    assert caught.value.where is not None and caught.value.where.line == 3


def test_the_key_is_kept_in_the_state(tmp_path: Path) -> None:
    unknown = plan(tmp_path)
    state = open_state(unknown)
    with state.locked():
        assert apply_stored_keys(unknown, state) is None
        create_table(tmp_path, ", PRIMARY KEY (id)")
        resolve_primary_keys(unknown, state, pin=True)
        create_table(tmp_path, ", PRIMARY KEY (line)")
        kept = resolve_primary_keys(unknown, state, pin=True)
        assert kept.nodes["copy"].sink.primary_key == ("id",)
        stored = apply_stored_keys(unknown, state)
        assert stored is not None and stored.nodes["copy"].sink.primary_key == ("id",)
        state.reset()
        assert apply_stored_keys(unknown, state) is None


def test_a_missing_key_is_not_kept_in_the_state(tmp_path: Path) -> None:
    """The next run finds the key that the table has by then."""
    unknown = plan(tmp_path)
    state = open_state(unknown)
    with state.locked():
        create_table(tmp_path, "")
        with pytest.raises(UserError, match="has mode: upsert and no primary key"):
            resolve_primary_keys(unknown, state, pin=True)
        create_table(tmp_path, ", PRIMARY KEY (id)")
        found = resolve_primary_keys(plan(tmp_path), state, pin=True)
        assert found.nodes["copy"].sink.primary_key == ("id",)


def test_cases_do_not_connect(tmp_path: Path) -> None:
    case = """
tests:
  - name: paid
    given: {orders: [{id: 1, line: 1, amount: 2.0}]}
    expect: {paid: [{id: 1, line: 1, amount: 2.0}]}
"""
    (tmp_path / "shop.yaml").write_text(PIPELINE + case)
    with pytest.raises(UserError, match="has mode: upsert and no primary key"):
        load_cases(tmp_path / "shop.yaml")
    declared: Any = (PIPELINE + case).replace("mode: upsert", "mode: upsert, primary_key: [id]")
    (tmp_path / "shop.yaml").write_text(declared)
    assert len(load_cases(tmp_path / "shop.yaml")) == 1
