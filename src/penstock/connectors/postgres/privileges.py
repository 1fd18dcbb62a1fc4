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


_CREATION = """
SELECT quote_ident(current_user), quote_ident(n.name),
  has_schema_privilege(to_regnamespace(quote_ident(n.name))::oid, 'CREATE'),
  has_database_privilege(current_database(), 'CREATE'), quote_ident(current_database())
FROM (SELECT coalesce(nullif(\0, ''), current_schema())) AS n (name)
"""


def check_creation(
    connection: PostgresConnection, table: TableName, *, create_schema: bool
) -> None:
    """Raises Permanent if the user may not create tables in the schema of a table."""
    schema = table.parts[-2] if len(table.parts) > 1 else ""
    ((user, name, in_schema, in_database, database),) = connection.query(_CREATION, (schema,))
    if in_schema or (in_schema is None and create_schema and in_database):
        return
    if in_schema is None and not create_schema:
        raise Permanent(
            f'there is no schema "{schema}"' if schema else "no schema of the search_path exists",
            code="authorization", hint="Create the schema, or set create_schema: true.",
        )  # fmt: skip
    place = f"DATABASE {database}" if in_schema is None else f"SCHEMA {name}"
    raise Permanent(
        f"the user {user} of {connection.config.address} may not create tables in {name}",
        code="authorization", hint=f"Run GRANT CREATE ON {place} TO {user}.",
    )  # fmt: skip


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
