"""The privileges of the user, with the statement that grants those that are missing."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.connectors.postgres.connection import PostgresConnection
from penstock.core.errors import Permanent
from penstock.sdk.database import TableName

_MISSING = """
SELECT quote_ident(current_user), p.name FROM unnest(string_to_array(\0, ',')) AS p (name)
WHERE NOT has_table_privilege(to_regclass(\0), p.name)
  AND NOT (p.name <> 'DELETE' AND has_any_column_privilege(to_regclass(\0), p.name))
"""


def check_privileges(
    connection: PostgresConnection, table: TableName, privileges: Sequence[str]
) -> None:
    """Raises Permanent if the user lacks one of the privileges on a table that exists.

    A user may have them for some columns only.
    """
    quoted = connection.dialect.table(table)
    rows = connection.query(_MISSING, (",".join(privileges), quoted, quoted))
    if rows:
        user, names = rows[0][0], ", ".join(name for _, name in rows)
        raise Permanent(
            f"the user {user} of {connection.config.address} has no privilege {names} on the table "
            f'"{table}"',
            code="authorization",
            hint=f"Run GRANT {names} ON {quoted} TO {user}.",
        )
