"""A collection whose changes are in a change stream."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.connectors.mongodb.changes.events import Event
from penstock.connectors.mongodb.changes.snapshot import DOCUMENT, read_chunk, read_document
from penstock.connectors.mongodb.config import ID, ConnectionConfig
from penstock.sdk.database.changes import Chunk, Key, Row, TableReceiver, Transaction, Value
from penstock.sdk.operations import Operation


class MongodbCollection(TableReceiver):
    """The receiver of the changes of a collection. A row has an `_id` and its document.

    Each record of the journal has the token `reached`, after which the stream resumes. So no change
    is received twice. The numbers of the changes of one time continue after a restart.
    """

    def __init__(self, client: Any, config: ConnectionConfig, **options: Any) -> None:
        super().__init__(config.collection, (ID,), **options)
        self._client, self._config = client, config
        self.reached = ""

    def begin(self, transaction: Transaction) -> None:
        is_known = transaction.position == self.progress.commit
        self._number = self.progress.number if is_known else 0

    def payload(self, operation: Operation, row: Mapping[str, Value]) -> bytes:
        return change_payload(operation, row)

    def read_chunk(self, after: Key | None) -> Chunk:
        return read_chunk(self._client, self._config, after)

    def read_current(self, names: Sequence[str], key: Key) -> Row:
        (id_,) = key
        assert isinstance(id_, bytes)
        found = read_document(self._client, self._config, id_)
        return {} if found is None else {DOCUMENT: found}

    async def add(self, event: Event) -> None:
        """Adds a change. The one of a document that was deleted meanwhile is left out: its delete
        follows.
        """
        self.reached = event.token
        row: Row = {ID: event.key, DOCUMENT: event.document}
        if event.operation is Operation.DELETE:
            before = {ID: event.key, DOCUMENT: event.before}
            await self.change(event.transaction, event.operation, before, None)
            return
        if event.document is None:
            row |= await asyncio.to_thread(self.read_current, (DOCUMENT,), (event.key,))
        if row[DOCUMENT] is None:
            await self.mark_changed((event.key,), event.transaction)
        else:
            await self.change(event.transaction, event.operation, None, row)

    def _add(self, payload: bytes, transaction: Transaction | None, lsn: str = "") -> None:
        super()._add(payload, transaction, self.reached)


def change_payload(operation: Operation, row: Mapping[str, Value]) -> bytes:
    """Returns a change as BSON. Without its document a delete has the `_id` only."""
    import bson
    from bson.raw_bson import RawBSONDocument

    content = row[DOCUMENT] or row[ID]
    assert isinstance(content, bytes)
    return bson.encode({"op": operation.value, "row": RawBSONDocument(content)})
