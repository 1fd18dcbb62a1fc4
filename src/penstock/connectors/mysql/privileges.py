"""The privileges of the user, with the statement that grants those that are missing."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.connectors.mysql.connection import MysqlConnection
from penstock.connectors.mysql.grants import quoted_account
from penstock.core.errors import PenstockError
from penstock.sdk.database import TableName
from penstock.sdk.database.errors import ServerErrors

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

    Statements without an effect are executed, so that privileges of roles count.
    """
    columns = connection.columns(table)
    if columns is None:
        return
    quoted, quote = connection.dialect.table(table), connection.dialect.quote
    missing = []
    for name in privileges:
        try:
            connection.execute(
                _STATEMENTS[name].format(table=quoted, column=quote(columns.names[0]))
            )
        except PenstockError as error:
            missing += [name] if error.code == "authorization" else []
        connection.rollback()
    if missing:
        names = ", ".join(missing)
        user = quoted_account(str(connection.account))
        raise ServerErrors(connection.config.address).authorization(
            f'the user {connection.account} has no privilege {names} on the table "{table}"',
            f"Run GRANT {names} ON {quoted} TO {user}.",
        )
