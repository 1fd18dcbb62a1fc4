"""The source of the changes of a collection."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.connectors.mongodb.changes.events import position_of_token
from penstock.connectors.mongodb.changes.oplog import oplog_after
from penstock.connectors.mongodb.changes.receiver import (
    MongodbReceiver,
    confirmed_text,
    token_to_resume,
)
from penstock.connectors.mongodb.changes.setup import check_key, check_server, has_images
from penstock.connectors.mongodb.changes.stream import ChangeStream
from penstock.connectors.mongodb.changes.table import MongodbCollection
from penstock.connectors.mongodb.client import create_client, from_json, to_json
from penstock.connectors.mongodb.config import MongodbSourceConfig
from penstock.connectors.mongodb.documents import Undecodable, columns_of, decode_documents
from penstock.connectors.mongodb.reading import Reader
from penstock.core.errors import DecodeError
from penstock.sdk import Journal, ReceivingSource
from penstock.sdk.bisect_failures import FailedRow
from penstock.sdk.database.changes import (
    ChangesSource,
    Confirmed,
    measure_logs,
    metadata_of,
)
from penstock.sdk.retained_log import RetainedLog

_LENGTH = 4
"""The bytes of the length of BSON, with which it starts."""


class MongodbChangesSource(ChangesSource[MongodbSourceConfig]):
    """Reads the documents of a collection, then their changes. See `MongodbSource`."""

    extra = "mongodb"
    client_modules = ("pymongo",)
    acknowledges = "the resume token advances once changes are on disk"
    metadata = metadata_of(pa.string())

    @property
    def relation(self) -> str:
        return self.config.collection

    def check(self) -> None:
        with closing(create_client(self.config)) as client:
            check_server(client, self.config)
            images = has_images(client, self.config)
            check_key(self.primary_key or self.infer_primary_key(), self.config)
            ChangeStream(client, self.config, None, has_images=images).close()

    def infer_schema(self) -> pa.Schema | None:
        with closing(Reader(self.config)) as reader:
            return reader.sample_columns()

    def infer_primary_key(self) -> tuple[str, ...]:
        return (self.config.id_column,)

    async def receive_log(self, sources: Sequence[tuple[ReceivingSource[Any], Journal]]) -> None:
        ((_, journal),) = sources
        with ExitStack() as stack:
            client = stack.enter_context(closing(create_client(self.config)))
            collection, stream = await asyncio.to_thread(self._open, client, journal)
            journal.ready.set()
            measure = measure_logs(partial(self._measured, client))
            stack.callback(asyncio.create_task(measure).cancel)
            await MongodbReceiver(collection, client, self.config, stream).run()

    def _measured(self, client: Any) -> dict[Path, RetainedLog]:
        """Returns the oplog after the stored token."""
        position = Confirmed(self.directory).position
        return {self.directory: oplog_after(client, self.config, position)} if position else {}

    def _open(self, client: Any, journal: Journal) -> tuple[MongodbCollection, ChangeStream]:
        """Returns the receiver of the collection and its stream, whose position is durable."""
        check_server(client, self.config)
        images, confirmed = has_images(client, self.config), Confirmed(self.directory)
        after = token_to_resume(self._reader, confirmed)
        stream = ChangeStream(client, self.config, after, has_images=images)
        if after is None:
            text = confirmed_text(self._reader.end(), stream.token)
            confirmed.raise_to(position_of_token(stream.token), text)
        collection = MongodbCollection(
            client, self.config, journal=journal, confirmed=confirmed,
            progress=self.progress(),
            max_journal_size=self.config.journal.max_size,
        )  # fmt: skip
        collection.reached = after or stream.token
        return collection, stream

    def rows_of(self, payloads: Sequence[bytes]) -> pa.RecordBatch:
        assert self.columns is not None
        changes = [each for payload in payloads for each in _changes(payload)]
        documents = []
        for index, change in enumerate(changes):
            if isinstance(change, Undecodable):
                raise FailedRow(index, change.error)
            documents.append(change["row"])
        place = self.columns.get_field_index(self.operation_column)
        rows = columns_of(documents, self.columns.remove(place), self.config.field_of)
        operations = pa.array([change["op"] for change in changes], pa.string())
        return rows.add_column(place, self.columns.field(place), operations)

    def dead_letter(self, payload: bytes) -> bytes:
        (change,) = _changes(payload)
        if isinstance(change, Undecodable):
            return payload
        return to_json(change, canonical=True).encode(errors="backslashreplace")


def _changes(payload: bytes) -> Sequence[Any]:
    """Returns the change in a payload, which is BSON, or the Extended JSON of a dead letter."""
    if int.from_bytes(payload[:_LENGTH], "little") == len(payload):
        return decode_documents(payload)
    try:
        return [from_json(payload.decode())]
    except (ValueError, TypeError) as error:
        raise DecodeError(f"the record is not a change: {error}", code="not-json") from None
