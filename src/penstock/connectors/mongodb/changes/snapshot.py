"""Chunks of a snapshot, in the order of `_id`.

The documents of a chunk are read at several times, so each change that arrives since the begin of
the read is newer than the chunk, or in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from penstock.connectors.mongodb.changes.events import key_of, position_of, value_of
from penstock.connectors.mongodb.client import raw_codec_options
from penstock.connectors.mongodb.config import ID, ConnectionConfig
from penstock.connectors.mongodb.documents import split_documents
from penstock.connectors.mongodb.errors import translate_errors
from penstock.sdk.database.changes import Chunk, Key, Row, Transaction
from penstock.sdk.database.changes.chunks import CHUNK_ROWS

DOCUMENT = "document"
"""The name of the document in a row, beside its `_id`."""
_CHUNK_BYTES = 16 << 20


@dataclass(frozen=True)
class DocumentChunk(Chunk):
    """A chunk that may lack each transaction since its read has begun."""

    def contains(self, transaction: Transaction) -> bool:
        return False


def read_chunk(client: Any, config: ConnectionConfig, after: Key | None) -> Chunk:
    """Reads the documents after a key. Raises Transient or Permanent."""
    rows: list[Row] = []
    size, is_last = 0, True
    for content in _documents(client, config, after):
        rows.append({ID: _key(content), DOCUMENT: content})
        size += len(content)
        if len(rows) == CHUNK_ROWS or size > _CHUNK_BYTES:
            is_last = False
            break
    return DocumentChunk(rows, is_last, operation_time(client, config), "", None)


def read_document(client: Any, config: ConnectionConfig, key: bytes) -> bytes | None:
    """Returns the current document with a key; None without one."""
    with translate_errors(config):
        found = _collection(client, config).find_one({ID: {"$eq": value_of(key)}})
    return None if found is None else found.raw


def operation_time(client: Any, config: ConnectionConfig) -> int:
    """Returns the position of the oplog after all changes that were read before."""
    with translate_errors(config):
        return position_of(client.admin.command("ping")["operationTime"])


def _documents(client: Any, config: ConnectionConfig, after: Key | None) -> Iterator[bytes]:
    """Yields documents in the order of all types of `_id`, which `$expr` compares."""
    condition: dict[str, Any] = {}
    if after is not None:
        (key,) = after
        assert isinstance(key, bytes)
        condition = {"$expr": {"$gt": [f"${ID}", {"$literal": value_of(key)}]}}
    collection = _collection(client, config)
    with (
        translate_errors(config),
        closing(collection.find_raw_batches(condition, sort=[(ID, 1)], limit=CHUNK_ROWS)) as found,
    ):
        for content in found:
            yield from split_documents(content)


def _collection(client: Any, config: ConnectionConfig) -> Any:
    from pymongo.read_concern import ReadConcern

    return client[config.database].get_collection(
        config.collection, raw_codec_options(), read_concern=ReadConcern("majority")
    )


def _key(content: bytes) -> bytes:
    from bson.raw_bson import RawBSONDocument

    return key_of(RawBSONDocument(content, raw_codec_options())[ID])
