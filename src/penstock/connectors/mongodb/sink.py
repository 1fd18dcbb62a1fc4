"""The sink of MongoDB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import pyarrow as pa

from penstock.connectors.mongodb.client import (
    collection_exists,
    create_client,
    missing_collection,
)
from penstock.connectors.mongodb.config import ID, MongodbSinkConfig
from penstock.connectors.mongodb.encoding import Encoding
from penstock.connectors.mongodb.errors import translate_errors
from penstock.connectors.mongodb.writer import MongodbWriter, Target
from penstock.core.errors import OptionError, Permanent, PlanError, raise_all
from penstock.sdk import BatchId, Capability, Sink, Writer
from penstock.sdk.columns.checks import check_column, check_columns


class MongodbSink(Sink[MongodbSinkConfig]):
    """Writes rows as documents of a MongoDB collection.

    The rows of a write are one unordered bulk write. A batch that is repeated after a crash inserts
    its documents again: rows with an `_id` of their own, or with `mode: upsert`, are then stored
    once, and other rows twice.

    The column `_id`, or `id_column`, is the `_id`. Other documents get an ObjectId. With `mode:
    upsert` a row replaces the document with its primary key, and a delete removes it: by `_id` if
    it is the primary key, otherwise by the fields of the key, which need a unique index.

    BIGINT is a long, smaller integers are an int, FLOAT and DOUBLE a double, DECIMAL a Decimal128,
    TIMESTAMP and DATE a date, a struct and a map a document, and VARIANT the value of its Extended
    JSON. A row that has no exact document, or whose document the server rejects, is a dead letter:
    a time with microseconds, a decimal of more than 34 digits, a number of VARIANT with more digits
    than a double, a document of more than 16 MB.

    The user needs the role `readWrite`.

    ```yaml
    type: mongodb
    from: hourly
    url: mongodb://127.0.0.1:27017/shop
    auth: {username: penstock, password: "${SHOP_PASSWORD}"}
    collection: late_by_hour
    mode: upsert
    primary_key: [hour]
    id_column: hour
    ```
    """

    extra = "mongodb"
    client_modules = ("pymongo",)
    capabilities = frozenset({Capability.ROWS, Capability.UPSERT, Capability.DELETE})
    acknowledges = "the server has acknowledged each document"
    max_rows_per_write = 1000

    def check(self) -> None:
        with closing(create_client(self.config)) as client:
            self._check_collection(client)

    def check_schema(self, columns: pa.Schema) -> None:
        self._encoding.check(columns)
        raise_all(self._column_errors(columns))

    def prepare(self, columns: pa.Schema) -> None:
        from pymongo.errors import CollectionInvalid

        super().prepare(columns)
        with closing(create_client(self.config)) as client:
            if not self._check_collection(client):
                with translate_errors(self.config), suppress(CollectionInvalid):
                    client[self.config.database].create_collection(self.config.collection)
            if self._key and self._key != (ID,):
                self._prepare_key(client[self.config.database][self.config.collection])

    def open(self) -> Target:
        return Target(self.config)

    def writer(self, client: Target, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        key = self.primary_key if self.mode == "upsert" else ()
        return MongodbWriter(client, self.config, self._encoding, key)

    def _check_collection(self, client: Any) -> bool:
        """Returns whether the collection exists. Raises OptionError if it must."""
        exists = collection_exists(client, self.config)
        if not exists and not self.config.create:
            raise missing_collection(client, self.config, "Set create: true.")
        return exists

    def _prepare_key(self, collection: Any) -> None:
        """Checks that the server has a unique index on the fields of the key, or creates it."""
        with translate_errors(self.config):
            indexes = collection.index_information().values()
            if any(_is_key(index, self._key) for index in indexes):
                return
            if self.config.create:
                collection.create_index([(name, 1) for name in self._key], unique=True)
                return
        fields = ", ".join(f'"{name}": 1' for name in self._key)
        raise Permanent(
            f'the collection "{self.config.collection}" has no unique index on the primary key '
            f"{', '.join(self.primary_key)}",
            code="no-unique-index",
            hint="Set create: true, or run "
            f"db.{self.config.collection}.createIndex({{{fields}}}, {{unique: true}}).",
        )

    def _column_errors(self, columns: pa.Schema) -> Iterator[PlanError]:
        config = self.config
        if "id_column" in config.model_fields_set:
            yield from check_column(config.id_column, columns, "id_column")
        if config.id_column != ID and ID in columns.names:
            yield OptionError.of(
                "id_column", message=f'columns "{config.id_column}" and "{ID}" are both the _id',
                code="invalid-option", hint="Rename or drop one of them in a transform.",
            )  # fmt: skip
        yield from check_columns(config.object_id_columns, columns, "object_id_columns")
        for index, name in enumerate(config.object_id_columns):
            if name in columns.names:
                yield from check_column(
                    name, columns, "object_id_columns", index, accepts=pa.types.is_string,
                    expected="Convert the column to STRING in a transform.",
                )  # fmt: skip
        for name in columns.names:
            if not name or name.startswith("$") or "\0" in name:
                written = name.replace("\0", "\\0")
                yield PlanError(
                    f'column "{written}": MongoDB has no field of this name', code="invalid-name",
                    hint="Rename the column in a transform.",
                )  # fmt: skip

    @property
    def _key(self) -> tuple[str, ...]:
        """The fields of the primary key, with `mode: upsert`."""
        names = self.primary_key if self.mode == "upsert" else ()
        return tuple(map(self.config.field_of, names))

    @property
    def _encoding(self) -> Encoding:
        config = self.config
        return Encoding(
            {config.id_column: ID}, frozenset(config.object_id_columns), config.decimals,
            config.microseconds, config.nulls == "omit",
        )  # fmt: skip


def _is_key(index: Any, fields: tuple[str, ...]) -> bool:
    """Returns whether an index is unique on some fields of all documents."""
    is_partial = "partialFilterExpression" in index or index.get("sparse", False)
    names = {name for name, _ in index["key"]}
    return bool(index.get("unique")) and not is_partial and names == {*fields}
