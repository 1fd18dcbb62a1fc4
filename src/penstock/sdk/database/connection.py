"""Connections to databases: statements in transactions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from typing import Any

import pyarrow as pa

from penstock.core.errors import PenstockError, RecordError
from penstock.sdk.database.dialect import Dialect
from penstock.sdk.database.names import TableName
from penstock.sdk.database.row_conversion import columns_of
from penstock.sdk.database.values import parameters_of

FETCHED = 10_000
"""The number of rows that are fetched at once."""


class Connection(ABC):
    """A connection with one open transaction at a time, which the first statement begins.

    All methods raise Transient or Permanent for a failure of the system, and RecordError for a row
    that the system rejects, such as one that violates a constraint.
    """

    dialect: Dialect

    @abstractmethod
    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Executes a statement. Returns the number of rows that it has changed."""

    @abstractmethod
    def query(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Returns the rows of a query."""

    @abstractmethod
    def fetch(self, query: str, parameters: Sequence[Any] = ()) -> Iterator[list[tuple[Any, ...]]]:
        """Yields the rows of a query in parts, with bounded memory."""

    def fetch_columns(
        self, query: str, parameters: Sequence[Any] = ()
    ) -> Iterator[Sequence[list[Any]]]:
        """Yields the values of each column of a query in parts, with bounded memory."""
        for rows in self.fetch(query, parameters):
            yield columns_of(rows, len(rows[0]))

    @abstractmethod
    def execute_many(self, statement: str, rows: pa.RecordBatch) -> None:
        """Executes a statement for each row, whose values are the parameters."""

    @abstractmethod
    def columns(self, table: TableName) -> pa.Schema | None:
        """Returns the columns of a table; None if it does not exist.

        Raises PlanError for a column whose type is unknown.
        """

    @abstractmethod
    def primary_key(self, table: TableName) -> tuple[str, ...]:
        """Returns the columns of the primary key of a table in their order."""

    @abstractmethod
    def unique_keys(self, table: TableName) -> list[tuple[str, ...]]:
        """Returns the columns of each key that identifies a row: primary key, unique indexes."""

    @abstractmethod
    def tables(self) -> list[TableName]:
        """Returns the names of tables and views, without the schema that is used by default."""

    @abstractmethod
    def commit(self) -> None:
        """Commits the transaction."""

    @abstractmethod
    def rollback(self) -> None:
        """Discards the transaction."""

    @abstractmethod
    def close(self) -> None:
        """Closes the connection and discards its transaction."""

    def parameters(self, rows: pa.RecordBatch) -> Iterator[Sequence[Any]]:
        """Yields the values of each row as the client library accepts them.

        The default yields Python's values, with nested values as JSON text.
        """
        return parameters_of(rows, lambda column, field: None)

    def insert(self, table: TableName, rows: pa.RecordBatch) -> None:
        """Inserts rows. Override it where the system has a faster way than statements."""
        self.execute_many(self.dialect.insert(table, rows.schema.names), rows)

    def upsert(self, table: TableName, rows: pa.RecordBatch, key: Sequence[str]) -> None:
        """Inserts rows, or replaces the rows with their keys."""
        names = rows.schema.names
        insert = self.dialect.insert(table, names)
        self.execute_many(f"{insert} {self.conflict_clause(names, key)}", rows)

    def conflict_clause(self, names: Sequence[str], key: Sequence[str]) -> str:
        """Returns the clause of an INSERT for a row whose key the table has."""
        return self.dialect.conflict_clause(names, key)

    def delete(self, table: TableName, keys: pa.RecordBatch) -> None:
        """Deletes the rows with these keys."""
        self.execute_many(self.dialect.delete(table, keys.schema.names), keys)

    def invalid_rows(self, table: TableName, rows: pa.RecordBatch) -> Mapping[int, RecordError]:
        """Returns the rows that the system would change or reject, by their index.

        Override it for a system that changes values in silence, or rejects whole batches. The
        default returns none, so that the system judges each row.
        """
        return {}

    def savepoint(self) -> None:
        """Marks a point of the transaction, to which `restore` returns."""
        self.execute("SAVEPOINT penstock")

    def release(self) -> None:
        """Removes the mark of `savepoint`."""
        self.execute("RELEASE SAVEPOINT penstock")

    def restore(self) -> None:
        """Discards the statements after `savepoint`."""
        self.execute("ROLLBACK TO SAVEPOINT penstock")
        self.release()


class DbapiConnection(Connection):
    """A connection of a client library that follows PEP 249."""

    def __init__(self, client: Any) -> None:
        self.client = client

    @abstractmethod
    def translate_error(self, error: Exception) -> PenstockError | None:
        """Returns the error of Penstock for one of the client library; None for another error."""

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        with self._cursor() as cursor:
            self._call(cursor.execute, statement, tuple(parameters))
            return int(cursor.rowcount)

    def query(self, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return [row for part in self.fetch(query, parameters) for row in part]

    def fetch(self, query: str, parameters: Sequence[Any] = ()) -> Iterator[list[tuple[Any, ...]]]:
        with self._cursor() as cursor:
            self._call(cursor.execute, query, tuple(parameters))
            while rows := self._call(cursor.fetchmany, FETCHED):
                yield rows if type(rows[0]) is tuple else [tuple(row) for row in rows]

    def execute_many(self, statement: str, rows: pa.RecordBatch) -> None:
        with self._cursor() as cursor:
            self._call(cursor.executemany, statement, self.parameters(rows))

    def commit(self) -> None:
        self._call(self.client.commit)

    def rollback(self) -> None:
        self._call(self.client.rollback)

    def close(self) -> None:
        self.client.close()

    def _cursor(self) -> AbstractContextManager[Any]:
        return closing(self._call(self.client.cursor))

    def _call(self, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            translated = self.translate_error(error)
            if translated is None:
                raise
            raise translated from error
