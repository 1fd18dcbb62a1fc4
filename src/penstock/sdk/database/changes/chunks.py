"""The snapshot of a table in chunks, merged with the changes that arrive meanwhile.

The method is that of DBLog (https://arxiv.org/abs/2010.12597), with the server's own snapshots in
place of watermarks in a table. A chunk is written at a position of the log after its read. A row of
the chunk is left out if the log has, before this position, a change of its key by a transaction
that the chunk does not contain: this change is newer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.sdk.database.changes.rows import Key, Row, Transaction

CHUNK_ROWS = 10_000


@dataclass(frozen=True)
class Chunk(ABC):
    """Rows of a table in the order of the key. The last chunk has fewer rows than were asked for.

    `position` is one of the log after the read, and `lsn` its text. Rows that are inserted after
    the read of the last chunk are in the log. `columns` are those of the table.
    """

    rows: list[Row]
    is_last: bool
    position: int
    lsn: str
    columns: pa.Schema | None

    @abstractmethod
    def contains(self, transaction: Transaction) -> bool:
        """Returns whether the chunk was read after the commit of a transaction.

        May return False for a transaction that was committed while the chunk was read.
        """


@dataclass
class ChangedKeys:
    """The last transaction that changed each key, since the read of a chunk began."""

    transactions: dict[Key, Transaction] = field(default_factory=dict)

    def add(self, key: Key, transaction: Transaction) -> None:
        """Records a change."""
        self.transactions[key] = transaction

    def newest(self, chunk: Chunk, key: tuple[str, ...]) -> list[Row]:
        """Returns the rows of a chunk that no newer change has replaced."""
        newer = {k for k, each in self.transactions.items() if not chunk.contains(each)}
        return [row for row in chunk.rows if tuple(row[name] for name in key) not in newer]
