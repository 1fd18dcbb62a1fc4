"""Text that is not UTF-8: Spark's CAST of BINARY to STRING keeps the bytes unchanged."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from penstock.core.errors import EncodeError, RecordError
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.columns.conform import leaf_types, rebuild

InvalidUtf8 = Literal["reject", "replace"]
"""The action for text that is not UTF-8: an error, or U+FFFD in place of invalid bytes."""


def find_invalid_text(rows: pa.RecordBatch) -> dict[int, RecordError]:
    """Returns the rows with text that is not UTF-8 in any column, and their errors."""
    texts = [index for index, column in enumerate(rows.columns) if _has_text(column)]

    def check(start: int, stop: int) -> None:
        part = rows.slice(start, stop - start)
        for index in texts:
            _check(part.column(index), rows.schema.names[index])

    outcomes = bisect_failures(rows.num_rows, check) if texts else ()
    return {start: error for start, _, error in outcomes if isinstance(error, RecordError)}


def replace_invalid_text(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns rows of UTF-8, with U+FFFD in place of invalid bytes."""
    columns = [
        rebuild(column, column.type, _replaced) if _has_text(column) else column for column in rows
    ]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _has_text(column: pa.Array) -> bool:
    return any(map(_is_text, leaf_types(column.type)))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _check(column: pa.Array, name: str) -> None:
    """Raises EncodeError if a text within a column is not UTF-8."""

    def check_leaf(values: pa.Array, type_: pa.DataType) -> pa.Array:
        if _is_text(type_):
            _valid(values)
        return values

    try:
        rebuild(column, column.type, check_leaf)
    except UnicodeDecodeError as error:
        byte = f"byte 0x{error.object[error.start]:02x} at byte {error.start + 1}"
        raise EncodeError(
            f'column "{name}" is not UTF-8: {byte}', code="not-utf8",
            hint="Keep the value as BINARY, or set invalid_utf8: replace of the sink.",
        ) from None  # fmt: skip


def _valid(values: pa.Array) -> pa.Array:
    """Returns texts that are UTF-8. Raises UnicodeDecodeError for the first other text."""
    try:
        return _bytes(values).cast(values.type)
    except pa.ArrowInvalid:
        values.to_pylist()
        raise


def _replaced(values: pa.Array, type_: pa.DataType) -> pa.Array:
    if not _is_text(type_):
        return values
    try:
        return _valid(values)
    except UnicodeDecodeError:
        content = _bytes(values).to_pylist()
        return pa.array([text and text.decode(errors="replace") for text in content], type_)


def _bytes(values: pa.Array) -> pa.Array:
    return values.cast(pa.large_binary() if pa.types.is_large_string(values.type) else pa.binary())
