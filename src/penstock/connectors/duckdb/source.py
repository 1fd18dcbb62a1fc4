"""The source of DuckDB."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from penstock.connectors.duckdb.config import DuckdbSourceConfig
from penstock.connectors.duckdb.connection import DuckdbConnection
from penstock.connectors.duckdb.types import text_type
from penstock.connectors.duckdb.values import to_rows
from penstock.sdk.database import Connection, TableSource
from penstock.sdk.database.row_conversion import RowConversion
from penstock.sdk.database.values import value_of


class DuckdbSource(TableSource[DuckdbSourceConfig]):
    """Reads a table or a query of a DuckDB database, as Arrow batches.

    Rows are read in the order of `cursor_columns`, by default of a primary key of one integer. With
    `watch` the source also reads rows that come later in this order. Updates are read if a cursor
    column has the time of the last change; deletions are not read. The rowid is no cursor, since
    DuckDB changes it when rows are deleted, and neither is an ENUM, which is compared as text.

    The columns are those of the table. UBIGINT, HUGEINT and UHUGEINT are DECIMAL with the scale 0;
    declare the column as STRING in `schema` for more than 38 digits. A UNION is a STRUCT, of whose
    fields one has a value. Types without a counterpart, such as ENUM, UUID, TIME, INTERVAL and BIT,
    are STRING, also within nested types. A value that does not fit its column, such as an infinite
    date or a time with nanoseconds, becomes a dead letter; columns of STRING have it.

    While the source reads, no other process can open the file for writing. The source opens the
    file for each batch and each query for new rows, and waits for other processes up to `timeout`.

    ```yaml
    type: duckdb
    path: shop.duckdb
    table: orders
    watch: true
    ```
    """

    extra = "duckdb"
    client_modules = ("duckdb",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._types: Mapping[str, Any] | None = None

    def __getstate__(self) -> Mapping[str, Any]:
        return {**super().__getstate__(), "_types": None}

    def connect(self) -> DuckdbConnection:
        return DuckdbConnection(self.config, read_only=True)

    def query_columns(self, connection: Connection, query: str) -> pa.Schema:
        assert isinstance(connection, DuckdbConnection)
        return connection.query_columns(query)

    def unordered_columns(self) -> Collection[str]:
        types = self._relation_types()
        return {name for name, type_ in types.items() if type_.id == "enum"}

    def min_age_condition(self, column: str, seconds: float) -> str:
        return f"{column} <= now() - to_microseconds({round(seconds * 1e6)})"

    def select_item(self, field: pa.Field) -> str:
        name = self._connection.dialect.quote(field.name)
        type_ = self._relation_types().get(field.name)
        text = None if type_ is None else text_type(type_)
        return name if text is None else f"CAST({name} AS {text}) AS {name}"

    def key_item(self, field: pa.Field) -> str:
        name = super().key_item(field)
        # A text that is not a UUID would otherwise be an error of all keys of a query.
        return f"CAST({name} AS VARCHAR)" if pa.types.is_string(field.type) else name

    def read_query(
        self, query: str, parameters: Sequence[Any], conversion: RowConversion
    ) -> Iterator[pa.RecordBatch]:
        connection = self._connection
        assert isinstance(connection, DuckdbConnection)
        try:
            with closing(connection.batches(query, parameters)) as batches:
                yield from conversion.batches(batches, to_rows, value_of)
        finally:
            connection.rollback()

    def _relation_types(self) -> Mapping[str, Any]:
        if self._types is None:
            connection = self._connection
            assert isinstance(connection, DuckdbConnection)
            self._types = connection.types(self._relation)
        return self._types
