"""The handler `map`: columns that expressions over a row compute.

Input: the columns of the expressions. Output: the same rows with a column for each expression, in
their order. An expression has the columns of the input, not the results of the others. No state.
Errors: an invalid expression, a missing column, operands of different types, a result whose name is
in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.handlers.expression import Expression
from penstock.handlers.handler import Batches, Handler
from penstock.handlers.metadata import Role, with_role
from penstock.handlers.rows import append_column


@dataclass(frozen=True)
class MapColumn:
    """An expression, with the name and the role of its result."""

    result: str
    expression: str
    role: Role = Role.FIELD


class Map(Handler):
    """Appends computed columns."""

    by_row = True
    fails_by_row = True

    def __init__(self, columns: Sequence[MapColumn]) -> None:
        super().__init__()
        self._columns = [(each, Expression(each.expression)) for each in columns]

    def handle(self, batch: pa.RecordBatch) -> Batches:
        results = [(each, expression.evaluate(batch)) for each, expression in self._columns]
        for each, values in results:
            field = with_role(pa.field(each.result, values.type), each.role)
            batch = append_column(batch, field, values)
        return [batch]
