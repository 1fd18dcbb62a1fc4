"""Writers for systems that acknowledge or reject each message."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

import pyarrow as pa

from penstock.core.errors import Rejected
from penstock.sdk.record import Failure
from penstock.sdk.sink import Receipt, Writer

M = TypeVar("M")


class AcknowledgedWriter(Writer, Generic[M]):
    """A writer that sends rows and awaits all acknowledgements before the next rows."""

    _count = 0

    @abstractmethod
    def messages(self, rows: pa.RecordBatch, payloads: Any) -> Iterable[M | Rejected]:
        """Yields the message or the rejection of each row."""

    @abstractmethod
    def send(self, messages: Sequence[M]) -> Sequence[Rejected | None]:
        """Sends messages and awaits acknowledgements. Returns a rejection or None for each."""

    def write(
        self, rows: pa.RecordBatch, payloads: Any = None, operations: pa.StringArray | None = None
    ) -> Sequence[Failure]:
        rejected: dict[int, Rejected] = {}
        sent: dict[int, M] = {}
        for index, message in enumerate(self.messages(rows, payloads)):
            if isinstance(message, Rejected):
                rejected[index] = message
            else:
                sent[index] = message
        results = zip(sent, self.send([*sent.values()]), strict=True)
        rejected |= {index: error for index, error in results if error is not None}
        self._count += rows.num_rows - len(rejected)
        return [Failure(index, rejected[index]) for index in sorted(rejected)]

    def commit(self) -> Receipt:
        return {"messages": self._count}
