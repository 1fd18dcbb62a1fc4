"""The receiver of changes: from the binary log to the tables that read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.connectors.mysql.changes.events import (
    Begin,
    Change,
    Described,
    Place,
    Reached,
    Truncated,
)
from penstock.connectors.mysql.changes.positions import LogPlace
from penstock.connectors.mysql.changes.snapshot import log_end
from penstock.connectors.mysql.changes.stream import BinlogStream
from penstock.connectors.mysql.changes.table import MysqlTable
from penstock.connectors.mysql.connection import MysqlConnection
from penstock.sdk.database.changes import ChangesReceiver


class MysqlReceiver(ChangesReceiver):
    """The receiver of a connection to the binary log."""

    def __init__(
        self, tables: Sequence[MysqlTable], connection: MysqlConnection, stream: BinlogStream,
        shift: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(tables)
        self._own_tables = tables
        self._connection, self._stream, self._shift = connection, stream, shift
        self._reached: LogPlace | None = None
        self._durable: tuple[int, LogPlace, list[int]] | None = None

    async def start(self) -> int:
        file, offset = log_end(self._connection, self._shift)
        return file.at(offset)

    async def receive(self) -> None:
        for message in await self._stream.messages(self.idle_seconds):
            if isinstance(message, Change):
                assert self.transaction is not None
                for table in self._tables_of(message.table):
                    await table.change(
                        self.transaction, message.operation, message.before, message.after
                    )
            elif isinstance(message, Begin):
                self.begin(message.transaction)
            elif isinstance(message, Described):
                for table in self._tables_of(message.table):
                    table.describe(message.columns)
            elif isinstance(message, Reached):
                self.transaction = None
                for table in self._own_tables:
                    table.reach(message.position, message.place.gtids)
                if message.position >= self.position:
                    self.position, self._reached = message.position, message.place
            elif isinstance(message, Truncated):
                assert self.transaction is not None
                for table in self._tables_of(message.table):
                    await table.truncate(self.transaction, is_part=message.is_part)

    async def flush(self) -> None:
        await super().flush()
        if self._reached is not None:
            ends = [table.journal.position for table in self._own_tables]
            self._durable = (self.position, self._reached, ends)

    def confirm(self, end: int, *, reply: bool = False) -> None:
        if self._durable is not None:
            position, place, ends = self._durable
            for table, records in zip(self._own_tables, ends, strict=True):
                if table.confirms(position):
                    table.confirmed.raise_to(position, str(place), records)

    def close(self) -> None:
        self._connection.abort()

    def _tables_of(self, place: Place) -> Iterator[MysqlTable]:
        return (table for table in self._own_tables if table.place == place)
