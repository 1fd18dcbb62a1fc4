"""The transactions of a journal in the log of another server, where they have other positions.

They are compared by their IDs. Numbers of a domain of MariaDB are not in the order of the log if
several servers have written to it, and a replica of MySQL may commit in another order than its
source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.connectors.mysql.changes.gtids import Gtids, parts_of
from penstock.journal import JournalReader
from penstock.sdk.database.changes import LostChanges

_RECORDS = 10_000


@dataclass(frozen=True)
class Journaled:
    """The transactions of a journal after a position, each once and in their order.

    The last one may be incomplete: the journal has `count` of its changes. With `is_whole` the
    records of all transactions remain; otherwise those of the first ones were removed.
    """

    ids: tuple[str, ...] = ()
    count: int = 0
    is_whole: bool = True

    @classmethod
    def read(cls, reader: JournalReader, position: int, count: int, records: int = 0) -> Journaled:
        """Returns the transactions that begin at a position or later. Rows of chunks have none.

        The first `records` of the journal are of earlier transactions.
        """
        ids: dict[str, None] = {}
        is_whole = reader.begin() <= records
        for commit, id_ in _backwards(reader):
            if commit < position:
                is_whole = True
                break
            if id_ is not None:
                ids.setdefault(id_)
        return cls((*reversed(ids),), count, is_whole)


class Received:
    """The transactions of a log after `start` that a table does not read again.

    These are the ones before its place, which has `gtids`, and those of its journal.
    """

    def __init__(self, gtids: Gtids, start: Gtids, journaled: Journaled) -> None:
        self._gtids, self._journaled = gtids, journaled
        self._left = set(journaled.ids)
        first = start.ends
        self._ends = {name: end for name, end in gtids.ends.items() if first.get(name) != end}
        self._removed_before: dict[str, int] = {}
        for id_ in () if journaled.is_whole else journaled.ids:
            name, _, number = parts_of(id_)
            self._removed_before.setdefault(name, number)
        self._numbers = {name: spans[-1][1] for name, spans in gtids.numbers.items()}

    def begin(self, id_: str) -> bool:
        """Returns whether the journal has all changes of the next transaction.

        Raises LostChanges if this cannot be known.
        """
        name, *_ = parts_of(id_)
        if id_ in self._left:
            self._left.remove(id_)
            self._removed_before.pop(name, None)
            return id_ != self._journaled.ids[-1]
        if name in self._ends:
            if self._ends[name] == id_:
                del self._ends[name]
            return True
        if not self._gtids.servers and self._gtids.includes(id_):
            return True
        return name in self._removed_before and self._was_removed(id_)

    def is_over(self, reached: Gtids | None) -> bool:
        """Returns whether all these transactions are before a place."""
        if self._left or self._ends:
            return False
        return reached is None or bool(self._gtids.servers) or reached.has_all(self._gtids)

    def has(self, id_: str, number: int) -> bool:
        """Returns whether the journal has a change of its last transaction."""
        ids = self._journaled.ids
        return bool(ids) and id_ == ids[-1] and number <= self._journaled.count

    def _was_removed(self, id_: str) -> bool:
        """Returns whether a transaction comes before the first one whose records remain."""
        name, server, number = parts_of(id_)
        is_before = number < self._removed_before[name]
        if server is None:
            return is_before
        if not is_before or number <= self._numbers.get(name, -1):
            raise LostChanges(
                f"the log has {id_} between transactions that were read from another server, and "
                f"their numbers in the domain {name} do not grow: changes may be lost"
            )
        self._numbers[name] = number
        return True


def _backwards(reader: JournalReader) -> Iterator[tuple[int, str | None]]:
    """Yields the position and the ID of the transaction of each record, the last one first."""
    begin, end = reader.begin(), reader.end()
    while begin < end:
        start = max(begin, end - _RECORDS)
        rows = [
            row
            for _, batch in reader.read(start, end)
            for row in batch.select(["commit", "transaction"]).to_pylist()
        ]
        yield from ((row["commit"], row["transaction"]) for row in reversed(rows))
        end = start
