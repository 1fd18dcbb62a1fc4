"""Kinesis source."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from penstock.connectors.aws.kinesis.client import Stream
from penstock.connectors.aws.kinesis.config import KinesisSourceConfig, KinesisStartAt
from penstock.connectors.aws.kinesis.offsets import (
    AT,
    END,
    SINCE,
    START,
    Positions,
    Shard,
    add_children,
    min_position,
)
from penstock.connectors.aws.kinesis.reader import (
    METADATA,
    Range,
    limit_range,
    read_range,
    record_batch,
)
from penstock.sdk import Capability, Offset, Permanent, Read, ReplayableSource

PARALLEL_SHARDS = 20
"""The number of shards whose ends are queried in parallel."""


class KinesisSource(ReplayableSource[KinesisSourceConfig]):
    """Reads a stream of Amazon Kinesis by sequence numbers.

    After a resharding, child shards are read after their parents, so records with the same
    partition key keep their order. The driver reads ahead of the tasks to find the end of a
    batch, so each record is read twice and counts twice against the read limit of the shard.
    Offsets are stored in the pipeline's state.

    ```yaml
    type: kinesis
    stream: clicks
    region: eu-central-1
    start: {timestamp: 2026-01-31T12:00:00Z}
    metadata: [key]
    ```
    """

    partitioned = True
    parallelism = "a shard"
    capabilities = frozenset(
        {
            Capability.REPLAY,
            Capability.LIMIT,
            Capability.ORDERED,
            Capability.TAIL,
            Capability.BYTES,
        }
    )
    extra = "aws"
    client_modules = ("boto3",)
    _client: Stream | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None}

    def metadata_schema(self) -> pa.Schema:
        return METADATA

    def check(self) -> None:
        self._stream.shards()
        self.close()

    def sample(self, max_records: int) -> pa.BinaryArray:
        payloads: list[bytes] = []
        for shard in self._stream.shards():
            for page in self._stream.pages(shard.id, START, max_records - len(payloads)):
                payloads += [record["Data"] for record in page]
                if len(payloads) >= max_records:
                    return pa.array(payloads[:max_records], pa.binary())
        return pa.array(payloads, pa.binary())

    def initial_offset(self) -> Offset:
        shards = self._stream.shards()
        start = self._start()
        positions = dict.fromkeys((shard.id for shard in shards if not shard.parents), start)
        if isinstance(self.config.start, KinesisStartAt) and self.config.start.offset is not None:
            positions |= self._start_offsets(self.config.start.offset, shards)
        return {"first": start, "shards": positions}

    def latest_offset(self, start: Offset) -> Offset:
        shards = self._stream.shards()
        positions = self._current(start, shards)
        closed_ids = {shard.id for shard in shards if shard.closed}
        closed = [shard in closed_ids for shard in positions]
        with ThreadPoolExecutor(PARALLEL_SHARDS) as pool:
            ends = pool.map(self._end, positions, positions.values(), closed)
            return {**start, "shards": dict(zip(positions, ends, strict=True))}

    def limit_batch(self, start: Offset, end: Offset) -> Offset:
        if self.config.max_records is None:
            return end
        remaining = self.config.max_records
        positions = self._current(start, self._stream.shards())
        for shard, last in end["shards"].items():
            if remaining and shard in positions:
                range_ = Range(shard, positions[shard], last)
                positions[shard], count = limit_range(self._stream, range_, remaining)
                remaining -= count
        return {**start, "shards": positions}

    def partitions(self, start: Offset, end: Offset) -> Sequence[Range]:
        positions = start["shards"]
        return [
            Range(shard, positions.get(shard, start["first"]), last)
            for shard, last in end["shards"].items()
            if last != positions.get(shard, start["first"])
        ]

    def read(self, partition: Range, read: Read) -> Iterator[pa.RecordBatch]:
        stream = Stream(self.config)
        try:
            for page in read_range(stream, partition):
                yield record_batch(self.config.stream, partition.shard, page, read.metadata)
        finally:
            stream.close()

    def min_offset(self, first: Offset, second: Offset) -> Offset:
        left, right = first["shards"], second["shards"]
        common = [id_ for id_ in left if id_ in right]
        return {**first, "shards": {id_: min_position(left[id_], right[id_]) for id_ in common}}

    def partition_offsets(self, offset: Offset) -> Positions:
        positions: Positions = offset["shards"]
        return positions

    def partition_of(self, origin: str) -> str:
        _, shard, _ = origin.rsplit("/", 2)
        return shard

    def record_metadata(self, origin: str, position: int) -> Mapping[str, Any]:
        _, shard, number = origin.rsplit("/", 2)
        return {"shard": shard, "sequence_number": number}

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    @property
    def _stream(self) -> Stream:
        if self._client is None:
            self._client = Stream(self.config)
        return self._client

    def _start(self) -> str:
        """Returns the start position of a shard without a stored position."""
        start = self.config.start
        if start == "latest":
            return f"{SINCE}{time.time():.3f}"
        if isinstance(start, KinesisStartAt) and start.time is not None:
            return f"{SINCE}{start.time.timestamp()}"
        return START

    def _start_offsets(self, offsets: Positions, shards: Sequence[Shard]) -> dict[str, str]:
        unknown = offsets.keys() - {shard.id for shard in shards}
        if unknown:
            raise Permanent(
                f'cannot start at an offset of shard "{min(unknown)}": '
                f'stream "{self.config.stream}" does not contain the shard',
                code="unknown-shard",
                hint=f"Use one of {', '.join(shard.id for shard in shards)}.",
            )
        return {shard: AT + number for shard, number in offsets.items()}

    def _current(self, start: Offset, shards: Sequence[Shard]) -> dict[str, str]:
        """Returns the positions of all shards that can be read. Raises Permanent on data loss."""
        positions: Positions = start["shards"]
        existing = {shard.id for shard in shards}
        unfinished = {id_ for id_, position in positions.items() if position != END}
        missing = unfinished - existing
        if missing:
            raise Permanent(
                f'cannot read stream "{self.config.stream}": shard {min(missing)} does not exist',
                code="data-gone",
                hint="Increase the retention of the stream. Run with --fresh to reset the state "
                "if the stream was recreated.",
            )
        return add_children(positions, shards, start["first"])

    def _end(self, shard: str, position: str, closed: bool) -> str:
        """Returns the end of a shard; `closed` if the shard was closed before."""
        if position == END:
            return END
        for page in self._stream.pages(shard, position):
            position = str(page[-1]["SequenceNumber"])
        return END if closed else position
