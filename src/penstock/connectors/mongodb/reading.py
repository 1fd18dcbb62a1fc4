"""Reading of a collection: the documents of an aggregation, and the kinds of cursor columns."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import datetime
from typing import Any

import pyarrow as pa

from penstock.connectors.mongodb.client import (
    codec_options,
    collection_exists,
    create_client,
    missing_collection,
    option_value,
)
from penstock.connectors.mongodb.config import ID, MongodbSourceConfig
from penstock.connectors.mongodb.cursor import Values, kind_of
from penstock.connectors.mongodb.documents import Document, Undecodable, decode_documents
from penstock.connectors.mongodb.errors import translate_errors
from penstock.connectors.mongodb.sample import infer_columns
from penstock.core.errors import Permanent

Stage = dict[str, Any]
_SAMPLE = 1000
_BATCH = 10_000
"""The documents of a response. By default some servers respond with a few hundred."""


class Reader:
    """A connection that reads the documents of a collection, or of its aggregation."""

    def __init__(self, config: MongodbSourceConfig) -> None:
        self.config = config
        self._relation: list[Stage] = option_value("pipeline", config.pipeline)
        if filter_ := option_value("filter", config.filter):
            self._relation = [{"$match": filter_}, *self._relation]
        self._client = create_client(config)
        self._database = self._client[config.database]
        self._collection = self._database.get_collection(config.collection, codec_options())

    def parts(
        self, stages: Sequence[Stage], options: Any = None
    ) -> Generator[Sequence[Document | Undecodable], None, None]:
        """Yields the documents of further stages in parts, with bounded memory.

        They are decoded with options of BSON, by default with those of rows.
        """
        settings = {"batchSize": _BATCH, "maxTimeMS": round(self.config.timeout * 1000)}
        stages = [*self._relation, *stages]
        arguments = None if self.config.pipeline else find_arguments(stages)
        with translate_errors(self.config):
            if arguments is None:
                batches = self._collection.aggregate_raw_batches(stages, **settings)
            else:
                batches = self._collection.find_raw_batches(
                    **arguments,
                    batch_size=settings["batchSize"],
                    max_time_ms=settings["maxTimeMS"],
                )
        with closing(batches):
            while True:
                with translate_errors(self.config):
                    content = next(batches, None)
                if content is None:
                    return
                yield decode_documents(content, options)

    def first(self, stages: Sequence[Stage]) -> Document | None:
        """Returns the first document of further stages. Raises Permanent if it is not BSON."""
        with closing(self.parts(stages, codec_options())) as parts:
            found = next((each for part in parts for each in part), None)
        if isinstance(found, Undecodable):
            raise Permanent(f"cannot read {self.config.collection}: {found.error.message}")
        return found

    def last_value(self, field: str) -> Values:
        """Returns the last value of a field in its order; none without documents."""
        last = self._end((field, -1))
        if last is None:
            return ()
        value = last.get(field)
        self.kind(field, [value])
        return (value,)

    def last_values(self, fields: Sequence[str]) -> Values:
        """Returns the last value of each field in its order; none without documents.

        The first and the last document in the order of a field have values of one kind only if all
        documents have, since MongoDB sorts values by their kinds. Raises Permanent.
        """
        orders = [(field, order) for field in fields for order in (1, -1)]
        # Without an index each lookup reads the whole collection.
        with ThreadPoolExecutor(max_workers=2) as pool:
            ends = [each for each in pool.map(self._end, orders) if each is not None]
        if len(ends) < len(orders):
            return ()
        values = [each.get(field) for each, (field, _) in zip(ends, orders, strict=True)]
        for place, field in enumerate(fields):
            self.kind(field, values[2 * place : 2 * place + 2])
        return tuple(values[1::2])

    def _end(self, order: tuple[str, int]) -> Document | None:
        """Returns the first document in an order."""
        return self.first([{"$sort": dict([order])}, {"$limit": 1}])

    def sample_columns(self) -> pa.Schema | None:
        """Returns the columns of the first documents; None without documents."""
        stages: list[Stage] = [{"$sort": {ID: 1}}, {"$limit": _SAMPLE}]
        documents = [each for part in self.parts(stages, codec_options()) for each in part]
        return infer_columns(documents, self.config.id_column)

    def check_collection(self) -> None:
        """Raises OptionError if the collection does not exist."""
        if not collection_exists(self._client, self.config):
            raise missing_collection(self._client, self.config)

    def now(self) -> datetime:
        """Returns the time of the server's clock."""
        with translate_errors(self.config):
            time: datetime = self._database.command("hello", codec_options=codec_options())[
                "localTime"
            ]
            return time

    def close(self) -> None:
        """Closes the connection."""
        with suppress(Exception):
            self._client.close()

    def kind(self, field: str, values: Sequence[Any]) -> str:
        """Returns the kind of all values of a cursor column. Raises Permanent."""
        name = self.config.collection
        if None in values:
            raise Permanent(
                f"{name} has documents without a value of the cursor column {field}, which have no "
                "place in the order",
                code="null-cursor",
                hint="Set filter so that it leaves out these documents, as in "
                f"{{{field}: {{$ne: null}}}}, or set other cursor_columns.",
            )
        kind, *others = {kind_of(value) for value in values}
        if others or kind is None:
            raise Permanent(
                f"cannot read {name} in the order of {field}, which has values of several types, "
                "or of a type without order",
                code="cursor-type",
                hint="Set cursor_columns to columns of numbers, text, times or ObjectIds, or set "
                f"filter to one type, as in {{{field}: {{$type: date}}}}.",
            )
        return kind


def matching(*conditions: Stage) -> list[Stage]:
    """Returns the stages of filters."""
    return [{"$match": each} for each in conditions if each]


def find_arguments(stages: Sequence[Stage]) -> dict[str, Any] | None:
    """Returns the arguments of `find` for stages in its order; None for stages it does not have.

    Servers answer `find` sooner than an aggregation.
    """
    arguments: dict[str, Any] = {}
    conditions: list[Stage] = []
    for stage in stages:
        ((name, value),) = stage.items()
        if name == "$match":
            conditions.append(value)
        elif name in _ARGUMENTS:
            arguments[_ARGUMENTS[name]] = [*value.items()] if name == "$sort" else value
        else:
            return None
    if conditions:
        arguments["filter"] = conditions[0] if len(conditions) == 1 else {"$and": conditions}
    return arguments


_ARGUMENTS = {"$sort": "sort", "$skip": "skip", "$limit": "limit", "$project": "projection"}
