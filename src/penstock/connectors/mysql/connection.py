"""Connections to MySQL and MariaDB."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from penstock.connectors.mysql.config import ConnectionConfig
from penstock.connectors.mysql.errors import CHANGED, rejected, translate_error
from penstock.connectors.mysql.fields import declared_name
from penstock.connectors.mysql.literals import blocks, chunks, conditions, literals, tuples
from penstock.connectors.mysql.texts import as_columns
from penstock.connectors.mysql.types import DIALECT, TYPES
from penstock.core.errors import PenstockError, Permanent, Rejected, Transient
from penstock.core.secret import revealed
from penstock.sdk.database import DbapiConnection, TableName
from penstock.sdk.database.types import with_declared

_SQL_MODE = (
    "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
    "NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO"
)
_STATEMENT_BYTES, _KEYS = 2**20, 1000
_PART_BYTES, _PART_ROWS = 4 * 2**20, 10_000
_NO_TABLE, _NO_PRIVILEGE = 1146, 1227
_STALE_SECONDS = 0.11
"""The age at which the server reads `INNODB_TRX` again, and a little more."""
_MAX_STALE_SECONDS = 10.0
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
SELECT CASE WHEN TABLE_SCHEMA = DATABASE() THEN TABLE_NAME
       ELSE concat(TABLE_SCHEMA, '.', TABLE_NAME) END
FROM information_schema.TABLES
WHERE TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
ORDER BY 1
"""
_TRANSACTIONS = """
SELECT trx_mysql_thread_id, trx_id, trx_started, trx_rows_modified, trx_query,
       trx_mysql_thread_id = CONNECTION_ID()
FROM information_schema.INNODB_TRX WHERE trx_is_read_only = 0 AND \0 <> ''
"""


class MysqlConnection(DbapiConnection):
    """A connection, in UTC and in strict mode."""

    dialect = DIALECT
    silence = 10.0
    """The seconds after a timeout of the server at which the client closes the connection."""

    def __init__(self, config: ConnectionConfig) -> None:
        import pymysql

        self.config = config
        self._targets: dict[TableName, pa.Schema] = {}
        super().__init__(self._call(lambda: pymysql.connect(**connect_options(config))))
        self.client._read_timeout = config.timeout + self.silence
        self._typed = {**self.client.decoders, pymysql.constants.FIELD_TYPE.FLOAT: Float}
        for statement in _session(config.timeout):
            self.execute(statement)
        ((self._max_packet, version),) = self.query("SELECT @@max_allowed_packet, VERSION()")
        self._is_mariadb = "mariadb" in version.lower()

    def translate_error(self, error: Exception) -> PenstockError | None:
        return translate_error(error, self.config)

    def parameters(self, rows: pa.RecordBatch) -> Iterator[Sequence[Any]]:
        raise NotImplementedError("rows are written as literals")

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        return super().execute(_formatted(statement), parameters)

    def fetch(self, query: str, parameters: Sequence[Any] = ()) -> Iterator[list[tuple[Any, ...]]]:
        return self._stream(query, parameters, self._typed)

    def texts(
        self, query: str, parameters: Sequence[Any], names: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a query in parts, as columns of text or bytes."""
        for rows in self._stream(query, parameters, {}):
            yield as_columns(rows, names)

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
            if _number(error) != _NO_TABLE:
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
        if not self._is_mariadb:
            return set()
        checks = {clause for (clause,) in self.query(_JSON_CHECKS, _qualified(table))}
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

    def tables(self) -> list[str]:
        return [name for (name,) in self.query(_TABLES)]

    def engine(self, table: TableName) -> str | None:
        """Returns the storage engine of a table; None for a view."""
        rows = self.query(_ENGINE, _qualified(table))
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

    def insert(self, table: TableName, rows: pa.RecordBatch) -> None:
        self._insert(table, rows, "")

    def upsert(self, table: TableName, rows: pa.RecordBatch, key: Sequence[str]) -> None:
        self._insert(table, rows, f" {self.dialect.conflict_clause(rows.schema.names, key)}")

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

    def open_transactions(self, *, only_writers: bool) -> frozenset[Any]:
        """Returns the open transactions of others, all or those that may have written.

        Returns none without the privilege PROCESS.
        """
        try:
            rows = self._transactions()
        except Permanent as error:
            if _number(error) != _NO_PRIVILEGE:
                raise
            return frozenset()
        return frozenset(
            (thread, str(started)) if thread else ("", str(id_))
            for thread, id_, started, changes, statement, is_own in rows
            if not is_own and (not only_writers or changes or not _is_idle(statement))
        )

    def _transactions(self) -> list[tuple[Any, ...]]:
        """Returns the rows of `INNODB_TRX`, which the server reads only at intervals.

        They are current if the row of this connection has this statement.
        """
        self.rollback()
        self.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        end = time.monotonic() + min(self.config.timeout, _MAX_STALE_SECONDS)
        while time.monotonic() < end:
            mark = uuid.uuid4().hex
            rows = self.query(_TRANSACTIONS, (mark,))
            if any(is_own and mark in (statement or "") for *_, statement, is_own in rows):
                return rows
            time.sleep(_STALE_SECONDS)
        raise Transient(
            f"the database {self.config.address} returned no current transactions in INNODB_TRX",
            code="busy",
            hint="End other programs that query information_schema.INNODB_TRX all the time.",
        )


class Float:
    """A value of a FLOAT column, of which the server returns 6 digits."""

    def __init__(self, text: str) -> None:
        self.text = text


def connect_options(config: ConnectionConfig) -> dict[str, Any]:
    """Returns the parameters of a connection. Raises Permanent if a certificate file is missing."""
    tls = config.tls_settings
    auth = config.auth
    password = None if auth is None else revealed(auth.password)
    return {
        "host": config.host,
        "port": config.port,
        "database": config.database,
        "user": None if auth is None else auth.username,
        "password": (password or "").encode(),
        "charset": "utf8mb4",
        "sql_mode": _SQL_MODE,
        "connect_timeout": config.connect_seconds,
        "read_timeout": config.connect_seconds,
        "write_timeout": config.timeout,
        "program_name": "penstock",
        "ssl": None if tls is None else tls.context(),
        "ssl_disabled": tls is None,
    }


def _session(timeout: float) -> Iterator[str]:
    """Yields the statements at the start of a session."""
    seconds = max(1, math.ceil(timeout))
    yield (
        f"SET SESSION time_zone = '+00:00', sql_notes = 1, sql_auto_is_null = 0, "
        f"innodb_lock_wait_timeout = {seconds}, lock_wait_timeout = {seconds}, "
        f"net_write_timeout = {max(600, seconds)}, wait_timeout = 604800"
    )
    yield "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"


def _formatted(statement: str) -> str:
    """Returns a statement with the parameters of PyMySQL."""
    return statement.replace("%", "%%").replace("\0", "%s")


def _qualified(table: TableName) -> tuple[str | None, str]:
    """Returns the database of a table, None for the current one, and its name."""
    return (table.parts[-2] if len(table.parts) > 1 else None), table.name


def _is_idle(statement: str | None) -> bool:
    """Returns whether a transaction without changes executes no statement that writes."""
    return statement is None or statement.lstrip().upper().startswith("SELECT")


def _number(error: PenstockError) -> int | None:
    """Returns the number of the server's error that caused an error."""
    arguments = getattr(error.__cause__, "args", ())
    return arguments[0] if arguments else None
