"""The sink of JDBC."""

from __future__ import annotations

from contextlib import closing

from penstock.connectors.jdbc.config import JdbcSinkConfig
from penstock.connectors.jdbc.connection import JdbcConnection
from penstock.connectors.jdbc.dialects import JdbcDialect, dialect_of
from penstock.core.errors import Permanent
from penstock.sdk.database import Connection, DatabaseSink


class JdbcSink(DatabaseSink[JdbcSinkConfig]):
    """Writes rows to a table of any database with a JDBC driver.

    The driver is the file in `jars` or the Maven package in `packages`, and runs in Java within the
    tasks. A batch is one transaction, which also records the batch in the table `penstock_batches`
    in the schema of the table. With `mode: upsert` rows replace the rows with their primary key, by
    MERGE or the statement of the system, otherwise by UPDATE and INSERT; deletes remove rows. With
    `mode: replace` the table has the rows of the last batch. A row that a constraint or a type
    rejects becomes a dead letter, as does a time with more digits than its column stores.

    A column may be wider than that of the rows. Lists are arrays in H2 and PostgreSQL, otherwise
    JSON text as maps and structs. A new table has text as CLOB, unless the system has another type
    for long texts; text columns of its primary key are VARCHAR(255). A system without times with a
    time zone, such as Derby, stores times in UTC.

    The database must have transactions. Tested with H2, HSQLDB, Derby and PostgreSQL. MySQL, Oracle
    and SQL Server have dialects of their own, and other systems are expected to know standard SQL.
    Oracle stores an empty text as null. For upserts a table of MySQL or MariaDB must not have
    another unique index beside the primary key.

    ```yaml
    type: jdbc
    from: hourly
    url: jdbc:sqlserver://127.0.0.1;databaseName=shop
    packages: [com.microsoft.sqlserver:mssql-jdbc:13.2.0.jre11]
    auth: {username: penstock, password: "${SHOP_PASSWORD}"}
    table: dbo.late_by_hour
    mode: upsert
    primary_key: [hour]
    ```
    """

    extra = "jdbc"
    client_modules = ("jpype",)

    @property
    def dialect(self) -> JdbcDialect:
        return dialect_of(self.config.system)

    def validate(self) -> None:
        super().validate()
        self.config.check_jars()

    def check(self) -> None:
        super().check()
        if not self.config.is_embedded:
            with closing(self.connect()) as connection:
                connection.columns(self.table)

    def connect(self) -> JdbcConnection:
        return JdbcConnection(self.config)

    def check_table(self, connection: Connection) -> None:
        if self.mode == "upsert" and self.dialect.upsert_clause == "on_duplicate_key":
            self.check_other_keys(connection.unique_keys(self.table))

    def prepare_ledger(self, connection: Connection) -> None:
        """Creates the ledger, which another sink may create at the same time."""
        if connection.columns(self.ledger.table) is not None:
            return
        try:
            super().prepare_ledger(connection)
            connection.commit()
        except Permanent:
            connection.rollback()
            if connection.columns(self.ledger.table) is None:
                raise
