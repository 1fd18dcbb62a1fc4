"""The sink of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pyarrow as pa

from penstock.connectors.postgres.config import PostgresSinkConfig
from penstock.connectors.postgres.privileges import check_privileges
from penstock.connectors.postgres.types import DIALECT
from penstock.connectors.postgres.writing import WritingConnection
from penstock.core.errors import OptionError, raise_all
from penstock.sdk.columns.checks import check_column
from penstock.sdk.database import Connection, DatabaseSink, upserts_only
from penstock.sdk.database.ledger import OF_LEDGER

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(\0, 0))"


class PostgresSink(DatabaseSink[PostgresSinkConfig]):
    """Writes rows to a table of a PostgreSQL database, by COPY.

    A batch is one transaction, which also records the batch in the table `penstock_batches` in the
    schema of the table. With `mode: upsert` rows replace the rows with their primary key, and
    deletes remove rows; with `mode: replace` the table has the rows of the last batch. Deferred
    constraints are checked within the batch. A row that a constraint, a type or a trigger rejects
    becomes a dead letter, as does a text with the character NUL, and a value that its column would
    round, cut or wrap, also within a composite type or a range.

    The user needs the privileges INSERT and SELECT on the table, UPDATE and DELETE for upserts,
    TEMPORARY on the database, and CREATE on the schema for a new table and `penstock_batches`.

    ```yaml
    type: postgres
    from: hourly
    url: postgresql://127.0.0.1:5432/shop
    auth: {username: penstock, password: "${SHOP_PASSWORD}"}
    table: public.late_by_hour
    mode: upsert
    primary_key: [hour]
    ```
    """

    extra = "postgres"
    client_modules = ("psycopg",)
    dialect = DIALECT

    def connect(self) -> WritingConnection:
        return WritingConnection(self.config)

    def check(self) -> None:
        super().check()
        by_mode = {"upsert": ["UPDATE", "DELETE"], "replace": ["DELETE"]}
        needed = ["INSERT", "SELECT", *by_mode.get(self.mode, [])]
        with closing(self.connect()) as connection:
            check_privileges(connection, self.table, needed)
            check_privileges(connection, self.ledger.table, OF_LEDGER)

    def check_schema(self, columns: pa.Schema) -> None:
        super().check_schema(columns)
        raise_all(self._conflict_errors(columns))

    def _conflict_errors(self, columns: pa.Schema) -> Iterator[OptionError]:
        config = self.config
        for name in config.update_where:
            yield from check_column(name, columns, "update_where", name)
        is_ignoring = config.on_conflict == "nothing"
        name = "update_where" if config.update_where else "on_conflict"
        if (config.update_where or is_ignoring) and self.mode != "upsert":
            yield upserts_only(name)
        if is_ignoring and config.update_where:
            yield OptionError.of(
                name, message="update_where has no meaning with on_conflict: nothing",
                code="unused-option", hint="Remove one of them.",
            )  # fmt: skip

    def prepare_ledger(self, connection: Connection) -> None:
        """Creates the ledger while other sinks wait that create it or their table."""
        connection.query(_LOCK, (self.dialect.table(self.ledger.table),))
        schema = self.table.parts[:-1]
        if self.config.create_schema and schema:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self.dialect.quote_all(schema)}")
        super().prepare_ledger(connection)
