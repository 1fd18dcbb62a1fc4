"""Dead letters on their way: the task that meets a bad record writes it to a file of the batch.

Dead letters do not travel through Spark's plan. A task writes the bad records of one node and
partition to a file, which gets its name when the task ends. A partition that is computed again
overwrites the file, so racing attempts never mix. The driver collects the files of batches that
are in Spark's commit log.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pyarrow as pa

from penstock.core.errors import RecordError
from penstock.spec.models import OnError

Stage = Literal["decode", "transform", "sink"]

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
    ]
)
"""A dead letter.

`payload` is the record as the source delivered it (stage decode) or the node's input row as JSON.
`origin` and `position` name the record in its source (stage decode). `attempt` counts from 1.
"""

SKIPPED = "skipped"
"""The extension of a file with the number of rows that a source's task left out."""

_NAMED = ("id", "position")


@dataclass(frozen=True)
class Spool:
    """Where a node's bad records go. `directory` None: nowhere, so a bad record is an error.

    Rows of one batch that are computed in two ways (see `engine.bisect`) are in other partitions
    each time; the letters of each `way` are kept apart, so that the driver can tell them as one.
    """

    pipeline: str
    query: str
    node: str
    stage: Stage
    on_error: OnError = "dead_letter"
    directory: str | None = None
    reports: bool = True
    attempt: int = 1
    way: str = ""

    def begin(self, batch: int | None, partition: int | str) -> Letters:
        """The letters of one partition of a batch."""
        return Letters(self, batch, partition)


@dataclass
class Letters:
    """Bad records of one node in one task; nothing is there before `close`.

    `skipped` counts good ones that were left out because the query does not need them.
    """

    spool: Spool
    batch: int | None
    partition: int | str
    count: int = 0
    skipped: int = 0
    _rows: list[dict[str, object]] = field(default_factory=list)

    def add(
        self,
        payload: bytes | None,
        error: RecordError,
        origin: str | None = None,
        position: int | None = None,
        part: int | None = None,
    ) -> None:
        """Keeps a bad record; `part` counts those of one position.

        Raises the error itself where the node says `on_error: fail`.
        """
        spool = self.spool
        if spool.on_error == "fail" or (spool.on_error == "dead_letter" and not spool.directory):
            at = f" ({origin}, {position})" if origin is not None else ""
            raise type(error)(
                f"{spool.node}: {error.message}{at}",
                code=error.code, detail=error.detail, hint=error.hint,
            )  # fmt: skip
        self.count += 1
        if spool.on_error == "drop" or not spool.reports:
            return
        self._rows.append(
            {
                "id": self._identity(payload, origin, position, part),
                "pipeline": spool.pipeline,
                "node": spool.node,
                "stage": spool.stage,
                "code": error.code,
                "message": error.message,
                "payload": payload,
                "origin": origin,
                "position": position,
                "attempt": spool.attempt,
                "time": int(time.time() * 1e6),
                "query": spool.query,
                "batch": self.batch,
            }
        )

    def close(self) -> None:
        """Makes the letters, and the count of skipped ones, visible to the driver."""
        if self.spool.directory is None:
            return
        if self._rows:
            with self._placed("arrow") as hidden:
                table = pa.Table.from_pylist(self._rows, schema=DEAD_LETTER)
                with (
                    pa.OSFile(str(hidden), "wb") as file,
                    pa.ipc.new_file(file, table.schema) as to,
                ):
                    to.write_table(table)
        if self.skipped:
            with self._placed(SKIPPED) as hidden:
                hidden.write_text(str(self.skipped))

    @contextmanager
    def _placed(self, extension: str) -> Iterator[Path]:
        """A file that gets its name, all at once, when it is complete."""
        folder = Path(self.spool.directory or "") / str(self.batch) / self.spool.way
        folder.mkdir(parents=True, exist_ok=True)
        final = folder / f"{self.spool.node}-{self.spool.stage}-{self.partition}.{extension}"
        hidden = final.with_name(f".{final.name}.{time.monotonic_ns()}")
        yield hidden
        hidden.rename(final)

    def _identity(
        self, payload: bytes | None, origin: str | None, position: int | None, part: int | None
    ) -> str:
        """The same for the same record, however often and by whichever query it is met.

        Equal rows of a batch that are not known by their position share it until they are
        collected (see `numbered`).
        """
        key: list[object] = [self.spool.node, origin, position]
        if part is not None:
            key.append(part)
        if origin is None or position is None:
            content = hashlib.sha1(payload or b"").hexdigest()
            key = [self.spool.node, self.spool.query, self.batch, content]
        return hashlib.sha1(json.dumps(key).encode()).hexdigest()[:20]


def numbered(letters: pa.Table) -> pa.Table:
    """The letters of one way of computing a batch, with an identity for each of equal rows."""
    seen: Counter[str] = Counter()
    ids = []
    for identity, position in zip(*(letters.column(n).to_pylist() for n in _NAMED), strict=True):
        again = seen[identity] if position is None else 0
        seen[identity] += 1
        ids.append(f"{identity}-{again}" if again else identity)
    return letters.set_column(0, DEAD_LETTER.field("id"), pa.array(ids, pa.string()))
