"""Undeclared schemas: inferred from a sample at the first start, then pinned."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.core.errors import PenstockError, PlanError, UserError, raise_all
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.plan.operation_columns import (
    check_operation,
    source_operation,
    with_operation,
)
from penstock.runtime.state.directory import StateDirectory
from penstock.sdk.columns.names import check_distinct
from penstock.sdk.operations import add_operation
from penstock.sdk.schema_registry import RegistryFormat
from penstock.spec.node_models import SourceSpec

FILE = "schemas.json"


@dataclass(frozen=True)
class InferredSchema:
    """The inferred schema of a source."""

    node: str
    columns: pa.Schema
    operation: str | None
    """The operation column that the source adds to the rows."""


def apply_pins(plan: Plan, state: StateDirectory) -> bool:
    """Sets the columns of sources without a declared schema to their pinned columns.

    Returns whether all columns are then known.
    """
    pinned = read_pinned(plan, state)
    sources = [node for node in plan.of("source") if node.source.columns is None]
    for node in sources:
        node.source.columns = pinned.get(node.name)
        node.source.follows_schema = True
    return all(node.source.columns is not None for node in sources)


def resolve_schemas(
    plan: Plan,
    state: StateDirectory | None,
    *,
    pin: bool = True,
    errors: dict[str, PenstockError] | None = None,
) -> list[InferredSchema]:
    """Sets the columns of sources without a declared schema: the pinned or the inferred columns.

    Pins inferred schemas in `state`, unless `state` is None or `pin` is False. Returns the
    inferred schemas. Raises UserError, or ValidationErrors with the errors of all sources whose
    schema cannot be inferred; with `errors` adds these errors by source. Raises an error of an
    external system at once.
    """
    wrong: dict[str, PenstockError] = {}
    if state is not None:
        apply_pins(plan, state)
    pins: dict[str, Any] = (state.read(FILE) if state else None) or {}
    inferred = []
    for node in plan.of("source"):
        if node.source.columns is not None:
            continue
        try:
            assert isinstance(node.spec, SourceSpec)
            node.source.columns = with_operation(_infer(plan, node), node.spec, node.source)
            node.source.follows_schema = True
        except UserError as error:
            wrong[node.name] = error
            continue
        schema = InferredSchema(node.name, node.source.columns, added_operation(node))
        inferred.append(schema)
        pins[node.name] = pin_entry(schema)
    if errors is None:
        raise_all(wrong.values())
    else:
        errors |= wrong
    if state is not None and inferred and pin and not wrong:
        state.write(FILE, pins)
    return inferred


def read_pinned(plan: Plan, state: StateDirectory) -> dict[str, pa.Schema]:
    """Returns the pinned schemas by source, with the operation columns of the plan."""
    entries = state.read(FILE) or {}
    pinned = {
        node.name: _with_added_operation(entries[node.name], added_operation(node))
        for node in plan.of("source")
        if node.name in entries
    }
    return {name: columns for name, columns in pinned.items() if columns is not None}


def _with_added_operation(entry: Mapping[str, Any], name: str | None) -> pa.Schema | None:
    """Returns the columns of an entry, whose operation column may have had another name.

    Returns None if the name is now that of another column: they are inferred again.
    """
    columns = _unpack(entry["arrow"])
    known = entry.get("operation")
    if name is None or name == known:
        return columns
    if name in columns.names:
        return columns if known is None else None
    if known is None:
        return add_operation(columns, name)
    index = columns.get_field_index(known)
    return columns.set(index, columns.field(index).with_name(name))


def added_operation(node: Node) -> str | None:
    """Returns the operation column that a source adds to its rows; None if it adds none."""
    assert isinstance(node.spec, SourceSpec)
    return source_operation(node.spec, node.source) if node.source.adds_operations() else None


def _infer(plan: Plan, node: Node) -> pa.Schema:
    source = node.source
    try:
        columns = source.columns_of_sample()
        check_distinct(columns or ())
        check_operation(columns or (), source)
    except PenstockError as error:
        error.where = plan.locate(error, node)
        raise
    if columns is None or not len(columns):
        raise PlanError(
            f"{node.label} has no schema, and no data for the inference of a schema",
            code="missing-schema",
            hint="Declare the columns, as in schema: id LONG, name STRING, at TIMESTAMP.",
            where=node.where,
        )
    return columns


def pin_entry(schema: InferredSchema) -> dict[str, Any]:
    """Returns the entry of a schema in the file."""
    columns = schema.columns
    return {
        "columns": {field.name: str(field.type) for field in columns},
        **({"operation": schema.operation} if schema.operation is not None else {}),
        **_origin(columns),
        "arrow": base64.b64encode(columns.serialize().to_pybytes()).decode(),
    }


def _origin(columns: pa.Schema) -> dict[str, Any]:
    """Returns the registry ID and version of the columns, for readers of the file."""
    pin = RegistryFormat.pin(columns)
    return {"registry": {"id": pin.id, "version": pin.version}} if pin else {}


def _unpack(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
