"""Records on their way to a stream."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.aws.kinesis.stream import Stream
from penstock.sdk import Failure, Permanent, Receipt, Rejected, Transient, Writer

if TYPE_CHECKING:
    from penstock.connectors.aws.kinesis.sink import KinesisSinkConfig

MOST, MOST_BYTES = 500, 5 << 20
"""The most records of one request, and their bytes."""
LONGEST_KEY = 256
PAUSE, LONGEST_PAUSE = 0.1, 5.0

Entry = dict[str, Any]
Numbered = tuple[int, Entry]


class KinesisWriter(Writer):
    """Puts the rows that it is given before it takes more."""

    def __init__(self, stream: Stream, config: KinesisSinkConfig) -> None:
        self._stream, self._config = stream, config
        self._count = 0

    def write(
        self, rows: pa.RecordBatch, payloads: pa.BinaryArray | None = None
    ) -> Sequence[Failure]:
        assert payloads is not None
        refused: dict[int, Rejected] = {}
        entries: list[Numbered] = []
        for at, (payload, key) in enumerate(
            zip(payloads.to_pylist(), self._keys(rows), strict=True)
        ):
            if not key or len(key) > LONGEST_KEY:
                why = f"a partition key has 1 to {LONGEST_KEY} characters"
                refused[at] = Rejected(why, code="partition-key")
            else:
                entries.append((at, {"Data": payload or b"", "PartitionKey": key}))
        for some in _requests(entries):
            refused |= self._send(some)
        self._count += rows.num_rows - len(refused)
        return [Failure(at, refused[at]) for at in sorted(refused)]

    def commit(self) -> Receipt:
        return {"records": self._count}

    def _keys(self, rows: pa.RecordBatch) -> Sequence[str | None]:
        if self._config.partition_key is None:
            return [uuid.uuid4().hex for _ in range(rows.num_rows)]
        return self._config.partition_key.fill(rows)

    def _send(self, entries: Sequence[Numbered]) -> dict[int, Rejected]:
        """Returns when each was taken or refused; those refused by their numbers."""
        until, pause = time.monotonic() + self._config.retry, PAUSE
        while True:
            try:
                answer = self._stream.call("put_records", Records=[each for _, each in entries])
            except Permanent as error:
                if error.code != "refused":
                    raise
                if len(entries) == 1:
                    why = f"the stream refuses it: {error.message}"
                    return {entries[0][0]: Rejected(why, code="refused")}
                half = len(entries) // 2
                return {**self._send(entries[:half]), **self._send(entries[half:])}
            said = zip(entries, answer["Records"], strict=True)
            failed = [(entry, each) for entry, each in said if each.get("ErrorCode")]
            entries = [entry for entry, _ in failed]
            if not entries:
                return {}
            if time.monotonic() > until:
                raise Transient(
                    f"the stream could not take {len(entries)} of the records: "
                    f"{failed[0][1].get('ErrorMessage')}",
                    code="busy", hint="has it enough shards? retry says how long to try",
                )  # fmt: skip
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def _requests(entries: Sequence[Numbered]) -> Iterator[Sequence[Numbered]]:
    """The records in requests that are not too large."""
    some: list[Numbered] = []
    size = 0
    for each in entries:
        own = len(each[1]["Data"]) + len(each[1]["PartitionKey"].encode())
        if some and (len(some) == MOST or size + own > MOST_BYTES):
            yield some
            some, size = [], 0
        some.append(each)
        size += own
    if some:
        yield some
