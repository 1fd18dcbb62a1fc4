"""The handler `filter`: the rows for which all conditions are true.

Input: the columns of the conditions. Output: the same columns, and the rows whose conditions are
true, neither false nor null, in their order. A batch without rows is output too. No state. Errors:
no condition, an invalid one, a missing column, operands of different types, no boolean.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.handlers.errors import HandlerError
from penstock.handlers.expression import Expression
from penstock.handlers.handler import Batches, Handler


class Filter(Handler):
    """Keeps the rows that meet all conditions."""

    by_row = True
    fails_by_row = True

    def __init__(self, conditions: Sequence[str]) -> None:
        super().__init__()
        self._conditions = [Expression(condition) for condition in conditions]

    def handle(self, batch: pa.RecordBatch) -> Batches:
        if not self._conditions:
            raise HandlerError.invalid("Expected at least one condition for filter")
        kept = pa.repeat(pa.scalar(True), batch.num_rows)
        for condition in self._conditions:
            passes = condition.evaluate(batch)
            if pa.types.is_null(passes.type):
                passes = passes.cast(pa.bool_())
            if not pa.types.is_boolean(passes.type):
                message = f"{condition.text} has type {passes.type}, and not bool"
                raise HandlerError.type(message)
            kept = pc.and_kleene(kept, passes)
        return [batch.filter(kept)]
