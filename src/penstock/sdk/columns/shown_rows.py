"""Rows for the API: each value is its text, or None for null."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.sdk.columns.display import json_of, leaf_text
from penstock.sdk.columns.json_mark import column_type, has_json

MAX_CHARACTERS = 10_000
"""The characters after which a text is cut. The cut text ends with an ellipsis."""


def shown_columns(schema: pa.Schema) -> list[dict[str, str]]:
    """Returns the names and the types of columns, as Spark SQL names them."""
    return [{"name": field.name, "type": column_type(field)} for field in schema]


def shown_rows(table: pa.Table) -> list[list[str | None]]:
    """Returns rows as texts in the order of the columns. Nested values are JSON.

    Texts keep all digits of numbers, which numbers of JavaScript do not.
    """
    columns = [
        [_shown(value, field) for value in column]
        for column, field in zip(table.columns, table.schema, strict=True)
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def shown_table(table: pa.Table) -> dict[str, Any]:
    """Returns the columns and the rows of a table."""
    return {"columns": shown_columns(table.schema), "rows": shown_rows(table)}


def _shown(value: pa.Scalar, field: pa.Field) -> str | None:
    if not value.is_valid:
        return None
    text = _text(value, field)
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[:MAX_CHARACTERS]}… ({len(text):,} characters)"


def _text(value: pa.Scalar, field: pa.Field) -> str:
    if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
        return bytes(value.as_buffer()).decode(errors="replace")
    return json_of(value, field) if has_json(field) else leaf_text(value)
