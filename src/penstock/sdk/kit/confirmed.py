"""Writers whose system takes or refuses each message by itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

import pyarrow as pa

from penstock.core.errors import Rejected
from penstock.sdk.record import Failure
from penstock.sdk.sink import Receipt, Writer

M = TypeVar("M")


class ConfirmedWriter(Writer, Generic[M]):
    """Sends the rows that it is given, and has them confirmed, before it takes more."""

    _count = 0

    @abstractmethod
    def messages(self, rows: pa.RecordBatch, payloads: Any) -> Iterable[M | Rejected]:
        """A message for each row, or why there can be none."""

    @abstractmethod
    def send(self, messages: Sequence[M]) -> Sequence[Rejected | None]:
        """Returns when the system has each message, or has refused it for good."""

    def write(self, rows: pa.RecordBatch, payloads: Any = None) -> Sequence[Failure]:
        made = list(self.messages(rows, payloads))
        refused = {at: each for at, each in enumerate(made) if isinstance(each, Rejected)}
        sent = {at: each for at, each in enumerate(made) if not isinstance(each, Rejected)}
        answers = zip(sent, self.send([*sent.values()]), strict=True)
        refused |= {at: answer for at, answer in answers if answer is not None}
        self._count += rows.num_rows - len(refused)
        return [Failure(at, refused[at]) for at in sorted(refused)]

    def commit(self) -> Receipt:
        return {"messages": self._count}
