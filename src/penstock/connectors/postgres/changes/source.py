"""The source of the changes of a table."""

from __future__ import annotations

import asyncio
import re
from contextlib import closing
from typing import Any

import pyarrow as pa

from penstock.connectors.postgres.changes.receiver import PostgresReceiver
from penstock.connectors.postgres.changes.setup import Replication
from penstock.connectors.postgres.changes.stream import ReplicationStream
from penstock.connectors.postgres.config import PostgresSourceConfig
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.connectors.postgres.texts import to_rows
from penstock.sdk import Journal
from penstock.sdk.database.changes import ChangesSource, Confirmed, Progress, metadata_of

_NAME_LENGTH = 63


class PostgresChangesSource(ChangesSource[PostgresSourceConfig]):
    """Reads the rows of a table, then their changes. See `PostgresSource`."""

    acknowledges = "the slot advances once changes are on disk"
    metadata = metadata_of(pa.int64())

    @property
    def _slot(self) -> str:
        name = self.config.slot or f"penstock_{self.context.pipeline}_{self.context.node}"
        return re.sub(r"[^a-z0-9_]", "_", name.lower())[:_NAME_LENGTH]

    def _replication(self, key: tuple[str, ...]) -> Replication:
        return Replication(self.table, key, self._slot, self.config.publication or self._slot)

    def connect(self) -> PostgresConnection:
        return PostgresConnection(self.config, autocommit=True)

    def to_rows(self, texts: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
        return to_rows(texts, columns)

    def check_changes(self, connection: Any, key: tuple[str, ...]) -> None:
        self._replication(key).check(connection)

    async def receive(self, journal: Journal) -> None:
        progress = Progress.read(self._reader)
        connection = await asyncio.to_thread(self.connect)
        with closing(connection):
            replication = self._replication(self.primary_key)
            await asyncio.to_thread(replication.check, connection)
            confirmed, resumes = Confirmed(self.directory), progress is not None
            await asyncio.to_thread(replication.create, connection, confirmed, resumes=resumes)
            names = replication.slot, replication.publication
            stream = await asyncio.to_thread(ReplicationStream, self.config, *names)
            with closing(stream):
                journal.ready.set()
                receiver = PostgresReceiver(
                    self.config, replication, connection, stream, journal,
                    progress or Progress(), confirmed, self.schema_writer(),
                )  # fmt: skip
                await receiver.run()
