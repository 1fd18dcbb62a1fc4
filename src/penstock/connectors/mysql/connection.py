"""Connections to MySQL and MariaDB."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from penstock.connectors.mysql.config import ConnectionConfig
from penstock.connectors.mysql.errors import CHANGED, rejected, translate_error
from penstock.connectors.mysql.fields import declared_name
from penstock.connectors.mysql.literals import blocks, chunks, conditions, literals, tuples
from penstock.connectors.mysql.session import connect_options, session_statements
from penstock.connectors.mysql.texts import as_columns
from penstock.connectors.mysql.types import DIALECT, TYPES
from penstock.core.errors import PenstockError, Permanent, Rejected
from penstock.sdk.database import DbapiConnection, TableName
from penstock.sdk.database.types import with_declared

_STATEMENT_BYTES, _KEYS = 2**20, 1000
_PART_BYTES, _PART_ROWS = 4 * 2**20, 10_000
_NO_TABLE = 1146
_SERVER = "SELECT @@max_allowed_packet, VERSION(), @@server_id, CURRENT_USER()"
_JSON_CHECKS = """
SELECT CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS
WHERE CONSTRAINT_SCHEMA = coalesce(\0, DATABASE()) AND TABLE_NAME = \0
"""
_ENGINE = """
SELECT ENGINE FROM information_schema.TABLES
WHERE TABLE_SCHEMA = coalesce(\0, DATABASE()) AND TABLE_NAME = \0
"""
_HAS_TRANSACTIONS = "SELECT TRANSACTIONS FROM information_schema.ENGINES WHERE ENGINE = \0"
_TABLES = """
SELECT nullif(TABLE_SCHEMA, DATABASE()), TABLE_NAME
FROM information_schema.TABLES
WHERE TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
ORDER BY TABLE_SCHEMA = DATABASE() DESC, 1, 2
"""


class MysqlConnection(DbapiConnection):
    """A connection, in UTC and in strict mode."""

    dialect = DIALECT
    silence = 10.0
    """The seconds after a timeout of the server at which the client closes the connection."""

    def __init__(self, config: ConnectionConfig) -> None:
        import pymysql

        self.config = config
        self.account: str | None = None
        self._targets: dict[TableName, pa.Schema] = {}
        super().__init__(self._call(lambda: pymysql.connect(**connect_options(config))))
        self.client._read_timeout = config.timeout + self.silence
        self._typed = {**self.client.decoders, pymysql.constants.FIELD_TYPE.FLOAT: Float}
        for statement in session_statements(config.timeout):
            self.execute(statement)
        ((self._max_packet, version, self.server_id, self.account),) = self.query(_SERVER)
        self.is_mariadb = "mariadb" in version.lower()

    def translate_error(self, error: Exception) -> PenstockError | None:
        return translate_error(error, self.config, self.account)

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        return super().execute(_formatted(statement), parameters)

    def fetch(self, query: str, parameters: Sequence[Any] = ()) -> Iterator[list[tuple[Any, ...]]]:
        return self._stream(query, parameters, self._typed)

    def texts(
        self, query: str, parameters: Sequence[Any], names: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a query in parts, as columns of text or bytes."""
        for rows in self.text_rows(query, parameters):
            yield as_columns(rows, names)

    def text_rows(
        self, query: str, parameters: Sequence[Any]
    ) -> Iterator[list[tuple[str | bytes | None, ...]]]:
        """Yields the rows of a query in parts, as texts or bytes."""
        return self._stream(query, parameters, {})

    def _stream(
        self, query: str, parameters: Sequence[Any], decoders: Mapping[int, Any]
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Yields the rows of a query in parts. Closes the connection if not all are read."""
        from pymysql.cursors import SSCursor

        cursor, is_read = SSCursor(self.client), False
        self.client.decoders = decoders
        try:
            self._call(cursor.execute, _formatted(query), tuple(parameters))
            count = 16
            while rows := self._call(cursor.fetchmany, count):
                yield rows
                last = rows[-100:]
                size = sum(len(v) for row in last for v in row if isinstance(v, str | bytes))
                count = max(1, min(_PART_ROWS, _PART_BYTES * len(last) // (size + 1)))
            is_read = True
        finally:
            if not is_read:
                self._abandon(cursor)
            cursor.close()

    def _abandon(self, cursor: Any) -> None:
        """Closes the connection if rows of a cursor are left, which the client would read."""
        if cursor._result is not None and cursor._result.unbuffered_active:
            cursor._result.unbuffered_active = False
            cursor._result.connection = cursor.connection = None
            self.close()

    def columns(self, table: TableName) -> pa.Schema | None:
        try:
            rows = self.query(f"SHOW COLUMNS FROM {self.dialect.table(table)}")
        except Permanent as error:
            if error_number(error) != _NO_TABLE:
                raise
            return None
        json = self._json_columns(table) if any(row[1] == "longtext" for row in rows) else set()
        fields = []
        for name, declared, null, _, default, extra, *_ in rows:
            required = null == "NO" and default is None and "auto_increment" not in extra
            type_ = "json" if name in json else declared
            field = TYPES.field(name, type_, nullable=not required)
            assert field is not None
            fields.append(with_declared(field, type_))
        self._targets[table] = pa.schema(fields)
        return self._targets[table]

    def _json_columns(self, table: TableName) -> set[str]:
        """Returns the columns that MariaDB declares as LONGTEXT with a check of JSON."""
        if not self.is_mariadb:
            return set()
        checks = {clause for (clause,) in self.query(_JSON_CHECKS, qualified(table))}
        start, end = "json_valid(`", "`)"
        return {
            clause[len(start) : -len(end)].replace("``", "`")
            for clause in checks
            if clause.startswith(start) and clause.endswith(end)
        }

    def query_columns(self, query: str) -> pa.Schema:
        """Returns the columns of a query."""
        with self._cursor() as cursor:
            statement = f"SELECT * FROM ({query}) AS penstock_query LIMIT 0"
            self._call(cursor.execute, _formatted(statement), ())
            found = [(field.name, declared_name(field)) for field in cursor._result.fields]
        fields = []
        for name, declared in found:
            field = TYPES.field(name, declared)
            assert field is not None
            fields.append(with_declared(field, declared))
        return pa.schema(fields)

    def primary_key(self, table: TableName) -> tuple[str, ...]:
        key = self.unique_indexes(table).get("PRIMARY", ())
        return tuple(name for name in key if name is not None)

    def unique_keys(self, table: TableName) -> list[tuple[str, ...]]:
        return [
            tuple(name for name in names if name is not None)
            for names in self.unique_indexes(table).values()
            if None not in names
        ]

    def unique_indexes(self, table: TableName) -> Mapping[str, tuple[str | None, ...]]:
        """Returns the columns of each unique index by its name.

        None stands for an expression or the first characters of a column.
        """
        indexes: dict[str, tuple[str | None, ...]] = {}
        for row in self.query(f"SHOW INDEX FROM {self.dialect.table(table)}"):
            _, is_repeated, name, _, column, _, _, length, *_ = row
            if not is_repeated:
                part = column if length is None else None
                indexes[name] = (*indexes.get(name, ()), part)
        return indexes

    def tables(self) -> list[TableName]:
        return [TableName.of(*parts) for parts in self.query(_TABLES)]

    def engine(self, table: TableName) -> str | None:
        """Returns the storage engine of a table; None for a view."""
        rows = self.query(_ENGINE, qualified(table))
        return rows[0][0] if rows else None

    def has_transactions(self, engine: str) -> bool:
        """Returns whether a storage engine has transactions."""
        return self.query(_HAS_TRANSACTIONS, (engine,)) == [("YES",)]

    def commit(self) -> None:
        self._targets.clear()
        super().commit()

    def rollback(self) -> None:
        self._targets.clear()
        super().rollback()

    def close(self) -> None:
        import pymysql

        with suppress(pymysql.Error):
            self.client.close()

    def abort(self) -> None:
        """Closes the connection, also while another thread waits for the server."""
        with suppress(OSError, AttributeError):
            self.client._sock.shutdown(socket.SHUT_RDWR)
        self.close()

    def insert(self, table: TableName, rows: pa.RecordBatch) -> None:
        self._insert(table, rows, "")

    def upsert(self, table: TableName, rows: pa.RecordBatch, key: Sequence[str]) -> None:
        self._insert(table, rows, f" {self.conflict_clause(rows.schema.names, key)}")

    def _insert(self, table: TableName, rows: pa.RecordBatch, clause: str) -> None:
        names = self.dialect.quote_all(rows.schema.names)
        start = f"INSERT INTO {self.dialect.table(table)} ({names}) VALUES "
        target = self._target(table)
        for block in blocks(rows):
            texts = tuples(literals(block, target))
            for chunk in chunks(texts, _STATEMENT_BYTES, len(texts)):
                self._write(f"{start}{', '.join(chunk)}{clause}")

    def delete(self, table: TableName, keys: pa.RecordBatch) -> None:
        names = [self.dialect.quote(name) for name in keys.schema.names]
        target = self._target(table)
        for block in blocks(keys):
            texts = conditions(names, literals(block, target))
            for chunk in chunks(texts, _STATEMENT_BYTES, _KEYS):
                self._write(f"DELETE FROM {self.dialect.table(table)} WHERE {' OR '.join(chunk)}")

    def _write(self, statement: str) -> None:
        """Executes a statement with literals. Raises Rejected if the server changes a value."""
        data = statement.encode()
        if len(data) + 1024 > self._max_packet:
            raise Rejected(
                f"the row has {len(data)} bytes as SQL, and max_allowed_packet of the server is "
                f"{self._max_packet}",
                code="too-large",
            )
        with self._cursor() as cursor:
            self._call(cursor.execute, data)
            has_warnings = cursor.warning_count
        if has_warnings:
            for _, number, message in self.query("SHOW WARNINGS"):
                if number in CHANGED:
                    raise rejected(message)

    def _target(self, table: TableName) -> pa.Schema:
        target = self._targets.get(table) or self.columns(table)
        assert target is not None
        return target


class Float:
    """A value of a FLOAT column, of which the server returns 6 digits."""

    def __init__(self, text: str) -> None:
        self.text = text


def _formatted(statement: str) -> str:
    """Returns a statement with the parameters of PyMySQL."""
    return statement.replace("%", "%%").replace("\0", "%s")


def qualified(table: TableName) -> tuple[str | None, str]:
    """Returns the database of a table, None for the current one, and its name."""
    return (table.parts[-2] if len(table.parts) > 1 else None), table.name


def error_number(error: PenstockError) -> int | None:
    """Returns the number of the server's error that caused an error."""
    arguments = getattr(error.__cause__, "args", ())
    return arguments[0] if arguments else None
