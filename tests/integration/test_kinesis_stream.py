"""The Kinesis connector: options, and resharding."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from minute_counts import MinuteCounts
from pydantic import ValidationError

from penstock.connectors.aws.kinesis import KinesisSink, KinesisSource
from penstock.connectors.aws.kinesis.config import KinesisSinkConfig, KinesisSourceConfig
from penstock.core.errors import UserError
from penstock.sdk import BatchId, Context, Permanent, Read
from servers.aws import REGION, Aws

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST = "shardId-000000000000"
HALF, HIGH = str(2**127), str(2**127 + 1)


class Made:
    """A stream of the server, by another client than Penstock's."""

    def __init__(self, aws: Aws, shards: int = 1) -> None:
        self.client = aws.connect("kinesis")
        self.name = f"made-up-{uuid.uuid4().hex[:12]}"
        self.client.create_stream(StreamName=self.name, ShardCount=shards)
        self.options = {**aws.access, "region": REGION, "stream": self.name, "timeout": "3s"}

    def put(self, *payloads: bytes, shard: str = "0") -> None:
        for each in payloads:
            self.client.put_record(
                StreamName=self.name, Data=each, PartitionKey="made-up", ExplicitHashKey=shard
            )

    def source(self, state: Path | None = None, **options: Any) -> KinesisSource:
        config = KinesisSourceConfig.model_validate({**self.options, **options})
        return KinesisSource(config, Context("flow", "in", state))

    def sink(self, **options: Any) -> KinesisSink:
        return KinesisSink(KinesisSinkConfig.model_validate({**self.options, **options}))


@pytest.fixture
def stream(aws: Aws) -> Made:
    return Made(aws)


def batch(source: KinesisSource, start: Any) -> tuple[list[dict[str, Any]], Any]:
    """The next batch with all metadata, and the position after it."""
    read = Read(metadata=tuple(source.metadata_schema().names))
    end = source.limit_batch(start, source.latest_offset(start))
    return [
        row
        for partition in source.partitions(start, end)
        for some in source.read(partition, read)
        for row in some.to_pylist()
    ], end


def payloads(rows: list[dict[str, Any]]) -> list[bytes]:
    return [row["payload"] for row in rows]


def test_metadata(stream: Made) -> None:
    stream.put(b"a")
    with closing(stream.source()) as source:
        ((row,), _) = batch(source, source.initial_offset())
    assert (row["shard"], row["key"]) == (FIRST, "made-up")
    assert row["origin"] == f"{stream.name}/{FIRST}/{row['sequence_number']}"
    assert abs((datetime.now(UTC) - row["arrival_time"]).total_seconds()) < 600


def test_starts_at_the_end(stream: Made) -> None:
    stream.put(b"before")
    with closing(stream.source(start="latest")) as source:
        start = source.initial_offset()
        stream.put(b"after")
        rows, _ = batch(source, start)
    assert payloads(rows) == [b"after"]


def test_starts_at_a_time(stream: Made) -> None:
    stream.put(b"before")
    at = datetime.now(UTC)
    stream.put(b"after")
    with closing(stream.source(start={"timestamp": at.isoformat()})) as source:
        rows, _ = batch(source, source.initial_offset())
    assert payloads(rows) == [b"after"]


def test_a_time_without_a_zone_is_utc(stream: Made) -> None:
    given = [
        stream.source(start={"timestamp": text})
        for text in ("2026-01-31T12:00", "2026-01-31T12:00:00Z")
    ]
    first, other = [source.initial_offset()["first"] for source in given]
    assert first == other == "@1769860800.0"


def test_starts_at_sequence_numbers(stream: Made) -> None:
    for payload in (b"before", b"first", b"second"):
        stream.put(payload)
    with closing(stream.source()) as source:
        rows, _ = batch(source, source.initial_offset())
    number = rows[1]["sequence_number"]
    with closing(stream.source(start={"offset": {FIRST: number}})) as source:
        rows, _ = batch(source, source.initial_offset())
    assert payloads(rows) == [b"first", b"second"]
    with pytest.raises(Permanent, match="does not contain the shard"):
        stream.source(start={"offset": {"shardId-9": number}}).initial_offset()


def test_a_partition_for_each_shard(aws: Aws) -> None:
    stream = Made(aws, shards=2)
    stream.put(b"low")
    stream.put(b"high", shard=HIGH)
    with closing(stream.source()) as source:
        start = source.initial_offset()
        assert len(source.partitions(start, source.latest_offset(start))) == 2
        rows, _ = batch(source, start)
    assert sorted(payloads(rows)) == [b"high", b"low"]


def test_children_of_a_split_shard_are_read(stream: Made) -> None:
    """The server writes no records to child shards; the test checks their positions."""
    stream.put(b"1", b"2")
    with closing(stream.source(max_records=1)) as source:
        first, at = batch(source, source.initial_offset())
        stream.client.split_shard(
            StreamName=stream.name, ShardToSplit=FIRST, NewStartingHashKey=HALF
        )
        second, at = batch(source, at)
        assert payloads(first + second) == [b"1", b"2"]
        while (end := source.limit_batch(at, source.latest_offset(at))) != at:
            assert batch(source, at) == ([], end)
            at = end
    children = ["shardId-000000000001", "shardId-000000000002"]
    assert at["shards"] == {FIRST: "end", **dict.fromkeys(children, "start")}


def test_a_recreated_stream_is_reported(stream: Made) -> None:
    with closing(stream.source()) as source:
        at = {"first": "start", "shards": {"shardId-000000000009": "7"}}
        with pytest.raises(Permanent) as caught:
            source.latest_offset(at)
    assert caught.value.code == "data-gone"


def test_a_missing_stream(stream: Made) -> None:
    with pytest.raises(Permanent) as caught:
        stream.source(stream="made-up-nowhere").check()
    assert caught.value.code == "not-found"


def test_a_stream_by_its_arn(stream: Made) -> None:
    about = stream.client.describe_stream(StreamName=stream.name)["StreamDescription"]
    stream.source(stream=about["StreamARN"]).check()


def test_the_key_selects_the_shard_and_invalid_keys_are_rejected(aws: Aws) -> None:
    stream = Made(aws, shards=2)
    rows = [{"id": n, "user": f"u{n % 2}"} for n in range(1200)]
    rows += [{"id": -1, "user": None}, {"id": -2, "user": "x" * 257}]
    failures = written(stream.sink(key="{user}"), rows, [b"%d" % r["id"] for r in rows])
    assert failures == [(1200, "invalid-key"), (1201, "invalid-key")]
    with closing(stream.source()) as source:
        found, _ = batch(source, source.initial_offset())
    for user in ("u0", "u1"):
        own = [row for row in found if row["key"] == user]
        assert [int(row["payload"]) % 2 for row in own] == [int(user[1])] * 600
        assert len({row["shard"] for row in own}) == 1


def test_without_a_key_records_are_spread(aws: Aws) -> None:
    stream = Made(aws, shards=2)
    rows = [{"id": n, "user": None} for n in range(200)]
    assert written(stream.sink(), rows, [b"%d" % n for n in range(200)]) == []
    with closing(stream.source()) as source:
        found, _ = batch(source, source.initial_offset())
    assert len(found) == 200 and len({row["shard"] for row in found}) == 2


def test_only_the_too_large_record_is_rejected(stream: Made) -> None:
    rows = [{"id": n, "user": "u"} for n in range(9)]
    large = [b"x" * (2_000_000 if n == 4 else 1_000_000) for n in range(9)]
    assert written(stream.sink(key="{user}"), rows, large) == [(4, "rejected")]
    with closing(stream.source()) as source:
        found, _ = batch(source, source.initial_offset())
    assert len(found) == 8


def test_a_key_of_an_unknown_column(stream: Made) -> None:
    with pytest.raises(UserError, match="usr"):
        stream.sink(key="{usr}").check_schema(COLUMNS)


def test_incomplete_credentials(stream: Made) -> None:
    for auth in ({"access_key": "a"}, {"secret_key": "b"}):
        with pytest.raises(ValidationError, match="access_key and secret_key"):
            stream.source(auth=auth)


COLUMNS = pa.schema([("id", pa.int64()), ("user", pa.string())])


def written(sink: KinesisSink, rows: list[dict[str, Any]], texts: list[bytes]) -> list[Any]:
    """Writes rows. Returns the index and code of each rejected row."""
    some = pa.RecordBatch.from_pylist(rows, COLUMNS)
    with closing(sink.open()) as client:
        writer = sink.writer(client, BatchId("q", 0), 0, COLUMNS)
        failures = writer.write(some, pa.array(texts, pa.binary()))
        assert writer.commit() == {"messages": len(rows) - len(failures)}
    return [(failure.index, failure.error.code) for failure in failures]


@pytest.mark.spark
def test_no_row_of_a_shard_that_is_behind_is_late(
    aws: Aws, penstock_spark: SparkSession, tmp_path: Path
) -> None:
    stream = Made(aws, shards=2)

    def write(shard: int, payloads: Sequence[bytes]) -> None:
        stream.put(*payloads, shard=("0", HIGH)[shard])

    source = {"type": "kinesis", **stream.options}
    MinuteCounts(source, write, penstock_spark, tmp_path).check_partition_behind(40, 13)
