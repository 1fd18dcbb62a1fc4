"""The SQS connector: options, and rejected messages."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from receiving_here import ReceivingHere

from penstock.connectors.aws.sqs import SqsSink, SqsSource
from penstock.connectors.aws.sqs.config import SqsSinkConfig, SqsSourceConfig
from penstock.core.errors import UserError, flatten_errors
from penstock.sdk import BatchId, Capability, Context, Permanent, Read
from servers.aws import REGION, Aws

COLUMNS = pa.schema([("id", pa.int64()), ("room", pa.string())])
SECONDS = 30


class Made:
    """A queue of the server, by another client than Penstock's."""

    def __init__(self, aws: Aws, directory: Path, **attributes: str) -> None:
        self.client = aws.connect("sqs")
        fifo = ".fifo" if "FifoQueue" in attributes else ""
        self.name = f"made-up-{uuid.uuid4().hex[:12]}{fifo}"
        made = self.client.create_queue(QueueName=self.name, Attributes=attributes)
        self.url = made["QueueUrl"]
        self.options = {**aws.access, "region": REGION, "queue": self.name, "timeout": "3s"}
        self._directory = directory

    def send(self, body: str, **more: Any) -> None:
        self.client.send_message(QueueUrl=self.url, MessageBody=body, **more)

    def taken(self) -> list[dict[str, Any]]:
        """Receives and deletes all visible messages."""
        found: list[dict[str, Any]] = []
        while some := self.client.receive_message(
            QueueUrl=self.url, MaxNumberOfMessages=10,
            MessageSystemAttributeNames=["All"], MessageAttributeNames=["All"],
        ).get("Messages"):  # fmt: skip
            found += some
            for each in some:
                self.client.delete_message(QueueUrl=self.url, ReceiptHandle=each["ReceiptHandle"])
        return found

    def counts(self) -> tuple[int, int]:
        """Returns the number of visible and of hidden messages."""
        about = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=["All"])
        return tuple(  # type: ignore[return-value]
            int(about["Attributes"][f"ApproximateNumberOfMessages{each}"])
            for each in ("", "NotVisible")
        )

    def source(self, **options: Any) -> SqsSource:
        given = {**self.options, "wait": "1s", "concurrency": 1, **options}
        config = SqsSourceConfig.model_validate(given)
        return SqsSource(config, Context("flow", "in", self._directory / "state"))

    def sink(self, **options: Any) -> SqsSink:
        return SqsSink(SqsSinkConfig.model_validate({**self.options, **options}))


@pytest.fixture
def make(aws: Aws, tmp_path: Path) -> Callable[..., Made]:
    return lambda **attributes: Made(aws, tmp_path, **attributes)


@pytest.fixture
def queue(make: Any) -> Made:
    made: Made = make()
    return made


@pytest.fixture
def fifo(make: Any) -> Made:
    made: Made = make(FifoQueue="true")
    return made


def received(source: SqsSource, count: int) -> list[dict[str, Any]]:
    """So many messages, with all metadata."""
    with closing(ReceivingHere(source)) as receiving:
        receiving.await_end(count)
    read, start = Read(metadata=tuple(source.metadata_schema().names)), source.initial_offset()
    return [
        row
        for partition in source.partitions(start, source.latest_offset(start))
        for some in source.read(partition, read)
        for row in some.to_pylist()
    ]


def test_metadata(queue: Made) -> None:
    queue.send("made up", MessageAttributes={
        "kind": {"DataType": "String", "StringValue": "k"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    })  # fmt: skip
    (row,) = received(queue.source(), 1)
    assert row["payload"] == b"made up" and row["receive_count"] == 1 and row["message_id"]
    assert row["headers"] == [("kind", "k")] and row["binary_headers"] == [("raw", b"\0\xff")]
    assert row["message_group"] is None and abs(row["received"] - row["sent"]).total_seconds() < 600


def test_metadata_and_order_of_a_fifo_queue(fifo: Made) -> None:
    for number in range(25):
        fifo.send(str(number), MessageGroupId="g", MessageDeduplicationId=f"d{number}")
    rows = received(fifo.source(), 25)
    assert [row["payload"] for row in rows] == [b"%d" % number for number in range(25)]
    assert (rows[3]["message_group"], rows[3]["deduplication_id"]) == ("g", "d3")
    assert (
        rows[3]["sequence_number"].isdecimal()
        and rows[3]["sequence_number"] != rows[4]["sequence_number"]
    )


def test_only_fifo_queues_are_ordered(queue: Made, fifo: Made) -> None:
    assert Capability.ORDERED in fifo.source().capabilities
    assert Capability.ORDERED not in queue.source().capabilities


def test_messages_are_deleted_once_they_are_on_disk(queue: Made) -> None:
    for number in range(25):
        queue.send(str(number))
    with closing(ReceivingHere(queue.source(concurrency=3))) as receiving:
        receiving.await_end(25)
        until = time.monotonic() + SECONDS
        while queue.counts() != (0, 0):
            assert time.monotonic() < until, queue.counts()
            time.sleep(0.05)


def test_while_the_journal_is_full_messages_stay_hidden(queue: Made) -> None:
    source = queue.source(visibility_timeout="2s", journal={"max_size": 1 << 20})
    for number in range(40):
        queue.send(str(number) + "x" * 100_000)
    with closing(ReceivingHere(source)) as receiving:
        receiving.await_end(10)
        until = time.monotonic() + SECONDS
        seen: list[int] = []
        while len(seen) < 100 or {*seen[-100:]} != {receiving.journal.end()}:
            assert time.monotonic() < until
            seen.append(receiving.journal.end())
            time.sleep(0.05)
        assert queue.counts() == (40 - seen[-1] - 10, 10)


def test_an_unacknowledged_message_is_redelivered(queue: Made) -> None:
    queue.send("once more")
    hidden = queue.client.receive_message(QueueUrl=queue.url, VisibilityTimeout=2)
    assert hidden["Messages"]
    (row,) = received(queue.source(), 1)
    assert row["receive_count"] == 2


def test_a_queue_by_its_url(queue: Made) -> None:
    queue.source(queue=queue.url).check()


def test_a_missing_queue(queue: Made) -> None:
    with pytest.raises(Permanent) as caught:
        queue.sink(queue="made-up-nowhere").check()
    assert caught.value.code == "not-found"


def written(sink: SqsSink, rows: list[tuple[int | None, str | None]], *texts: bytes) -> list[Any]:
    """Writes rows. Returns the index and code of each rejected row."""
    some = pa.RecordBatch.from_pylist([{"id": id_, "room": room} for id_, room in rows], COLUMNS)
    payloads = pa.array(texts or [str(id_).encode() for id_, _ in rows], pa.binary())
    with closing(sink.open()) as client:
        writer = sink.writer(client, BatchId("q", 0), 0, COLUMNS)
        failures = writer.write(some, payloads)
        assert writer.commit() == {"messages": len(rows) - len(failures)}
    return [(failure.index, failure.error.code) for failure in failures]


def test_groups_and_deduplication_ids(fifo: Made) -> None:
    sink = fifo.sink(message_group="{room}", deduplication_id="{id}")
    assert written(sink, [(1, "a"), (2, "b"), (1, "a"), (3, None), (None, "a")]) == [
        (3, "no-value"), (4, "no-value"),
    ]  # fmt: skip
    found = {each["Body"]: each["Attributes"] for each in fifo.taken()}
    assert {body: about["MessageGroupId"] for body, about in found.items()} == {"1": "a", "2": "b"}
    assert found["2"]["MessageDeduplicationId"] == "2"


def test_headers(queue: Made) -> None:
    assert written(queue.sink(headers={"room": "r-{room}"}), [(1, "a"), (2, None)]) == []
    found = {each["Body"]: each.get("MessageAttributes") for each in queue.taken()}
    assert found["1"]["room"]["StringValue"] == "r-a" and not found["2"]


def test_a_delay(queue: Made) -> None:
    assert written(queue.sink(delay="15m"), [(1, "a")]) == []
    assert queue.taken() == []


def test_more_than_one_request_takes(queue: Made) -> None:
    texts = [b"%02d" % number + b"x" * 200_000 for number in range(12)]
    assert written(queue.sink(), [(n, "a") for n in range(12)], *texts) == []
    assert sorted(each["Body"][:2] for each in queue.taken()) == [f"{n:02d}" for n in range(12)]


def test_invalid_messages_are_rejected_individually(queue: Made) -> None:
    texts = [b"good", b"x" * (2 << 20), b"\xff", b"", b"fine"]
    failures = written(queue.sink(), [(n, "a") for n in range(5)], *texts)
    assert failures == [(1, "rejected"), (2, "not-utf8"), (3, "no-value")]
    assert sorted(each["Body"] for each in queue.taken()) == ["fine", "good"]


def test_unknown_columns(fifo: Made) -> None:
    sink = fifo.sink(message_group="{g}", deduplication_id="{d}", headers={"x": "{a}"})
    with pytest.raises(UserError) as caught:
        sink.check_schema(COLUMNS)
    assert len(flatten_errors(caught.value)) == 3


def test_the_region_selects_the_queues(queue: Made) -> None:
    with pytest.raises(Permanent) as caught:
        queue.source(region="us-west-2").check()
    assert caught.value.code == "not-found"
