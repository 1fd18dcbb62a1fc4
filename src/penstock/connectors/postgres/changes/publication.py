"""The publication of a table: what it must have, and its creation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.connectors.postgres.changes.snapshot import replayed_position
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.core.errors import Permanent
from penstock.sdk.database import TableName
from penstock.sdk.database.changes import LostChanges

_PUBLISHED = """
SELECT count(*) FROM pg_publication_tables
WHERE pubname = \0 AND schemaname = \0 AND tablename = \0
"""
_OPERATIONS = """
SELECT p.pubinsert AND p.pubupdate AND p.pubdelete, p.pubtruncate,
       p.pubviaroot OR c.relkind <> 'p'
FROM pg_publication p, pg_class c WHERE p.pubname = \0 AND c.oid = to_regclass(\0)
"""
_PARTS = """
SELECT to_jsonb(r) ->> 'prqual' IS NOT NULL, array_to_json(array(
    SELECT a.attname FROM pg_attribute a
    WHERE a.attrelid = r.prrelid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
      AND NOT to_jsonb(r) -> 'prattrs' @> to_jsonb(a.attnum)
      AND jsonb_typeof(to_jsonb(r) -> 'prattrs') = 'array'
    ORDER BY a.attnum))::text
FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
WHERE p.pubname = \0 AND r.prrelid = to_regclass(\0)
"""
"""Whether a publication has a condition for the rows of a table, and the columns that it leaves out
by a list of columns. Both are of PostgreSQL 15 and later."""
_VIA_ROOT = "SELECT pubviaroot FROM pg_publication WHERE pubname = \0"


@dataclass(frozen=True)
class Publication:
    """A publication that must have the changes of a table.

    With `truncations` it must have those of the table, and with `rows` the changes of all rows.
    `columns` are read.
    """

    name: str
    table: TableName
    place: tuple[str, str]
    truncations: bool
    rows: bool
    columns: Sequence[str]

    def create(self, connection: PostgresConnection, *, resumes: bool) -> None:
        """Creates the publication, or adds the table to it, unless it has the table.

        With `resumes` a publication without the table is a loss. Raises LostChanges or Permanent.
        """
        exists = connection.query("SELECT 1 FROM pg_publication WHERE pubname = \0", (self.name,))
        if exists:
            self._check(connection)
        if connection.query(_PUBLISHED, (self.name, *self.place))[0][0]:
            return
        quoted, publication = self._quoted(connection)
        options = "WITH (publish_via_partition_root = true)"
        statement = (
            f"ALTER PUBLICATION {publication} ADD TABLE {quoted}"
            if exists
            else f"CREATE PUBLICATION {publication} FOR TABLE {quoted} {options}"
        )
        if resumes:
            raise loss_of(
                self.table,
                f'the publication "{self.name}" does not have the table "{self.table}": '
                "changes since the last run may be lost",
                f"Or run {statement}, if nothing was written meanwhile.",
            )
        if replayed_position(connection) is not None:
            raise Permanent(
                f'the publication "{self.name}" does not have the table "{self.table}", and '
                f"{connection.config.address} is a standby",
                code="standby", hint=f"Run {statement} on the primary.",
            )  # fmt: skip
        try:
            connection.execute(statement)
        except Permanent as error:
            if error.code != "authorization":
                raise
            raise Permanent(
                f'cannot create the publication "{self.name}": {error.message}',
                code="authorization",
                hint=f"Run {statement} as the owner of the table.",
            ) from error

    def alter(self, connection: PostgresConnection) -> None:
        """Alters the publication without a change, if the user owns it."""
        ((via_root,),) = connection.query(_VIA_ROOT, (self.name,))
        _, publication = self._quoted(connection)
        try:
            connection.execute(
                f"ALTER PUBLICATION {publication} SET (publish_via_partition_root = {via_root})"
            )
        except Permanent as error:
            if error.code != "authorization":
                raise

    def _quoted(self, connection: PostgresConnection) -> tuple[str, str]:
        dialect = connection.dialect
        return dialect.table(self.table), dialect.quote(self.name)

    def _check(self, connection: PostgresConnection) -> None:
        """Checks that the publication has all changes, under the name of the table."""
        quoted, publication = self._quoted(connection)
        named = connection.dialect.table(TableName(self.place))
        ((operations, truncations, is_named),) = connection.query(_OPERATIONS, (self.name, named))
        if not operations or (self.truncations and not truncations):
            missing, other = "changes", ""
            if operations:
                missing, other = "truncations", ", or set on_truncate: ignore"
            option = "publish = 'insert, update, delete, truncate'"
            raise self._incomplete(
                missing, f"Run ALTER PUBLICATION {publication} SET ({option}){other}."
            )
        if not is_named:
            option = "publish_via_partition_root = true"
            raise self._incomplete(
                "changes", f"Run ALTER PUBLICATION {publication} SET ({option})."
            )
        again = (
            f"Run ALTER PUBLICATION {publication} DROP TABLE {quoted}, and ALTER PUBLICATION "
            f"{publication} ADD TABLE {quoted}"
        )
        for has_condition, others in connection.query(_PARTS, (self.name, named)):
            if has_condition and self.rows:
                raise self._incomplete(
                    "rows (WHERE)",
                    f"{again}. Or set snapshot: false, to read the changes of these rows only.",
                )
            missing = ", ".join(name for name in json.loads(others) if name in self.columns)
            if missing:
                raise self._incomplete(
                    f"the columns {missing}", f"{again}. Or declare schema without these columns."
                )

    def _incomplete(self, missing: str, hint: str) -> Permanent:
        return Permanent(
            f'the publication "{self.name}" leaves out {missing} of the table "{self.table}"',
            code="incomplete-publication", hint=hint,
        )  # fmt: skip


def loss_of(table: TableName, message: str, hint: str) -> LostChanges:
    """Returns the loss of changes of one table."""
    loss = LostChanges(message, hint=hint)
    loss.table = str(table)
    return loss
