"""A writer of rows as documents, in bulk writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.mongodb.client import codec_options, create_client
from penstock.connectors.mongodb.config import ID, MongodbSinkConfig
from penstock.connectors.mongodb.documents import split_documents
from penstock.connectors.mongodb.encoding import Encoding, encode_document
from penstock.connectors.mongodb.errors import (
    DUPLICATE_KEY,
    concern_error,
    row_error,
    translate_errors,
)
from penstock.core.errors import ConnectError, EncodeError, RecordError
from penstock.sdk import Failure, Operation, Receipt, Writer
from penstock.sdk.keys import split_null_keys


@dataclass(frozen=True)
class Statement:
    """The insert of a document, its upsert by a key, or a delete without a document."""

    content: bytes | None
    key: Mapping[str, Any] | None = None
    own_id: Any = None
    """The `_id` of an insert, if the row has it."""

    @property
    def document(self) -> Any:
        """The document as its bytes."""
        import bson.raw_bson

        return bson.raw_bson.RawBSONDocument(self.content or b"")

    @property
    def request(self) -> Any:
        """The request of the client."""
        import pymongo

        if self.content is None:
            return pymongo.DeleteOne(self.key or {})
        if self.key is None:
            return pymongo.InsertOne(self.document)
        return pymongo.ReplaceOne(self.key, self.document, upsert=True)


class Target:
    """The collection of a sink, and the size of the largest document that the server accepts."""

    def __init__(self, config: MongodbSinkConfig) -> None:
        self._client = create_client(config)
        database = self._client[config.database]
        self.collection = database.get_collection(config.collection, codec_options())
        try:
            with translate_errors(config):
                self.max_size = int(database.command("hello")["maxBsonObjectSize"])
        except ConnectError:
            self.close()
            raise

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()


class MongodbWriter(Writer):
    """Writes the rows of a call as one bulk write. With a `key` they are upserted or deleted."""

    def __init__(
        self, target: Target, config: MongodbSinkConfig, encoding: Encoding, key: Sequence[str]
    ) -> None:
        self._config, self._encoding, self._key = config, encoding, tuple(key)
        self._collection, self._max_size = target.collection, target.max_size
        self._count = 0

    def write(
        self, rows: pa.RecordBatch, payloads: Any = None, operations: pa.StringArray | None = None
    ) -> Sequence[Failure]:
        errors: dict[int, RecordError] = {}
        statements: dict[int, Statement] = {}
        if not self._key:
            statements |= self._inserts(rows, errors)
        else:
            has_key, failures = split_null_keys(rows, self._key)
            errors |= {failure.index: failure.error for failure in failures}
            deleted = pa.repeat(False, rows.num_rows)
            if operations is not None:
                deleted = pc.equal(operations, Operation.DELETE.value)
            keys = rows.select(list(self._key))
            statements |= self._changes(keys, pc.and_(has_key, deleted), errors, is_delete=True)
            kept = pc.and_(has_key, pc.invert(deleted))
            statements |= self._changes(rows, kept, errors, is_delete=False)
        errors |= self._execute(statements)
        self._count += rows.num_rows - len(errors)
        return [Failure(index, errors[index]) for index in sorted(errors)]

    def commit(self) -> Receipt:
        return {"documents": self._count}

    def _inserts(
        self, rows: pa.RecordBatch, errors: dict[int, RecordError]
    ) -> Iterator[tuple[int, Statement]]:
        from bson.objectid import ObjectId

        fields = self._encoding.values(rows, errors)
        for index, document in enumerate(self._encoding.documents(fields, rows.num_rows)):
            own = ID in fields
            if own and fields[ID][index] is None:
                errors.setdefault(index, EncodeError("the _id is null", code="invalid-key"))
            content = self._encode(index, document if own else {ID: ObjectId(), **document}, errors)
            if content is not None:
                yield index, Statement(content, own_id=fields[ID][index] if own else None)

    def _changes(
        self, rows: pa.RecordBatch, mask: pa.BooleanArray, errors: dict[int, RecordError],
        *, is_delete: bool,
    ) -> Iterator[tuple[int, Statement]]:  # fmt: skip
        """Yields the upserts or deletes of the rows of a mask, with their indexes."""
        indexes = pc.indices_nonzero(mask)
        if not len(indexes):
            return
        if len(indexes) < rows.num_rows:
            rows = rows.take(indexes)
        found: dict[int, RecordError] = {}
        fields = self._encoding.values(rows, found)
        names = [self._config.field_of(name) for name in self._key]
        keys = zip(*(fields[name] for name in names), strict=True)
        documents = self._encoding.documents(fields, rows.num_rows)
        for place, (values, document) in enumerate(zip(keys, documents, strict=True)):
            key = dict(zip(names, map(_equal, values), strict=True))
            index = indexes[place].as_py()
            if is_delete:
                if place not in found:
                    yield index, Statement(None, key)
            elif (content := self._encode(place, document, found)) is not None:
                yield index, Statement(content, key)
        errors |= {indexes[place].as_py(): error for place, error in found.items()}

    def _encode(
        self, index: int, document: Mapping[str, Any], errors: dict[int, RecordError]
    ) -> bytes | None:
        if index in errors:
            return None
        try:
            return encode_document(document, self._max_size)
        except EncodeError as error:
            errors[index] = error
            return None

    def _execute(self, statements: Mapping[int, Statement]) -> dict[int, RecordError]:
        """Executes statements. Returns the errors of documents that the server rejects."""
        from pymongo.errors import BulkWriteError

        if not statements:
            return {}
        indexes = [*statements]
        rejected: Sequence[Mapping[str, Any]] = ()
        with translate_errors(self._config):
            try:
                requests = [each.request for each in statements.values()]
                self._collection.bulk_write(requests, ordered=False)
            except BulkWriteError as error:
                for each in error.details.get("writeConcernErrors", ()):
                    raise concern_error(each, self._config) from None
                rejected = error.details.get("writeErrors", ())
            except KeyError:
                # FerretDB 1 stops at the first rejected replacement and returns no counts.
                if not self._key:
                    raise
                rejected = [*self._execute_each(statements.values())]
            found = {indexes[each["index"]]: each for each in rejected}
            for index in self._stored(found, statements):
                del found[index]
        return {index: row_error(each, self._config) for index, each in found.items()}

    def _execute_each(self, statements: Any) -> Iterator[Mapping[str, Any]]:
        """Executes upserts and deletes one by one. Yields the errors of rejected documents."""
        from pymongo.errors import WriteError

        for place, each in enumerate(statements):
            try:
                if each.content is None:
                    self._collection.delete_one(each.key)
                else:
                    self._collection.replace_one(each.key, each.document, upsert=True)
            except WriteError as error:
                details = error.details or {}
                yield {"code": error.code, "errmsg": details.get("errmsg", error), "index": place}

    def _stored(
        self, rejected: Mapping[int, Mapping[str, Any]], statements: Mapping[int, Statement]
    ) -> list[int]:
        """Returns the inserts that the collection has already, with the same content.

        An earlier attempt of the batch has written them.
        """
        again = {
            index: statements[index]
            for index, each in rejected.items()
            if each.get("code") == DUPLICATE_KEY and statements[index].own_id is not None
        }
        if not again:
            return []
        condition = {ID: {"$in": [each.own_id for each in again.values()]}}
        batches = self._collection.find_raw_batches(condition)
        stored = {content for batch in batches for content in split_documents(batch)}
        return [index for index, each in again.items() if each.content in stored]


def _equal(value: Any) -> Any:
    """Returns the condition of a field with a value."""
    return {"$eq": value} if isinstance(value, dict) else value
