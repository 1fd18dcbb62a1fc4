"""The requirements of a server and a table for logical replication: checked, and created."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.connectors.postgres.changes.identity import check_identity
from penstock.connectors.postgres.changes.positions import lsn
from penstock.connectors.postgres.changes.publication import Publication, loss_of
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
SELECT n.nspname, c.relname, c.relkind::text, c.relpersistence::text, c.oid::int8
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(\0)
"""
_CREATE_SLOT = "SELECT pg_create_logical_replication_slot(\0, 'pgoutput')"
_GENERATED = """
SELECT attname FROM pg_attribute
WHERE attrelid = to_regclass(\0) AND attgenerated <> '' AND NOT attisdropped
"""
_RUNNING = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
_HAVE_ENDED = "SELECT pg_snapshot_xmin(pg_current_snapshot()) >= \0::xid8"
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
    truncations of the table, and with `rows` the changes of all rows. `columns` are read.
    """

    table: TableName
    key: tuple[str, ...]
    slot: str
    publication: str
    whole_rows: bool = False
    truncations: bool = False
    rows: bool = True
    columns: tuple[str, ...] = ()

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
        _, _, kind, persistence, _ = self._find_table(connection)
        if kind not in ("r", "p") or persistence != "p":
            raise Permanent(
                f'"{self.table}" is a view, or a table without a log', code="unsupported-table",
                hint="Set table to a table that is neither temporary nor unlogged.",
            )  # fmt: skip
        check_identity(connection, self.table, self.key, whole_rows=self.whole_rows)

    def check_log(self, connection: PostgresConnection) -> None:
        """Checks that the log has all changes from now on. Raises LostChanges or Permanent."""
        check_identity(connection, self.table, self.key, whole_rows=self.whole_rows)
        self.find_publication(connection).create(connection, resumes=True)

    def find_publication(self, connection: PostgresConnection) -> Publication:
        """Returns the publication of the table."""
        return Publication(
            self.publication, self.table, self.resolve_table(connection), self.truncations,
            self.rows, self.columns,
        )  # fmt: skip

    def resolve_table(self, connection: PostgresConnection) -> tuple[str, str]:
        """Returns the schema and the name of the table."""
        schema, name, *_ = self._find_table(connection)
        return schema, name

    def number_of_table(self, connection: PostgresConnection, known: int | None = None) -> int:
        """Returns the OID of the table. Raises LostChanges if it is not the `known` one."""
        number = int(self._find_table(connection)[-1])
        if known is not None and number != known:
            raise loss_of(
                self.table,
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
        self.find_publication(connection).create(connection, resumes=resumes)
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
        self.find_publication(connection).alter(connection)

    def _lost(self, connection: PostgresConnection, reason: str) -> LostChanges:
        return loss_of(
            self.table,
            f'the slot "{self.slot}" of {connection.config.address} {reason}: changes since the '
            "last run are lost",
            "Or remove the state of the pipeline to read the table again, and drop the slot with "
            f"SELECT pg_drop_replication_slot('{self.slot}') if it exists.",
        )
