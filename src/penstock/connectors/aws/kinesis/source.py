"""The source of Kinesis streams."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import pyarrow as pa
from pydantic import Field

from penstock.connectors.aws.kinesis.position import END, SINCE, START, Places, earlier, grown
from penstock.connectors.aws.kinesis.stream import MOST, Records, Shard, Stream, StreamConfig
from penstock.sdk import Capability, Offset, Permanent, Read, ReplayableSource

AT_ONCE = 20
"""How many shards are asked at once where their ends are."""
_METADATA = pa.schema(
    [
        ("shard", pa.string()),
        ("sequence", pa.string()),
        ("partition_key", pa.string()),
        ("arrived", pa.timestamp("ms", tz="UTC")),
    ]
)


class KinesisSourceConfig(StreamConfig):
    start: Literal["earliest", "latest"] | datetime = "earliest"
    """Where the first run begins; later ones resume. A time without a zone is UTC."""
    max_records: int | None = Field(default=None, ge=1)
    """The most records in a batch."""


class Span(NamedTuple):
    """Records of a shard: those after one place, up to and with another."""

    shard: str
    after: str
    last: str


class KinesisSource(ReplayableSource[KinesisSourceConfig]):
    """Reads a stream of Amazon Kinesis, by sequence numbers.

    The shards that come of a resharding are read after those that they came from, so the records
    of a partition key keep their order. The driver reads ahead of the tasks to learn where a
    batch ends, so each record leaves the stream twice; it counts against the shard's limit. A
    record's position is kept in the pipeline's state.

    ```yaml
    type: kinesis
    stream: clicks
    region: eu-central-1
    start: 2026-01-31T12:00:00Z
    metadata: [partition_key]
    ```
    """

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
    clients = ("boto3",)
    _kept: Stream | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": None}

    def metadata(self) -> pa.Schema:
        return _METADATA

    def check(self) -> None:
        self._stream.shards()
        self.close()

    def sample(self, most: int) -> pa.BinaryArray:
        found: list[bytes] = []
        for shard in self._stream.shards():
            for page in self._stream.pages(shard.id, START, most - len(found)):
                found += [each["Data"] for each in page]
                if len(found) >= most:
                    return pa.array(found[:most], pa.binary())
        return pa.array(found, pa.binary())

    def initial(self) -> Offset:
        first = self._first()
        roots = [each.id for each in self._stream.shards() if not each.parents]
        return {"first": first, "shards": dict.fromkeys(roots, first)}

    def latest(self, start: Offset) -> Offset:
        shards = self._stream.shards()
        places = self._grown(start, shards)
        ended = {each.id for each in shards if each.closed}
        closed = [each in ended for each in places]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            ends = pool.map(self._end, places, places.values(), closed)
            return {**start, "shards": dict(zip(places, ends, strict=True))}

    def advance(self, start: Offset, end: Offset) -> Offset:
        if self.config.max_records is None:
            return end
        left, found = self.config.max_records, self._grown(start, self._stream.shards())
        for shard, last in end["shards"].items():
            if left and shard in found:
                found[shard], count = self._limited(Span(shard, found[shard], last), left)
                left -= count
        return {**start, "shards": found}

    def partitions(self, start: Offset, end: Offset) -> Sequence[Span]:
        places = start["shards"]
        return [
            Span(shard, places.get(shard, start["first"]), last)
            for shard, last in end["shards"].items()
            if last != places.get(shard, start["first"])
        ]

    def read(self, partition: Span, read: Read) -> Iterator[pa.RecordBatch]:
        stream = Stream(self.config)
        try:
            for some in _records(stream, partition):
                yield self._batch(partition.shard, some, read.metadata)
        finally:
            stream.close()

    def earlier(self, one: Offset, other: Offset) -> Offset:
        ours, theirs = one["shards"], other["shards"]
        both = {id_: earlier(ours[id_], theirs[id_]) for id_ in ours if id_ in theirs}
        return {**one, "shards": both}

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    @property
    def _stream(self) -> Stream:
        if self._kept is None:
            self._kept = Stream(self.config)
        return self._kept

    def _first(self) -> str:
        """The place in every shard from which it is read."""
        start = self.config.start
        if start == "earliest":
            return START
        if isinstance(start, datetime):
            return f"{SINCE}{(start if start.tzinfo else start.replace(tzinfo=UTC)).timestamp()}"
        return f"{SINCE}{time.time():.3f}"

    def _grown(self, start: Offset, shards: Sequence[Shard]) -> dict[str, str]:
        """The places of all shards that can be read now."""
        places: Places = start["shards"]
        gone = {id_ for id_, at in places.items() if at != END} - {each.id for each in shards}
        if gone:
            raise Permanent(
                f'cannot read the stream "{self.config.stream}": its shard {min(gone)} is gone',
                code="data-gone",
                hint="the stream keeps too little, or was made again; --fresh starts over",
            )
        return grown(places, shards, start["first"])

    def _end(self, shard: str, place: str, closed: bool) -> str:
        """Where a shard ends now; `closed` if it was so before."""
        if place == END:
            return END
        for some in self._stream.pages(shard, place):
            place = str(some[-1]["SequenceNumber"])
        return END if closed else place

    def _limited(self, span: Span, most: int) -> tuple[str, int]:
        """The end of at most so many records, and how many there are."""
        count, place = 0, span.after
        for some in _records(self._stream, span, most):
            taken = some[: most - count]
            count, place = count + len(taken), str(taken[-1]["SequenceNumber"])
            if count == most:
                return place, count
        return span.last, count

    def _batch(self, shard: str, some: Records, metadata: Sequence[str]) -> pa.RecordBatch:
        told = {
            "shard": [shard] * len(some),
            "sequence": [each["SequenceNumber"] for each in some],
            "partition_key": [each["PartitionKey"] for each in some],
            "arrived": [each["ApproximateArrivalTimestamp"] for each in some],
        }
        origin = f"{self.config.stream}/{shard}/"
        columns = [
            pa.array([each["Data"] for each in some], pa.binary()),
            pa.array([origin + each["SequenceNumber"] for each in some]),
            pa.repeat(pa.scalar(0, pa.int64()), len(some)),
            *(pa.array(told[name], _METADATA.field(name).type) for name in metadata),
        ]
        names = ["payload", "origin", "position", *metadata]
        return pa.RecordBatch.from_arrays(columns, names=names)


def _records(stream: Stream, span: Span, most: int = MOST) -> Iterator[Records]:
    """The records of a range, page by page."""
    if span.after in (span.last, END):
        return
    last = None if span.last == END else int(span.last)
    for page in stream.pages(span.shard, span.after, most):
        found = [each for each in page if last is None or int(each["SequenceNumber"]) <= last]
        if found:
            yield found
        if last is not None and int(page[-1]["SequenceNumber"]) >= last:
            return
