"""A writer of rows to a table, in the transaction of a connection."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.core.errors import RecordError
from penstock.sdk.bisect_failures import bisect_failures
from penstock.sdk.columns.names import fold
from penstock.sdk.database.connection import Connection
from penstock.sdk.database.names import TableName
from penstock.sdk.keys import split_null_keys
from penstock.sdk.operations import Operation
from penstock.sdk.record import Failure
from penstock.sdk.sink import Receipt, Writer


class TableWriter(Writer):
    """A writer of a part of a batch, in the transaction of a connection.

    With a `key` rows are upserted, and deleted by their operation. With `in_turn` the rows of a key
    are written one after another, otherwise a key has one row. `names` are the names of the table
    for columns of the rows. Without `is_new` the rows are in the table already.
    """

    def __init__(
        self, connection: Connection, table: TableName, key: Sequence[str],
        names: Mapping[str, str], number: int, is_new: bool, *, in_turn: bool = False,
    ) -> None:  # fmt: skip
        self._connection, self._table, self._names = connection, table, names
        self._key = tuple(names.get(name, name) for name in key)
        self._number, self._is_new, self._in_turn = number, is_new, in_turn

    def write(
        self,
        rows: pa.RecordBatch,
        payloads: pa.BinaryArray | None = None,
        operations: pa.StringArray | None = None,
    ) -> Sequence[Failure]:
        if not self._is_new:
            return ()
        rows = rows.rename_columns([self._names.get(n, n) for n in rows.schema.names])
        if not self._key:
            return list(self._apply(self._insert, rows, _indexes(pa.repeat(True, rows.num_rows))))
        if not self._in_turn:
            return self._write_keys(rows, operations)
        return [
            Failure(turn[failure.index].as_py(), failure.error)
            for turn in _turns(rows.select(list(self._key)))
            for failure in self._write_keys(
                rows.take(turn), None if operations is None else operations.take(turn)
            )
        ]

    def _write_keys(self, rows: pa.RecordBatch, operations: pa.StringArray | None) -> list[Failure]:
        """Deletes and upserts rows, of which no two have a key."""
        has_key, failures = split_null_keys(rows, self._key)
        deleted = pa.repeat(False, rows.num_rows)
        if operations is not None:
            deleted = pc.equal(operations, Operation.DELETE.value)
        keys = rows.select(list(self._key))
        failures += self._apply(self._delete, keys, _indexes(pc.and_(has_key, deleted)))
        kept = _indexes(pc.and_(has_key, pc.invert(deleted)))
        return [*failures, *self._upsert_all(rows, kept)]

    def _upsert_all(self, rows: pa.RecordBatch, index: pa.Array) -> list[Failure]:
        """Upserts the rows of an index in an order that the other unique keys of the table allow.

        A row may have a value that the table has until a later row of the batch is written. So
        rejected rows are tried again after the others, as long as one of them is accepted: the last
        one first, since each may wait for the one after it.
        """
        failures = list(self._apply(self._upsert, rows, index))
        tried, descending = len(index), True
        while 0 < len(failures) < tried and self._has_other_keys():
            tried = len(failures)
            again = sorted((failure.index for failure in failures), reverse=descending)
            failures = list(self._apply(self._upsert, rows, pa.array(again, pa.int64())))
            descending = not descending
        return failures

    def _has_other_keys(self) -> bool:
        """Returns whether the table has a unique key beside that of the rows."""
        key = {*map(fold, self._key)}
        keys = self._connection.unique_keys(self._table)
        return any({*map(fold, names)} != key for names in keys)

    def commit(self) -> Receipt:
        self._connection.commit()
        return {"writer": self._number}

    def abort(self) -> None:
        self._connection.rollback()

    def _insert(self, rows: pa.RecordBatch) -> None:
        self._connection.insert(self._table, rows)

    def _upsert(self, rows: pa.RecordBatch) -> None:
        self._connection.upsert(self._table, rows, self._key)

    def _delete(self, keys: pa.RecordBatch) -> None:
        self._connection.delete(self._table, keys)

    def _apply(
        self, function: Callable[[pa.RecordBatch], None], rows: pa.RecordBatch, index: pa.Array
    ) -> Iterator[Failure]:
        """Applies a function to the rows of an index, and yields the rows that it rejects."""
        rows = rows if len(index) == rows.num_rows else rows.take(index)
        if invalid := self._connection.invalid_rows(self._table, rows):
            yield from (Failure(index[place].as_py(), error) for place, error in invalid.items())
            valid = _indexes(pc.invert(pc.is_in(pa.array(range(rows.num_rows)), pa.array(invalid))))
            rows, index = rows.take(valid), index.take(valid)

        def attempt(start: int, stop: int) -> None:
            self._connection.savepoint()
            try:
                function(rows.slice(start, stop - start))
            except RecordError:
                self._connection.restore()
                raise
            self._connection.release()

        for start, _, error in bisect_failures(rows.num_rows, attempt):
            if isinstance(error, RecordError):
                yield Failure(index[start].as_py(), error)


def _turns(keys: pa.RecordBatch) -> list[pa.Array]:
    """Returns the indexes of the rows that have a key for the first time, the second time, ..."""
    counts: Counter[tuple[Any, ...]] = Counter()
    turns: defaultdict[int, list[int]] = defaultdict(list)
    for index, key in enumerate(zip(*(column.to_pylist() for column in keys.columns), strict=True)):
        turns[counts[key]].append(index)
        counts[key] += 1
    return [pa.array(turn, pa.int64()) for turn in turns.values()]


def _indexes(mask: pa.BooleanArray) -> pa.Array:
    return pc.indices_nonzero(mask)
