"""The source of MongoDB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa

from penstock.connectors.mongodb import cursor
from penstock.connectors.mongodb.changes import MongodbChangesSource
from penstock.connectors.mongodb.client import option_value
from penstock.connectors.mongodb.config import ID, MongodbSourceConfig
from penstock.connectors.mongodb.cursor import Values
from penstock.connectors.mongodb.documents import to_rows
from penstock.connectors.mongodb.encoding import Encoding
from penstock.connectors.mongodb.reading import Reader, Stage, matching
from penstock.core.errors import OptionError
from penstock.sdk import Capability, Component, Context, Offset, Read
from penstock.sdk.database.lookup import KeyReader, RowLookup
from penstock.sdk.database.relation_source import DEFAULT_MIN_AGE
from penstock.sdk.database.row_conversion import RowConversion
from penstock.sdk.polling import PolledSource

Part = tuple[list[Any] | None, list[Any]]


class MongodbSource(PolledSource[MongodbSourceConfig], KeyReader[MongodbSourceConfig]):
    """Reads the documents of a MongoDB collection, or of an aggregation.

    Documents are read in the order of `cursor_columns`, by default of `_id`, in batches of
    `max_records`. All values of a cursor column must be of one type, such as numbers or dates. With
    `watch` the source also reads documents that come later in this order. Deletions are not read.

    Columns are fields of the same name, in the same case; a missing field is null. Declare them in
    `schema`; by default they are those of the first 1000 documents. A document with a value that
    does not fit its column exactly becomes a dead letter.

    An ObjectId is text of 24 hexadecimal digits, or BINARY. A date is a TIMESTAMP. A column of the
    type VARIANT has the value as Extended JSON, of any type.

    With `changes: true` the source reads the documents of the collection, then its inserts, updates
    and deletes, from a change stream. The snapshot is read in chunks in the order of `_id`, and is
    merged with the changes that arrive meanwhile. A run resumes where the last run stopped, also
    within the snapshot. An update has the whole document as it is when the server returns the
    change, or as it was after the change if the collection has `changeStreamPreAndPostImages`. A
    delete has the `_id`, and all fields with this option. The metadata columns are `lsn` (the
    resume token), `transaction`, `commit_time`, `snapshot` and `received`. An oplog that does not
    have the token any more is an error, unless `on_data_loss` says otherwise; so is a collection
    that is dropped or renamed. The server needs to be a replica set or a sharded cluster, and the
    user the role `read`.

    With `lookup: true` documents are looked up by their primary key. Text that has the form of an
    ObjectId finds both.

    ```yaml
    type: mongodb
    url: mongodb://127.0.0.1:27017/shop
    auth: {username: penstock, password: "${SHOP_PASSWORD}"}
    collection: orders
    filter: {status: paid}
    cursor_columns: [changed_at]
    watch: true
    schema: _id STRING, customer BIGINT, total DECIMAL(12, 2), changed_at TIMESTAMP
    ```
    """

    extra = "mongodb"
    client_modules = ("pymongo",)
    capabilities = frozenset(
        {
            Capability.REPLAY, Capability.LIMIT, Capability.BOUNDED, Capability.TAIL,
            Capability.ORDERED, Capability.ROWS,
        }
    )  # fmt: skip
    optional_capabilities = {Capability.LOOKUP_BY_KEY: "lookup: true"}
    parallelism = "the collection"
    declares_primary_key = True

    @classmethod
    def create(
        cls, config: MongodbSourceConfig, context: Context | None = None
    ) -> Component[MongodbSourceConfig]:
        if config.changes and not (context is not None and context.lookup):
            return MongodbChangesSource(config, context)
        source = cls(config, context)
        return MongodbLookup(source) if context is not None and context.lookup else source

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._open: Reader | None = None

    def __getstate__(self) -> Mapping[str, Any]:
        return {**super().__getstate__(), "_open": None}

    def validate(self) -> None:
        super().validate()
        option_value("filter", self.config.filter)
        option_value("pipeline", self.config.pipeline)

    def check(self) -> None:
        self._reader.check_collection()

    def infer_schema(self) -> pa.Schema | None:
        return self._reader.sample_columns()

    def infer_primary_key(self) -> tuple[str, ...]:
        return () if self.config.pipeline else (self.config.id_column,)

    def metadata_schema(self) -> pa.Schema:
        return pa.schema([])

    @property
    def poll_interval(self) -> float | None:
        return self.config.interval if self.config.watch else None

    def initial_offset(self) -> Offset:
        return {"after": None}

    def find_end(self, start: Offset) -> Offset:
        last: Values | None = self._last_values(start)
        if not last:
            if not self.config.watch:
                self._reader.check_collection()
            return start
        kind = cursor.kind_of(last[0])
        assert kind is not None
        self._check_growing(kind)
        after, age_filter = cursor.decode(start["after"]), self._age_filter(kind)
        if age_filter or len(last) > 1:
            condition = cursor.range_filter(self._fields, after, None)
            last = self._place(matching(condition, age_filter), -1)
        elif after is not None and not cursor.is_after(last, after):
            last = None
        return start if last is None else {"after": cursor.encode(last)}

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        limit = self.config.max_records
        if limit is None:
            return end
        stages = matching(self._range(start["after"], end["after"]))
        last = self._place(stages, 1, skipped=limit - 1)
        if last is not None:
            self._check_kinds(last, end["after"])
        return end if last is None else {"after": cursor.encode(last)}

    def partitions(self, start: Offset, end: Offset) -> Sequence[Part]:
        return [] if start == end else [(start["after"], end["after"])]

    def read(self, partition: Part, read: Read) -> Iterator[pa.RecordBatch]:
        stages = [*matching(self._range(*partition)), self._sort(1), *self._project()]
        after, upto = partition
        yield from self._rows(stages, read, upto if after is None else None)

    def min_offset(self, first: Offset, second: Offset) -> Offset:
        left, right = cursor.decode(first["after"]), cursor.decode(second["after"])
        if left is None or right is None:
            return {"after": None}
        return first if cursor.sort_key(left) <= cursor.sort_key(right) else second

    def lag(self, current: Offset, latest: Offset) -> int | None:
        if current == latest:
            return 0
        stages = matching(self._range(current["after"], latest["after"]))
        found = self._reader.first([*stages, {"$count": "count"}])
        return 0 if found is None else int(found["count"])

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def read_keys(self, keys: pa.RecordBatch, read: Read) -> list[pa.RecordBatch]:
        errors: dict[int, Any] = {}
        values = Encoding().values(keys, errors)
        for error in errors.values():
            raise error
        names = [self.config.field_of(name) for name in values]
        rows = [[_forms(value) for value in row] for row in zip(*values.values(), strict=True)]
        condition: Stage = {
            "$or": [
                {name: {"$in": forms} for name, forms in zip(names, row, strict=True)}
                for row in rows
            ]
        }
        if len(names) == 1:
            condition = {names[0]: {"$in": [form for (forms,) in rows for form in forms]}}
        return list(self._rows([*matching(condition), *self._project()], read))

    def _check_growing(self, kind: str) -> None:
        if self.config.watch and not self.config.cursor_columns and kind != "ObjectId":
            raise OptionError.of(
                "watch", of_key=True, code="missing-option",
                message=f"{self._name} has no _id of ObjectIds, so new documents cannot be found",
                hint="Set cursor_columns to columns that grow with each new or changed document.",
            )  # fmt: skip

    def _age_filter(self, kind: str) -> Stage:
        """Returns the filter of documents that are old enough, by the clock of the server."""
        age = DEFAULT_MIN_AGE if self.config.min_age is None else self.config.min_age
        if not self.config.watch or not age or kind not in ("date", "ObjectId"):
            return {}
        limit = self._reader.now() - timedelta(seconds=age)
        if kind == "date":
            return {self._fields[0]: {"$lte": limit}}
        from bson.objectid import ObjectId

        return {self._fields[0]: {"$lt": ObjectId.from_datetime(limit)}}

    def _place(self, stages: Sequence[Stage], order: int, skipped: int = 0) -> Values | None:
        """Returns the values of the cursor columns of a document in an order."""
        skip: list[Stage] = [{"$skip": skipped}] if skipped else []
        found = self._reader.first([*stages, self._sort(order), *skip, {"$limit": 1}])
        if found is None:
            return None
        values = tuple(found.get(field) for field in self._fields)
        for field, value in zip(self._fields, values, strict=True):
            self._reader.kind(field, [value])
        return values

    def _rows(
        self, stages: Sequence[Stage], read: Read, upto: list[Any] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yields documents as rows. All documents have the kinds of `upto` if the first one has."""
        assert self.columns is not None
        conversion = RowConversion(self._name, self.columns, read)
        for documents in self._reader.parts(stages):
            first = next((each for each in documents if isinstance(each, Mapping)), None)
            if upto is not None and first is not None:
                self._check_kinds([first.get(field) for field in self._fields], upto)
                upto = None
            yield from to_rows(documents, conversion, self.config.field_of)

    def _last_values(self, start: Offset) -> Values:
        """Returns the last value of each field in its order; none without documents."""
        if len(self._fields) == 1 and start["after"] is None and not self.config.watch:
            return self._reader.last_value(self._fields[0])  # `read` compares the first document
        return self._reader.last_values(self._fields)

    def _check_kinds(self, values: Sequence[Any], upto: Sequence[Any]) -> None:
        """Raises Permanent if values of the fields are of other kinds than an offset."""
        last = cursor.decode(upto)
        assert last is not None
        for field, *pair in zip(self._fields, values, last, strict=True):
            self._reader.kind(field, pair)

    def _range(self, after: Any, upto: Any) -> Stage:
        if after is None and upto is not None and len(self._fields) == 1:
            return cursor.start_filter(self._fields[0], cursor.decode(upto))
        return cursor.range_filter(self._fields, cursor.decode(after), cursor.decode(upto))

    def _sort(self, order: int) -> Stage:
        return {"$sort": dict.fromkeys(self._fields, order)}

    def _project(self) -> list[Stage]:
        """Returns the stage that selects the columns, where their names are no paths."""
        assert self.columns is not None
        fields = [*map(self.config.field_of, self.columns.names), *self._fields]
        if any("." in name or name.startswith("$") or not name for name in fields):
            return []
        return [{"$project": {ID: 1, **dict.fromkeys(fields, 1)}}]

    @property
    def _fields(self) -> Sequence[str]:
        """The fields in whose order documents are read."""
        return [*dict.fromkeys([*map(self.config.field_of, self.config.cursor_columns), ID])]

    @property
    def _name(self) -> str:
        return self.config.collection

    @property
    def _reader(self) -> Reader:
        if self._open is None:
            self._open = Reader(self.config)
        return self._open


class MongodbLookup(RowLookup[MongodbSourceConfig]):
    """Looks up documents by key."""

    extra = "mongodb"
    client_modules = ("pymongo",)
    declares_primary_key = True


def _forms(value: Any) -> list[Any]:
    """Returns the values that a key may have: text of an ObjectId is the ObjectId, too."""
    from bson.objectid import ObjectId

    if isinstance(value, str) and ObjectId.is_valid(value):
        return [value, ObjectId(value)]
    return [value]
