"""The handler `default`: constant columns for batches without them.

Input: any columns. Output: the same rows, with a column of type int64, double, string or bool for
each default whose column is missing. With `fill` nulls of existing columns are replaced as well. No
state. Errors: with `fill`, a column of another type than the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from penstock.handlers.errors import HandlerError
from penstock.handlers.handler import Batches, Handler
from penstock.handlers.metadata import Role, with_role
from penstock.handlers.rows import append_column

Scope = Literal["column", "null", "both"]


@dataclass(frozen=True)
class DefaultValue:
    """The value of a column, as a scalar of the column's type, and the role of a new column."""

    value: pa.Scalar
    role: Role = Role.FIELD


class Default(Handler):
    """Adds missing columns (`scope` column), replaces nulls (null), or does both."""

    by_row = True

    def __init__(self, values: Mapping[str, DefaultValue], scope: Scope = "column") -> None:
        super().__init__()
        self._values = values
        self._scope = scope

    def handle(self, batch: pa.RecordBatch) -> Batches:
        for name, default in self._values.items():
            if name in batch.schema.names:
                if self._scope != "column":
                    batch = _filled(batch, name, default.value)
            elif self._scope != "null":
                values = pa.repeat(default.value, batch.num_rows)
                field = with_role(pa.field(name, default.value.type), default.role)
                batch = append_column(batch, field, values)
        return [batch]


def _filled(batch: pa.RecordBatch, name: str, value: pa.Scalar) -> pa.RecordBatch:
    index = batch.schema.get_field_index(name)
    if index < 0:
        raise HandlerError.missing(f"Duplicate of column names: {name}")
    field = batch.schema.field(index)
    if field.type != value.type:
        raise HandlerError.type(
            f"Column {name} has type {field.type}, and its default {value.type}"
        )
    return batch.set_column(index, field, batch.column(index).fill_null(value))
