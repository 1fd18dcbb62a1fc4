"""Primary keys and operation columns: declared on a node, inherited by the nodes downstream."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.plan.model import Node, Query
from penstock.sdk import Capability, Source
from penstock.sdk.changes import OPERATION_COLUMN, add_operation
from penstock.spec.node_models import SinkSpec, SourceSpec, TransformSpec


def source_operation(spec: SourceSpec, source: Source[Any]) -> str | None:
    """Returns the operation column of a source: declared, or added by a format of changes."""
    carried = source.format is not None and source.format.carries_operations
    default = OPERATION_COLUMN if carried or source.deletes_by_key else None
    return spec.operation_column or default


def with_operation(columns: pa.Schema, spec: SourceSpec, source: Source[Any]) -> pa.Schema:
    """Returns the columns of a source, with the operation column that its payloads yield.

    Raises PlanError if the operations of tombstones and a declared column have the same name.
    """
    carried = source.format is not None and source.format.carries_operations
    name = source_operation(spec, source)
    if source.deletes_by_key and not carried and name in columns.names:
        raise PlanError(
            f'tombstones: delete adds the operation column "{name}", which is a column',
            code="duplicate-column",
            hint="Remove the column from the schema, or set operation_column to another name.",
        )
    return add_operation(columns, name) if name and (carried or source.deletes_by_key) else columns


def inherit(nodes: Mapping[str, Node], streams: frozenset[str]) -> dict[str, Node]:
    """Returns the nodes with the primary key and the operation column of their rows.

    `nodes` are in topological order. A node inherits the values that are equal in all its streaming
    inputs. A key may be missing in the output of a transform: this is an error of the sink.
    """
    inherited: dict[str, Node] = {}
    for name, node in nodes.items():
        inputs = [inherited[input_] for input_ in node.inputs if input_ in streams]
        keys = {input_.primary_key for input_ in inputs}
        primary_key = next(iter(keys)) if len(keys) == 1 else ()
        if node.updating and node.stateful:
            assert node.relation is not None
            primary_key = node.relation.group_columns()
        if isinstance(node.spec, SourceSpec | TransformSpec | SinkSpec):
            primary_key = tuple(node.spec.primary_key) or primary_key
        columns = sorted({input_.operation for input_ in inputs if input_.operation})
        operation = columns[0] if len(columns) == 1 else None
        complete = all(input_.complete_changes for input_ in inputs if input_.operation)
        if isinstance(node.spec, SourceSpec):
            format_ = node.source.format
            operation = None if node.lookup else source_operation(node.spec, node.source)
            complete = format_ is not None and format_.has_complete_changes
        elif isinstance(node.spec, TransformSpec):
            node = _with_operation_of_input(node, operation, complete)
            operation = _output_operation(node, operation)
            complete = complete or node.updating
        inherited[name] = replace(
            node, primary_key=primary_key, operation=operation, complete_changes=complete
        )
    return inherited


def _with_operation_of_input(node: Node, operation: str | None, complete: bool) -> Node:
    """Returns a transform with a relation that knows the changes of its inputs."""
    if node.relation is None:
        return node
    relation = copy.copy(node.relation)
    relation.operation_column = operation
    relation.complete_changes = complete
    return replace(node, component=relation)


def _output_operation(node: Node, operation: str | None) -> str | None:
    """Returns the operation column of the output of a transform."""
    assert isinstance(node.spec, TransformSpec)
    if node.spec.operation_column is not None:
        return node.spec.operation_column
    if node.updating:
        return OPERATION_COLUMN
    if operation is None or node.stateful:
        return None
    return node.relation.output_operation(operation) if node.relation is not None else operation


def configure_sinks(nodes: Mapping[str, Node], queries: Sequence[Query]) -> dict[str, Node]:
    """Returns the nodes with copies of the sinks, with mode and primary key.

    Sinks of a query in output mode `update` upsert, and by default those with a primary key of
    their own. A sink that upserts inherits its primary key.
    """
    updating = {name for query in queries if query.output_mode == "update" for name in query.sinks}
    configured = dict(nodes)
    for name, node in nodes.items():
        if not isinstance(node.spec, SinkSpec):
            continue
        sink = copy.copy(node.sink)
        sink.mode = "upsert" if name in updating else node.spec.mode or _default_mode(node)
        sink.primary_key = tuple(node.spec.primary_key)
        carries = sink.format is not None and sink.format.carries_operations
        if sink.mode == "upsert" or carries:
            sink.primary_key = node.primary_key
        if sink.format is not None and carries:
            sink.format = copy.copy(sink.format)
            sink.format.operation_column = node.operation or OPERATION_COLUMN
            sink.format.primary_key = sink.primary_key
            sink.format.complete_changes = node.operation is not None and node.complete_changes
        configured[name] = replace(node, component=sink)
    return configured


def _default_mode(node: Node) -> Literal["append", "upsert"]:
    """Returns the mode of a sink without `mode`.

    A primary key makes it `upsert`, unless rows without operations are appended with this key, or
    the format carries the operations.
    """
    sink = node.sink
    if not node.spec.primary_key or sink.accepts_operations or not node.can(Capability.UPSERT):
        return "append"
    return "append" if sink.uses_primary_key and node.operation is None else "upsert"


def unsupported_changes(sink: Node) -> PlanError | None:
    """Returns the error of a sink that cannot apply the operations of its rows, or None."""
    if sink.sink.accepts_operations:
        return None
    missing = [c for c in (Capability.UPSERT, Capability.DELETE) if not sink.can(c)]
    column = sink.operation
    if missing:
        problem = f"does not support {' and '.join(missing)}"
        options = sink.component.optional_capabilities.get(missing[0])
        hint = (
            (f"Set {options}, or write" if options else "Write")
            + " to a sink that supports upsert and delete, or set format: debezium_json, or "
            f'remove the column "{column}" with the transform drop to write all rows as inserts.'
        )
    elif sink.sink.mode != "upsert":
        problem = f"has mode: {sink.sink.mode}"
        hint = "Set mode: upsert, or set format: debezium_json to write a log of the changes."
    else:
        return None
    return PlanError(
        f'{sink.label} {problem}, and its rows have operations (column "{column}")',
        code="unsupported-operation",
        hint=hint,
        where=sink.where,
    )


def unsupported_state(node: Node, nodes: Mapping[str, Node]) -> PlanError | None:
    """Returns the error of a stateful transform over changes, or None."""
    changing = [nodes[name] for name in node.inputs if nodes[name].operation is not None]
    if not changing or not node.stateful:
        return None
    if node.updating:
        return _unknown_rows(node, changing)
    column = changing[0].operation
    return PlanError(
        f'{node.label} keeps state, and the rows of "{changing[0].name}" are changes (column '
        f'"{column}"): an update or a delete cannot be taken back from the state',
        code="state-of-changes",
        hint="Use type: sql, which takes them back, as with SELECT DISTINCT or GROUP BY, or "
        f'remove the column "{column}" with the transform drop to treat each change as a new row.',
        where=node.where,
    )


def _unknown_rows(node: Node, changing: Sequence[Node]) -> PlanError | None:
    """Returns the error of changes that do not say which row they replace, or None."""
    keyless = next((each for each in changing if not each.updating and not each.primary_key), None)
    if keyless is None:
        return None
    return PlanError(
        f'{node.label} combines the rows of "{keyless.name}", which are changes (column '
        f'"{keyless.operation}") without a primary key',
        code="missing-option",
        hint=f"Set primary_key: [COLUMN, ...] on {keyless.label}, in SQL PRIMARY KEY "
        "(COLUMN, ...).",
        where=node.where,
    )


def different_operations(node: Node, nodes: Mapping[str, Node]) -> PlanError | None:
    """Returns the error of a transform whose inputs have different operation columns, or None."""
    if node.kind != "transform":
        return None
    changing = {nodes[name].operation: name for name in node.inputs if nodes[name].operation}
    if len(changing) < 2:
        return None
    named = ", ".join(f'"{column}" of {name}' for column, name in sorted(changing.items()))
    return PlanError(
        f"{node.label} has inputs with different operation columns: {named}",
        code="different-operations",
        hint="Rename one of the columns with the transform rename.",
        where=node.where,
    )
