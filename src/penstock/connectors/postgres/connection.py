"""Connections to PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import count
from typing import Any

import pyarrow as pa

from penstock.connectors.postgres import catalog
from penstock.connectors.postgres.adapters import adapt_values
from penstock.connectors.postgres.config import ConnectionConfig
from penstock.connectors.postgres.errors import translate_error
from penstock.connectors.postgres.structure import TEXT, Number, Structure, structures
from penstock.connectors.postgres.texts import Target, as_texts, parse_csv, to_csv
from penstock.connectors.postgres.types import DIALECT, TYPES
from penstock.core.errors import PenstockError
from penstock.core.secret import revealed
from penstock.sdk.database import DbapiConnection, TableName
from penstock.sdk.database.postgres_client import connect_postgres
from penstock.sdk.database.types import with_declared

_COPY_ROWS = 2000
_BLOCK_ROWS, _BLOCK_BYTES = 20_000, 4 * 2**20
TARGET = "penstock_target"
"""The alias of the table to which rows are written."""
_STAGE = TableName(("penstock_rows",))


class PostgresConnection(DbapiConnection):
    """A connection, in UTC. Values of times are texts."""

    dialect = DIALECT
    silence = 10.0
    """The seconds after a timeout of the server at which the client closes the connection."""

    def __init__(self, config: ConnectionConfig, *, autocommit: bool = False) -> None:
        import psycopg

        self.config = config
        self._targets: dict[TableName, Target] = {}
        with self._translated():
            client = connect_postgres(
                config.timeout + self.silence, **connect_options(config), autocommit=autocommit,
                cursor_factory=psycopg.RawCursor, prepare_threshold=None,
            )  # fmt: skip
        super().__init__(client)
        adapt_values(self.client)

    def translate_error(self, error: Exception) -> PenstockError | None:
        return translate_error(error, self.config)

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        return super().execute(_numbered(statement), parameters)

    def fetch(self, query: str, parameters: Sequence[Any] = ()) -> Iterator[list[tuple[Any, ...]]]:
        yield from [*super().fetch(_numbered(query), parameters)]

    def columns(self, table: TableName) -> pa.Schema | None:
        rows = self.query(catalog.COLUMNS, (self.dialect.table(table),))
        if not rows:
            self._targets.pop(table, None)
            return None
        types = self.structures([(type_, modifier) for _, type_, modifier, _ in rows])
        fields = [
            with_declared(_field(name, type_, nullable=not required), type_.name)
            for (name, _, _, required), type_ in zip(rows, types, strict=True)
        ]
        names = (name for name, *_ in rows)
        self._targets[table] = Target(pa.schema(fields), dict(zip(names, types, strict=True)))
        return self._targets[table].columns

    def structures(self, numbers: Sequence[Number]) -> list[Structure]:
        """Returns the types of numbers of the catalog; `text` for types that are dropped."""
        different = [*dict.fromkeys(numbers)]
        parameters = [
            f"{{{','.join(str(number[place]) for number in different)}}}" for place in (0, 1)
        ]
        found = structures(self.query(catalog.STRUCTURES, parameters))
        return [found.get(number, TEXT) for number in numbers]

    def columns_of_types(self, names: Sequence[str], numbers: Sequence[Number]) -> pa.Schema:
        """Returns columns of types of the catalog."""
        types = self.structures(numbers)
        return pa.schema([_field(name, type_) for name, type_ in zip(names, types, strict=True)])

    def query_columns(self, query: str) -> pa.Schema:
        """Returns the columns of a query."""
        with self._cursor() as cursor:
            self._call(cursor.execute, f"SELECT * FROM ({query}) AS penstock_query LIMIT 0")
            result = cursor.pgresult
            places = range(result.nfields)
            numbers = [(result.ftype(place), result.fmod(place)) for place in places]
            names = [result.fname(place).decode() for place in places]
        return self.columns_of_types(names, numbers)

    def primary_key(self, table: TableName) -> tuple[str, ...]:
        rows = self.query(catalog.KEYS, (self.dialect.table(table),))
        return next(
            (tuple(names) for is_primary, names in catalog.key_names(rows) if is_primary), ()
        )

    def unique_keys(self, table: TableName) -> list[tuple[str, ...]]:
        rows = self.query(catalog.KEYS, (self.dialect.table(table),))
        return [tuple(names) for _, names in catalog.key_names(rows)]

    def tables(self) -> list[TableName]:
        return [TableName.of(*parts) for parts in self.query(catalog.TABLES)]

    def commit(self) -> None:
        self._targets.clear()
        super().commit()

    def rollback(self) -> None:
        self._targets.clear()
        super().rollback()

    def open_transactions(self, table: str | None) -> frozenset[str]:
        """Returns the open transactions of others that write to a table, or all of the database."""
        rows = (
            self.query(catalog.OPEN_TRANSACTIONS)
            if table is None
            else self.query(catalog.WRITERS, (table, table))
        )
        return frozenset(transaction for (transaction,) in rows)

    def savepoint(self) -> None:
        self.execute("SET CONSTRAINTS ALL IMMEDIATE")
        super().savepoint()

    def insert(self, table: TableName, rows: pa.RecordBatch) -> None:
        self._copy(table, rows, self._target(table))

    def upsert(self, table: TableName, rows: pa.RecordBatch, key: Sequence[str]) -> None:
        self._stage(table, rows)
        names = self.dialect.quote_all(rows.schema.names)
        clause = self.conflict_clause(rows.schema.names, key)
        self.execute(
            f"INSERT INTO {self.dialect.table(table)} AS {TARGET} ({names}) "
            f"SELECT {names} FROM {self.dialect.table(_STAGE)} {clause}"
        )
        self._drop_stage()

    def delete(self, table: TableName, keys: pa.RecordBatch) -> None:
        self._stage(table, keys)
        equal = " AND ".join(
            f"t.{self.dialect.quote(name)} = s.{self.dialect.quote(name)}"
            for name in keys.schema.names
        )
        target, stage = self.dialect.table(table), self.dialect.table(_STAGE)
        self.execute(f"DELETE FROM {target} AS t USING {stage} AS s WHERE {equal}")
        self._drop_stage()

    def copy_rows(
        self, query: str, parameters: Sequence[Any], names: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a query in parts, as columns of text.

        COPY does not see a table that was rewritten while COPY waited for its lock, as by ALTER
        TABLE: it returns no rows. So the transaction has the locks of the query before.
        """
        import psycopg

        with closing(psycopg.ClientCursor(self.client)) as cursor, self._in_transaction():
            bound = cursor.mogrify(_formatted(query), tuple(parameters))
            with self._translated():
                cursor.execute(f"EXPLAIN {bound}")
            self.execute("SET LOCAL statement_timeout = 0")
            with self._translated(), cursor.copy(f"COPY ({bound}) TO STDOUT (FORMAT csv)") as copy:
                while rows := self.client.wait(_next_rows(copy)):
                    yield parse_csv(b"".join(rows), names)

    @contextmanager
    def _in_transaction(self) -> Iterator[None]:
        """Begins a transaction if the connection has none by itself, and ends it."""
        from psycopg.pq import TransactionStatus

        if not self.client.autocommit or self.client.info.transaction_status != (
            TransactionStatus.IDLE
        ):
            yield
            return
        self.execute("BEGIN")
        try:
            yield
        except BaseException:
            with suppress(Exception):
                self.rollback()
            raise
        self.rollback()

    def _copy(self, table: TableName, rows: pa.RecordBatch, target: Target) -> None:
        texts, names = as_texts(rows, target), self.dialect.quote_all(rows.schema.names)
        statement = f"COPY {self.dialect.table(table)} ({names}) FROM STDIN (FORMAT csv)"
        with self._cursor() as cursor, self._translated(), cursor.copy(statement) as copy:
            # The server writes a part while the next one is converted.
            for start in range(0, texts.num_rows, _COPY_ROWS):
                copy.write(to_csv(texts.slice(start, _COPY_ROWS)))

    def _stage(self, table: TableName, rows: pa.RecordBatch) -> None:
        """Writes rows to a temporary table with columns of the types of a table."""
        names = self.dialect.quote_all(rows.schema.names)
        stage, source = self.dialect.table(_STAGE), self.dialect.table(table)
        self.execute(
            f"CREATE TEMP TABLE {stage} ON COMMIT DROP AS SELECT {names} FROM {source} WITH NO DATA"
        )
        self._copy(_STAGE, rows, self._target(table))

    def _drop_stage(self) -> None:
        self.execute(f"DROP TABLE {self.dialect.table(_STAGE)}")

    def _target(self, table: TableName) -> Target:
        if table not in self._targets:
            self.columns(table)
        return self._targets[table]

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            translated = self.translate_error(error)
            if translated is None:
                raise
            raise translated from error


def _next_rows(copy: Any) -> Generator[Any, Any, list[bytes]]:
    """Reads rows for a part, with one wait for all of them: one for each row takes as long."""
    rows: list[bytes] = []
    size = 0
    while len(rows) < _BLOCK_ROWS and size < _BLOCK_BYTES:
        row = yield from copy._read_gen()
        if not row:
            break
        rows.append(bytes(row))
        size += len(row)
    return rows


def connect_options(config: ConnectionConfig) -> dict[str, Any]:
    """Returns the parameters of a connection. Raises Permanent if a certificate file is missing."""
    milliseconds = int(config.timeout * 1000)
    options: dict[str, Any] = {
        "host": config.host,
        "port": config.port,
        "dbname": config.database,
        "connect_timeout": max(1, round(config.connect_seconds)),
        "application_name": "penstock",
        "client_encoding": "UTF8",
        "options": f"-c statement_timeout={milliseconds} -c timezone=UTC -c datestyle=ISO "
        "-c intervalstyle=iso_8601 -c extra_float_digits=1 -c bytea_output=hex",
        "tcp_user_timeout": milliseconds,
        "sslmode": "disable",
    }
    if config.auth is not None:
        password = config.auth.password_for(config.host, config.port)
        options |= {"user": config.auth.username, "password": password}
    tls = config.tls_settings
    if tls is not None:
        tls.check_files()
        verified = "verify-full" if tls.verify_hostname else "verify-ca"
        options |= {
            "sslmode": verified if tls.verify else "require",
            "sslrootcert": tls.ca or ("system" if tls.verify else None),
            "sslcert": tls.certificate,
            "sslkey": tls.key,
            "sslpassword": revealed(tls.key_password),
        }
    return {name: value for name, value in options.items() if value is not None}


def _field(name: str, type_: Structure, *, nullable: bool = True) -> pa.Field:
    field = TYPES.field(name, type_.name, nullable=nullable)
    assert field is not None
    return field


def _numbered(statement: str) -> str:
    """Numbers the parameters of a statement."""
    numbers = count(1)
    return re.sub("\0", lambda _: f"${next(numbers)}", statement)


def _formatted(query: str) -> str:
    """Returns a query with the parameters of psycopg's client-side cursor."""
    return query.replace("%", "%%").replace("\0", "%s")
