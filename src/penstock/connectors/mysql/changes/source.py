"""The source of the changes of a table."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.mysql.changes.events import EventParser, LoggedTable
from penstock.connectors.mysql.changes.receiver import MysqlReceiver
from penstock.connectors.mysql.changes.resume import Start, Stored, log_after, start_of
from penstock.connectors.mysql.changes.setup import (
    Requirements,
    charsets,
    ignores_case_of_tables,
)
from penstock.connectors.mysql.changes.stream import BinlogStream
from penstock.connectors.mysql.changes.table import MysqlTable
from penstock.connectors.mysql.config import MysqlSourceConfig, replica_id
from penstock.connectors.mysql.connection import MysqlConnection
from penstock.connectors.mysql.texts import to_rows
from penstock.sdk import Journal, ReceivingSource
from penstock.sdk.database.changes import Confirmed, TableChangesSource, measure_logs, metadata_of
from penstock.sdk.database.config import CONNECT_SECONDS
from penstock.sdk.retained_log import RetainedLog
from penstock.sdk.source import Offset


class MysqlChangesSource(TableChangesSource[MysqlSourceConfig]):
    """Reads the rows of a table, then their changes. See `MysqlSource`."""

    extra = "mysql"
    client_modules = ("pymysql", "pymysqlreplication")
    acknowledges = "the position of the log advances once changes are on disk"
    metadata = metadata_of(pa.string())

    @property
    def _server_id(self) -> int:
        if self.config.server_id is not None:
            return self.config.server_id
        return replica_id(f"{self.context.pipeline}/{self.context.node}/{self.directory}")

    def connect(self) -> MysqlConnection:
        return MysqlConnection(self.config)

    def to_rows(self, texts: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
        return to_rows(texts, columns)

    def check_changes(self, connection: Any, key: tuple[str, ...]) -> None:
        Requirements(self.table, key).check(connection)

    def commit(self, end: Offset) -> None:
        """Removes records up to those after the stored place, which another server has elsewhere.

        All are removed once the journal is half full, as in a transaction that is larger.
        """
        kept = Confirmed(self.directory).records
        half_full = self.is_half_full()
        super().commit(end if half_full else {**end, "position": min(end["position"], kept)})

    def shared_receiver(self) -> str | None:
        number = self.config.server_id
        return None if number is None else f"mysql {self.config.address} {number}"

    async def receive_log(self, sources: Sequence[tuple[ReceivingSource[Any], Journal]]) -> None:
        parts = [(s, journal) for s, journal in sources if isinstance(s, MysqlChangesSource)]
        with ExitStack() as stack:
            connection, lookup = [
                stack.enter_context(closing(await asyncio.to_thread(self.connect)))
                for _ in range(2)
            ]
            # Closes the connections while they read.
            stack.callback(lookup.abort)
            stored = [await asyncio.to_thread(s.stored, connection) for s, _ in parts]
            start = await asyncio.to_thread(start_of, connection, stored)
            tables = [
                await asyncio.to_thread(
                    source.receiver_of_table, journal, connection, lookup, each, start
                )
                for (source, journal), each in zip(parts, stored, strict=True)
            ]
            logged = {
                table.place: LoggedTable(table.confirmed.position, s.catalog, s.table_columns)
                for table, (s, _) in zip(tables, parts, strict=True)
            }
            sets = await asyncio.to_thread(charsets, connection)
            ignores_case = await asyncio.to_thread(ignores_case_of_tables, connection)
            parser = EventParser(
                logged, sets, start.place.file, start.place.gtids, ignores_case=ignores_case
            )
            stream = BinlogStream(
                self.config, self._server_id, parser, start.offset,
                is_mariadb=connection.is_mariadb,
            )  # fmt: skip
            stack.enter_context(closing(stream))
            for _, journal in sources:
                journal.ready.set()
            measure = measure_logs(partial(self._measured, [source for source, _ in parts]))
            stack.callback(asyncio.create_task(measure).cancel)
            await MysqlReceiver(tables, connection, stream, start.shift).run()

    def _measured(self, sources: Sequence[MysqlChangesSource]) -> dict[Path, RetainedLog]:
        """Returns the log after the stored place of each source."""
        config = self.config.model_copy(update={"timeout": CONNECT_SECONDS})
        with closing(MysqlConnection(config)) as connection:
            found = {s.directory: log_after(connection, Confirmed(s.directory)) for s in sources}
        return {path: RetainedLog(size) for path, size in found.items() if size is not None}

    def stored(self, connection: MysqlConnection) -> Stored:
        """Returns the stored place of the table, which can be read."""
        Requirements(self.table, self.primary_key).check(connection)
        if self.config.snapshot and self._reader.end() == 0:
            self.check_declared(connection)
        # Of a log with a loss, the changes that remain are read.
        remains = self._reader.end() > 0 and self.config.on_data_loss == "continue"
        confirmed = Confirmed(self.directory)
        return Stored(confirmed, self._reader, self.progress(), from_start=remains)

    def receiver_of_table(
        self, journal: Journal, connection: MysqlConnection, lookup: MysqlConnection,
        stored: Stored, start: Start,
    ) -> MysqlTable:  # fmt: skip
        """Returns the receiver of the table, whose changes are read from now on at the latest."""
        place = Requirements(self.table, self.primary_key).resolve_table(connection)
        connection.rollback()
        return MysqlTable(
            self.table, self.primary_key, place, connection, lookup,
            shift=start.shift, received=start.received(stored), journal=journal,
            progress=stored.progress, confirmed=stored.confirmed,
            max_journal_size=self.config.journal.max_size, schemas=self.schema_writer(),
            truncations=self.truncation_writer(),
        )  # fmt: skip

    def catalog(self) -> pa.Schema:
        """Returns the columns of the table now."""
        with closing(self.connect()) as connection:
            return connection.columns(self.table) or pa.schema([])
