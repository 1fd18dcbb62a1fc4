"""Dead letter files: tasks report bad records, and the driver collects the files.

Dead letters do not pass through Spark's plan. A task reports the bad records of one node and
partition as a file when it ends (see `engine.reports`). A retried partition replaces the file, so
concurrent attempts never mix. The driver collects the files of batches that are in Spark's commit
log.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

import pyarrow as pa

from penstock.core.errors import RecordError
from penstock.core.known_secrets import conceal
from penstock.engine.reports.report import begin_report
from penstock.engine.spark_session.shared_paths import verify_paths
from penstock.engine.tasks.late_candidates import CANDIDATES, write_candidates
from penstock.spec.model_types import OnError

Stage = Literal["decode", "transform", "output", "sink"]
"""The stage of a failure. At `output` the payload is a row that the node has computed."""

DEAD_LETTER = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("pipeline", pa.string(), nullable=False),
        pa.field("node", pa.string(), nullable=False),
        pa.field("stage", pa.string(), nullable=False),
        pa.field("code", pa.string(), nullable=False),
        pa.field("message", pa.string(), nullable=False),
        pa.field("payload", pa.binary()),
        pa.field("origin", pa.string()),
        pa.field("position", pa.int64()),
        pa.field("attempt", pa.int32(), nullable=False),
        pa.field("time", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("query", pa.string()),
        pa.field("batch", pa.int64()),
        pa.field("header", pa.binary()),
        pa.field("definition", pa.string()),
    ]
)
"""A dead letter.

`payload` is the record from the source (stage decode) or the node's input row as JSON. `origin` and
`position` identify the record in its source (stage decode). `attempt` counts from 1. `header` is
required to decode the payload again (see `sdk.BadRecord`). `definition` identifies a node that the
file does not name (see `plan.unnamed_nodes`); the state directory has it, sinks do not.
"""

COUNT = "count"
"""The extension of a file with `read`, `untimed`, `late` and `latest` of a task as JSON."""

_IDENTITY = ("id", "position")


@dataclass(frozen=True)
class Spool:
    """The destination of a node's bad records. `directory` None makes a bad record an error.

    A batch that is computed again for one sink without its failing rows (see
    `engine.failures.separation`) may have other partitions. `recomputed_for` names that sink and
    keeps these dead letters apart.
    With `by_query` a record has an ID of its own in each query, with `by_content` another record at
    the same position has another ID.
    """

    pipeline: str
    query: str
    node: str
    stage: Stage
    on_error: OnError = "dead_letter"
    directory: str | None = None
    report_dead_letters: bool = True
    attempt: int = 1
    recomputed_for: str = ""
    by_query: bool = False
    by_content: bool = False

    @property
    def keeps_bad_records(self) -> bool:
        """Whether a bad record is reported or dropped, and is no error."""
        return self.on_error == "drop" or (self.on_error == "dead_letter" and bool(self.directory))

    @property
    def reports(self) -> bool:
        """Whether a bad record becomes a dead letter."""
        return self.on_error != "drop" and self.report_dead_letters

    def begin(self, batch: int | None, partition: int | str) -> DeadLetterWriter:
        """Returns a writer of the dead letters of one partition of a batch.

        Raises StateError in a task without access to a path that the run requires.
        """
        if self.directory is not None:
            verify_paths()
        return DeadLetterWriter(self, batch, partition)


@dataclass
class DeadLetterWriter:
    """A writer of the bad records of one node in one task. `close` publishes the records.

    `read` counts the valid rows of a source, with rows that the query does not need. `untimed`
    counts the rows without an event time, which belong to no window, and `late` the late rows.
    `latest` is the latest event time of each partition of a source (see `latest_by_partition`).
    `candidates` are rows that may be late (see `engine.tasks.late_candidates`).
    """

    spool: Spool
    batch: int | None
    partition: int | str
    count: int = 0
    read: int = 0
    untimed: int = 0
    late: int = 0
    latest: dict[str, int] = field(default_factory=dict)
    candidates: list[pa.RecordBatch] = field(default_factory=list)
    _rows: list[dict[str, object]] = field(default_factory=list)

    def add(
        self,
        payload: bytes | None,
        error: RecordError,
        origin: str | None = None,
        position: int | None = None,
        part: int | None = None,
        header: bytes | None = None,
    ) -> None:
        """Adds a bad record. `part` numbers the records of one position.

        Raises the error if the node has `on_error: fail`.
        """
        spool = self.spool
        if not spool.keeps_bad_records:
            location = f" ({origin}, {position})" if origin is not None else ""
            raise type(error)(
                f"{spool.node}: {error.message}{location}",
                code=error.code, detail=error.detail, hint=error.hint,
            )  # fmt: skip
        self.count += 1
        if not spool.reports:
            return
        self._rows.append(
            {
                "id": self._identity(payload, origin, position, part),
                "pipeline": spool.pipeline,
                "node": spool.node,
                "stage": spool.stage,
                "code": error.code,
                "message": error.reason.encode(errors="backslashreplace").decode(),
                "payload": payload,
                "origin": origin,
                "position": position,
                "attempt": spool.attempt,
                "time": int(time.time() * 1e6),
                "query": spool.query,
                "batch": self.batch,
                "header": header,
            }
        )

    def observe(self, times: Mapping[str, int]) -> None:
        """Adds event times of partitions to `latest`."""
        for partition, time_ in times.items():
            self.latest[partition] = max(time_, self.latest.get(partition, time_))

    def digest(self) -> str:
        """Returns a digest of the dead letters."""
        return hashlib.sha1(json.dumps([row["id"] for row in self._rows]).encode()).hexdigest()[:8]

    def close(self, complete: bool = True) -> None:
        """Publishes the dead letters, durably, and the counts to the driver.

        A partition that is not `complete` does not replace files of an earlier computation.
        """
        if self.spool.directory is None:
            return
        if self._rows:
            state = Path(self.spool.directory).parent.parent
            report = begin_report(self._file("arrow"), durable_below=state)
            write_dead_letters(report.file, pa.Table.from_pylist(self._rows, schema=DEAD_LETTER))
            report.publish(replaces=complete)
        if self.candidates:
            report = begin_report(self._file(CANDIDATES))
            write_candidates(report.file, self.candidates)
            report.publish(replaces=complete)
        counts = {
            "read": self.read, "untimed": self.untimed, "late": self.late, "latest": self.latest,
        }  # fmt: skip
        if any(counts.values()):
            report = begin_report(self._file(COUNT))
            report.file.write(json.dumps(counts).encode())
            report.publish(replaces=complete)

    def _file(self, extension: str) -> Path:
        folder = Path(self.spool.directory or "") / str(self.batch) / self.spool.recomputed_for
        return folder / f"{self.spool.node}-{self.spool.stage}-{self.partition}.{extension}"

    def _identity(
        self, payload: bytes | None, origin: str | None, position: int | None, part: int | None
    ) -> str:
        """Returns the ID of a record, equal in all attempts and queries.

        Equal rows of a batch without a position share an ID until the driver collects the rows (see
        `assign_unique_ids`).
        """
        key: list[object] = [self.spool.node, origin, position]
        if part is not None:
            key.append(part)
        if self.spool.by_query:
            key.append(self.spool.query)
        content = hashlib.sha1(payload or b"").hexdigest()
        if self.spool.by_content:
            key.append(content)
        if origin is None or position is None:
            key = [self.spool.node, self.spool.query, self.batch, content]
        return _digest(key)


def _digest(key: list[object]) -> str:
    return hashlib.sha1(json.dumps(key).encode()).hexdigest()[:20]


def conceal_messages(dead_letters: pa.Table) -> pa.Table:
    """Returns dead letters with asterisks in place of known secrets in their messages.

    The driver has the secrets, and tasks do not.
    """
    index = DEAD_LETTER.get_field_index("message")
    messages = [conceal(message) for message in dead_letters.column(index).to_pylist()]
    return dead_letters.set_column(index, DEAD_LETTER.field(index), pa.array(messages, pa.string()))


def write_dead_letters(file: IO[bytes], dead_letters: pa.Table) -> None:
    """Writes dead letters to a file."""
    with pa.ipc.new_file(file, DEAD_LETTER) as writer:
        writer.write_table(dead_letters)


def assign_unique_ids(dead_letters: pa.Table) -> pa.Table:
    """Returns the dead letters of one computation of a batch with distinct IDs for equal rows."""
    counts: Counter[str] = Counter()
    ids = []
    for identity, position in zip(
        *(dead_letters.column(n).to_pylist() for n in _IDENTITY), strict=True
    ):
        repetition = counts[identity] if position is None else 0
        counts[identity] += 1
        ids.append(_digest([identity, repetition]) if repetition else identity)
    return dead_letters.set_column(0, DEAD_LETTER.field("id"), pa.array(ids, pa.string()))
