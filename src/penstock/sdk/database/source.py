"""A source of the rows of a table or a query, in the order of cursor columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

import pyarrow as pa

from penstock.core.errors import OptionError, Permanent
from penstock.core.text import did_you_mean
from penstock.sdk.capability import Capability
from penstock.sdk.component import Component, Context
from penstock.sdk.database.config import TableSourceConfig
from penstock.sdk.database.connection import Connection
from penstock.sdk.database.cursor import Cursor, Values, decode, encode
from penstock.sdk.database.listing import ListedSource
from penstock.sdk.database.lookup import KeyReader, TableLookup
from penstock.sdk.database.names import TableName
from penstock.sdk.database.row_conversion import RowConversion
from penstock.sdk.database.types import without_declared
from penstock.sdk.polling import PolledSource
from penstock.sdk.record import Read
from penstock.sdk.source import Offset

T = TypeVar("T", bound=TableSourceConfig)
DEFAULT_MIN_AGE = 2.0


class TableSource(PolledSource[T], KeyReader[T], ListedSource, Generic[T]):
    """Base class of sources of tables and queries. Define `connect`."""

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

    @abstractmethod
    def connect(self) -> Connection:
        """Returns a new connection that only reads. Raises Transient or Permanent."""

    @abstractmethod
    def query_columns(self, connection: Connection, query: str) -> pa.Schema:
        """Returns the columns of a query."""

    def growing_key(self, connection: Connection) -> tuple[str, ...]:
        """Returns the key whose values grow with each new row, or no columns."""
        table = self._table
        key = () if table is None else connection.primary_key(table)
        if table is None or len(key) != 1:
            return ()
        columns = connection.columns(table)
        assert columns is not None
        type_ = columns.field(key[0]).type
        is_whole = pa.types.is_decimal(type_) and type_.scale == 0
        return key if is_whole or pa.types.is_integer(type_) else ()

    def order_key(self, connection: Connection, table: TableName) -> tuple[str, ...]:
        """Returns the columns in whose order a table is read by default: those of its key.

        A system may return columns of which several rows have the same values, if these rows are
        read together.
        """
        return connection.primary_key(table)

    def open_transactions(self, connection: Connection, *, by_time: bool) -> frozenset[Any]:
        """Returns the open transactions that may write rows before the current last row.

        Those that write to the table, or, if the first cursor column has times (`by_time`), all
        that have begun. The source reads up to a row when the transactions that were open after
        this row was seen have ended. The default, for systems with one writer at a time, returns
        none.
        """
        return frozenset()

    def min_age_condition(self, column: str, seconds: float) -> str:
        """Returns the condition that the time in a quoted column is older than `seconds`.

        Override it where the system has a clock. The default raises OptionError.
        """
        raise OptionError.of(
            "min_age", message="the age of rows is not supported", code="invalid-option",
            hint='Set min_age: 0s, and write times that grow with each commit.',
        )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._open: Connection | None = None
        self._order: Cursor | None = None
        self._columns: pa.Schema | None = None
        self._unsettled: tuple[Offset, frozenset[Any]] | None = None

    def __getstate__(self) -> Mapping[str, Any]:
        unset = {"_open": None, "_order": None, "_columns": None, "_unsettled": None}
        return {**super().__getstate__(), **unset}

    def check(self) -> None:
        with self._transaction():
            self._check_cursor_columns(self._target_columns().names)

    def infer_schema(self) -> pa.Schema | None:
        with self._transaction():
            return without_declared(self._target_columns())

    def infer_primary_key(self) -> tuple[str, ...]:
        with self._transaction() as connection:
            return () if self._table is None else connection.primary_key(self._table)

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
        first, last = decode(start["after"]), decode(end["after"])
        assert last is not None
        rows = self._connection.query(*self._cursor.limited(first, last, limit))
        self._connection.rollback()
        return {"after": encode(rows[0])} if rows else end

    def partitions(self, start: Offset, end: Offset) -> Sequence[tuple[Values | None, Values]]:
        if start == end:
            return []
        return [(decode(start["after"]), decode(end["after"]) or ())]

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
        for rows in self._connection.fetch(query, parameters):
            yield from conversion.rows(rows, self.to_value)

    def min_offset(self, first: Offset, second: Offset) -> Offset:
        left, right = decode(first["after"]), decode(second["after"])
        if left is None or right is None:
            return {"after": None}
        # An empty tuple is the end of a table without order.
        return first if left and (not right or left <= right) else second

    def lag(self, current: Offset, latest: Offset) -> int | None:
        if current == latest or not self._cursor.columns:
            return 0 if current == latest else None
        end = decode(latest["after"])
        assert end is not None
        ((count,),) = self._connection.query(*self._cursor.count(decode(current["after"]), end))
        self._connection.rollback()
        return int(count)

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def read_keys(self, keys: pa.RecordBatch, read: Read) -> list[pa.RecordBatch]:
        assert self.columns is not None
        connection = self._connection
        items = ", ".join(map(self.select_item, self.columns))
        columns = [self.key_item(self.columns.field(name)) for name in keys.schema.names]
        condition = connection.dialect.any_of(columns, keys.num_rows)
        parameters = [value for row in connection.parameters(keys) for value in row]
        query = f"SELECT {items} FROM {self._relation} WHERE {condition}"
        conversion = RowConversion(self._name, self.columns, read)
        with self._transaction():
            return list(self.read_query(query, parameters, conversion))

    def key_item(self, field: pa.Field) -> str:
        """Returns the expression of a key that is compared with values of `keys`."""
        return self._connection.dialect.quote(field.name)

    def to_value(self, value: Any, field: pa.Field) -> Any:
        """Returns the JSON in a value of the client library, for a nested type or JSON text."""
        return value

    @property
    def _table(self) -> TableName | None:
        return None if self.config.table is None else TableName.parse(self.config.table)

    @property
    def _name(self) -> str:
        """The name of the table in messages and origins."""
        return self.config.table or "the query"

    @property
    def _relation(self) -> str:
        dialect = self._connection.dialect
        if self._table is not None:
            return dialect.table(self._table)
        assert self.config.query is not None
        return dialect.from_query(self.config.query, "penstock_query")

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """Ends the transaction of its statements, also after a failure."""
        try:
            yield self._connection
        except BaseException:
            with suppress(Exception):
                self._connection.rollback()
            raise
        self._connection.rollback()

    @property
    def _connection(self) -> Connection:
        if self._open is None:
            self._open = self.connect()
        return self._open

    @property
    def _cursor(self) -> Cursor:
        if self._order is None:
            self._order = self._find_cursor()
        return self._order

    def _find_cursor(self) -> Cursor:
        names, dialect = tuple(self.config.cursor_columns), self._connection.dialect
        key = () if self._table is None else self.order_key(self._connection, self._table)
        if not names:
            growing = self.growing_key(self._connection)
            if self.config.watch and not growing:
                raise OptionError.of(
                    "watch", of_key=True, code="missing-option",
                    message=f"{self._name} has no primary key of one integer, so new rows cannot "
                    "be found",
                    hint="Set cursor_columns to columns that grow with each new or changed row.",
                )  # fmt: skip
            nullable = () if growing else key
            return Cursor(self._relation, growing or key, dialect, nullable=nullable)
        columns = self._columns = self._target_columns()
        self._check_cursor_columns(columns.names)
        condition = self._condition(columns.field(names[0]))
        names += tuple(name for name in key if name not in names)
        nullable = tuple(name for name in names if columns.field(name).nullable)
        return Cursor(self._relation, names, dialect, condition, nullable)

    def _condition(self, first: pa.Field) -> str | None:
        """Returns the condition of rows that may be read by the age of their time."""
        if not self.config.watch or not pa.types.is_timestamp(first.type):
            return None
        age = DEFAULT_MIN_AGE if self.config.min_age is None else self.config.min_age
        quoted = self._connection.dialect.quote(first.name)
        return self.min_age_condition(quoted, age) if age else None

    def _target_columns(self) -> pa.Schema:
        if self._table is None:
            assert self.config.query is not None
            return self.query_columns(self._connection, self.config.query)
        columns = self._connection.columns(self._table)
        if columns is None:
            raise OptionError.of(
                "table", message=f'there is no table "{self.config.table}"', code="unknown-table",
                hint=did_you_mean(str(self._table), map(str, self._connection.tables())),
            )  # fmt: skip
        return columns

    def _check_cursor_columns(self, known: Sequence[str]) -> None:
        for index, name in enumerate(self.config.cursor_columns):
            if name not in known:
                raise OptionError.of(
                    "cursor_columns", index, message=f'{self._name} has no column "{name}"',
                    code="unknown-column", hint=did_you_mean(name, known),
                )  # fmt: skip
