"""Records as rows of one column with their JSON text, for formats with `as_json`."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.sdk.encoding.single_column import value_column

COLUMNS = pa.schema([("value", pa.string())])
"""The columns of rows unless others are declared."""


def check_text_column(columns: pa.Schema, format_: str) -> pa.Field:
    """Returns the only column, for JSON text. Raises PlanError for other columns."""
    return value_column(columns, f"{format_} with as_json", (pa.string(),))


def text_rows(texts: Sequence[str], columns: pa.Schema, format_: str) -> pa.RecordBatch:
    """Returns rows of the only column with JSON texts. Raises PlanError for other columns."""
    column = check_text_column(columns, format_)
    array = pa.array(texts, pa.string())
    return pa.RecordBatch.from_arrays([array], schema=pa.schema([column]))
