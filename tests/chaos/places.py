"""Where readings come from and what comes of them goes to: files or topics."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow.parquet as pq
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from readings import Unwritable

from servers.kafka import Kafka

FILES = 40
PARTITIONS = 4
WRITERS = 3
LARGEST = 1000
GROUP = "penstock.readings.readings"
TIMEOUT_SECONDS = 60.0


class Row(NamedTuple):
    """What was written: JSON, or a line of text, and the partition where it is."""

    content: Any
    partition: int = 0


class Input(Protocol):
    """Files or topics that a pipeline reads."""

    def source(self, most: int) -> str:
        """A source's options; a batch takes about `most` readings."""

    def place(self, id_: int) -> str:
        """Where a reading stands, in the words of dead letters."""

    def lane(self, id_: int) -> int:
        """The part of the input that a reading belongs to, which is read in order."""

    def put(self, readings: Sequence[bytes], first: int = 0) -> None:
        """Adds readings, of which the first has this id."""


class Output(Protocol):
    """Files, topics or both, as what comes of readings goes to."""

    unwritable: Unwritable

    def sink(self, name: str) -> str:
        """A sink's options."""

    def rows(self, name: str) -> Iterator[Row]:
        """What a sink's readers see, in order."""


class Files:
    """Files of JSON lines; what comes of them are files, too."""

    unwritable = Unwritable("two\nlines", "several-lines")

    def __init__(self, directory: Path, count: int) -> None:
        self._in, self._out = directory / "in", directory / "out"
        self._each = -(-count // FILES)

    def source(self, most: int) -> str:
        files = max(1, most // self._each)
        return _block("type: files", "path: in/*.jsonl", "order: name", f"max_files: {files}")

    def sink(self, name: str) -> str:
        form = {"shares": "json", "notes": "text", "minutes": "parquet"}[name]
        return _flow("type: files", f"path: out/{name}", f"format: {form}")

    def place(self, id_: int) -> str:
        return f"{self._file(self.lane(id_))}:{id_ % self._each + 1}"

    def lane(self, id_: int) -> int:
        return id_ // self._each

    def put(self, readings: Sequence[bytes], first: int = 0) -> None:
        assert first == 0, "files are whole"
        self._in.mkdir()
        for start in range(0, len(readings), self._each):
            lines = b"\n".join(readings[start : start + self._each])
            self._file(self.lane(start)).write_bytes(lines + b"\n")

    def rows(self, name: str) -> Iterator[Row]:
        if name == "minutes":
            return map(Row, pq.ParquetDataset(self._out / name).read().to_pylist())
        lines = (
            line
            for path in (self._out / name).glob("[!.]*")
            for line in path.read_text().splitlines()
        )
        return (Row(json.loads(line) if name == "shares" else line) for line in lines)

    def _file(self, number: int) -> Path:
        return self._in / f"{number:03}.jsonl"


class Topics:
    """A topic of JSON records with partitions in turn; what comes of them are topics, too."""

    unwritable = Unwritable("too long" * LARGEST, "too-large")

    def __init__(self, broker: Kafka, delivery: str) -> None:
        self.broker, self._delivery = broker, delivery
        broker.create_topic("readings", PARTITIONS)

    def source(self, most: int) -> str:
        return _block(*self._cluster, "topic: readings", f"max_records: {most}")

    def sink(self, name: str) -> str:
        form = ["format: text"] if name == "notes" else ["format: json", 'key: "{kind}"']
        create = f"partitions: {PARTITIONS}, config: {{max.message.bytes: {LARGEST}}}"
        return _flow(
            *self._cluster, f"topic: {name}", f"create: {{{create}}}", *form,
            f"delivery: {self._delivery}", f"concurrency: {WRITERS}",
        )  # fmt: skip

    def place(self, id_: int) -> str:
        return f"readings:{self.lane(id_)}:{id_ // PARTITIONS}"

    def lane(self, id_: int) -> int:
        return id_ % PARTITIONS

    def put(self, readings: Sequence[bytes], first: int = 0) -> None:
        """Confirmed by the broker, and each once, also when it is killed meanwhile."""
        producer = Producer({**self.broker.client(), "enable.idempotence": True, "log_level": 0})
        failed: list[KafkaError] = []

        def reported(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(error)

        for number, reading in enumerate(readings, first):
            lane = self.lane(number)
            producer.produce("readings", reading, partition=lane, on_delivery=reported)
            if number % 1000 == 999:
                producer.flush()
        assert producer.flush() == 0
        assert not failed, failed[0]

    def rows(self, name: str) -> Iterator[Row]:
        for message in self._messages(name):
            text = message.value().decode()
            yield Row(text if name == "notes" else json.loads(text), message.partition())

    def lag(self) -> int:
        """How many readings the pipeline's consumer group is behind."""
        consumer = self._consumer("read_uncommitted")
        at = consumer.committed(
            [TopicPartition("readings", n) for n in range(PARTITIONS)], TIMEOUT_SECONDS
        )
        consumer.close()
        behind = {each.partition: max(0, each.offset) for each in at}
        return sum(end - behind[number] for number, end in self._ends("readings"))

    @property
    def _cluster(self) -> tuple[str, str]:
        return "type: kafka", f'brokers: "{self.broker.address}"'

    def _messages(self, topic: str) -> Iterator[Message]:
        """The committed records of each partition, in order, up to its very end."""
        self.broker.await_visible(topic, PARTITIONS)
        consumer = self._consumer("read_committed")
        for at, end in self._ends(topic):
            consumer.assign([TopicPartition(topic, at, OFFSET_BEGINNING)])
            while (message := consumer.poll(TIMEOUT_SECONDS)) is not None:
                if message.error() is None:
                    yield message
                    continue
                here = message.offset()
                assert here == end, f"{topic} [{at}]: a transaction is open at {here} of {end}"
                break
            assert message is not None, f"nothing comes of {topic} [{at}]"
        consumer.close()

    def _ends(self, topic: str) -> list[tuple[int, int]]:
        """The high watermark of each partition."""
        consumer = self._consumer("read_uncommitted")
        numbers = range(PARTITIONS)
        ends = [
            (n, consumer.get_watermark_offsets(TopicPartition(topic, n), TIMEOUT_SECONDS)[1])
            for n in numbers
        ]
        consumer.close()
        return ends

    def _consumer(self, isolation: str) -> Consumer:
        return Consumer(
            {**self.broker.client(), "group.id": GROUP, "isolation.level": isolation,
             "enable.auto.commit": False, "enable.partition.eof": True}
        )  # fmt: skip


class Both:
    """Notes go to files, though their query writes to topics, too; all else goes to topics."""

    unwritable = Files.unwritable

    def __init__(self, files: Files, topics: Topics) -> None:
        self._files, self._topics = files, topics

    def sink(self, name: str) -> str:
        return self._of(name).sink(name)

    def rows(self, name: str) -> Iterator[Row]:
        return self._of(name).rows(name)

    def _of(self, name: str) -> Output:
        return self._files if name == "notes" else self._topics


def _block(*options: str) -> str:
    return "\n    ".join(options)


def _flow(*options: str) -> str:
    return ", ".join(options)
