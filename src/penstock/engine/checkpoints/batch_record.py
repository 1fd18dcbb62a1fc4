"""Record of a query's batch in progress: the sinks that have committed it, and its writers.

The record is a file in the checkpoint of the query. A repeated batch does not write again to a sink
that has committed it, and divides its rows among the same writers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from penstock.core.errors import StateError
from penstock.core.files.durable import replace_durably
from penstock.sdk import BatchId

Partitioning = tuple[int, Sequence[str]]
"""The number of writers and the columns that choose the writer, of `Sink.partitioning`."""


@dataclass
class BatchRecord:
    """The record of the batches of a query.

    `batch` and `content` identify the last batch that some sinks have committed before others, and
    `sinks` are these sinks. `writers` is the partitioning of each sink.
    """

    batch: int = -1
    content: str = ""
    sinks: list[str] = field(default_factory=list)
    writers: dict[str, tuple[int, list[str]]] = field(default_factory=dict)


class BatchRecordFile:
    """The record in the checkpoint of a query.

    Batches up to `planned` may have been written in part by an earlier start. `sync` makes the file
    durable where the local disk does not.
    """

    def __init__(
        self, checkpoint: Path, planned: int | None, sync: Callable[[], None] = lambda: None
    ) -> None:
        self._path = checkpoint / "penstock-batch.json"
        self._sync = sync
        self._planned = -1 if planned is None else planned
        self._record = self._load()

    def done(self, batch: BatchId) -> frozenset[str]:
        """Returns the sinks that have committed the batch."""
        record = self._record
        same = (record.batch, record.content) == (batch.number, batch.content)
        return frozenset(record.sinks) if same else frozenset()

    def add(self, batch: BatchId, sink: str) -> None:
        """Records durably that a sink has committed the batch."""
        sinks = [*self.done(batch), sink]
        self._record.batch, self._record.content = batch.number, batch.content
        self._record.sinks = sorted(sinks)
        self._save()

    def partitioning(
        self, batch: BatchId, sink: str, current: Partitioning | None
    ) -> Partitioning | None:
        """Returns the partitioning of a batch: for a repeated batch that of its first attempt.

        Records a new partitioning durably, before the batch is written.
        """
        if current is None:
            return None
        count, columns = current
        stored = self._record.writers.get(sink)
        if stored is not None and batch.number <= self._planned:
            return stored
        if stored != (count, list(columns)):
            self._record.writers[sink] = count, list(columns)
            self._save()
        return current

    def _load(self) -> BatchRecord:
        try:
            record = BatchRecord(**json.loads(self._path.read_text("utf-8")))
            record.writers = {sink: (int(n), list(c)) for sink, (n, c) in record.writers.items()}
        except FileNotFoundError:
            return BatchRecord()
        except (ValueError, TypeError, AttributeError) as error:
            raise StateError(
                f"{self._path} is damaged",
                code="corrupt-state",
                detail=str(error),
                hint="Restore the file from a backup, or reset the state with --fresh.",
            ) from error
        return record

    def _save(self) -> None:
        replace_durably(self._path, json.dumps(asdict(self._record)))
        self._sync()
