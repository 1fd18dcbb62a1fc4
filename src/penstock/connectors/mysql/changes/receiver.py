"""The receiver of changes: from the binary log to the journal."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.connectors.mysql.changes.events import (
    Begin,
    Change,
    Described,
    Reached,
    Truncated,
)
from penstock.connectors.mysql.changes.positions import LogFile, file_number
from penstock.connectors.mysql.changes.snapshot import log_end, read_chunk, read_current
from penstock.connectors.mysql.changes.stream import BinlogStream
from penstock.connectors.mysql.config import MysqlSourceConfig
from penstock.connectors.mysql.connection import MysqlConnection
from penstock.sdk import Journal
from penstock.sdk.database import TableName
from penstock.sdk.database.changes import (
    ChangesReceiver,
    Chunk,
    Confirmed,
    Key,
    Progress,
    Row,
    SchemaWriter,
)


class MysqlReceiver(ChangesReceiver):
    """The receiver of the changes of one table."""

    def __init__(
        self, config: MysqlSourceConfig, table: TableName, key: tuple[str, ...],
        connection: MysqlConnection, stream: BinlogStream, journal: Journal, progress: Progress,
        confirmed: Confirmed, schemas: SchemaWriter | None,
    ) -> None:  # fmt: skip
        super().__init__(key, journal, progress, confirmed, config.journal.max_size, schemas)
        self._config, self._table = config, table
        self._connection, self._stream = connection, stream
        self._lookup: MysqlConnection | None = None
        self._files: dict[int, LogFile] = {}

    async def start(self) -> int:
        file, offset = log_end(self._connection)
        return file.at(offset)

    async def receive(self) -> None:
        for message in await self._stream.messages(self.idle_seconds):
            if isinstance(message, Change):
                await self.change(message.operation, message.before, message.after)
            elif isinstance(message, Begin):
                self.transaction, self.number = message.transaction, 0
            elif isinstance(message, Described):
                self.described = message.columns
            elif isinstance(message, Reached):
                self.transaction = None
                self._files[message.file.number] = message.file
                self.position = max(self.position, message.position)
            elif isinstance(message, Truncated) and self._config.on_truncate == "fail":
                self.truncated(str(self._table))

    def read_chunk(self, after: Key | None) -> Chunk:
        return read_chunk(self._connection, self._table, self.key, after)

    def read_current(self, names: Sequence[str], key: Key) -> Row:
        if self._lookup is None:
            self._lookup = MysqlConnection(self._config)
        return read_current(self._lookup, self._table, names, self.key, key)

    def confirm(self, end: int, *, reply: bool = False) -> None:
        number = file_number(end)
        if number in self._files:
            self.confirmed.raise_to(end, str(self._files[number]))
            self._files = {n: each for n, each in self._files.items() if n >= number}

    def close(self) -> None:
        self._connection.abort()
        if self._lookup is not None:
            self._lookup.abort()
