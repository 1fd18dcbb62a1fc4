"""Connections to SQLite databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeVar

import pyarrow as pa

from penstock.connectors.sqlite.types import DIALECT, TYPES, to_parameters
from penstock.core.errors import PenstockError, Permanent, Rejected, Transient
from penstock.core.path_permission import check_path, paths_confined
from penstock.sdk.database import DbapiConnection, TableName
from penstock.sdk.database.connection import FETCHED
from penstock.sdk.database.row_conversion import columns_of
from penstock.sdk.database.types import with_declared
from penstock.sdk.database.values import parameters_of

T = TypeVar("T")

BUSY_TIMEOUT = 30.0
"""The seconds for which a statement waits for the lock of another connection."""
_TRANSIENT = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_PROTOCOL")
_REJECTED = (sqlite3.IntegrityError, sqlite3.DataError, OverflowError)
_NOT_UTF8 = "Could not decode to UTF-8"
_LENIENT = partial(str, encoding="utf-8", errors="surrogateescape")
"""Decodes text, of which bytes that are not UTF-8 are surrogates."""


def _reject_attachments(action: int, *_: str | None) -> int:
    """Rejects other files than that of the connection."""
    return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK


class _NotUtf8(Permanent):
    """The error of the library for a text that is not UTF-8."""


class SqliteConnection(DbapiConnection):
    """A connection to the file of a database."""

    dialect = DIALECT

    def __init__(self, path: str, mode: Literal["ro", "rwc"]) -> None:
        self.path, self._only_reads = path, mode == "ro"
        check_path(path)
        uri = f"{Path(path).absolute().as_uri()}?mode={mode}"
        super().__init__(
            self._call(
                lambda: sqlite3.connect(
                    uri, uri=True, timeout=BUSY_TIMEOUT, isolation_level="IMMEDIATE",
                    check_same_thread=False,
                )
            )
        )  # fmt: skip
        if paths_confined():
            self.client.set_authorizer(_reject_attachments)
        if not self._only_reads:
            self.client.text_factory = _LENIENT
        self._call(self.client.execute, "SELECT 1 FROM sqlite_schema")

    def translate_error(self, error: Exception) -> PenstockError | None:
        if isinstance(error, _REJECTED):
            return Rejected(f"SQLite rejects the row: {error}")
        if not isinstance(error, sqlite3.Error):
            return None
        if _NOT_UTF8 in str(error):
            return _NotUtf8(str(error))
        name = getattr(error, "sqlite_errorname", "") or ""
        if name.startswith(_TRANSIENT):
            return Transient(
                f"could not use the database {self.path}: {error}",
                hint="Close other programs that use the database, or free disk space.",
            )
        if name == "SQLITE_CANTOPEN":
            return Permanent(
                f"cannot open the database {self.path}: {error}",
                hint="Correct path, or the permissions of the file and its directory.",
            )
        return Permanent(f"cannot use the database {self.path}: {error}")

    def fetch(self, query: str, parameters: Sequence[Any] = ()) -> Iterator[list[tuple[Any, ...]]]:
        return self._decoded(partial(super().fetch, query, parameters))

    def fetch_columns(
        self, query: str, parameters: Sequence[Any] = ()
    ) -> Iterator[Sequence[list[Any]]]:
        return self._decoded(partial(self._columns_of_query, query, parameters))

    def _columns_of_query(
        self, query: str, parameters: Sequence[Any]
    ) -> Iterator[Sequence[list[Any]]]:
        with self._cursor() as cursor:
            self._call(cursor.execute, query, tuple(parameters))
            count = len(cursor.description)
            # A row that is not kept with others costs less than half.
            while (values := self._call(columns_of, islice(cursor, FETCHED), count))[0]:
                yield values

    def _decoded(self, read: Callable[[], Iterator[T]]) -> Iterator[T]:
        """Yields parts of rows. Those from a text on that is not UTF-8 are read again.

        To decode each text by a function takes half as long as to read the rows. A transaction
        keeps the rows as they are.
        """
        begins = self._only_reads and not self.client.in_transaction
        if begins:
            self._call(self.client.execute, "BEGIN")
        count = 0
        try:
            for part in read():
                yield part
                count += 1
        except _NotUtf8:
            self.client.text_factory = _LENIENT
            yield from islice(read(), count, None)
        finally:
            if begins:
                self.rollback()

    def parameters(self, rows: pa.RecordBatch) -> Iterator[Sequence[Any]]:
        return parameters_of(rows, to_parameters)

    def columns(self, table: TableName) -> pa.Schema | None:
        fields = []
        for name, declared, required, default, _ in self._table_info(table):
            field = TYPES.field(name, declared, nullable=not required or default is not None)
            fields.append(with_declared(field or pa.field(name, pa.string()), declared))
        return pa.schema(fields) if fields else None

    def primary_key(self, table: TableName) -> tuple[str, ...]:
        numbered = sorted((pk, name) for name, *_, pk in self._table_info(table) if pk)
        return tuple(name for _, name in numbered)

    def rowid(self, table: TableName) -> tuple[str, ...]:
        """Returns a name of the rowid, or no name for a view or a table WITHOUT ROWID."""
        names = {name.lower() for name, *_ in self._table_info(table)}
        query = "SELECT type = 'table' AND NOT wr FROM pragma_table_list(?) WHERE schema = ?"
        rows = self.query(query, (table.name, _schema(table)))
        free = [name for name in ("rowid", "_rowid_", "oid") if name not in names]
        return (free[0],) if rows and rows[0][0] and free else ()

    def unique_keys(self, table: TableName) -> list[tuple[str, ...]]:
        indexes = self.query(
            'SELECT name FROM pragma_index_list(?, ?) WHERE "unique" AND NOT partial',
            (table.name, _schema(table)),
        )
        keys = [
            tuple(
                column
                for (column,) in self.query(
                    "SELECT name FROM pragma_index_info(?, ?) ORDER BY seqno",
                    (index, _schema(table)),
                )
            )
            for (index,) in indexes
        ]
        key = self.primary_key(table)
        return [key, *keys] if key else keys

    def tables(self) -> list[TableName]:
        query = (
            "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        )
        return [TableName((name,)) for (name,) in self.query(query)]

    def query_columns(self, query: str, sample: int = 1000) -> pa.Schema:
        """Returns the columns of a query. Those of expressions are inferred from its first rows."""
        from penstock.sdk.columns.rows import infer_rows

        self.execute("DROP VIEW IF EXISTS temp.penstock_query")
        self.execute(f"CREATE TEMP VIEW penstock_query AS {query}")
        info = self._table_info(TableName(("temp", "penstock_query")))
        rows = self.query("SELECT * FROM temp.penstock_query LIMIT ?", (sample,))
        known = {
            name: TYPES.field(name, declared) if declared else None for name, declared, *_ in info
        }
        others = [name for name, field in known.items() if field is None]
        indexes = [[*known].index(name) for name in others]
        values = [{name: row[i] for name, i in zip(others, indexes, strict=True)} for row in rows]
        inferred = infer_rows(values or [{}])
        fields = []
        for name, declared, *_ in info:
            found = inferred.field(name) if name in inferred.names else pa.field(name, pa.string())
            fields.append(with_declared(known[name] or found, declared))
        return pa.schema(fields)

    def _table_info(self, table: TableName) -> list[tuple[Any, ...]]:
        """Returns name, declared type, NOT NULL, default and place in the key of each column."""
        return self.query(
            'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?, ?)',
            (table.name, _schema(table)),
        )


def _schema(table: TableName) -> str:
    return table.parts[-2] if len(table.parts) > 1 else "main"
