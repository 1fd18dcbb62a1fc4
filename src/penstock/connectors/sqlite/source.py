"""The source of SQLite."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.sqlite.connection import SqliteConnection
from penstock.connectors.sqlite.keys import forms_of, stored, with_forms
from penstock.sdk import Read, UserPath
from penstock.sdk.columns.json_mark import is_json
from penstock.sdk.columns.names import fold
from penstock.sdk.database import Connection, TableSource, TableSourceConfig
from penstock.sdk.database.row_conversion import RowConversion
from penstock.sdk.database.types import declared_type


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

    A lookup table reads the column of a key of TIMESTAMP as a whole for each lookup, since SQLite
    stores times in several forms. The same is true for DECIMAL_TEXT, and for numbers in columns of
    text and without a type. Use keys of other types for large tables.

    ```yaml
    type: sqlite
    path: shop.db
    table: orders
    watch: true
    ```
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._declared: Mapping[str, str] | None = None

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

    def key_values(self, keys: pa.RecordBatch) -> Sequence[Sequence[Any]]:
        """Returns keys in the forms in which the table may have them.

        Times, and numbers in columns of text, have any number of forms: those of the table are
        read first.
        """
        if self._declared is None:
            columns = self._target_columns()
            self._declared = {fold(each.name): declared_type(each) for each in columns}
        known = self._declared
        forms = [forms_of(each.type, known.get(fold(each.name), "")) for each in keys.schema]
        rows = [*self._connection.parameters(keys)]
        if None not in forms:
            return [*with_forms(rows, [each for each in forms if each is not None])]
        self._connection.execute("BEGIN")
        conditions, parameters = ["1"], list[Any]()
        for index, (name, of) in enumerate(zip(keys.schema.names, forms, strict=True)):
            if of is not None:
                values = [form for row in rows for form in stored(of, row[index])]
                quoted = self._connection.dialect.quote(name)
                conditions.append(self._connection.dialect.any_of([quoted], len(values)))
                parameters += values
        return self._stored_keys(keys, " AND ".join(conditions), parameters)

    def _stored_keys(
        self, keys: pa.RecordBatch, condition: str, parameters: Sequence[Any]
    ) -> Sequence[Sequence[Any]]:
        """Returns the values of the table that are read as one of `keys`."""
        names = self._connection.dialect.quote_all(keys.schema.names)
        query = f"SELECT DISTINCT {names} FROM {self._relation} WHERE {condition}"
        asked, columns = {*_rows(keys)}, keys.schema.append(pa.field("penstock", pa.int64()))
        found: list[Sequence[Any]] = []
        for values in self._connection.fetch_columns(query, parameters):
            raw = [*zip(*values, strict=True)]
            conversion = RowConversion(self._name, columns, Read())
            for batch in conversion.values([*values, [*range(len(raw))]], self.to_value):
                found += [raw[index] for *key, index in _rows(batch) if tuple(key) in asked]
        return found


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)
