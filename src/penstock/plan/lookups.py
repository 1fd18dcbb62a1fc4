"""Lookup tables of a plan: sources whose current rows are joined with streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.plan.graph import upstream
from penstock.plan.model import Plan
from penstock.plan.node import Node
from penstock.plan.operation_columns import source_operation
from penstock.sdk import Capability, Source, registry
from penstock.spec.node_models import SourceSpec

_LOOKUPS = frozenset({Capability.LOOKUP, Capability.LOOKUP_BY_KEY})


def prepare_lookup(source: Source[Any], spec: SourceSpec) -> None:
    """Prepares a source to be read as a lookup table. Raises PlanError if it cannot be one."""
    if not source.capabilities & _LOOKUPS:
        if spec.type in lookup_types():
            options = _optional(spec.type)[Capability.LOOKUP_BY_KEY]
            raise PlanError(
                f"these options of {spec.type} describe a stream, and not a lookup table",
                code="no-lookup", hint=f"Remove lookup, or describe a lookup table: {options}.",
            )  # fmt: skip
        raise PlanError(
            f"a lookup table cannot be read from {spec.type}",
            code="no-lookup",
            hint=f"Use one of {', '.join(lookup_types())}, or read the table once: static: true.",
        )
    if spec.static:
        raise PlanError(
            "static: true reads a table once, and lookup reads it again",
            code="static-lookup",
            hint="Remove one of the two options.",
        )
    _check_cache(source, spec)
    source.prepare_lookup()


def _check_cache(source: Source[Any], spec: SourceSpec) -> None:
    options = spec.lookup_table
    by_key = Capability.LOOKUP_BY_KEY in source.capabilities
    if options is not None and options.cache.max_bytes is not None and not by_key:
        raise PlanError(
            f"lookup.cache.max_bytes has no meaning for {spec.type}: the whole table is kept",
            code="unused-option",
            hint="Remove max_bytes.",
        )


def lookup_types() -> list[str]:
    """Returns the types of sources that can be lookup tables."""
    return [
        name
        for name, component in registry.importable("source")
        if _LOOKUPS & {*component.capabilities, *component.optional_capabilities}
    ]


def _optional(type_: str) -> Mapping[Capability, str]:
    return registry.find("source", type_).optional_capabilities


def check_stream(source: Source[Any], spec: SourceSpec) -> None:
    """Checks that a source that is only a lookup table is read as one. Raises PlanError."""
    if Capability.LOOKUP_BY_KEY in source.capabilities and spec.lookup_table is None:
        if Capability.LOOKUP_BY_KEY in registry.find("source", spec.type).capabilities:
            raise PlanError(
                f"{spec.type} is a lookup table, and not a stream", code="lookup-only",
                hint="Set lookup: true, in SQL CREATE TEMPORARY TABLE.",
            )  # fmt: skip
        options = _optional(spec.type)[Capability.LOOKUP_BY_KEY]
        raise PlanError(
            f"these options of {spec.type} describe a lookup table ({options}), and not a stream",
            code="lookup-only",
            hint="Set lookup: true, in SQL CREATE TEMPORARY TABLE, or describe a stream.",
        )


def lookups_read_with_changes(plan: Plan) -> Iterator[tuple[Node, str]]:
    """Yields the transforms that join a lookup table with changes of an updating query."""
    updating = [node.name for node in plan.nodes.values() if node.updating]
    members = {*updating, *upstream(updating, plan.nodes)}
    for node in plan.of("transform"):
        inputs = [plan.nodes[name] for name in node.inputs]
        if node.name not in members or not any(input_.operation for input_ in inputs):
            continue
        tables = [input_.name for input_ in inputs if input_.name not in plan.streams]
        for name in sorted({*tables, *upstream(tables, plan.nodes)}):
            if plan.nodes[name].lookup:
                yield node, name


def lookup_operation(node: Node) -> str | None:
    """Returns the column of the rows of a source that holds the operation, for a lookup table."""
    assert isinstance(node.spec, SourceSpec)
    return source_operation(node.spec, node.source)


def table_columns(node: Node, rows: pa.Schema) -> pa.Schema:
    """Returns the columns of a table whose source has these rows."""
    operation = lookup_operation(node) if node.lookup else None
    if operation is None:
        return rows
    return rows.remove(rows.get_field_index(operation))
