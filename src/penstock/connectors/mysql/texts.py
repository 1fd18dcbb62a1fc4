"""Values as MySQL returns them in text.

Source of the forms: https://dev.mysql.com/doc/refman/8.4/en/data-types.html
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from penstock.sdk.columns.conversion import TextConversion
from penstock.sdk.database.row_conversion import columns_of
from penstock.sdk.database.texts import rows_of_texts


class _Conversion(TextConversion):
    """A conversion of texts of MySQL, whose times have no offset."""

    def _to_timestamps(self, array: pa.Array, type_: pa.TimestampType) -> pa.TimestampArray:
        if pa.types.is_string(array.type):
            with suppress(pa.ArrowInvalid):
                return array.cast(pa.timestamp("us")).cast(type_)
        return super()._to_timestamps(array, type_)


_CONVERSION = _Conversion()


def to_rows(texts: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """Converts columns of text or bytes to `columns`. Values of nested types are JSON text.

    Raises ArrowInvalid for a text that is not a value of its column.
    """
    return rows_of_texts(texts, columns, _CONVERSION)


def as_columns(rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> pa.RecordBatch:
    """Returns rows of texts and bytes as columns."""
    arrays = map(pa.array, columns_of(rows, len(names)))
    return pa.RecordBatch.from_arrays(list(arrays), list(names))


def exact_item(column: str, declared: str) -> str:
    """Returns the item of a SELECT list whose text has each digit of a column, and no others.

    The server returns 6 digits of a FLOAT, bytes for BIT, and zeros before a number with ZEROFILL.
    """
    if "zerofill" in declared:
        return f"{column} + 0"
    if declared.startswith("float"):
        return f"{column} * 1e0"
    if declared == "bit(1)":
        return f"{column} + 0"
    return column
