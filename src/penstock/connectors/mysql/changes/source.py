"""The source of the changes of a table."""

from __future__ import annotations

import asyncio
import zlib
from contextlib import closing
from typing import Any

import pyarrow as pa

from penstock.connectors.mysql.changes.events import EventParser
from penstock.connectors.mysql.changes.positions import LogFile, file_offset
from penstock.connectors.mysql.changes.receiver import MysqlReceiver
from penstock.connectors.mysql.changes.setup import Requirements, charsets
from penstock.connectors.mysql.changes.snapshot import log_end
from penstock.connectors.mysql.changes.stream import BinlogStream
from penstock.connectors.mysql.config import MysqlSourceConfig
from penstock.connectors.mysql.connection import MysqlConnection
from penstock.connectors.mysql.texts import to_rows
from penstock.sdk import Journal
from penstock.sdk.database.changes import ChangesSource, Confirmed, Progress, metadata_of

_FIRST_ID, _IDS = 1 << 30, 3 << 30
"""Server IDs that people seldom give."""


class MysqlChangesSource(ChangesSource[MysqlSourceConfig]):
    """Reads the rows of a table, then their changes. See `MysqlSource`."""

    extra = "mysql"
    client_modules = ("pymysql", "pymysqlreplication")
    acknowledges = "the position of the log advances once changes are on disk"
    metadata = metadata_of(pa.string())

    @property
    def _server_id(self) -> int:
        if self.config.server_id is not None:
            return self.config.server_id
        name = f"{self.context.pipeline}/{self.context.node}/{self.directory}"
        return _FIRST_ID + zlib.crc32(name.encode()) % _IDS

    def connect(self) -> MysqlConnection:
        return MysqlConnection(self.config)

    def to_rows(self, texts: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
        return to_rows(texts, columns)

    def check_changes(self, connection: Any, key: tuple[str, ...]) -> None:
        Requirements(self.table, key).check(connection)

    async def receive(self, journal: Journal) -> None:
        with closing(await asyncio.to_thread(self.connect)) as connection:
            parser, offset, confirmed = await asyncio.to_thread(self._prepare, connection)
            with closing(BinlogStream(self.config, self._server_id, parser, offset)) as stream:
                journal.ready.set()
                receiver = MysqlReceiver(
                    self.config, self.table, self.primary_key, connection, stream, journal,
                    Progress.read(self._reader) or Progress(), confirmed, self.schema_writer(),
                )  # fmt: skip
                await receiver.run()

    def _prepare(self, connection: MysqlConnection) -> tuple[EventParser, int, Confirmed]:
        """Checks the requirements. Returns the place of the log from which changes are read."""
        requirements = Requirements(self.table, self.primary_key)
        requirements.check(connection)
        confirmed = Confirmed(self.directory)
        if not confirmed.position:
            file, end = log_end(connection)
            confirmed.raise_to(file.at(end), str(file))
        parser = EventParser(
            requirements.resolve_table(connection), charsets(connection), self._catalog,
            LogFile.parse(confirmed.log), self.table_columns,
        )  # fmt: skip
        connection.rollback()
        return parser, file_offset(confirmed.position), confirmed

    def _catalog(self) -> pa.Schema:
        """Returns the columns of the table now."""
        with closing(self.connect()) as connection:
            return connection.columns(self.table) or pa.schema([])
