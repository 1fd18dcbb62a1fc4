"""The ledger of a database: the last committed batch of each writer, in the same transaction.

A writer claims its batch before it writes. The transaction that commits the rows commits the claim,
so a batch that is written again finds its claim and writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from penstock.sdk.database.connection import Connection
from penstock.sdk.database.names import TableName
from penstock.sdk.sink import BatchId

LEDGER = "penstock_batches"
COLUMNS = pa.schema(
    [
        ("query", pa.string()),
        ("node", pa.string()),
        ("writer", pa.int32()),
        ("number", pa.int64()),
        ("content", pa.string()),
    ]
)
KEY = ("query", "node", "writer")
OF_LEDGER = ("SELECT", "INSERT", "UPDATE")
"""The privileges that a ledger needs."""


@dataclass(frozen=True)
class Ledger:
    """The ledger beside a table, for the batches of a sink."""

    table: TableName
    node: str

    @classmethod
    def beside(cls, table: TableName, node: str) -> Ledger:
        """Returns the ledger with the qualifiers of a table."""
        return cls(table.sibling(LEDGER), node)

    def create(self, connection: Connection) -> None:
        """Creates the ledger unless it exists."""
        connection.execute(connection.dialect.create_table(self.table, COLUMNS, KEY))

    def claim(self, connection: Connection, batch: BatchId, writer: int) -> bool:
        """Records a batch of a writer in the transaction.

        Returns False if the writer has committed this batch or a later one.
        """
        dialect = connection.dialect
        key = (batch.query, self.node, writer)
        mark = dialect.parameter
        updated = connection.execute(
            f"UPDATE {dialect.table(self.table)} SET {dialect.quote('number')} = {mark}, "
            f"{dialect.quote('content')} = {mark} "
            f"WHERE {dialect.equal(KEY)} AND {dialect.quote('number')} < {mark}",
            (batch.number, batch.content, *key, batch.number),
        )
        if updated:
            return True
        if self._exists(connection, key):
            return False
        connection.execute(
            dialect.insert(self.table, COLUMNS.names), (*key, batch.number, batch.content)
        )
        return True

    def last(self, connection: Connection, query: str) -> BatchId | None:
        """Returns the last committed batch of a query."""
        dialect = connection.dialect
        rows = connection.query(
            f"SELECT {dialect.quote_all(('number', 'content'))} FROM {dialect.table(self.table)} "
            f"WHERE {dialect.equal(KEY[:2])} ORDER BY {dialect.quote('number')} DESC",
            (query, self.node),
        )
        return BatchId(query, *rows[0]) if rows else None

    def _exists(self, connection: Connection, key: tuple[str, str, int]) -> bool:
        dialect = connection.dialect
        query = f"SELECT 1 FROM {dialect.table(self.table)} WHERE {dialect.equal(KEY)}"
        return bool(connection.query(query, key))
