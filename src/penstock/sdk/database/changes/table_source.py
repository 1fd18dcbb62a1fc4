"""A source of the rows of a table of a SQL database and their changes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import closing
from typing import Any, TypeVar

import pyarrow as pa

from penstock.core.errors import DecodeError, OptionError
from penstock.sdk.database.changes.config import ChangesConfig
from penstock.sdk.database.changes.evolution import evolve
from penstock.sdk.database.changes.loss import truncated_table
from penstock.sdk.database.changes.payloads import MANY, texts_of_payloads
from penstock.sdk.database.changes.rows import Unsent, Value, changes_of_payloads
from penstock.sdk.database.changes.schemas import (
    JournalSchema,
    SchemaWriter,
    read_schemas,
    version_of,
    with_version,
)
from penstock.sdk.database.changes.source import ChangesSource
from penstock.sdk.database.changes.truncations import (
    TruncationWriter,
    is_truncation,
    read_truncations,
    without_truncations,
)
from penstock.sdk.database.connection import Connection
from penstock.sdk.database.declared import check_declared
from penstock.sdk.database.names import TableName, did_you_mean_table
from penstock.sdk.database.types import without_declared
from penstock.sdk.operations import add_operation
from penstock.sdk.source import Offset

C = TypeVar("C", bound=ChangesConfig)


class TableChangesSource(ChangesSource[C]):
    """Base class of sources of changes of tables, whose columns may change.

    Define `connect`, `to_rows`, `check_changes` and `receive_log`.
    """

    @abstractmethod
    def connect(self) -> Connection:
        """Returns a new connection whose statements are committed."""

    @abstractmethod
    def to_rows(self, texts: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
        """Converts columns of text or bytes. Raises ArrowInvalid for a value that does not fit."""

    @abstractmethod
    def check_changes(self, connection: Any, key: tuple[str, ...]) -> None:
        """Checks the server, the user and the table. Raises Permanent with what to run."""

    @property
    def relation(self) -> str:
        return str(self.table)

    @property
    def table(self) -> TableName:
        """The table."""
        assert self.config.table is not None
        return TableName.parse(self.config.table)

    def check(self) -> None:
        with closing(self.connect()) as connection:
            self.check_declared(connection)
            self.check_changes(connection, self.primary_key or connection.primary_key(self.table))

    def infer_schema(self) -> pa.Schema | None:
        with closing(self.connect()) as connection:
            return without_declared(self._columns(connection))

    def infer_primary_key(self) -> tuple[str, ...]:
        with closing(self.connect()) as connection:
            self._columns(connection)
            return connection.primary_key(self.table)

    def check_declared(self, connection: Connection) -> None:
        """Raises OptionError if the table, or a column that the pipeline declares, is missing."""
        known = self._columns(connection)
        if self.columns is not None and not self.follows_schema:
            check_declared(self.table_columns, known.names, self.relation)

    def _columns(self, connection: Connection) -> pa.Schema:
        columns = connection.columns(self.table)
        if columns is None:
            raise OptionError.of(
                "table", message=f'there is no table "{self.config.table}"', code="unknown-table",
                hint=did_you_mean_table(self.table, connection.tables()),
            )  # fmt: skip
        return columns

    def schema_writer(self) -> SchemaWriter | None:
        """Returns the columns for the receiver; None if the user has declared them."""
        if not self.follows_schema:
            return None
        reserved = (self.operation_column, *self.metadata_columns)
        return SchemaWriter(self.directory, str(self.table), self.table_columns, reserved)

    @property
    def truncates(self) -> bool:  # type: ignore[override]
        return self.config.on_truncate == "apply"

    def truncation_writer(self) -> TruncationWriter:
        """Returns the truncations of the table for the receiver."""
        return TruncationWriter(self.directory, self.config.on_truncate)

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        limited = super().limit_batch(start, end)
        first, last = start["position"], limited["position"]
        following = [each for each in read_truncations(self.directory) if first < each < last]
        return self._offset(start, following[0]) if following else limited

    def begins_truncated(self, start: Offset, end: Offset) -> bool:
        first = start["position"]
        if not self.truncates or first == end["position"]:
            return False
        ((_, record),) = self._reader.read(first, first + 1)
        return is_truncation(record)

    def changes_only(self, messages: pa.RecordBatch, start: int) -> pa.RecordBatch:
        changes = without_truncations(messages, start)
        if self.config.on_truncate == "fail" and changes.num_rows < messages.num_rows:
            raise truncated_table(self.relation, f"record {start}")
        return changes

    def schema_change(self, start: Offset, end: Offset) -> Offset | None:
        later = self._later_schemas(end)
        if not later:
            return None
        return self._offset(start, max(start["position"], later[0].position))

    def changed_columns(self) -> pa.Schema | None:
        later = self._later_schemas({"position": self._reader.end()})
        if not later:
            return None
        columns, table = self.table_columns, str(self.table)
        for schema in later:
            columns = evolve(columns, schema.columns, table=table, at=f"record {schema.position}")
        version = version_of(columns) + len(later)
        return with_version(add_operation(columns, self.operation_column), version)

    def _later_schemas(self, end: Offset) -> list[JournalSchema]:
        """Returns the schemas after that of `columns`, of the rows before an offset."""
        if not self.follows_schema or self.columns is None:
            return []
        schemas = read_schemas(self.directory)[version_of(self.columns) :]
        return [schema for schema in schemas if schema.position < end["position"]]

    @property
    def table_columns(self) -> pa.Schema:
        """The columns without the operation column."""
        assert self.columns is not None
        fields = [field for field in self.columns if field.name != self.operation_column]
        return pa.schema(fields, self.columns.metadata)

    def rows_of(self, payloads: Sequence[bytes]) -> pa.RecordBatch:
        assert self.columns is not None
        names = self.table_columns.names
        found = texts_of_payloads(payloads, names) if len(payloads) >= MANY else None
        operations, rows = found or texts_one_by_one(payloads, names)
        texts = rows.append_column(self.operation_column, operations)
        return self.to_rows(texts.select(self.columns.names), self.columns)


def texts_one_by_one(
    payloads: Sequence[bytes], names: Sequence[str]
) -> tuple[pa.StringArray, pa.RecordBatch]:
    """Returns the operations and the rows of any payloads. Raises ArrowInvalid or DecodeError."""
    operations, rows = changes_of_payloads(payloads)
    arrays = [_array(name, [row.get(name) for row in rows]) for name in names]
    return pa.array(operations, pa.string()), pa.RecordBatch.from_arrays(arrays, names)


def _array(name: str, values: Sequence[Value]) -> pa.Array:
    """Returns values that are all texts, or all bytes.

    Raises ArrowInvalid for others, and DecodeError for a value that is not known.
    """
    types = set(map(type, values))
    if Unsent in types:
        raise DecodeError(
            f'the database did not send the value of column "{name}", and the row or the column '
            "was removed meanwhile",
            code="unavailable-value",
            hint="Let the log have whole rows: ALTER TABLE ... REPLICA IDENTITY FULL (PostgreSQL), "
            "binlog_row_image = FULL (MySQL, MariaDB). Or declare schema without the column.",
        )
    return pa.array(values, pa.binary() if bytes in types else pa.string())
