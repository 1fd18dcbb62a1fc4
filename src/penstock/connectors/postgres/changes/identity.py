"""The replica identity of a table: the columns that the log has of a row before a change."""

from __future__ import annotations

import json
from collections.abc import Collection

from penstock.connectors.postgres.connection import PostgresConnection
from penstock.connectors.postgres.types import DIALECT
from penstock.core.errors import Permanent
from penstock.sdk.database import TableName

_IDENTITIES = """
SELECT n.nspname, c.relname, c.relreplident::text, c.oid = to_regclass(\0), array_to_json(array(
    SELECT a.attname FROM pg_index i, unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, place)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
    WHERE i.indrelid = c.oid AND k.place <= i.indnkeyatts
      AND CASE c.relreplident WHEN 'd' THEN i.indisprimary ELSE i.indisreplident END
    ORDER BY k.place))::text
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass(\0)
   OR c.relkind = 'r' AND c.oid IN (SELECT relid FROM pg_partition_tree(to_regclass(\0)))
ORDER BY 4 DESC, 1, 2
"""
"""The identity of a table, and then those of its partitions, which their rows have in the log."""


def check_identity(
    connection: PostgresConnection, table: TableName, key: tuple[str, ...], *, whole_rows: bool
) -> None:
    """Checks that the log has the key of a row before an update or a delete.

    With `whole_rows` it must have the whole row. Raises Permanent with what to run.
    """
    quoted = connection.dialect.table(table)
    rows = connection.query(_IDENTITIES, (quoted, quoted, quoted))
    for schema, name, identity, is_table, columns in rows:
        relation = table if is_table else TableName((schema, name))
        place = connection.dialect.table(relation)
        if identity == "n":
            raise Permanent(
                f'the table "{relation}" has REPLICA IDENTITY NOTHING, so updates and deletes '
                "have no key",
                code="replica-identity",
                hint=f"Run ALTER TABLE {place} REPLICA IDENTITY DEFAULT.",
            )
        if whole_rows and identity != "f":
            raise _without_whole_rows(relation, place)
        if identity == "f":
            continue
        if not key:
            raise Permanent(
                f'the table "{table}" has no primary key: once its changes are published, '
                "updates and deletes of the table fail",
                code="replica-identity",
                hint=f"Run ALTER TABLE {quoted} ADD PRIMARY KEY (...), or ALTER TABLE {quoted} "
                "REPLICA IDENTITY FULL.",
            )
        is_other = is_table and identity == "d" and connection.primary_key(table) != key
        if is_other:
            names = connection.dialect.quote_all(key)
            raise Permanent(
                f'the primary_key {", ".join(key)} is not the primary key of "{table}", '
                "so updates and deletes do not have it",
                code="replica-identity",
                hint=f"Run ALTER TABLE {quoted} REPLICA IDENTITY FULL, or ADD PRIMARY KEY "
                f"({names}).",
            )
        _check_columns(str(relation), place, json.loads(columns), key)


def check_logged(
    table: TableName, key: tuple[str, ...], columns: Collection[str], *, whole_rows: bool,
    has_whole_rows: bool,
) -> None:  # fmt: skip
    """Checks the columns that the log has of rows before changes, as `check_identity` does."""
    again = " Then remove the state of the pipeline to read the table again from a snapshot."
    place = DIALECT.table(table)
    if whole_rows and not has_whole_rows:
        raise _without_whole_rows(table, place, again)
    _check_columns(str(table), place, columns, key, again)


def _check_columns(
    relation: str, place: str, columns: Collection[str], key: Collection[str], again: str = ""
) -> None:
    if not set(key) <= set(columns):
        names = ", ".join(key)
        raise Permanent(
            f'the replica identity of the table "{relation}" has the columns '
            f"{', '.join(columns) or '(none)'}, so updates and deletes do not have the "
            f"primary_key {names}",
            code="replica-identity",
            hint=f"Run ALTER TABLE {place} REPLICA IDENTITY FULL, or DEFAULT if {names} is its "
            f"primary key.{again}",
        )


def _without_whole_rows(table: TableName, place: str, again: str = "") -> Permanent:
    return Permanent(
        f'the log has only keys of the rows of "{table}" before updates',
        code="replica-identity", hint=f"Run ALTER TABLE {place} REPLICA IDENTITY FULL.{again}",
    )  # fmt: skip
