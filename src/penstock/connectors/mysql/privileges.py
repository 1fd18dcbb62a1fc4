"""The privileges of the user, with the statement that grants those that are missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.core.errors import PenstockError, Rejected
from penstock.sdk.database import TableName
from penstock.sdk.database.errors import ServerErrors

if TYPE_CHECKING:
    from penstock.connectors.mysql.connection import MysqlConnection

_OF_TABLE = re.compile(
    r"^([A-Z ,]+) command denied to user .* for (?:column '.*' in )?table (.*)$", re.DOTALL
)
_OF_SERVER = re.compile(r"\(at least one of\) the ([A-Z ,]+) privilege")
_OF_DATABASE = re.compile(r"^Access denied for user ('.*'@'.*') to database '(.*)'$", re.DOTALL)
_GENERATED = re.compile(r"\b(VIRTUAL|STORED|PERSISTENT)\b")
_STATEMENTS = {
    "SELECT": "SELECT 1 FROM {table} LIMIT 0",
    "INSERT": "INSERT INTO {table} ({column}) SELECT NULL FROM DUAL WHERE FALSE",
    "UPDATE": "UPDATE {table} SET {column} = {column} WHERE FALSE",
    "DELETE": "DELETE FROM {table} WHERE FALSE",
}
"""Statements without an effect that need a privilege."""


def grant_of(reason: str, account: str, database: str) -> str:
    """Returns the hint for a message of the server about a missing privilege.

    `account` is the user with the host, as `name@host`. The server names tables of `database`
    without it.
    """
    user = quoted_account(account)
    if match := _OF_TABLE.search(reason):
        table = match[2]
        if not table.startswith("`"):
            table = f"{_quoted(database)}.{_quoted(table.strip(chr(39)))}"
        return f"Run GRANT {match[1]} ON {table} TO {user}."
    if match := _OF_SERVER.search(reason):
        name = match[1].split(",")[-1].strip()
        return f"Run GRANT {name} ON *.* TO {user}."
    if match := _OF_DATABASE.search(reason):
        return f"Run GRANT SELECT, INSERT ON {_quoted(match[2])}.* TO {match[1]}."
    return "Grant the user the privilege, as in GRANT SELECT ON ... TO ..."


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


def quoted_account(account: str) -> str:
    """Returns an account as `'name'@'host'`."""
    parts = (part.replace("'", "''") for part in account.rsplit("@", 1))
    return "@".join(f"'{part}'" for part in parts)


def _quoted(name: str) -> str:
    return "`{}`".format(name.replace("`", "``"))
