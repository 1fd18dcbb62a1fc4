"""Columns of the nodes of a plan without Spark: declared, and those that follow from them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pyarrow as pa

from penstock.plan.explain import Column, columns_of
from penstock.plan.lookups import table_columns
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.sdk import Transform
from penstock.sql.keyed_rows import KeyedRows


def planned_columns(plan: Plan) -> dict[str, tuple[Column, ...]]:
    """Returns the known columns of the nodes of a plan, by name. Types may be empty."""
    rows: dict[str, KeyedRows] = {}
    schemas: dict[str, pa.Schema] = {}
    found: dict[str, tuple[Column, ...]] = {}
    for name, node in plan.nodes.items():
        columns = _columns(node, rows, schemas)
        if columns is None:
            continue
        found[name] = columns
        types = {column.name.lower(): column.type for column in columns if column.type}
        rows[name] = KeyedRows(tuple(column.name for column in columns), types=types)
    return found


def _columns(
    node: Node, rows: dict[str, KeyedRows], schemas: dict[str, pa.Schema]
) -> tuple[Column, ...] | None:
    if node.kind == "source":
        declared = node.source.columns
        if declared is not None:
            schemas[node.name] = table_columns(node, declared)
            return columns_of(schemas[node.name])
        return None
    if any(name not in rows for name in node.inputs):
        return None
    if node.kind == "sink":
        return _named(rows[node.inputs[0]])
    if isinstance(node.component, Transform):
        return _of_batches(node, node.component, schemas)
    if node.relation is None:
        return None
    return _named(node.relation.lineage.keyed_rows({name: rows[name] for name in node.inputs}))


def _of_batches(
    node: Node, transform: Transform[Any], schemas: dict[str, pa.Schema]
) -> tuple[Column, ...] | None:  # fmt: skip
    """Returns the columns of a transform of Arrow batches, if the types of its input are known."""
    if len(node.inputs) != 1 or node.inputs[0] not in schemas:
        return None
    with suppress(Exception):  # code of plugins
        schemas[node.name] = transform.output(schemas[node.inputs[0]])
        return columns_of(schemas[node.name])
    return None


def _named(rows: KeyedRows) -> tuple[Column, ...] | None:
    if rows.columns is None:
        return None
    return tuple(Column(name, rows.types.get(name.lower(), "")) for name in rows.columns)
