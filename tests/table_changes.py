"""Receivers of changes of tables, which tests stop and kill, and the rows that they write."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import chain, count, repeat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.core.errors import OptionError, PenstockError, Transient
from penstock.core.log import Silent
from penstock.runtime.receiving.receivers import Receiver
from penstock.runtime.retry import RetryState
from penstock.sdk import Context, Read
from penstock.sdk.database.changes import ChangesSource
from penstock.sdk.database.changes.progress import DONE, Confirmed, Progress
from penstock.sdk.operations import add_operation
from penstock.spec.runtime_models import Restart
from penstock.testing.contract.receiver_harness import ReceivingInThread, start_warm_python
from servers.gate import Gate

Row = dict[str, Any]


class Changes:
    """A receiver of changes that is stopped and killed, and the rows that it has written.

    It is a process as in a run, or a thread of the tests (`in_thread`).
    """

    def __init__(self, source: ChangesSource[Any], *, in_thread: bool = False) -> None:
        self.source = source
        self._errors: list[PenstockError] = []
        self._in_thread = in_thread
        self._receiver: Receiver | None = None
        self._of_thread: ReceivingInThread | None = None
        self._closed = threading.Event()
        self._offset = source.initial_offset()
        self.rows: list[Row] = []
        self.others: list[Changes] = []
        """The changes of other tables by the same receiver."""
        self.restarts = 0
        """The restarts with other columns."""
        self._table: dict[Any, Row] = {}
        self._applied = 0

    def start(self) -> None:
        """Starts the receiver, which starts again after each end."""
        if self._in_thread:
            self._of_thread = ReceivingInThread(self.source)
            return
        retries = RetryState(Restart.model_validate({"attempts": 99, "backoff": "10ms"}), Silent())
        python = start_warm_python().launcher
        others = [other.source for other in self.others]
        self._receiver = Receiver(self.source, Silent(), retries, python=python, others=others)
        self._closed.clear()
        self._thread = threading.Thread(target=self._poll, args=(self._receiver,), daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether the receiver was started and not stopped."""
        return self._of_thread is not None or (
            self._receiver is not None and not self._closed.is_set()
        )

    @property
    def errors(self) -> list[PenstockError]:
        """The errors other than transient ones, since the start of a thread."""
        if self._of_thread is None:
            return self._errors
        found = [e for e in self._of_thread.errors if not isinstance(e, Transient)]
        assert all(isinstance(error, PenstockError) for error in found), found
        return [error for error in found if isinstance(error, PenstockError)]

    @property
    def failures(self) -> int:
        """The number of errors of a thread since its start, also of transient ones."""
        assert self._of_thread is not None
        return len(self._of_thread.errors)

    def _poll(self, receiver: Receiver) -> None:
        while not self._closed.wait(0.02):
            error = receiver.poll()
            if error is not None:
                self._errors.append(error)

    def kill(self) -> None:
        """Kills the process. It starts again."""
        assert self._receiver is not None
        self._receiver.kill()

    def stop(self) -> None:
        """Stops the receiver."""
        if self._of_thread is not None:
            self._of_thread.close()
            self._of_thread = None
            return
        self._closed.set()
        self._thread.join()
        assert self._receiver is not None
        self._receiver.request_stop()
        self._receiver.wait(time.monotonic() + 10)

    def read(self) -> list[Row]:
        """Reads the rows since the last call."""
        rows: list[Row] = []
        latest = self.source.latest_offset(self._offset)
        while (end := self.source.schema_change(self._offset, latest)) is not None:
            rows += self._read(end)
            self.source.columns = self.source.changed_columns()
            names = [name for name in self.source.columns.names if name != "_op"]
            for row in self._table.values():
                row |= {name: row.get(name) for name in names}
            self.restarts += 1
        rows += self._read(latest)
        self.rows += rows
        return rows

    def _read(self, end: Any) -> list[Row]:
        found = Read(metadata=("lsn", "transaction", "snapshot"))
        rows = [
            row
            for partition in self.source.partitions(self._offset, end)
            for batch in self.source.read(partition, found)
            for row in batch.to_pylist()
        ]
        assert [str(bad.error) for bad in found.bad] == []
        self._offset = end
        return rows

    @property
    def received(self) -> int:
        """The number of records of the journal, rows and dead letters together."""
        return self.source._reader.end()

    def read_again(self) -> tuple[list[Row], list[Any]]:
        """Returns all rows of the journal, and the dead letters."""
        source, found = self.source, Read(metadata=("lsn", "transaction", "snapshot"))
        start = source.initial_offset()
        rows = [
            row
            for partition in source.partitions(start, source.latest_offset(start))
            for batch in source.read(partition, found)
            for row in batch.to_pylist()
        ]
        return rows, found.bad

    def await_loss(self, count: int) -> list[Row]:
        """Waits for a record of a loss and `count` rows. Returns these rows."""
        self.until(lambda: self.received == count + 1)
        rows, (letter,) = self.read_again()
        assert letter.error.code == "data-gone" and letter.payload is None
        return rows

    def table(self) -> dict[Any, Row]:
        """Applies the changes since the last call in their order. Returns the rows by key."""
        self.read()
        columns = self.source.columns
        assert columns is not None
        names = [name for name in columns.names if name != "_op"]
        for row in self.rows[self._applied :]:
            key = tuple(row[name] for name in self.source.primary_key)
            if row["_op"] == "d":
                self._table.pop(key, None)
            else:
                self._table[key] = {name: row.get(name) for name in names}
        self._applied = len(self.rows)
        return self._table

    def until(self, condition: Callable[[], bool], seconds: float = 180) -> None:
        """Waits for a condition."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline and not self.errors, (self.errors, len(self.rows))
            time.sleep(0.05)


def pauses_of_writer() -> Iterator[float]:
    """Yields the seconds between transactions: their number is bounded also on a slow machine."""
    return chain(repeat(0.001, 4000), repeat(0.02))


def check_interrupted(changes: Changes, gate: Gate, insert: Callable[[int], Any]) -> None:
    """Reads changes over connections by a gate that are cut and stalled.

    Each change after the snapshot is read once. `insert` inserts a row with an `id`.
    """
    ids = count()

    def is_in_stream() -> bool:
        insert(next(ids))
        progress = Progress.read(changes.source._reader)
        return progress is not None and progress.chunk == DONE

    changes.start()
    changes.until(is_in_stream)
    first = next(ids)
    insert(first)
    for place, action in enumerate([gate.stop, gate.pause] * 2):
        failures = changes.failures
        gate.after(1 + 200 * place, action)
        for _ in range(20):
            insert(next(ids))
        changes.until(lambda before=failures: changes.failures > before)
        gate.heal()
        expected = [*range(next(ids))]
        insert(expected[-1] + 1)
        expected.append(expected[-1] + 1)
        changes.until(lambda rows=expected: sorted(id_ for (id_,) in changes.table()) == rows)
    changes.stop()
    read = [row["id"] for row in changes.rows if row["id"] >= first]
    assert read == [*range(first, len(expected))]


def check_declared_columns(changes: Changes) -> None:
    """Declares columns that the table, of the row (1, "a") with `id` and `name`, does not have.

    They are an error before the first row, and no nulls. Names in another case are others.
    """
    columns = changes.source.columns
    assert columns is not None
    changes.source.follows_schema = False
    for wrong in ("nam", "NAME"):
        changes.source.columns = pa.schema(
            [f.with_name(wrong) if f.name == "name" else f for f in columns]
        )
        error = fails(changes, f'has no column "{wrong}"')
        assert error.code == "unknown-column" and error.hint == 'did you mean "name"?'
        with pytest.raises(OptionError, match=wrong):
            changes.source.check()
    changes.source.columns = columns
    changes.source.check()
    changes.start()
    changes.until(lambda: changes.table() == {(1,): {"id": 1, "name": "a"}})


def check_without_snapshot(changes: Changes, insert: Callable[[int], Any]) -> None:
    """Reads the changes since the first start of a source without `snapshot`.

    Its journal is empty when it stops, and changes follow before it starts again.
    """
    insert(1)
    changes.start()
    changes.until(lambda: Confirmed(changes.source.directory).position > 0)
    changes.stop()
    assert changes.received == 0
    for first in (2, 4):
        insert(first)
        changes.start()
        insert(first + 1)
        changes.until(lambda first=first: len(changes.table()) == first)
        changes.stop()
    assert sorted(changes.table()) == [(2,), (3,), (4,), (5,)]
    assert not any(row["snapshot"] for row in changes.rows)


def changes_of(
    component: Any, config: Any, state: Path, *, in_thread: bool = False,
    columns: pa.Schema | None = None,
) -> Changes:  # fmt: skip
    """Returns the changes of a table by a checked source with its key.

    The columns are those of the table by default.
    """
    made = component.create(config, Context(node="orders", state=state))
    assert isinstance(made, ChangesSource)
    made.check()
    made.follows_schema = columns is None
    columns = columns or made.infer_schema()
    assert columns is not None
    made.columns = add_operation(columns, made.operation_column)
    made.primary_key = made.infer_primary_key()
    return Changes(made, in_thread=in_thread)


def fails(changes: Changes, text: str) -> PenstockError:
    """Starts the receiver, if it is not running, and waits for its error."""
    if not changes.is_running:
        changes.start()
    deadline = time.monotonic() + 30
    while not changes.errors:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    error = changes.errors[0]
    changes.stop()
    changes._errors.clear()
    assert text in error.message, error.message
    return error
