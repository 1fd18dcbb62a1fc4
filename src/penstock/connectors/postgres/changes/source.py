"""The source of the changes of a table."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.postgres.changes.receiver import PostgresReceiver
from penstock.connectors.postgres.changes.setup import Replication, retained_log
from penstock.connectors.postgres.changes.stream import ReplicationStream
from penstock.connectors.postgres.changes.table import PostgresTable
from penstock.connectors.postgres.config import PostgresSourceConfig
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.connectors.postgres.privileges import check_privileges
from penstock.connectors.postgres.texts import to_rows
from penstock.core.files.durable import replace_durably
from penstock.sdk import Journal, ReceivingSource
from penstock.sdk.database.changes import (
    Confirmed,
    TableChangesSource,
    measure_logs,
    metadata_of,
)
from penstock.sdk.database.changes.rows import operation_of
from penstock.sdk.database.config import CONNECT_SECONDS
from penstock.sdk.operations import Operation
from penstock.sdk.retained_log import RetainedLog
from penstock.sdk.source import Offset

_NAME_LENGTH = 63


class PostgresChangesSource(TableChangesSource[PostgresSourceConfig]):
    """Reads the rows of a table, then their changes. See `PostgresSource`."""

    acknowledges = "the slot advances once changes are on disk"
    metadata = metadata_of(pa.int64())

    @property
    def _slot(self) -> str:
        name = self.config.slot or f"penstock_{self.context.pipeline}_{self.context.node}"
        return re.sub(r"[^a-z0-9_]", "_", name.lower())[:_NAME_LENGTH]

    def _replication(self, key: tuple[str, ...]) -> Replication:
        return Replication(
            self.table, key, self._slot, self.publication, whole_rows=self.config.before_updates,
            truncations=self.config.on_truncate != "ignore", rows=self.config.snapshot,
            columns=() if self.columns is None else tuple(self.table_columns.names),
        )  # fmt: skip

    @property
    def publication(self) -> str:
        """The name of the publication."""
        return self.config.publication or self._slot

    def connect(self) -> PostgresConnection:
        return PostgresConnection(self.config, autocommit=True)

    def to_rows(self, texts: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
        return to_rows(texts, columns)

    def check_changes(self, connection: Any, key: tuple[str, ...]) -> None:
        self._replication(key).check(connection)
        check_privileges(connection, self.table, ["SELECT"])

    def latest_offset(self, start: Offset) -> Offset:
        latest = super().latest_offset(start)
        return self._offset(start, latest["position"] - self._is_divided(start, latest))

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        limited = super().limit_batch(start, end)
        if limited == end:
            return end
        return self._offset(start, limited["position"] + self._is_divided(start, limited))

    def _is_divided(self, start: Offset, end: Offset) -> bool:
        """Returns whether a batch ends after the first of the two rows of an update."""
        position = end["position"]
        if not self.config.before_updates or position == start["position"]:
            return False
        ((_, batch),) = self._reader.read(position - 1, position)
        return operation_of(batch.column("payload")[0].as_py()) is Operation.UPDATE_BEFORE

    def shared_receiver(self) -> str | None:
        slot = self.config.slot
        return None if slot is None else f"postgres {self.config.address} {slot}"

    async def receive_log(self, sources: Sequence[tuple[ReceivingSource[Any], Journal]]) -> None:
        with ExitStack() as stack:
            connection = stack.enter_context(closing(await asyncio.to_thread(self.connect)))
            lookup = stack.enter_context(closing(await asyncio.to_thread(self.connect)))
            tables = [
                await asyncio.to_thread(source.receiver_of_table, journal, connection, lookup)
                for source, journal in sources
                if isinstance(source, PostgresChangesSource)
            ]
            publications = dict.fromkeys(
                source.publication for source, _ in sources
                if isinstance(source, PostgresChangesSource)
            )  # fmt: skip
            stream = await asyncio.to_thread(
                ReplicationStream, self.config, self._slot, tuple(publications)
            )
            stack.enter_context(closing(stream))
            for _, journal in sources:
                journal.ready.set()
            measure = measure_logs(partial(self._measured, [source for source, _ in sources]))
            stack.callback(asyncio.create_task(measure).cancel)
            await PostgresReceiver(tables, connection, stream).run()

    def _measured(self, sources: Sequence[ReceivingSource[Any]]) -> dict[Path, RetainedLog]:
        """Returns the log that the server retains for the slot, for each source."""
        config = self.config.model_copy(update={"timeout": CONNECT_SECONDS})
        with closing(PostgresConnection(config, autocommit=True)) as connection:
            size = retained_log(connection, self._slot)
        log = RetainedLog(size)
        return {} if size is None else {source.directory: log for source in sources}

    def receiver_of_table(
        self, journal: Journal, connection: PostgresConnection, lookup: PostgresConnection
    ) -> PostgresTable:
        """Returns the receiver of the table, once its slot and its publication exist."""
        replication = self._replication(self.primary_key)
        replication.check(connection)
        confirmed = Confirmed(self.directory)
        # A snapshot that has no rows yet is read again, also from a new slot.
        has_read = self._reader.end() > 0 or not self.config.snapshot
        if not has_read:
            self.check_declared(connection)
        resumes = has_read and confirmed.position > 0
        number = self._number_of_table(replication, connection, resumes=resumes)
        replication.create(
            connection, confirmed, resumes=resumes, replaces=self.config.on_data_loss != "fail"
        )
        return PostgresTable(
            replication, replication.resolve_table(connection), connection, lookup,
            number=number,
            before_updates=self.config.before_updates, journal=journal,
            progress=self.progress(), confirmed=confirmed,
            max_journal_size=self.config.journal.max_size, schemas=self.schema_writer(),
            truncations=self.truncation_writer(),
        )  # fmt: skip

    def _number_of_table(
        self, replication: Replication, connection: PostgresConnection, *, resumes: bool
    ) -> int:
        """Returns the OID of the table, which is stored. Raises LostChanges if it was another."""
        path = self.directory / "table"
        known = int(path.read_text()) if resumes and path.exists() else None
        number = replication.number_of_table(connection, known)
        if known is None:
            replace_durably(path, str(number))
        return number
