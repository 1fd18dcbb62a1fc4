"""The receiver of changes: from the change stream to the collection."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock.connectors.mongodb.changes.events import parse_event, position_of_token
from penstock.connectors.mongodb.changes.snapshot import operation_time
from penstock.connectors.mongodb.changes.stream import ChangeStream
from penstock.connectors.mongodb.changes.table import MongodbCollection
from penstock.connectors.mongodb.config import ConnectionConfig
from penstock.core.errors import Permanent
from penstock.journal import JournalReader
from penstock.sdk.database.changes import ChangesReceiver, Confirmed, Progress


class MongodbReceiver(ChangesReceiver):
    """The receiver of the stream of a collection."""

    def __init__(
        self, collection: MongodbCollection, client: Any, config: ConnectionConfig,
        stream: ChangeStream,
    ) -> None:  # fmt: skip
        super().__init__([collection])
        self._collection, self._client, self._config = collection, client, config
        self._stream = stream
        self._durable: tuple[int, str] | None = None

    async def start(self) -> int:
        return await asyncio.to_thread(operation_time, self._client, self._config)

    async def receive(self) -> None:
        batch = await asyncio.to_thread(self._stream.next, self.idle_seconds)
        for found in batch.events:
            try:
                event = parse_event(found, self._config.collection)
            except Permanent:
                await self._collection.flush()
                raise
            if self.transaction is None or self.transaction.position != event.transaction.position:
                self.begin(event.transaction)
            self.transaction = event.transaction
            await self._collection.add(event)
        self.transaction = None
        self._collection.reached = batch.token
        self.position = max(self.position, position_of_token(batch.token))

    async def flush(self) -> None:
        await super().flush()
        text = confirmed_text(self._collection.journal.end, self._collection.reached)
        self._durable = (self.position, text)

    def confirm(self, end: int, *, reply: bool = False) -> None:
        if self._durable is not None:
            self._collection.confirmed.raise_to(*self._durable)

    def close(self) -> None:
        self._stream.close()


def confirmed_text(records: int, token: str) -> str:
    """Returns a token with the number of records in the journal before it."""
    return f"{records}:{token}"


def token_to_resume(reader: JournalReader, confirmed: Confirmed) -> str | None:
    """Returns the token of the last record, or the confirmed one if no record is after it.

    None if the changes from now on are to be read.
    """
    if not confirmed.position:
        return None
    records, _, token = confirmed.log.partition(":")
    if Progress.read(reader) is None or reader.end() <= int(records):
        return token
    end = reader.end()
    for _, batch in reader.read(end - 1, end):
        return str(batch.column("lsn")[-1].as_py())
    return token
