"""A source of the rows of a table or a query, in the order of cursor columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import pyarrow as pa

from penstock.core.errors import Permanent, StateError, Transient
from penstock.sdk.capability import Capability
from penstock.sdk.component import Component, Context
from penstock.sdk.database.config import TableSourceConfig
from penstock.sdk.database.connection import Connection
from penstock.sdk.database.cursor import Values, decode, encode
from penstock.sdk.database.declared import check_declared
from penstock.sdk.database.listing import ListedSource
from penstock.sdk.database.lookup import KeyReader, TableLookup
from penstock.sdk.database.relation_source import RelationSource
from penstock.sdk.database.row_conversion import RowConversion
from penstock.sdk.database.types import without_declared
from penstock.sdk.record import Read
from penstock.sdk.source import Offset

T = TypeVar("T", bound=TableSourceConfig)
_KEYS = 500
"""The number of keys in a query."""


class TableSource(RelationSource[T], KeyReader[T], ListedSource, Generic[T]):
    """Base class of sources of tables and queries. Define `connect` and `query_columns`."""

    capabilities = frozenset(
        {
            Capability.REPLAY,
            Capability.LIMIT,
            Capability.BOUNDED,
            Capability.TAIL,
            Capability.ORDERED,
            Capability.ROWS,
        }
    )
    optional_capabilities = {Capability.LOOKUP_BY_KEY: "lookup: true"}
    parallelism = "the table"
    lag_unit = "rows"
    declares_primary_key = True

    @classmethod
    def create(cls, config: T, context: Context | None = None) -> Component[T]:
        source = cls(config, context)
        return TableLookup(source) if context is not None and context.lookup else source

    def open_transactions(self, connection: Connection, *, by_time: bool) -> frozenset[Any]:
        """Returns the open transactions that may write rows before the current last row.

        Those that write to the table, or, if the first cursor column has times (`by_time`), all
        that have begun. The source reads up to a row when the transactions that were open after
        this row was seen have ended. The default, for systems with one writer at a time, returns
        none.
        """
        return frozenset()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._unsettled: tuple[Offset, frozenset[Any]] | None = None

    def __getstate__(self) -> Mapping[str, Any]:
        return {**super().__getstate__(), "_unsettled": None}

    def check(self) -> None:
        with self._transaction() as connection:
            known = self._target_columns().names
            check_declared(self.columns, known, self._name, folds=connection.dialect.folds_names)
            unordered = self.unordered_columns() if self.config.cursor_columns else ()
            self._check_cursor_columns(known, unordered)

    def infer_schema(self) -> pa.Schema | None:
        with self._transaction():
            return without_declared(self._target_columns())

    def infer_primary_key(self) -> tuple[str, ...]:
        with self._transaction() as connection:
            if self._table is None:
                return ()
            self._target_columns()
            return connection.primary_key(self._table)

    def metadata_schema(self) -> pa.Schema:
        return pa.schema([])

    @property
    def poll_interval(self) -> float | None:
        return self.config.interval if self.config.watch else None

    def initial_offset(self) -> Offset:
        return {"after": None}

    def find_end(self, start: Offset) -> Offset:
        with self._transaction():
            return self._end(start)

    def _end(self, start: Offset) -> Offset:
        """Returns the end of the rows that can be read now."""
        cursor = self._cursor
        self._position(start)
        if not cursor.columns:
            return {"after": []}
        nulls = cursor.nulls()
        if nulls is not None and self._connection.query(nulls):
            raise Permanent(
                f"{self._name} has rows with null in the cursor columns "
                f"{', '.join(cursor.columns)}, which have no place in the order",
                code="null-cursor",
                hint="Set cursor_columns to columns without nulls, or replace nulls in a query: "
                "SELECT *, coalesce(updated_at, created_at) AS changed_at FROM ...",
            )
        return self._settled_offset(start)

    def _position(self, offset: Offset) -> Values | None:
        """Returns the values of an offset. Raises StateError if the order had other columns."""
        values = decode(offset["after"])
        if values is None:
            return None
        if self._order is None:
            with self._transaction():
                self._order = self._cursor
        assert self._order is not None
        columns = self._order.columns
        if len(values) != len(columns):
            order = f"in the order of {', '.join(columns)}" if columns else "without an order"
            raise StateError(
                f"cannot resume reading {self._name}: it is read {order}, and the state of the "
                f"pipeline has a position {_counted(len(values))}",
                code="changed-order",
                detail="The key of the table has changed, or the position is that of an earlier "
                "version, which also read in the order of columns such as ENUM, SET and BIT.",
                hint="Reset the state with penstock run --fresh, which reads all rows again.",
            )
        return values

    def _settled_offset(self, start: Offset) -> Offset:
        """Returns the end offset, or `start` while transactions may write rows before the end."""
        connection = self._connection
        if self._unsettled is None:
            rows = connection.query(*self._cursor.last(decode(start["after"])))
            connection.rollback()
            end = {"after": encode(rows[0])} if rows else start
            if not rows or not self.config.watch:
                return end
            self._unsettled = (end, self._open_transactions())
        end, transactions = self._unsettled
        if transactions and transactions & self._open_transactions():
            return start
        self._unsettled = None
        return end

    def _open_transactions(self) -> frozenset[Any]:
        is_time = False
        if self.config.cursor_columns and self._columns is not None:
            first = self._columns.field(self.config.cursor_columns[0])
            is_time = pa.types.is_timestamp(first.type)
        transactions = self.open_transactions(self._connection, by_time=is_time)
        self._connection.rollback()
        return transactions

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        limit = self.config.max_records
        if limit is None or not end["after"]:
            return end
        first, last = self._position(start), self._position(end)
        assert last is not None
        rows = self._connection.query(*self._cursor.limited(first, last, limit))
        self._connection.rollback()
        found = {"after": encode(rows[0])} if rows else end
        if found == start != end:
            raise Permanent(
                f"cannot read {self._name} in the order of {', '.join(self._cursor.columns)}: the "
                "first rows after a position end at the same position",
                code="cursor-type",
                hint="Set cursor_columns to other columns, such as integers.",
            )
        return found

    def partitions(self, start: Offset, end: Offset) -> Sequence[tuple[Values | None, Values]]:
        if start == end:
            return []
        return [(self._position(start), self._position(end) or ())]

    def read(self, partition: tuple[Values | None, Values], read: Read) -> Iterator[pa.RecordBatch]:
        assert self.columns is not None
        start, end = partition
        cursor = self._cursor
        items = ", ".join(map(self.select_item, self.columns))
        if cursor.columns:
            query, parameters = cursor.rows(items, start, end)
        else:
            query, parameters = f"SELECT {items} FROM {cursor.relation}", ()
        conversion = RowConversion(self._name, self.columns, read)
        yield from self.read_query(query, parameters, conversion)
        self._connection.rollback()

    def select_item(self, field: pa.Field) -> str:
        """Returns the item of a SELECT list for a column."""
        return self._connection.dialect.quote(field.name)

    def read_query(
        self, query: str, parameters: Sequence[Any], conversion: RowConversion
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a query. Override it where the client library has a faster way."""
        for values in self._connection.fetch_columns(query, parameters):
            yield from conversion.values(values, self.to_value)

    def min_offset(self, first: Offset, second: Offset) -> Offset:
        left, right = decode(first["after"]), decode(second["after"])
        if left is None or right is None:
            return {"after": None}
        # An empty tuple is the end of a table without order.
        return first if left and (not right or _ordered(left) <= _ordered(right)) else second

    def lag(self, current: Offset, latest: Offset) -> int | None:
        if current == latest or not self._cursor.columns:
            return 0 if current == latest else None
        start, end = self._position(current), self._position(latest)
        assert end is not None
        try:
            ((count,),) = self._connection.query(*self._cursor.count(start, end))
            self._connection.rollback()
        except Transient:
            self.close()  # the next call has another connection
            raise
        return int(count)

    def read_keys(self, keys: pa.RecordBatch, read: Read) -> list[pa.RecordBatch]:
        assert self.columns is not None
        items = ", ".join(map(self.select_item, self.columns))
        columns = [self.key_item(self.columns.field(name)) for name in keys.schema.names]
        conversion = RowConversion(self._name, self.columns, read)
        found: list[pa.RecordBatch] = []
        with self._transaction() as connection:
            values = self.key_values(keys)
            for start in range(0, len(values), _KEYS):
                part = values[start : start + _KEYS]
                condition = connection.dialect.any_of(columns, len(part))
                query = f"SELECT {items} FROM {self._relation} WHERE {condition}"
                parameters = [value for row in part for value in row]
                found += self.read_query(query, parameters, conversion)
        return found

    def key_values(self, keys: pa.RecordBatch) -> Sequence[Sequence[Any]]:
        """Returns the values that are compared with the expressions of `key_item`."""
        return [*self._connection.parameters(keys)]

    def key_item(self, field: pa.Field) -> str:
        """Returns the expression of a key that is compared with values of `keys`."""
        return self._connection.dialect.quote(field.name)

    def to_value(self, value: Any, field: pa.Field) -> Any:
        """Returns the JSON in a value of the client library, for a nested type or JSON text."""
        return value


def _ordered(values: Values) -> Values:
    """Returns values of a cursor with bytes in place of texts, since a column may have both."""
    return tuple(
        each.encode(errors="surrogatepass") if isinstance(each, str) else each for each in values
    )


def _counted(columns: int) -> str:
    if not columns:
        return "without columns"
    return f"with {columns} column{'s' if columns > 1 else ''}"
