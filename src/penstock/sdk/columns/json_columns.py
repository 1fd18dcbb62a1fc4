"""Check of columns of JSON text: values that are not JSON are bad records."""

from __future__ import annotations

import pyarrow as pa

from penstock.core.errors import DecodeError, Rejected
from penstock.sdk.columns.json_mark import has_json
from penstock.sdk.columns.json_text import checked_value


def find_invalid_json(rows: pa.RecordBatch) -> dict[int, DecodeError]:
    """Returns the rows whose columns of JSON text have other text, and their errors."""
    errors: dict[int, DecodeError] = {}
    for field in rows.schema:
        if has_json(field):
            for index, value in enumerate(rows.column(field.name).to_pylist()):
                try:
                    checked_value(value, field)
                except ValueError as error:
                    message = f'column "{field.name}": not JSON: {error}'
                    errors.setdefault(index, DecodeError(message, code="not-json"))
    return errors


def check_json_columns(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the rows. Raises Rejected if a value of a column of JSON text is not JSON."""
    for error in find_invalid_json(rows).values():
        raise Rejected(error.message, code=error.code)
    return rows
