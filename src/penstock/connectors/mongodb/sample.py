"""The columns of a collection, from a sample of its documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.mongodb.config import ID
from penstock.connectors.mongodb.documents import Undecodable
from penstock.sdk.columns.rows import infer_rows

_DIGITS = 38


def infer_columns(
    documents: Sequence[Mapping[str, Any] | Undecodable], id_column: str
) -> pa.Schema | None:
    """Returns the columns of documents; None without documents. Raises UserError."""
    rows = [
        {id_column if name == ID else name: _value(value) for name, value in each.items()}
        for each in documents
        if not isinstance(each, Undecodable)
    ]
    if not rows:
        return None
    columns = infer_rows(rows)
    return pa.schema([each.with_type(_wide(each.type)) for each in columns])


def _value(value: Any) -> Any:
    """Returns a value of Python for one of BSON, whose type is inferred."""
    name = type(value).__name__
    if name in ("ObjectId", "UUID"):
        return str(value)
    if name == "Decimal128":
        number = value.to_decimal()
        return number if number.is_finite() else None
    if isinstance(value, Mapping):
        return {key: _value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_value(item) for item in value]
    return value


def _wide(type_: pa.DataType) -> pa.DataType:
    """Returns a type with all digits for decimals at the top."""
    return pa.decimal128(_DIGITS, type_.scale) if pa.types.is_decimal(type_) else type_
