"""Connections to DuckDB databases."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from penstock.connectors.duckdb.attachment import Attachment
from penstock.connectors.duckdb.config import FileConfig
from penstock.connectors.duckdb.errors import translate_error
from penstock.connectors.duckdb.types import DIALECT, field_of, type_of
from penstock.core.errors import PenstockError, Permanent, Rejected
from penstock.sdk.database import DbapiConnection, TableName
from penstock.sdk.database.connection import FETCHED
from penstock.sdk.database.cursor import OtherTime

OF_TABLE = """
database_name = coalesce(?, current_database())
AND schema_name = coalesce(?, current_schema()) AND lower(table_name) = lower(?)
"""
"""The condition of a table in DuckDB's catalog, with the parameters of `identifiers`."""
_COLUMNS = f"""
SELECT column_name, is_nullable OR column_default IS NOT NULL, is_generated FROM duckdb_columns()
WHERE {OF_TABLE} ORDER BY column_index
"""
_KEYS = f"""
SELECT constraint_column_names FROM duckdb_constraints()
WHERE {OF_TABLE} AND constraint_type IN ('PRIMARY KEY', 'UNIQUE')
ORDER BY constraint_type, constraint_index
"""
_PRIMARY_KEY = _KEYS.replace("('PRIMARY KEY', 'UNIQUE')", "('PRIMARY KEY')")
_INDEXES = f"""
SELECT CAST(expressions AS VARCHAR[]) FROM duckdb_indexes() WHERE {OF_TABLE} AND is_unique
"""
"""The columns of unique indexes, quoted where that is needed, or expressions."""
_TABLES = """
SELECT nullif(schema_name, 'main'), name
FROM (SELECT schema_name, table_name AS name, internal FROM duckdb_tables()
      UNION ALL SELECT schema_name, view_name, internal FROM duckdb_views())
WHERE NOT internal ORDER BY 1 NULLS FIRST, 2
"""


_BOUNDS = frozenset({date.min, date.max, datetime.min, datetime.max})
"""The values that the client returns for infinite times."""


class DuckdbConnection(DbapiConnection):
    """A connection that opens the file for the time of a transaction.

    One process can have a file open that writes to it, and no other then reads it. So the first
    statement opens the file, and `commit` and `rollback` close it.
    """

    dialect = DIALECT

    def __init__(self, config: FileConfig, *, read_only: bool) -> None:
        super().__init__(None)
        self.config, self.read_only = config, read_only
        self._attachment: Attachment | None = None

    def translate_error(self, error: Exception) -> PenstockError | None:
        translated = translate_error(error, self.config.path)
        if isinstance(translated, Rejected) and self.read_only:
            return Permanent(f"the query failed: {translated.message}", hint=translated.hint)
        return translated

    def fetch(self, query: str, parameters: Sequence[Any] = ()) -> Iterator[list[tuple[Any, ...]]]:
        parameters = [*map(_parameter, parameters)]
        rows = [row for part in super().fetch(query, parameters) for row in part]
        types = [str(type_) for _, type_, *_ in self.client.description]
        if "TIMESTAMP_NS" in types:
            name, *_ = self.client.description[types.index("TIMESTAMP_NS")]
            raise Permanent(
                f"cannot read in the order of {name}, which has nanoseconds",
                code="cursor-type",
                hint="Set cursor_columns to a column of a query: SELECT *, epoch_ns(at) AS at_ns.",
            )
        if any(_has_other(row, types) for row in rows):
            rows = self._with_other_times(rows, types, query, parameters)
        if rows:
            yield rows

    def _with_other_times(
        self, rows: list[tuple[Any, ...]], types: Sequence[str], query: str,
        parameters: Sequence[Any],
    ) -> list[tuple[Any, ...]]:  # fmt: skip
        """Returns the rows of a query, with the times that Python does not have."""
        as_texts = f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({query})"
        texts = [row for part in super().fetch(as_texts, parameters) for row in part]
        return [
            tuple(
                OtherTime(type_, text) if _may_be_other(value, type_) else value
                for value, text, type_ in zip(*pair, types, strict=True)
            )
            for pair in zip(rows, texts, strict=True)
        ]

    def batches(
        self, query: str, parameters: Sequence[Any]
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yields the rows of a query as Arrow batches."""
        values = [*map(_parameter, parameters)]
        relation = self._call(lambda: self._opened().sql(query, params=values))
        if relation is None:
            raise Permanent("the query returns no rows", hint="Set query to a SELECT statement.")
        with closing(self._call(relation.to_arrow_reader, FETCHED)) as reader:
            while (rows := self._call(next, reader, None)) is not None:
                yield rows

    def other_cursor(self) -> Any:
        """Returns another connection to the file, with transactions of its own."""
        self._opened()
        assert self._attachment is not None
        return self._attachment.cursor()

    def types(self, relation: str) -> dict[str, Any]:
        """Returns DuckDB's types of the columns of a FROM item."""
        relation = f"SELECT * FROM {relation}"
        found = self._call(lambda: self._opened().sql(relation))
        return dict(zip(found.columns, found.types, strict=True))

    def columns(self, table: TableName) -> pa.Schema | None:
        known = self.query(_COLUMNS, identifiers(table))
        if not known:
            return None
        types = self.types(self.dialect.table(table))
        return pa.schema(
            [
                field_of(name, types[name], nullable=is_nullable or is_generated)
                for name, is_nullable, is_generated in known
            ]
        )

    def query_columns(self, query: str) -> pa.Schema:
        """Returns the columns of a query."""
        types = self.types(f"({query}) AS penstock_query")
        return pa.schema([field_of(name, type_, nullable=True) for name, type_ in types.items()])

    def primary_key(self, table: TableName) -> tuple[str, ...]:
        rows = self.query(_PRIMARY_KEY, identifiers(table))
        return tuple(rows[0][0]) if rows else ()

    def unique_keys(self, table: TableName) -> list[tuple[str, ...]]:
        keys = [tuple(names) for (names,) in self.query(_KEYS, identifiers(table))]
        columns = self.query(_COLUMNS, identifiers(table))
        quoted = {self.dialect.quote(name): name for name, *_ in columns}
        for (expressions,) in self.query(_INDEXES, identifiers(table)):
            names = [quoted.get(text) or quoted.get(f'"{text}"') for text in expressions]
            if all(names):
                keys.append(tuple(name for name in names if name))
        return keys

    def tables(self) -> list[TableName]:
        return [TableName.of(*parts) for parts in self.query(_TABLES)]

    def commit(self) -> None:
        if self.client is not None:
            self._call(self.client.execute, "COMMIT")
            self.close()

    def rollback(self) -> None:
        self.close()

    def close(self) -> None:
        attachment, self._attachment, self.client = self._attachment, None, None
        if attachment is not None:
            attachment.detach()

    def _cursor(self) -> AbstractContextManager[Any]:
        return nullcontext(self._opened())

    def _opened(self) -> Any:
        if self._attachment is None:
            self._attachment = Attachment(self.config, read_only=self.read_only)
            self.client = self._attachment.client
            self.client.execute("BEGIN")
        return self.client


def _has_other(row: tuple[Any, ...], types: Sequence[str]) -> bool:
    return any(map(_may_be_other, row, types))


def _may_be_other(value: Any, type_: str) -> bool:
    """Returns whether a value may stand for a time that Python does not have."""
    is_time = type_ == "DATE" or type_.startswith("TIMESTAMP")
    return is_time and (isinstance(value, str) or value in _BOUNDS)


def _parameter(value: Any) -> Any:
    import duckdb

    if isinstance(value, OtherTime):
        return duckdb.Value(value.text, type_of(value.type))
    return value


def identifiers(table: TableName) -> tuple[str | None, str | None, str]:
    """Returns the catalog, the schema and the name of a table, as far as they are given."""
    catalog, schema = (None, None, *table.parts[:-1])[-2:]
    return catalog, schema, table.name
