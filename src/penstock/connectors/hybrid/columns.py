"""The columns of a node whose phases have columns of their own."""

from __future__ import annotations

import pyarrow as pa

from penstock.core.errors import PlanError
from penstock.sdk.columns.json_mark import column_type, is_json
from penstock.sdk.schema_changes import promote


def common_columns(first: pa.Schema, second: pa.Schema) -> pa.Schema:
    """Returns the columns of two phases in the order of the first one.

    A column has the type that holds the values of both. Raises PlanError for other names, and for
    types without such a type.
    """
    missing = sorted({*first.names} ^ {*second.names})
    if missing:
        raise _different(f"the phases have different columns: {', '.join(missing)}")
    for index, field in enumerate(first):
        other = second.field(field.name)
        type_ = promote(field.type, other.type) if is_json(field) == is_json(other) else None
        if type_ is None:
            found = " and ".join(map(column_type, (field, other)))
            raise _different(f'the phases have different types of column "{field.name}": {found}')
        nullable = field.nullable or other.nullable
        first = first.set(index, field.with_type(type_).with_nullable(nullable))
    return first


def _different(message: str) -> PlanError:
    return PlanError(
        message, code="different-columns",
        hint="Set columns_of: last, or declare the columns with schema.",
    )  # fmt: skip
