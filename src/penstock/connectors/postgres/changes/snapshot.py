"""Chunks of a snapshot. A chunk has a snapshot of the server, and so the transactions before it.

A snapshot of a standby does not name the running transactions. There a chunk has the transactions
whose commits were replayed before the snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from penstock.connectors.postgres.changes.positions import lsn, lsn_text, snapshot_visibility
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.sdk.database import Cursor, TableName
from penstock.sdk.database.changes import Chunk, Key, Row, Transaction
from penstock.sdk.database.changes.chunks import CHUNK_ROWS

_REPLAYED = """
SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() END::text
"""


@dataclass(frozen=True)
class SnapshotChunk(Chunk):
    """A chunk that was read in the snapshot `snapshot`."""

    snapshot: str

    @cached_property
    def _visibility(self) -> tuple[int, int, frozenset[int]]:
        return snapshot_visibility(self.snapshot)

    def contains(self, transaction: Transaction) -> bool:
        number = transaction.id
        assert isinstance(number, int)
        first, last, running = self._visibility
        if number in running:
            return False
        return _is_before(number, first) or _is_before(number, last)


@dataclass(frozen=True)
class ReplayedChunk(Chunk):
    """A chunk of a standby that was read after the commits before `replayed` in the log."""

    replayed: int

    def contains(self, transaction: Transaction) -> bool:
        return transaction.position < self.replayed


def read_chunk(
    connection: PostgresConnection, table: TableName, key: tuple[str, ...], after: Key | None
) -> Chunk:
    """Reads the rows after a key. Raises Transient or Permanent.

    The transaction that reads ends at once, so it does not hold back VACUUM. Its lock is that of a
    query: the rows have the columns that are read.
    """
    dialect = connection.dialect
    cursor = Cursor(dialect.table(table), key, dialect)
    replayed = replayed_position(connection)
    connection.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    connection.execute(f"LOCK TABLE ONLY {dialect.table(table)} IN ACCESS SHARE MODE")
    ((snapshot,),) = connection.query("SELECT pg_current_snapshot()::text")
    columns = connection.columns(table)
    assert columns is not None
    names = columns.names
    query, parameters = cursor.first(dialect.quote_all(names), after, CHUNK_ROWS)
    rows: list[Row] = []
    for part in connection.copy_rows(query, parameters, names):
        rows += part.to_pylist()
    connection.execute("COMMIT")
    position = mark_position(connection)
    is_last = len(rows) < CHUNK_ROWS
    text = lsn_text(position)
    if replayed is not None:
        return ReplayedChunk(rows, is_last, position, text, columns, replayed)
    return SnapshotChunk(rows, is_last, position, text, columns, snapshot)


def mark_position(connection: PostgresConnection) -> int:
    """Returns a position of the log after all earlier transactions.

    Writes a record to the log, so that the stream of a quiet server reaches the position. A standby
    cannot write, and its stream reaches the position that it has replayed.
    """
    replayed = replayed_position(connection)
    if replayed is not None:
        return replayed
    ((text,),) = connection.query("SELECT pg_logical_emit_message(false, 'penstock', '')::text")
    return lsn(text)


def replayed_position(connection: PostgresConnection) -> int | None:
    """Returns the position that a standby has replayed; None for a primary."""
    ((text,),) = connection.query(_REPLAYED)
    return None if text is None else lsn(text)


def _is_before(transaction: int, other: int) -> bool:
    """Returns whether a transaction is older than another, by numbers that wrap around."""
    return transaction != other and (other - transaction) & 0xFFFF_FFFF < 1 << 31
