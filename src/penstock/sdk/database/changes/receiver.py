"""The receiver of a log: its changes go to the tables that read it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from penstock.sdk.database.changes.rows import Transaction
from penstock.sdk.database.changes.table import TableReceiver

_IDLE_SECONDS, _SHORT_SECONDS = 0.2, 0.02
_FLUSH_SECONDS = 0.05
"""The time between two waits for the disk: it writes while the next changes are received."""
_CONFIRM_SECONDS = 1.0
_RESPONSE_SECONDS = 0.05


class ChangesReceiver(ABC):
    """The receiver of a log, with the tables whose changes it has.

    The snapshots of tables are read one after another. A connector defines `start`, which also
    returns where the log ends, and `receive`. It sets `transaction` by `begin` while the log is
    within a transaction, and `position` to the end of the last transaction that was received.
    """

    requests_responses: ClassVar[bool] = False
    """Whether the position of a quiet log comes only in a response to `confirm`."""

    def __init__(self, tables: Sequence[TableReceiver]) -> None:
        self.tables = tables
        self.transaction: Transaction | None = None
        self.position = 0
        self._end = 0
        """The position of the log after the last transaction whose rows are in the journals."""
        self._flushed = -_FLUSH_SECONDS
        self._waits_for_disk = False
        """Whether transactions were passed on whose rows may not be durable."""
        for table in tables:
            table.while_waiting = self._confirm_again

    @property
    def idle_seconds(self) -> float:
        """The time for which `receive` waits, shorter while a chunk is read, or rows must be
        made durable.
        """
        return _SHORT_SECONDS if self._is_reading or self._waits_for_disk else _IDLE_SECONDS

    @property
    def _is_reading(self) -> bool:
        return any(table.is_reading for table in self.tables)

    @abstractmethod
    async def start(self) -> int:
        """Prepares to receive. Returns a position of the log after all earlier transactions."""

    @abstractmethod
    async def receive(self) -> None:
        """Receives what has arrived, or waits `idle_seconds`. Passes changes to their tables."""

    def begin(self, transaction: Transaction) -> None:
        """Begins a transaction."""
        self.transaction = transaction
        for table in self.tables:
            table.begin(transaction)

    def confirm(self, end: int, *, reply: bool = False) -> None:
        """Stores, and sends to the server, that all changes before a position are durable.

        `reply` requests a response with the position that the log has reached.
        """
        for table in self.tables:
            table.confirmed.raise_to(end)

    def is_reply_requested(self) -> bool:
        """Returns whether the server waits for `confirm`."""
        return False

    def close(self) -> None:  # noqa: B027
        """Releases resources."""

    async def run(self) -> None:
        """Receives until cancelled. Raises Transient or Permanent."""
        try:
            await self._run()
        finally:
            for table in self.tables:
                table.cancel()
            self.close()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        confirmed = loop.time()
        backlog = await self.start()
        while True:
            self._begin_chunk()
            await self.receive()
            if self.transaction is None:
                await self._pass_on()
                if self._end >= backlog:
                    self._mark_complete()
            since = loop.time() - confirmed
            waits = (
                self.requests_responses
                and not all(table.journal.caught_up.is_set() for table in self.tables)
                and since >= _RESPONSE_SECONDS
            )
            if waits or self.is_reply_requested() or since >= _CONFIRM_SECONDS:
                self.confirm(self._end, reply=waits)
                confirmed = loop.time()

    async def _pass_on(self) -> None:
        """Passes the rows of the transactions so far to the journals, and at intervals waits
        until they are durable.
        """
        now = asyncio.get_running_loop().time()
        self._waits_for_disk = not self._is_reading and now - self._flushed < _FLUSH_SECONDS
        if self._waits_for_disk:
            for table in self.tables:
                await table.pass_on()
        else:
            await self.flush()
            self._flushed = now

    def _begin_chunk(self) -> None:
        """Begins a chunk of the first table whose snapshot is not complete."""
        table = next((table for table in self.tables if not table.is_complete), None)
        if table is not None:
            table.begin_chunk()

    async def flush(self) -> None:
        """Makes all rows of the transactions so far durable."""
        for table in self.tables:
            await table.flush()
        for table in self.tables:
            await table.finish_chunk(self.position)
        self._end = max(self._end, self.position)

    def _mark_complete(self) -> None:
        for table in self.tables:
            if table.is_complete:
                table.journal.caught_up.set()

    def _confirm_again(self) -> None:
        """Confirms what was confirmed: a full journal is no reason to disconnect."""
        self.confirm(self._end)
