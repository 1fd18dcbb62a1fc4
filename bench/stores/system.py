"""A system of `databases.py`, and the columns of its table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa

ROWS = 10_000
"""The rows of an Arrow batch."""
COLUMNS = pa.schema(
    [
        ("id", pa.int64()), ("name", pa.string()), ("price", pa.float64()),
        ("count", pa.int32()), ("changed", pa.timestamp("us", tz="UTC")),
    ]
)  # fmt: skip
QUERY = 'SELECT * FROM t ORDER BY "id"'


class System(ABC):
    """A system with the best way of its client."""

    name: ClassVar[str]
    has_source: ClassVar[bool] = True

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """Returns the options of the connection."""

    def of_sink(self) -> dict[str, Any]:
        """Returns the options of the sink."""
        return {**self.options(), "table": "t"}

    def of_source(self) -> dict[str, Any]:
        """Returns the options of the source."""
        return {**self.of_sink(), "cursor_columns": ["id"]}

    @abstractmethod
    def create(self) -> None:
        """Creates the empty table `t`, with the key `id`, in place of an earlier one."""

    @abstractmethod
    def write(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Writes batches in one transaction."""

    @abstractmethod
    def read(self) -> int:
        """Reads all rows. Returns their number."""
