"""The snapshot of a table in chunks, merged with the changes that arrive meanwhile.

The method is that of DBLog (https://arxiv.org/abs/2010.12597), with the server's own snapshots in
place of watermarks in a table. A chunk is written at a position of the log after its read. A row of
the chunk is left out if the log has, before this position, a change of its key by a transaction
that the chunk does not contain: this change is newer. All rows are left out if such a transaction
has truncated the table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.sdk.database.changes.rows import Key, Row, Transaction

CHUNK_ROWS = 10_000
MAX_CHANGED_KEYS = 100_000
"""The changed keys that are kept while a chunk is read. Then the log waits for the chunk."""


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
    """The last transaction that changed each key, since the read of a chunk began.

    `limit_to` bounds its memory, also within a transaction that changes more keys than fit there.
    """

    transactions: dict[Key, Transaction] = field(default_factory=dict)
    keys: frozenset[Key] | None = None
    """The only keys that are recorded; all of them if None."""
    truncation: Transaction | None = None
    """The last transaction that truncated the table."""

    @property
    def is_full(self) -> bool:
        """Whether further keys are only recorded after `limit_to`."""
        return self.keys is None and len(self.transactions) >= MAX_CHANGED_KEYS

    def add(self, key: Key, transaction: Transaction) -> None:
        """Records a change."""
        if self.keys is None or key in self.keys:
            self.transactions[key] = transaction

    def limit_to(self, chunk: Chunk, key: tuple[str, ...]) -> None:
        """Removes all keys but those of the chunk, which was read, and records no others."""
        self.keys = frozenset(_key(row, key) for row in chunk.rows)
        self.transactions = {k: each for k, each in self.transactions.items() if k in self.keys}

    def newest(self, chunk: Chunk, key: tuple[str, ...]) -> list[Row]:
        """Returns the rows of a chunk that no newer change has replaced or removed."""
        if self.truncation is not None and not chunk.contains(self.truncation):
            return []
        newer = {k for k, each in self.transactions.items() if not chunk.contains(each)}
        return [row for row in chunk.rows if _key(row, key) not in newer]


def _key(row: Row, names: tuple[str, ...]) -> Key:
    return tuple(row[name] for name in names)
