"""The requirements of a server and a table for reading the binary log."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.connectors.mysql.changes.charsets import BINARY, is_known
from penstock.connectors.mysql.changes.snapshot import log_status
from penstock.connectors.mysql.connection import MysqlConnection, qualified
from penstock.connectors.mysql.grants import quoted_account
from penstock.core.errors import Permanent
from penstock.sdk.database import TableName
from penstock.sdk.database.changes import missing_table
from penstock.sdk.database.errors import ServerErrors

_SETTINGS = (
    ("binlog_format", "ROW", "SET GLOBAL binlog_format = 'ROW'"),
    ("binlog_row_image", "FULL", "SET GLOBAL binlog_row_image = 'FULL'"),
    ("binlog_row_metadata", "FULL", "SET GLOBAL binlog_row_metadata = 'FULL'"),
    ("binlog_row_value_options", "", "SET GLOBAL binlog_row_value_options = ''"),
    ("binlog_transaction_compression", "OFF", "SET GLOBAL binlog_transaction_compression = OFF"),
    ("log_bin_compress", "OFF", "SET GLOBAL log_bin_compress = OFF"),
)
"""Variables of the server with their values, and the statements that set them."""
_REQUIRED = frozenset({"binlog_format", "binlog_row_image", "binlog_row_metadata"})
_NAMES_OF_CLIENT = ("REPLICATION CLIENT", "BINLOG MONITOR", "SUPER")
_TABLE = """
SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES
WHERE TABLE_SCHEMA = coalesce(\0, DATABASE()) AND TABLE_NAME = \0
"""
_COLUMNS = """
SELECT COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, IS_NULLABLE FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = \0 AND TABLE_NAME = \0
"""
_CASCADES = """
SELECT CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE CONSTRAINT_SCHEMA = \0 AND TABLE_NAME = \0
  AND (DELETE_RULE IN ('CASCADE', 'SET NULL') OR UPDATE_RULE IN ('CASCADE', 'SET NULL'))
"""
_CHARSETS = "SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATIONS WHERE ID IS NOT NULL"
_MORE_CHARSETS = """
SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY
"""
_UNSUPPORTED = re.compile(r"vector\b|.*(mariadb-5\.3|COMPRESSED)", re.IGNORECASE)
_UNORDERED = re.compile(r"(enum|set|float|double|json|bit\((?!1\)))", re.IGNORECASE)


@dataclass(frozen=True)
class Requirements:
    """The requirements for a table and its key."""

    table: TableName
    key: tuple[str, ...]

    def check(self, connection: MysqlConnection) -> None:
        """Checks the server, the user and the table. Raises Permanent with what to run."""
        self._check_settings(connection)
        self._check_privileges(connection)
        schema, name = self._check_table(connection)
        self._check_columns(connection, schema, name)
        self._check_filters(connection, schema)
        connection.rollback()

    def resolve_table(self, connection: MysqlConnection) -> tuple[str, str]:
        """Returns the database and the name of the table."""
        schema, name, *_ = self._find_table(connection)
        return schema, name

    def _find_table(self, connection: MysqlConnection) -> Sequence[str]:
        found = connection.query(_TABLE, qualified(self.table))
        if not found:
            raise missing_table(self.table)
        return found[0]

    def _check_settings(self, connection: MysqlConnection) -> None:
        address = connection.config.address
        names = ", ".join(f"'{name}'" for name in ("log_bin", *(each[0] for each in _SETTINGS)))
        query = f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})"
        found = {name.lower(): value for name, value in connection.query(query)}
        if found.get("log_bin", "OFF").upper() != "ON":
            raise Permanent(
                f"{address} has no binary log; changes need log_bin", code="binary-log",
                hint="Set log_bin, server_id = 1, binlog_format = ROW and binlog_row_metadata = "
                "FULL in the configuration of the server, and restart the server.",
            )  # fmt: skip
        for name, expected, statement in _SETTINGS:
            if name not in found and name in _REQUIRED:
                raise Permanent(
                    f"{address} does not have {name}", code="binary-log",
                    hint="Changes need MariaDB 10.5 or MySQL 8.0 at least.",
                )  # fmt: skip
            value = found.get(name, expected)
            if value.upper() not in (expected, {"OFF": "0"}.get(expected, expected)):
                raise Permanent(
                    f"{address} has {name} {value}; changes need {expected or 'no value'}",
                    code="binary-log",
                    hint=f"Run {statement}, and set it in the configuration of the server. "
                    "Sessions that are connected keep their own value.",
                )

    def _check_privileges(self, connection: MysqlConnection) -> None:
        grants = [text for (text,) in connection.query("SHOW GRANTS")]
        on_all = " ".join(text for text in grants if " ON *.* " in text)
        has_roles = any(" ON " not in text for text in grants)
        if "ALL PRIVILEGES" in on_all or has_roles:
            return
        missing = ["REPLICATION SLAVE"] if "REPLICATION SLAVE" not in on_all else []
        if not any(name in on_all for name in _NAMES_OF_CLIENT):
            missing.append("REPLICATION CLIENT")
        if missing:
            user = str(connection.account)
            raise ServerErrors(connection.config.address).authorization(
                f"the user {user} may not read the binary log",
                f"Run GRANT {', '.join(missing)} ON *.* TO {quoted_account(user)}.",
            )

    def _check_table(self, connection: MysqlConnection) -> tuple[str, str]:
        quoted = connection.dialect.table(self.table)
        schema, name, kind, engine = self._find_table(connection)
        if kind != "BASE TABLE":
            raise Permanent(
                f'"{self.table}" is no table, and has no changes', code="unsupported-table",
                hint="Set table to a table.",
            )  # fmt: skip
        if not connection.has_transactions(engine):
            raise Permanent(
                f'the table "{self.table}" has the engine {engine}, which has no transactions',
                code="no-transactions", hint=f"Run ALTER TABLE {quoted} ENGINE=InnoDB.",
            )  # fmt: skip
        cascades = connection.query(_CASCADES, (schema, name))
        if cascades:
            ((first, *_), *_) = cascades
            raise Permanent(
                f'the foreign key "{first}" of the table "{self.table}" deletes or updates rows, '
                "and the binary log does not have such changes",
                code="unsupported-table",
                hint=f"Run ALTER TABLE {quoted} DROP FOREIGN KEY "
                f"{connection.dialect.quote(first)}, and add it without CASCADE and SET NULL.",
            )
        return schema, name

    def _check_columns(self, connection: MysqlConnection, schema: str, name: str) -> None:
        quoted = connection.dialect.table(self.table)
        columns = connection.query(_COLUMNS, (schema, name))
        self._check_key(connection, {each[0]: each for each in columns})
        for column, declared, charset, _ in columns:
            if _UNSUPPORTED.match(declared):
                raise Permanent(
                    f'the changes of the column "{column}" of the type {declared} cannot be read',
                    code="unsupported-table",
                    hint=f"Run ALTER TABLE {quoted} MODIFY {connection.dialect.quote(column)} "
                    "with another type.",
                )
            if charset not in (None, BINARY) and not is_known(charset):
                raise Permanent(
                    f'the changes of the column "{column}" in the character set {charset} cannot '
                    "be read",
                    code="unsupported-table",
                    hint=f"Run ALTER TABLE {quoted} CONVERT TO CHARACTER SET utf8mb4.",
                )

    def _check_key(
        self, connection: MysqlConnection, columns: Mapping[str, tuple[Any, ...]]
    ) -> None:
        """Checks that rows can be read in the order of a key that all of them have."""
        quoted = connection.dialect.table(self.table)
        keys = [set(key) for key in connection.unique_keys(self.table)]
        if not self.key or set(self.key) not in keys:
            names = connection.dialect.quote_all(self.key) if self.key else "..."
            of = f" ({', '.join(self.key)})" if self.key else ""
            raise Permanent(
                f'the table "{self.table}" has no primary key{of}', code="no-unique-index",
                hint=f"Run ALTER TABLE {quoted} ADD PRIMARY KEY ({names}).",
            )  # fmt: skip
        for name in self.key:
            _, declared, _, nullable = columns[name]
            if _UNORDERED.match(declared) or nullable == "YES":
                raise Permanent(
                    f'the column "{name}" of the key of "{self.table}" is {declared} or may be '
                    "null, and rows are not read in its order",
                    code="unsupported-table",
                    hint="Set primary_key to a unique key of numbers, text or times without null.",
                )

    def _check_filters(self, connection: MysqlConnection, schema: str) -> None:
        """Checks that the log has the changes of the database."""
        only, ignored = (
            [name for name in (text or "").split(",") if name]
            for text in log_status(connection)[2:4]
        )
        if schema in ignored or (only and schema not in only):
            raise Permanent(
                f'the binary log leaves out the database "{schema}"', code="binary-log",
                hint="Remove binlog_do_db and binlog_ignore_db from the configuration of the "
                "server, and restart the server.",
            )  # fmt: skip


def ignores_case_of_tables(connection: MysqlConnection) -> bool:
    """Returns whether names of tables in statements may have another case than in the catalog."""
    ((value,),) = connection.query("SELECT @@lower_case_table_names")
    connection.rollback()
    return int(value) != 0


def charsets(connection: MysqlConnection) -> Mapping[int, str]:
    """Returns the character set of each collation by its number."""
    found = dict(connection.query(_CHARSETS))
    if connection.is_mariadb:
        try:
            found.update(connection.query(_MORE_CHARSETS))
        except Permanent:
            # Before 10.10, COLLATIONS has all of them.
            connection.rollback()
    return found
