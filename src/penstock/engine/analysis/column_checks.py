"""Checks of the columns of nodes, which Spark's analysis has found."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from penstock.core.errors import PenstockError, PlanError, raise_all
from penstock.engine.catalyst.columns import sink_schema, to_arrow
from penstock.plan.node import Node
from penstock.sdk.columns.checks import check_columns
from penstock.spec.node_models import SinkSpec, TransformSpec


def check_sink_schema(sink: Node, columns: StructType) -> None:
    """Raises UserError if rows of these columns cannot be written."""
    assert isinstance(sink.spec, SinkSpec)
    written = sink_schema(columns)
    removed = sink.removed_operation
    if removed is not None and removed in written.names:
        written = written.remove(written.get_field_index(removed))
    errors: list[PenstockError] = list(check_columns(sink.spec.primary_key, written, "primary_key"))
    missing = [name for name in sink.sink.primary_key if name not in written.names]
    if missing and not errors and sink.sink.mode == "upsert":
        raise _missing_key(sink, missing[0])
    try:
        sink.sink.check_schema(written)
    except PenstockError as error:
        errors.append(error)
    raise_all(errors)


def _missing_key(sink: Node, column: str) -> PlanError:
    return PlanError(
        f'{sink.label} inherits the primary key "{", ".join(sink.sink.primary_key)}", and its '
        f'rows have no column "{column}"',
        code="missing-option",
        hint="Set primary_key: [COLUMN, ...] on the sink, in SQL PRIMARY KEY (COLUMN, ...).",
    )


def check_primary_key(node: Node, frame: DataFrame) -> None:
    """Raises OptionError if a transform has no column of its primary key."""
    if isinstance(node.spec, TransformSpec) and node.spec.primary_key:
        raise_all(check_columns(node.spec.primary_key, to_arrow(frame.schema), "primary_key"))


def check_operation(node: Node, frame: DataFrame) -> None:
    """Raises PlanError if the output of a transform over changes has no operation column."""
    column = node.operation
    if column is None or column in frame.columns:
        return
    assert isinstance(node.spec, TransformSpec)
    if node.spec.operation_column is not None:
        raise_all(check_columns([column], to_arrow(frame.schema), "operation_column"))
    raise PlanError(
        f'{node.label} reads changes, and its output has no operation column "{column}": updates '
        "and deletes would be written as new rows",
        code="lost-operation",
        hint=f'Add "{column}" to the output, or remove it with the transform drop to write all '
        "rows as inserts.",
    )


def check_duplicate_columns(node: Node, frame: DataFrame) -> None:
    """Raises PlanError if two columns of the output have the same name, ignoring case."""
    names = [name.lower() for name in frame.columns]
    duplicate = next((name for name in frame.columns if names.count(name.lower()) > 1), None)
    if duplicate is not None:
        raise PlanError(
            f'{node.label} has two columns "{duplicate}"',
            code="duplicate-column",
            hint="List the columns and rename one of the two with AS.",
        )
