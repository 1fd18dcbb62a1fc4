"""The option `type_column`: a column with the name of the type of each record."""

from __future__ import annotations

import pyarrow as pa

from penstock.core.errors import OptionError
from penstock.sdk.columns.conform import conform
from penstock.sdk.record import Decoded


def check_type_column(columns: pa.Schema, name: str | None) -> None:
    """Raises OptionError if the column is not among the declared columns."""
    if name is not None and name not in columns.names:
        raise OptionError.of(
            "type_column",
            message=f'there is no column "{name}"',
            code="unknown-column",
            hint=f"Add {name} STRING to schema.",
        )


def without_column(columns: pa.Schema, name: str | None) -> pa.Schema:
    """Returns the columns without the column `name`."""
    return pa.schema([field for field in columns if field.name != name], columns.metadata)


def with_type_name(decoded: Decoded, columns: pa.Schema, column: str, type_: str) -> Decoded:
    """Returns rows of `columns`, with the name of their type in a column."""
    rows = decoded.rows
    names = pa.array([type_] * rows.num_rows, pa.string())
    arrays = [*rows.columns, names]
    fields = [*rows.schema, pa.field(column, pa.string())]
    complete = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
    return decoded._replace(rows=conform(complete, columns))
