"""The transform `log`: writes rows to the log, and keeps all rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Literal

import pyarrow as pa
from pydantic import Field

from penstock.core import log
from penstock.core.errors import raise_all
from penstock.core.text import plural
from penstock.sdk import Config, Transform
from penstock.sdk.columns.checks import check_columns
from penstock.sdk.columns.row_json import row_payload


class LogConfig(Config):
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The level of the lines."""
    message: str = "row"
    """The text of a line, before the row."""
    columns: list[str] = []
    """The columns of a row to log, by default all."""
    rate_limit: float = Field(default=10.0, gt=0)
    """The maximum number of rows per second that a process logs. The number of other rows is part
    of the next line."""


class Log(Transform[LogConfig]):
    """Writes rows to the log, and returns all rows unchanged.

    The lines are in `spark.log` of the state directory, with rows as JSON. A batch that is computed
    again, as after a failure, is logged again. To see rows in a terminal, use the sink `print`.

    Parallel by partition.

    ```yaml
    type: log
    from: orders
    level: warning
    message: order
    columns: [id, total]
    ```
    """

    deterministic = True
    _log: Any = None

    def output(self, schema: pa.Schema) -> pa.Schema:
        raise_all(check_columns(self.config.columns, schema, "columns"))
        return schema

    def open(self) -> None:
        self._log = log.make(level="debug", node=self.context.node)
        self._second, self._count, self._left_out = 0, 0.0, 0

    def apply(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        config = self.config
        rows = batch.select(config.columns or batch.schema.names)
        write = getattr(self._log, config.level)
        for index in range(rows.num_rows):
            if not self._may_log():
                self._left_out += rows.num_rows - index
                break
            others = plural(self._left_out, "row") if self._left_out else None
            write(config.message, row=row_payload(rows, index).decode(), left_out=others)
            self._left_out = 0
        yield batch

    def _may_log(self) -> bool:
        """Returns whether the rate allows another row, which is counted."""
        second = int(time.monotonic())
        if second != self._second:
            spare = self.config.rate_limit
            self._second, self._count = second, min(self._count, 0.0) + spare
        if self._count <= 0:
            return False
        self._count -= 1
        return True
