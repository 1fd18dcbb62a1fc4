"""Reads ranges of shards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from penstock.connectors.aws.kinesis.client import MAX_PAGE, Page, Stream
from penstock.connectors.aws.kinesis.offsets import END

METADATA = pa.schema(
    [
        ("shard", pa.string()),
        ("sequence_number", pa.string()),
        ("key", pa.string()),
        ("arrival_time", pa.timestamp("ms", tz="UTC")),
    ]
)
_FIELDS = {
    "sequence_number": "SequenceNumber",
    "key": "PartitionKey",
    "arrival_time": "ApproximateArrivalTimestamp",
}


class Range(NamedTuple):
    """The records of a shard after the position `start`, up to and including `end`."""

    shard: str
    start: str
    end: str


def read_range(stream: Stream, range_: Range, max_records: int = MAX_PAGE) -> Iterator[Page]:
    """Yields the records of a range, page by page."""
    if range_.start in (range_.end, END):
        return
    last = None if range_.end == END else int(range_.end)
    for page in stream.pages(range_.shard, range_.start, max_records):
        records = [
            record for record in page if last is None or int(record["SequenceNumber"]) <= last
        ]
        if records:
            yield records
        if last is not None and int(page[-1]["SequenceNumber"]) >= last:
            return


def limit_range(stream: Stream, range_: Range, max_records: int) -> tuple[str, int]:
    """Returns the end of at most `max_records` records of a range, and their number."""
    count, position = 0, range_.start
    for page in read_range(stream, range_, max_records):
        records = page[: max_records - count]
        count, position = count + len(records), str(records[-1]["SequenceNumber"])
        if count == max_records:
            return position, count
    return range_.end, count


def record_batch(stream: str, shard: str, page: Page, metadata: Sequence[str]) -> pa.RecordBatch:
    """Returns records as a batch of `PAYLOAD` and the requested metadata columns."""
    origin = f"{stream}/{shard}/"
    columns = [
        pa.array([record["Data"] for record in page], pa.binary()),
        pa.array([origin + record["SequenceNumber"] for record in page]),
        pa.repeat(pa.scalar(0, pa.int64()), len(page)),
    ]
    for name in metadata:
        field = _FIELDS.get(name)
        values = [shard if field is None else record[field] for record in page]
        columns.append(pa.array(values, METADATA.field(name).type))
    return pa.RecordBatch.from_arrays(columns, names=["payload", "origin", "position", *metadata])
