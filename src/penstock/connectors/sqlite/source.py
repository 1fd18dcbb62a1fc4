"""The source of SQLite."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from penstock.connectors.sqlite.connection import SqliteConnection
from penstock.sdk import UserPath
from penstock.sdk.columns.json_mark import is_json
from penstock.sdk.database import Connection, TableSource, TableSourceConfig


class SqliteSourceConfig(TableSourceConfig):
    path: UserPath
    """The file of the database."""


class SqliteSource(TableSource[SqliteSourceConfig]):
    """Reads a table or a query of a SQLite database.

    Rows are read in the order of `cursor_columns`, by default of the rowid. With `watch` the source
    also reads rows that come later in this order. Updates are read if a cursor column has the time
    of the last change; deletions are not read. Declare the key `INTEGER PRIMARY KEY AUTOINCREMENT`:
    otherwise SQLite gives the rowid of a deleted row to a new one, which is not read.

    The columns are those of the table by their declared types. A value that does not have the type
    of its column becomes a dead letter.

    ```yaml
    type: sqlite
    path: shop.db
    table: orders
    watch: true
    ```
    """

    def connect(self) -> SqliteConnection:
        return SqliteConnection(self.config.path, "ro")

    def query_columns(self, connection: Connection, query: str) -> pa.Schema:
        assert isinstance(connection, SqliteConnection)
        return connection.query_columns(query)

    def to_value(self, value: Any, field: pa.Field) -> Any:
        if is_json(field) and isinstance(value, int | float):
            return json.dumps(value)
        return super().to_value(value, field)

    def growing_key(self, connection: Connection) -> tuple[str, ...]:
        assert isinstance(connection, SqliteConnection)
        return () if self._table is None else connection.rowid(self._table)

    def min_age_condition(self, column: str, seconds: float) -> str:
        return f"julianday({column}) <= julianday('now') - {seconds!r} / 86400"
