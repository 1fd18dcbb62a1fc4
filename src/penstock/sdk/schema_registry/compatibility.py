"""Compatibility of columns with the schema by which they are encoded."""

from __future__ import annotations

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.core.text import did_you_mean
from penstock.sdk.columns.conform import conform, error_text
from penstock.sdk.columns.conversion import Conversion, cast
from penstock.sdk.columns.names import find_name


def check_fields(columns: pa.Schema, schema: pa.Schema, name: str, closed: bool = True) -> None:
    """Raises PlanError for a column missing in a closed schema, or a required field without column.

    `name` is the schema in messages.
    """
    for column in columns.names if closed else ():
        if find_name(column, schema.names) < 0:
            raise PlanError(
                f'{name} has no field "{column}"',
                code="unknown-column",
                hint=did_you_mean(column, schema.names),
            )
    for field in schema:
        if find_name(field.name, columns.names) < 0 and not field.nullable:
            raise PlanError(
                f'{name} requires the field "{field.name}", which is not a column',
                code="missing-column",
            )


def check_compatible(
    columns: pa.Schema, schema: pa.Schema, name: str, conversion: Conversion = cast
) -> None:
    """Raises PlanError as `check_fields` does, and for columns of incompatible types."""
    check_fields(columns, schema, name)
    try:
        conform(pa.RecordBatch.from_pylist([], columns), schema, conversion)
    except pa.ArrowException as error:
        raise PlanError(f"rows do not fit {name}: {error_text(error)}", code="wrong-type") from None
