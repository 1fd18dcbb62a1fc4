"""The table or the query of a source, its connection, and the order in which it is read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

import pyarrow as pa

from penstock.core.errors import OptionError
from penstock.core.text import did_you_mean
from penstock.sdk.database.config import TableSourceConfig
from penstock.sdk.database.connection import Connection
from penstock.sdk.database.cursor import Cursor
from penstock.sdk.database.names import TableName, did_you_mean_table
from penstock.sdk.polling import PolledSource

T = TypeVar("T", bound=TableSourceConfig)
DEFAULT_MIN_AGE = 2.0
"""The default of `min_age`, in seconds."""


class RelationSource(PolledSource[T], Generic[T]):
    """Base class of `TableSource`: its relation. The connection opens on first use."""

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

    def unordered_columns(self) -> Collection[str]:
        """Returns the columns by which rows are sorted in another order than values are compared.

        A range of them would leave out rows, so rows are read in the order of other columns.
        """
        return ()

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

    def __getstate__(self) -> Mapping[str, Any]:
        return {**super().__getstate__(), "_open": None, "_order": None, "_columns": None}

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

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
        unordered = self.unordered_columns() if names or key else ()
        key = tuple(name for name in key if name not in unordered)
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
        self._check_cursor_columns(columns.names, unordered)
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
                hint=did_you_mean_table(self._table, self._connection.tables()),
            )  # fmt: skip
        return columns

    def _check_cursor_columns(self, known: Sequence[str], unordered: Collection[str]) -> None:
        for index, name in enumerate(self.config.cursor_columns):
            if name in unordered:
                raise OptionError.of(
                    "cursor_columns", index, code="cursor-type",
                    message=f'{self._name} is not sorted by the column "{name}" as the values of '
                    "its type are compared",
                    hint="Set cursor_columns to columns of numbers, text or times.",
                )  # fmt: skip
            if name not in known:
                raise OptionError.of(
                    "cursor_columns", index, message=f'{self._name} has no column "{name}"',
                    code="unknown-column", hint=did_you_mean(name, known),
                )  # fmt: skip
