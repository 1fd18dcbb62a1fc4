"""Primary keys and operation columns: declared on a node, inherited by the nodes downstream."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa

from penstock.core.errors import OptionError, PlanError
from penstock.plan.graph import upstream
from penstock.plan.model import Query
from penstock.plan.node import Node
from penstock.sdk import Capability, Source
from penstock.sdk.columns.names import fold
from penstock.sdk.columns.type_names import sql_name
from penstock.sdk.operations import OPERATION_COLUMN, Changes, add_operation
from penstock.spec.node_models import SinkSpec, SourceSpec, TransformSpec
from penstock.sql.keyed_rows import KeyedRows


def source_operation(spec: SourceSpec, source: Source[Any]) -> str | None:
    """Returns the operation column of a source: declared, or added by the source."""
    return spec.operation_column or (OPERATION_COLUMN if source.adds_operations() else None)


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
    return add_operation(columns, name) if name and source.adds_operations() else columns


def check_operation(inferred: Iterable[pa.Field], source: Source[Any]) -> None:
    """Checks that rows to which a source adds the operation column have no column of its name."""
    added = source.operation_column if source.carries_operations else None
    for field in inferred:
        if added is not None and fold(field.name) == fold(added):
            raise OptionError.of(
                "operation_column",
                message=f'the rows have the column "{field.name}", and the source adds the '
                f'operation column "{added}"',
                code="duplicate-column",
                hint="Set operation_column to another name.",
            )


def inherit(nodes: Mapping[str, Node], streams: frozenset[str]) -> dict[str, Node]:
    """Returns the nodes with the primary key and the operation column of their rows.

    `nodes` are in topological order. A transform inherits a primary key if its rows are proved to
    have one, and the operation column if that of all its streaming inputs is the same.
    """
    inherited: dict[str, Node] = {}
    rows: dict[str, KeyedRows] = {}
    conditional = [n.name for n in nodes.values() if n.kind == "sink" and n.sink.writes_each_row]
    above_conditional = upstream(conditional, nodes)
    for name, node in nodes.items():
        node = replace(node, feeds_conditions=name in above_conditional)
        inputs = [inherited[input_] for input_ in node.inputs if input_ in streams]
        columns = sorted({input_.operation for input_ in inputs if input_.operation})
        operation = columns[0] if len(columns) == 1 else None
        complete = all(input_.complete_changes for input_ in inputs if input_.operation)
        if isinstance(node.spec, SourceSpec):
            operation = None if node.lookup else source_operation(node.spec, node.source)
            complete = node.source.completes_changes()
        elif isinstance(node.spec, TransformSpec):
            is_declared = node.spec.operation_column is not None
            node = _with_changes_of_input(node, operation, complete)
            operation = _output_operation(node, operation)
            complete = node.updating or (complete and not is_declared)
        above = {input_: replace(rows[input_], keeps_changes=True) for input_ in node.inputs}
        rows[name] = _keyed_rows(node, operation, above, inherited)
        inherited[name] = replace(
            node,
            primary_key=rows[name].key,
            origin_key=rows[name].origin,
            unknown_key=_has_unknown_key(node, rows[name].key, inherited),
            keeps_changes=rows[name].keeps_changes,
            operation=operation,
            complete_changes=complete,
            computes_operations=isinstance(node.spec, TransformSpec)
            and _computes_operations(node, operation),
        )
    return inherited


def _has_unknown_key(node: Node, key: tuple[str, ...], nodes: Mapping[str, Node]) -> bool:
    """Returns whether a primary key that a system declares and that is not read yet is missing."""
    if node.kind == "source":
        return node.unknown_key
    return not key and any(nodes[name].unknown_key for name in node.inputs)


def _computes_operations(node: Node, operation: str | None) -> bool:
    """Returns whether a transform may have operations that its input has not."""
    if operation is None or node.updating:
        return False
    if node.relation is None:
        return True
    texts = (sql.text.lower() for sql in node.sql_texts)
    return any(operation.lower() in text for text in texts)


def _keyed_rows(
    node: Node,
    operation: str | None,
    inputs: Mapping[str, KeyedRows],
    inherited: Mapping[str, Node],
) -> KeyedRows:
    """Returns the columns of a node (of a sink: of its input), and those with its primary key."""
    declared = tuple(node.spec.primary_key)
    if isinstance(node.spec, SourceSpec):
        return _source_rows(node, operation)
    if node.updating:
        # Rows without operations are all kept, also those with the same key.
        inputs = {
            name: rows if inherited[name].operation else replace(rows, key=(), origin=None)
            for name, rows in inputs.items()
        }
    if node.relation is not None:
        rows = node.relation.lineage.keyed_rows(inputs)
    else:
        (rows,) = inputs.values()
        if node.kind == "transform":
            rows = KeyedRows(origin=rows.origin)
    key = declared or (rows.numbered if node.updating and not rows.key else ())
    rows = replace(rows, numbered=())
    return replace(rows, key=key, origin=key) if key else rows


def _source_rows(node: Node, operation: str | None) -> KeyedRows:
    assert isinstance(node.spec, SourceSpec)
    key, columns = tuple(node.spec.primary_key), node.source.columns
    names: tuple[str, ...] | None = None
    types: dict[str, str] = {}
    if columns is not None:
        names = (*columns.names, *node.source.metadata_columns)
        types = {field.name.lower(): sql_name(field.type) for field in columns}
        if operation in names:
            # Downstream the operation is the last column.
            names = names[:-1] if names[-1] == operation else None
    if node.static:
        return KeyedRows(names, key if node.lookup else (), None, types, is_stream=False)
    return KeyedRows(names, key, key or None, types)


def _with_changes_of_input(node: Node, operation: str | None, complete: bool) -> Node:
    """Returns a transform that knows the changes of its inputs."""
    transform = copy.copy(node.frame_transform or node.batch_function)
    if transform is None:
        return node
    complete = complete and not node.feeds_conditions
    transform.changes = None if operation is None else Changes(operation, complete)
    return replace(node, component=transform)


def _output_operation(node: Node, operation: str | None) -> str | None:
    """Returns the operation column of the output of a transform."""
    assert isinstance(node.spec, TransformSpec)
    if node.spec.operation_column is not None:
        return node.spec.operation_column
    if node.updating:
        return OPERATION_COLUMN
    if operation is None or node.stateful:
        return None
    return operation if node.relation is None else node.relation.lineage.operation(operation)


def written_key(sink: Node) -> tuple[str, ...]:
    """Returns the primary key of its own by which a sink writes changes, or none."""
    assert isinstance(sink.spec, SinkSpec)
    carries = sink.sink.format is not None and sink.sink.format.carries_operations
    upserts = (sink.spec.mode or _default_mode(sink)) == "upsert"
    return tuple(sink.spec.primary_key) if carries or upserts else ()


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
