"""The source of the changes of a table."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa

from penstock.connectors.postgres.changes.progress import PROGRESS, Confirmed, Progress
from penstock.connectors.postgres.changes.receiver import PART_BYTES, Receiver
from penstock.connectors.postgres.changes.setup import Replication
from penstock.connectors.postgres.changes.snapshot import METADATA
from penstock.connectors.postgres.changes.stream import ReplicationStream
from penstock.connectors.postgres.config import PostgresSourceConfig
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.connectors.postgres.texts import to_rows
from penstock.core.errors import DecodeError, OptionError, RecordError
from penstock.core.text import did_you_mean
from penstock.sdk import Capability, Journal, Read, ReceivingSource
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.columns.conform import decode_error
from penstock.sdk.database import TableName
from penstock.sdk.database.types import without_declared
from penstock.sdk.messages.size_limit import reject_oversized
from penstock.sdk.receiving import ORIGIN

_NAME_LENGTH = 63


class PostgresChangesSource(ReceivingSource[PostgresSourceConfig]):
    """Reads the rows of a table, then their changes. See `PostgresSource`."""

    capabilities = frozenset(
        {
            Capability.REPLAY,
            Capability.LIMIT,
            Capability.ORDERED,
            Capability.TAIL,
            Capability.ROWS,
        }
    )
    carries_operations = True
    catches_up = True
    declares_primary_key = True
    locates_rows = True
    acknowledges = "the slot advances once changes are on disk"

    @property
    def _table(self) -> TableName:
        assert self.config.table is not None
        return TableName.parse(self.config.table)

    @property
    def _slot(self) -> str:
        name = self.config.slot or f"penstock_{self.context.pipeline}_{self.context.node}"
        return re.sub(r"[^a-z0-9_]", "_", name.lower())[:_NAME_LENGTH]

    @property
    def _replication(self) -> Replication:
        publication = self.config.publication or self._slot
        return Replication(self._table, self.primary_key, self._slot, publication)

    def check(self) -> None:
        with closing(PostgresConnection(self.config, autocommit=True)) as connection:
            self._columns(connection)
            key = self.primary_key or connection.primary_key(self._table)
            Replication(self._table, key, self._slot, "").check(connection)

    def infer_schema(self) -> pa.Schema | None:
        with closing(PostgresConnection(self.config, autocommit=True)) as connection:
            return without_declared(self._columns(connection))

    def infer_primary_key(self) -> tuple[str, ...]:
        with closing(PostgresConnection(self.config, autocommit=True)) as connection:
            return connection.primary_key(self._table)

    def _columns(self, connection: PostgresConnection) -> pa.Schema:
        columns = connection.columns(self._table)
        if columns is None:
            raise OptionError.of(
                "table", message=f'there is no table "{self.config.table}"', code="unknown-table",
                hint=did_you_mean(str(self._table), map(str, connection.tables())),
            )  # fmt: skip
        return columns

    def message_metadata_schema(self) -> pa.Schema:
        return pa.schema([*METADATA, *PROGRESS])

    def metadata_schema(self) -> pa.Schema:
        hidden = PROGRESS.names
        return pa.schema([field for field in super().metadata_schema() if field.name not in hidden])

    async def receive(self, journal: Journal) -> None:
        progress = Progress.read(self._reader)
        connection = await asyncio.to_thread(PostgresConnection, self.config, autocommit=True)
        with closing(connection):
            replication = self._replication
            await asyncio.to_thread(replication.check, connection)
            confirmed, resumes = Confirmed(self.directory), progress is not None
            await asyncio.to_thread(replication.create, connection, confirmed, resumes=resumes)
            names = replication.slot, replication.publication
            stream = await asyncio.to_thread(ReplicationStream, self.config, *names)
            with closing(stream):
                journal.ready.set()
                receiver = Receiver(
                    replication, connection, stream, journal, progress or Progress(),
                    confirmed,
                    ignores_truncate=self.config.on_truncate == "ignore",
                    part_bytes=min(PART_BYTES, self.config.journal.max_size // 8),
                )  # fmt: skip
                await receiver.run()

    def read(self, partition: tuple[int, int], read: Read) -> Iterator[pa.RecordBatch]:
        for first, batch in self._reader.read(*partition):
            count = batch.num_rows
            located = {
                "payload": batch.column("payload"),
                "origin": pa.repeat(ORIGIN, count),
                "position": pa.array(range(first, first + count), pa.int64()),
            }
            others = {name: batch.column(name) for name in read.metadata if name not in located}
            rows = pa.record_batch({**located, **others})
            yield from self._decoded(
                reject_oversized(rows, batch.column("rejected_size"), read), read
            )

    def decode(self, payload: bytes, origin: str, position: int) -> pa.RecordBatch:
        try:
            return self._rows([payload])
        except pa.ArrowException as error:
            raise decode_error(error) from None

    def _decoded(self, messages: pa.RecordBatch, read: Read) -> Iterator[pa.RecordBatch]:
        payloads = messages.column("payload").to_pylist()

        def attempt(start: int, stop: int) -> pa.RecordBatch:
            return self._rows(payloads[start:stop])

        for start, stop, result in bisect_failures(len(payloads), attempt, decode_error):
            if isinstance(result, RecordError):
                position = messages.column("position")[start].as_py()
                read.reject(payloads[start], ORIGIN, position, result)
                continue
            columns = [
                *result.columns,
                *(messages.column(name).slice(start, stop - start) for name in read.metadata),
            ]
            names = [*result.schema.names, *read.metadata]
            yield pa.RecordBatch.from_arrays(columns, names)

    def _rows(self, payloads: list[bytes]) -> pa.RecordBatch:
        """Returns the rows of payloads of the journal, with their operations."""
        assert self.columns is not None
        try:
            changes: list[dict[str, Any]] = [json.loads(payload) for payload in payloads]
        except ValueError as error:
            raise DecodeError(f"the record is not a change: {error}", code="not-json") from None
        rows = [change["row"] for change in changes]
        texts = {
            field.name: pa.array(
                [change["op"] for change in changes]
                if field.name == self.operation_column
                else [row.get(field.name) for row in rows],
                pa.string(),
            )
            for field in self.columns
        }
        return to_rows(pa.record_batch(texts), self.columns)
