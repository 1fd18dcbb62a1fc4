"""The snapshot of a table in chunks, merged with the changes that arrive meanwhile.

The method is that of DBLog (https://arxiv.org/abs/2010.12597), with the server's own snapshots in
place of watermarks in a table. A chunk is read in a transaction of its own, whose snapshot says
which transactions the chunk contains. The chunk is written at a position of the log after that
snapshot. A row of the chunk is left out if the log has, before this position, a change of its key
by a transaction that the chunk does not contain: this change is newer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from penstock.connectors.postgres.changes.positions import Key, lsn, snapshot_visibility
from penstock.connectors.postgres.connection import PostgresConnection
from penstock.sdk.database import Cursor, TableName

CHUNK_ROWS = 10_000
Row = dict[str, str | None]


@dataclass(frozen=True)
class Chunk:
    """Rows of a table in the order of the key. `position` is one of the log after the snapshot."""

    rows: list[Row]
    last: Key | None
    snapshot: str
    position: int

    def contains(self, transaction: int) -> bool:
        """Returns whether the chunk was read after the commit of a transaction."""
        first, last, running = snapshot_visibility(self.snapshot)
        if transaction in running:
            return False
        if _is_before(transaction, first):
            return True
        return _is_before(transaction, last)


@dataclass
class ChangedKeys:
    """The last transaction that changed each key, since the read of a chunk began."""

    transactions: dict[Key, int] = field(default_factory=dict)

    def add(self, key: Key, transaction: int) -> None:
        """Records a change."""
        self.transactions[key] = transaction

    def newest(self, chunk: Chunk, key: tuple[str, ...]) -> list[Row]:
        """Returns the rows of a chunk that no newer change has replaced."""
        newer = {k for k, number in self.transactions.items() if not chunk.contains(number)}
        return [row for row in chunk.rows if tuple(row[name] for name in key) not in newer]


def read_chunk(
    connection: PostgresConnection, table: TableName, key: tuple[str, ...], after: Key | None
) -> Chunk:
    """Reads the rows after a key. A chunk without rows is the end. Raises Transient or Permanent.

    The transaction that reads ends at once, so it does not hold back VACUUM.
    """
    dialect = connection.dialect
    columns = connection.columns(table)
    names = [] if columns is None else columns.names
    cursor = Cursor(dialect.table(table), key, dialect)
    query, parameters = cursor.first(dialect.quote_all(names), after, CHUNK_ROWS)
    connection.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    ((snapshot,),) = connection.query("SELECT pg_current_snapshot()::text")
    rows: list[Row] = []
    for part in connection.copy_rows(query, parameters, names):
        rows += part.to_pylist()
    connection.execute("COMMIT")
    last = tuple(rows[-1][name] for name in key) if rows else None
    return Chunk(rows, last, snapshot, mark_position(connection))


def mark_position(connection: PostgresConnection) -> int:
    """Returns a position of the log after all earlier transactions.

    Writes a record to the log, so that the stream of a quiet server reaches the position.
    """
    ((text,),) = connection.query("SELECT pg_logical_emit_message(false, 'penstock', '')::text")
    return lsn(text)


def _is_before(transaction: int, other: int) -> bool:
    """Returns whether a transaction is older than another, by numbers that wrap around."""
    return transaction != other and (other - transaction) & 0xFFFF_FFFF < 1 << 31


METADATA = pa.schema(
    [
        ("lsn", pa.string()),
        ("transaction", pa.int64()),
        ("commit_time", pa.timestamp("us", tz="UTC")),
        ("snapshot", pa.bool_()),
    ]
)
"""The metadata columns of a change. The row of a snapshot has no transaction."""
