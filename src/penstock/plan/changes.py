"""Primary keys and operation columns: declared on a node, inherited by the nodes downstream."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.core.errors import PlanError
from penstock.plan.model import Node, Query
from penstock.sdk import Capability
from penstock.spec.models import SinkSpec, SourceSpec, TransformSpec


def inherit(nodes: Mapping[str, Node], streams: frozenset[str]) -> dict[str, Node]:
    """Returns the nodes with the primary key and the operation column of their rows.

    `nodes` are in topological order. A node inherits the values that are equal in all its streaming
    inputs. The output of a transform may lack the columns: a missing key is an error of the sink,
    and rows without the operation column are inserts.
    """
    inherited: dict[str, Node] = {}
    for name, node in nodes.items():
        inputs = [inherited[input_] for input_ in node.inputs if input_ in streams]
        keys = {input_.primary_key for input_ in inputs}
        columns = {input_.operation for input_ in inputs} - {None}
        primary_key = next(iter(keys)) if len(keys) == 1 else ()
        operation = next(iter(columns)) if len(columns) == 1 else None
        if isinstance(node.spec, SourceSpec):
            operation = node.spec.operation
        if isinstance(node.spec, SourceSpec | TransformSpec | SinkSpec):
            primary_key = tuple(node.spec.primary_key) or primary_key
        inherited[name] = replace(node, primary_key=primary_key, operation=operation)
    return inherited


def configure_sinks(nodes: Mapping[str, Node], queries: Sequence[Query]) -> dict[str, Node]:
    """Returns the nodes with copies of the sinks, with mode and primary key.

    Sinks of a query in output mode `update` upsert. A sink that upserts inherits its primary key.
    """
    updating = {name for query in queries if query.output_mode == "update" for name in query.sinks}
    configured = dict(nodes)
    for name, node in nodes.items():
        if not isinstance(node.spec, SinkSpec):
            continue
        sink = copy.copy(node.sink)
        sink.mode = "upsert" if name in updating else node.spec.mode or "append"
        sink.primary_key = tuple(node.spec.primary_key)
        if sink.mode == "upsert":
            sink.primary_key = node.primary_key
        configured[name] = replace(node, component=sink)
    return configured


def unsupported_changes(sink: Node) -> PlanError | None:
    """Returns the error of a sink that cannot apply the operations of its rows, or None."""
    missing = [c for c in (Capability.UPSERT, Capability.DELETE) if not sink.can(c)]
    column = sink.operation
    if missing:
        problem = f"does not support {' and '.join(missing)}"
        hint = (
            f'Write to a sink that supports upsert and delete, or drop the column "{column}" in a '
            "transform to write all rows as inserts."
        )
    elif sink.sink.mode != "upsert":
        problem = f"has mode: {sink.sink.mode}"
        hint = "Set mode: upsert."
    else:
        return None
    return PlanError(
        f'{sink.label} {problem}, and its rows have operations (column "{column}")',
        code="unsupported-operation",
        hint=hint,
        where=sink.where,
    )
