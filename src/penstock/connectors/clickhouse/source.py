"""The source of ClickHouse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from penstock.connectors.clickhouse.config import ClickhouseSourceConfig
from penstock.connectors.clickhouse.connection import ClickhouseConnection
from penstock.connectors.clickhouse.declared import parse
from penstock.connectors.clickhouse.literals import literal
from penstock.connectors.clickhouse.types import read_type
from penstock.sdk.columns.conform import conform
from penstock.sdk.columns.conversion import Conversion
from penstock.sdk.columns.names import fold
from penstock.sdk.database import Connection, RangedSource, TableName
from penstock.sdk.database.row_conversion import RowConversion
from penstock.sdk.database.types import declared_type
from penstock.sdk.database.values import value_of

_CONVERSION = Conversion()
_CONVERTED = "penstock "
"""The prefix of the name of a converted column in a result."""


class ClickhouseSource(RangedSource[ClickhouseSourceConfig]):
    """Reads a table or a query of a ClickHouse database, as Arrow batches over HTTP.

    Rows are read in the order of `cursor_columns`, by default of the table's ORDER BY, in pages of
    `max_records`. Rows with the same values of these columns are read together. With
    `partition_column` several tasks read ranges of this column within a page. With `watch` the
    source also reads rows that come later in this order, and requires `cursor_columns` that grow.
    Deletions are not read. To read some rows or columns, or to begin at a key, set `query`.

    The primary key is the ORDER BY of engines that keep one row of a key, such as
    ReplacingMergeTree; other engines have none.

    UInt64 is DECIMAL(20,0); DateTime and DateTime64 are TIMESTAMP. Enum, UUID, IPv4, IPv6, Time,
    integers of 128 and 256 bits and Decimal of more than 38 digits are STRING, and FixedString is
    BINARY. A value that does not fit its column, such as text that is not UTF-8 or a time with
    nanoseconds, becomes a dead letter; declare the column as BINARY in `schema` to read any bytes.
    Other types, such as AggregateFunction and Variant, are an error.

    A user with `readonly = 1` cannot read, since the source sets settings; `readonly = 2` can.

    ```yaml
    type: clickhouse
    url: clickhouse://127.0.0.1:8123/shop
    auth: {username: penstock, password: "${SHOP_PASSWORD}"}
    table: orders
    cursor_columns: [changed_at]
    watch: true
    ```
    """

    extra = "clickhouse"
    client_modules = ("clickhouse_connect",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._declared: Mapping[str, str] | None = None

    def connect(self) -> ClickhouseConnection:
        return ClickhouseConnection(self.config, read_only=True, final=self.config.final)

    def query_columns(self, connection: Connection, query: str) -> pa.Schema:
        assert isinstance(connection, ClickhouseConnection)
        return connection.query_columns(query)

    def growing_key(self, connection: Connection) -> tuple[str, ...]:
        """Returns no columns: the values of ORDER BY need not grow, and may occur again."""
        return ()

    def order_key(self, connection: Connection, table: TableName) -> tuple[str, ...]:
        assert isinstance(connection, ClickhouseConnection)
        columns = connection.columns(table) or pa.schema([])
        # NaN has no place in the order.
        without = {field.name for field in columns if pa.types.is_floating(field.type)}
        return tuple(name for name in connection.sorting_key(table) if name not in without)

    def min_age_condition(self, column: str, seconds: float) -> str:
        return f"{column} <= now64(6) - toIntervalMicrosecond({round(seconds * 1e6)})"

    def select_item(self, field: pa.Field) -> str:
        quote = self._connection.dialect.quote
        type_ = read_type(parse(self._declared_type(field.name)))
        if type_ is None:
            return quote(field.name)
        # With the name of the column, conditions and ORDER BY would have the converted values.
        return f"CAST({quote(field.name)}, {literal(type_)}) AS {quote(_CONVERTED + field.name)}"

    def key_item(self, field: pa.Field) -> str:
        name, declared = super().key_item(field), parse(self._declared_type(field.name)).name
        if pa.types.is_string(field.type) and declared != "String":
            return f"toString({name})"
        # IN of DateTime does not accept the microseconds of a key.
        return f"toDateTime64({name}, 6)" if declared == "DateTime" else name

    def read_query(
        self, query: str, parameters: Sequence[Any], conversion: RowConversion
    ) -> Iterator[pa.RecordBatch]:
        connection = self._connection
        assert isinstance(connection, ClickhouseConnection)
        with closing(connection.batches(query, parameters)) as batches:
            names = conversion.columns.names
            renamed = (batch.rename_columns(names) for batch in batches)
            yield from conversion.batches(renamed, _to_rows, value_of)

    def _declared_type(self, name: str) -> str:
        if self._declared is None:
            columns = self._target_columns()
            self._declared = {fold(each.name): declared_type(each) for each in columns}
        return self._declared.get(fold(name), "String")


def _to_rows(values: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    return conform(values, columns, _CONVERSION)
