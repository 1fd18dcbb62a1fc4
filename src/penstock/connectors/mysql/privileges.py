"""The privileges of the user, with the statement that grants those that are missing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.connectors.mysql.connection import MysqlConnection
from penstock.connectors.mysql.grants import quoted_account
from penstock.core.errors import PenstockError, Rejected
from penstock.sdk.database import TableName
from penstock.sdk.database.errors import ServerErrors

_GENERATED = re.compile(r"\b(VIRTUAL|STORED|PERSISTENT)\b")
_STATEMENTS = {
    "SELECT": "SELECT 1 FROM {table} LIMIT 0",
    "INSERT": "INSERT INTO {table} ({column}) SELECT NULL FROM DUAL WHERE FALSE",
    "UPDATE": "UPDATE {table} SET {column} = {column} WHERE FALSE",
    "DELETE": "DELETE FROM {table} WHERE FALSE",
}
"""Statements without an effect that need a privilege."""


def check_privileges(
    connection: MysqlConnection, table: TableName, privileges: Sequence[str]
) -> None:
    """Raises Permanent if the user lacks one of the privileges on a table that exists.

    Statements without an effect are executed, so that privileges of roles count. Other errors of
    the server are raised.
    """
    if connection.columns(table) is None:
        return
    quoted = connection.dialect.table(table)
    column = connection.dialect.quote(_stored_column(connection, quoted))
    missing = []
    for name in privileges:
        try:
            connection.execute(_STATEMENTS[name].format(table=quoted, column=column))
        except Rejected:
            pass  # a column without a default, after the check of the privilege
        except PenstockError as error:
            if error.code != "authorization":
                raise
            missing.append(name)
        connection.rollback()
    if missing:
        names = ", ".join(missing)
        user = quoted_account(str(connection.account))
        raise ServerErrors(connection.config.address).authorization(
            f'the user {connection.account} has no privilege {names} on the table "{table}"',
            f"Run GRANT {names} ON {quoted} TO {user}.",
        )


def _stored_column(connection: MysqlConnection, quoted: str) -> str:
    """Returns a column of a table that a statement may set: one that is not generated."""
    names = [
        name
        for name, *_, extra in connection.query(f"SHOW COLUMNS FROM {quoted}")
        if not _GENERATED.search(extra)
    ]
    return str(names[0])
