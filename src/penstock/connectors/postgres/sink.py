"""The sink of PostgreSQL."""

from __future__ import annotations

from contextlib import closing

from penstock.connectors.postgres.config import PostgresSinkConfig
from penstock.connectors.postgres.privileges import check_creation, check_privileges
from penstock.connectors.postgres.types import DIALECT
from penstock.connectors.postgres.writing import WritingConnection
from penstock.sdk.database import Connection
from penstock.sdk.database.conflicts import ConflictSink
from penstock.sdk.database.ledger import OF_LEDGER

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(\0, 0))"


class PostgresSink(ConflictSink[PostgresSinkConfig]):
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
        with closing(self.connect()) as connection:
            check_privileges(connection, self.table, self.privileges)
            check_privileges(connection, self.ledger.table, OF_LEDGER)

    def check_access(self) -> bool:
        self.check()
        return True

    def check_creation(self) -> bool:
        with closing(self.connect()) as connection:
            check_creation(connection, self.table, create_schema=self.config.create_schema)
        return True

    def prepare_ledger(self, connection: Connection) -> None:
        """Creates the ledger while other sinks wait that create it or their table."""
        connection.query(_LOCK, (self.dialect.table(self.ledger.table),))
        schema = self.table.parts[:-1]
        if self.config.create_schema and schema:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self.dialect.quote_all(schema)}")
        super().prepare_ledger(connection)
