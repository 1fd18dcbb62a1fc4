"""Preparation of sinks: the comparison of rows with the target, and the changes of its schema."""

from __future__ import annotations

import pyarrow as pa

from penstock.core.errors import PlanError, UserError
from penstock.plan.node import Node
from penstock.sdk import SchemaChanges, compare_schemas


def prepare(sink: Node, columns: pa.Schema) -> None:
    """Prepares a sink for rows of these columns, and changes the schema of its target if necessary.

    Raises PlanError if a column is incompatible.
    """
    changes = schema_changes(sink, columns)
    try:
        if changes:
            sink.sink.change_schema(changes)
        sink.sink.prepare(columns)
    except UserError as error:
        if error.where is None:
            error.message = f"{sink.label}: {error.message}"
            error.where = sink.where
        raise


def schema_changes(sink: Node, columns: pa.Schema) -> SchemaChanges:
    """Returns the changes of a sink's target for rows of these columns. Reaches the system.

    Raises PlanError if a column is incompatible.
    """
    target = sink.sink.target_schema(columns)
    changes = SchemaChanges() if target is None else compare_schemas(columns, target)
    if changes.incompatible:
        raise PlanError(
            f"{sink.label}: the rows do not fit the target: "
            f"{'; '.join(map(str, changes.incompatible))}",
            code="target-schema",
            hint="Cast or select the columns in a transform.",
            where=sink.where,
        )
    return changes
