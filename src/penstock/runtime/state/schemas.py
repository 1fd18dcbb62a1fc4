"""Undeclared schemas: inferred from a sample at the first start, then pinned."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.core.errors import PenstockError, PlanError, UserError, raise_all
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.plan.operation_columns import with_operation
from penstock.runtime.state.directory import StateDirectory
from penstock.sdk.columns.names import check_distinct
from penstock.sdk.schema_registry import RegistryFormat
from penstock.spec.node_models import SourceSpec

FILE = "schemas.json"


@dataclass(frozen=True)
class InferredSchema:
    """The inferred schema of a source."""

    node: str
    columns: pa.Schema


def apply_pins(plan: Plan, state: StateDirectory) -> bool:
    """Sets the columns of sources without a declared schema to their pinned columns.

    Returns whether all columns are then known.
    """
    pinned = read_pinned(state)
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
        inferred.append(InferredSchema(node.name, node.source.columns))
        pins[node.name] = pin_entry(node.source.columns)
    if errors is None:
        raise_all(wrong.values())
    else:
        errors |= wrong
    if state is not None and inferred and pin and not wrong:
        state.write(FILE, pins)
    return inferred


def read_pinned(state: StateDirectory) -> dict[str, pa.Schema]:
    """Returns the pinned schemas by source."""
    return {name: _unpack(entry["arrow"]) for name, entry in (state.read(FILE) or {}).items()}


def _infer(plan: Plan, node: Node) -> pa.Schema:
    source = node.source
    try:
        columns = source.columns_of_sample()
        check_distinct(columns or ())
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


def pin_entry(columns: pa.Schema) -> dict[str, Any]:
    """Returns the entry of a schema in the file."""
    return {
        "columns": {field.name: str(field.type) for field in columns},
        **_origin(columns),
        "arrow": base64.b64encode(columns.serialize().to_pybytes()).decode(),
    }


def _origin(columns: pa.Schema) -> dict[str, Any]:
    """Returns the registry ID and version of the columns, for readers of the file."""
    pin = RegistryFormat.pin(columns)
    return {"registry": {"id": pin.id, "version": pin.version}} if pin else {}


def _unpack(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
