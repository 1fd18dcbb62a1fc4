"""The requirements of a server and a table for logical replication: checked, and created."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.connectors.postgres.changes.positions import lsn
from penstock.connectors.postgres.changes.snapshot import replayed_position
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.core.errors import Permanent, Transient
from penstock.sdk.database import TableName
from penstock.sdk.database.changes import Confirmed, LostChanges, missing_table

_SETTINGS = """
SELECT current_setting('wal_level'), pg_is_in_recovery(), r.rolreplication OR r.rolsuper,
       quote_ident(current_user), current_setting('server_version_num')::int
FROM pg_roles r WHERE r.rolname = current_user
"""
_TABLE = """
SELECT n.nspname, c.relname, c.relkind::text, c.relreplident::text, c.relpersistence::text,
       c.oid::int8
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(\0)
"""
_PUBLISHED = """
SELECT count(*) FROM pg_publication_tables
WHERE pubname = \0 AND schemaname = \0 AND tablename = \0
"""
_CREATE_SLOT = "SELECT pg_create_logical_replication_slot(\0, 'pgoutput')"
_OPERATIONS = """
SELECT p.pubinsert AND p.pubupdate AND p.pubdelete, p.pubtruncate,
       p.pubviaroot OR c.relkind <> 'p'
FROM pg_publication p, pg_class c WHERE p.pubname = \0 AND c.oid = to_regclass(\0)
"""
_GENERATED = """
SELECT attname FROM pg_attribute
WHERE attrelid = to_regclass(\0) AND attgenerated <> '' AND NOT attisdropped
"""
_RUNNING = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
_HAVE_ENDED = "SELECT pg_snapshot_xmin(pg_current_snapshot()) >= \0::xid8"
_VIA_ROOT = "SELECT pubviaroot FROM pg_publication WHERE pubname = \0"
_POLL_SECONDS = 0.1
_DECODES_ON_STANDBY = 160_000
_SLOT = """
SELECT plugin, wal_status, confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = \0
"""
_RETAINED = """
SELECT pg_wal_lsn_diff(
    CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END,
    restart_lsn)::bigint
FROM pg_replication_slots WHERE slot_name = \0 AND restart_lsn IS NOT NULL
"""


def retained_log(connection: PostgresConnection, slot: str) -> int | None:
    """Returns the bytes of the log that the server keeps for a slot; None without a slot."""
    rows = connection.query(_RETAINED, (slot,))
    return int(rows[0][0]) if rows else None


@dataclass(frozen=True)
class Replication:
    """The names of the slot and the publication of a table.

    With `whole_rows` the log must have the whole row before an update, with `truncations` the
    truncations of the table.
    """

    table: TableName
    key: tuple[str, ...]
    slot: str
    publication: str
    whole_rows: bool = False
    truncations: bool = False

    def check(self, connection: PostgresConnection) -> None:
        """Checks the server, the user and the table. Raises Permanent with what to run."""
        ((level, standby, may_replicate, user, version),) = connection.query(_SETTINGS)
        address = connection.config.address
        if standby and version < _DECODES_ON_STANDBY:
            raise Permanent(
                f"{address} is a standby; changes of a standby need PostgreSQL 16 at least",
                code="standby",
                hint="Set url to the primary. The rows of a table are read from a standby without "
                "changes: true.",
            )
        if level != "logical":
            raise Permanent(
                f"{address} has wal_level {level}; changes need logical", code="wal-level",
                hint="Run ALTER SYSTEM SET wal_level = logical, and restart the server.",
            )  # fmt: skip
        if not may_replicate:
            raise Permanent(
                f"the user {user} of {address} may not read changes", code="authorization",
                hint=f"Run ALTER ROLE {user} REPLICATION.",
            )  # fmt: skip
        self._check_table(connection)

    def _check_table(self, connection: PostgresConnection) -> None:
        quoted = connection.dialect.table(self.table)
        _, _, kind, identity, persistence, _ = self._find_table(connection)
        if kind not in ("r", "p") or persistence != "p":
            raise Permanent(
                f'"{self.table}" is a view, or a table without a log', code="unsupported-table",
                hint="Set table to a table that is neither temporary nor unlogged.",
            )  # fmt: skip
        if identity == "n":
            raise Permanent(
                f'the table "{self.table}" has REPLICA IDENTITY NOTHING, so updates and deletes '
                "have no key",
                code="replica-identity",
                hint=f"Run ALTER TABLE {quoted} REPLICA IDENTITY DEFAULT.",
            )
        if self.whole_rows and identity != "f":
            raise Permanent(
                f'the log has only keys of the rows of "{self.table}" before updates',
                code="replica-identity",
                hint=f"Run ALTER TABLE {quoted} REPLICA IDENTITY FULL.",
            )
        if identity != "f" and not self.key:
            raise Permanent(
                f'the table "{self.table}" has no primary key: once its changes are published, '
                "updates and deletes of the table fail",
                code="replica-identity",
                hint=f"Run ALTER TABLE {quoted} ADD PRIMARY KEY (...), or ALTER TABLE {quoted} "
                "REPLICA IDENTITY FULL.",
            )
        if identity != "f" and connection.primary_key(self.table) != self.key:
            names = connection.dialect.quote_all(self.key)
            raise Permanent(
                f'the primary_key {", ".join(self.key)} is not the primary key of "{self.table}", '
                "so updates and deletes do not have it",
                code="replica-identity",
                hint=f"Run ALTER TABLE {quoted} REPLICA IDENTITY FULL, or ADD PRIMARY KEY "
                f"({names}).",
            )

    def resolve_table(self, connection: PostgresConnection) -> tuple[str, str]:
        """Returns the schema and the name of the table."""
        schema, name, *_ = self._find_table(connection)
        return schema, name

    def number_of_table(self, connection: PostgresConnection, known: int | None = None) -> int:
        """Returns the OID of the table. Raises LostChanges if it is not the `known` one."""
        number = int(self._find_table(connection)[-1])
        if known is not None and number != known:
            raise self._loss(
                f'the table "{self.table}" was replaced by another table of its name: changes of '
                "both are lost",
                "Or remove the state of the pipeline to read the table again.",
            )
        return number

    def _find_table(self, connection: PostgresConnection) -> Sequence[Any]:
        found = connection.query(_TABLE, (connection.dialect.table(self.table),))
        if not found:
            raise missing_table(self.table)
        return found[0]

    def generated_columns(self, connection: PostgresConnection) -> list[str]:
        """Returns the generated columns, which the server does not send."""
        rows = connection.query(_GENERATED, (connection.dialect.table(self.table),))
        return [name for (name,) in rows]

    def create(
        self, connection: PostgresConnection, confirmed: Confirmed, *, resumes: bool, replaces: bool
    ) -> None:
        """Creates the publication and the slot unless they exist.

        With `resumes` rows were read before. Then a slot that is missing, or that is beyond the
        `confirmed` position, is a loss. With `replaces` another slot takes the place of one that
        the server has invalidated. Raises LostChanges or Permanent.
        """
        self._create_publication(connection, resumes=resumes)
        found = connection.query(_SLOT, (self.slot,))
        if found and found[0][1] == "lost" and not resumes and replaces:
            connection.query("SELECT pg_drop_replication_slot(\0)", (self.slot,))
            found = []
        if not found:
            if resumes:
                raise self._lost(connection, "does not exist")
            self._create_slot(connection)
            found = connection.query(_SLOT, (self.slot,))
        elif not resumes:
            self._join_slot(connection)
        ((plugin, status, position),) = found
        if plugin != "pgoutput":
            raise Permanent(
                f'the slot "{self.slot}" has the output plugin {plugin}; changes need pgoutput',
                code="rejected", hint="Set slot to another name.",
            )  # fmt: skip
        if status == "lost":
            raise self._lost(connection, "has lost changes (max_slot_wal_keep_size)")
        if not resumes:
            confirmed.raise_to(lsn(position))
        elif lsn(position) > confirmed.position:
            raise self._lost(connection, "was read by another pipeline, or by a later state of it")

    def _create_slot(self, connection: PostgresConnection) -> None:
        """Creates the slot. A standby waits for a record of its primary for this."""
        try:
            connection.query(_CREATE_SLOT, (self.slot,))
        except Transient as error:
            if replayed_position(connection) is None:
                raise
            raise Transient(
                f'the slot "{self.slot}" of the standby {connection.config.address} was not '
                f"created: {error.message}",
                code=error.code,
                hint="Run SELECT pg_log_standby_snapshot() on the primary as a superuser.",
            ) from error

    def _join_slot(self, connection: PostgresConnection) -> None:
        """Adds the table to the stream of a slot that others read.

        The stream does not have the changes by transactions that began before the publication had
        the table. They are in the snapshot, which is read after their ends. Then the publication
        is altered once more: the server may have kept that it lacked the table.
        """
        ((running,),) = connection.query(_RUNNING)
        deadline = time.monotonic() + connection.config.timeout
        while not connection.query(_HAVE_ENDED, (running,))[0][0]:
            if time.monotonic() > deadline:
                raise Transient(
                    f'transactions of {connection.config.address} that are open since before '
                    f'"{self.table}" is read have not ended',
                    code="busy", hint="End them: see xact_start in pg_stat_activity.",
                )  # fmt: skip
            time.sleep(_POLL_SECONDS)
        if replayed_position(connection) is not None:
            return
        ((via_root,),) = connection.query(_VIA_ROOT, (self.publication,))
        publication = connection.dialect.quote(self.publication)
        try:
            connection.execute(
                f"ALTER PUBLICATION {publication} SET (publish_via_partition_root = {via_root})"
            )
        except Permanent as error:
            if error.code != "authorization":  # the user may not own it
                raise

    def _lost(self, connection: PostgresConnection, reason: str) -> LostChanges:
        return self._loss(
            f'the slot "{self.slot}" of {connection.config.address} {reason}: changes since the '
            "last run are lost",
            "Or remove the state of the pipeline to read the table again, and drop the slot with "
            f"SELECT pg_drop_replication_slot('{self.slot}') if it exists.",
        )

    def _loss(self, message: str, hint: str) -> LostChanges:
        loss = LostChanges(message, hint=hint)
        loss.table = str(self.table)
        return loss

    def _check_publication(self, connection: PostgresConnection, schema: str, name: str) -> None:
        """Checks that a publication has all operations, under the name of the table."""
        quoted = connection.dialect.table(TableName((schema, name)))
        ((has_rows, truncates, is_named),) = connection.query(
            _OPERATIONS, (self.publication, quoted)
        )
        lacks_truncations = self.truncations and not truncates
        option, missing, other = "publish = 'insert, update, delete, truncate'", "changes", ""
        if has_rows and lacks_truncations:
            missing, other = "truncations", ", or set on_truncate: ignore"
        elif has_rows:
            option = "publish_via_partition_root = true"
            if is_named:
                return
        publication = connection.dialect.quote(self.publication)
        raise Permanent(
            f'the publication "{self.publication}" leaves out {missing} of the table '
            f'"{self.table}"',
            code="incomplete-publication",
            hint=f"Run ALTER PUBLICATION {publication} SET ({option}){other}.",
        )

    def _create_publication(self, connection: PostgresConnection, *, resumes: bool) -> None:
        dialect = connection.dialect
        quoted = dialect.table(self.table)
        schema, name = self.resolve_table(connection)
        publication = dialect.quote(self.publication)
        exists = connection.query(
            "SELECT 1 FROM pg_publication WHERE pubname = \0", (self.publication,)
        )
        if exists:
            self._check_publication(connection, schema, name)
        if connection.query(_PUBLISHED, (self.publication, schema, name))[0][0]:
            return
        options = "WITH (publish_via_partition_root = true)"
        statement = (
            f"ALTER PUBLICATION {publication} ADD TABLE {quoted}"
            if exists
            else f"CREATE PUBLICATION {publication} FOR TABLE {quoted} {options}"
        )
        if resumes:
            raise self._loss(
                f'the publication "{self.publication}" does not have the table "{self.table}": '
                "changes since the last run may be lost",
                f"Or run {statement}, if nothing was written meanwhile.",
            )
        if replayed_position(connection) is not None:
            raise Permanent(
                f'the publication "{self.publication}" does not have the table "{self.table}", and '
                f"{connection.config.address} is a standby",
                code="standby", hint=f"Run {statement} on the primary.",
            )  # fmt: skip
        try:
            connection.execute(statement)
        except Permanent as error:
            if error.code != "authorization":
                raise
            raise Permanent(
                f'cannot create the publication "{self.publication}": {error.message}',
                code="authorization",
                hint=f"Run {statement} as the owner of the table.",
            ) from error
