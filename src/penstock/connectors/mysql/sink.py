"""The sink of MySQL and MariaDB."""

from __future__ import annotations

from contextlib import closing

from penstock.connectors.mysql.config import MysqlSinkConfig
from penstock.connectors.mysql.connection import MysqlConnection
from penstock.connectors.mysql.privileges import check_privileges
from penstock.connectors.mysql.types import DIALECT
from penstock.connectors.mysql.writing import WritingConnection
from penstock.core.errors import Permanent
from penstock.sdk.database import Connection
from penstock.sdk.database.conflicts import ConflictSink
from penstock.sdk.database.ledger import OF_LEDGER


class MysqlSink(ConflictSink[MysqlSinkConfig]):
    """Writes rows to a table of a MySQL or MariaDB database, by INSERT statements of many rows.

    Where the server has `local_infile`, 1,000 or more rows without a key are loaded by LOAD DATA
    LOCAL, which is faster. If the server then warns, these rows are written by INSERT statements.

    A batch is one transaction, which also records the batch in the table `penstock_batches` in the
    database of the table. With `mode: upsert` rows replace the rows with their primary key, and
    deletes remove rows; with `mode: replace` the table has the rows of the last batch. A row that a
    constraint, a type or a trigger rejects becomes a dead letter. So does a value that the server
    would change, such as a number with too many digits or a time in a column without fractions.

    The server must be MySQL 8.0.17, MariaDB 10.3 or later, and the table must have an engine with
    transactions, such as InnoDB. For upserts it must not have another unique index beside the
    primary key, since MySQL would replace the row that this index finds: the run ends with
    `other-unique-index` before it writes a row.

    A new table compares text by its characters, also upper and lower case and trailing spaces. Text
    and binary columns of its primary key are VARCHAR(255) and VARBINARY(255). TIMESTAMP columns are
    DATETIME(6) in UTC, since TIMESTAMP of MySQL ends in 2038. Lists, maps and structs are JSON,
    where MySQL stores numbers as integers or DOUBLE, and MariaDB with all digits. `-0.0` is stored
    as `0.0`.

    The user needs the privileges INSERT and SELECT on the table, UPDATE and DELETE for upserts, and
    CREATE on the database for a new table and `penstock_batches`.

    ```yaml
    type: mysql
    from: hourly
    url: mysql://127.0.0.1:3306/shop
    auth: {username: penstock, password: "${SHOP_PASSWORD}"}
    table: late_by_hour
    mode: upsert
    primary_key: [hour]
    ```
    """

    extra = "mysql"
    client_modules = ("pymysql",)
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

    def check_table(self, connection: Connection) -> None:
        assert isinstance(connection, MysqlConnection)
        engine = connection.engine(self.table)
        if engine is not None and not connection.has_transactions(engine):
            raise Permanent(
                f'the table "{self.table}" has the engine {engine}, which has no transactions',
                code="no-transactions",
                hint=f"Run ALTER TABLE {connection.dialect.table(self.table)} ENGINE=InnoDB.",
            )
        if self.mode == "upsert":
            self.check_other_keys(connection.unique_indexes(self.table).values())
