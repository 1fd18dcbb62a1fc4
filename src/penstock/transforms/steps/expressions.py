"""Expressions over the columns of a batch: topics, keys and other texts of each row."""

from __future__ import annotations

import pyarrow as pa

from penstock.core.errors import EncodeError, OptionError
from penstock.transforms.steps.config import KeyExpression
from penstock.transforms.steps.sql_query import BatchQuery


class Expression:
    """A text of each row of a batch."""

    def __init__(self, config: KeyExpression) -> None:
        self.config = config
        self._query = (
            BatchQuery(f"SELECT {config.expr}\nFROM flow") if config.expr is not None else None
        )

    def check(self) -> None:
        """Checks the syntax. Raises OptionError."""
        if self._query is None:
            return
        try:
            self._query.check()
        except OptionError as error:
            message = error.message.replace("found: flow", "found: end of the expression")
            raise OptionError.of("expr", message=message, code=error.code) from error

    def evaluate(self, batch: pa.RecordBatch) -> list[str]:
        """Returns the texts. Raises EncodeError, or Rejected."""
        if self._query is None:
            return [str(self.config.value)] * batch.num_rows
        values = self._query.run(batch).column(0)
        if len(values) != batch.num_rows:
            raise EncodeError(
                f"{self.config.expr} has {len(values)} values for {batch.num_rows} rows",
                code="sql-failed",
            )
        if not pa.types.is_string(values.type):
            values = values.cast(pa.string())
        texts: list[str] = values.to_pylist()
        if None in texts:
            raise EncodeError(f"{self.config.expr} is null in a row", code="missing-value")
        return texts
