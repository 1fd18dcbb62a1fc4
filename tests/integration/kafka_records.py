"""Records of Kafka topics, written and read with and without the code under test."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer

from penstock.connectors.kafka import KafkaSink, KafkaSource
from penstock.sdk import BatchId, Context, Failure, Read, registry
from servers.kafka import Kafka

LARGE = 20_000_000
Row = dict[str, Any]


def put(broker: Kafka, topic: str, *values: bytes | None, **more: Any) -> None:
    """Writes values to a topic; `properties` are of the producer, other arguments of `produce`."""
    properties = {
        "message.max.bytes": LARGE,
        "log_level": 0,
        "linger.ms": 0,
        **more.pop("properties", {}),
    }
    producer = Producer({**broker.client(), **properties})
    for value in values:
        producer.produce(topic, value, **more)
    assert producer.flush(30) == 0


def transaction(broker: Kafka, topic: str, *values: bytes, commit: bool = True) -> None:
    """Writes values to a topic in one transaction."""
    producer = Producer({**broker.client(), "transactional.id": f"tests-{topic}", "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value)
    producer.flush(30)
    producer.commit_transaction(30) if commit else producer.abort_transaction(30)
    broker.await_visible(topic)


def rows(broker: Kafka, topic: str) -> list[Row]:
    """The committed records of a topic, as JSON."""
    return [json.loads(each.value()) for each in broker.messages(topic)]


def source(broker: Kafka | str, topic: str | None = None, **options: Any) -> KafkaSource:
    """Returns a source as the planner creates it, without caching of partitions."""
    address = broker if isinstance(broker, str) else broker.address
    given = {"brokers": address, "topic": topic, "discovery_interval": "0s", **options}
    made = KafkaSource(KafkaSource.config_type.model_validate(given), Context("tests", "in"))
    made.columns = pa.schema([("id", pa.int64())])
    return made


class Reading:
    """A source driven by hand, batch by batch, as by the engine."""

    def __init__(self, source: KafkaSource, at: Mapping[str, Any] | None = None) -> None:
        self.source = source
        self.at = json.loads(json.dumps(source.initial_offset() if at is None else at))
        self.lost: list[str] = []
        self.tasks = 0

    def plan(self) -> Mapping[str, Any]:
        """The end of the next batch."""
        return dict(self.source.limit_batch(self.at, self.source.latest_offset(self.at)))

    def batch(self, end: Mapping[str, Any] | None = None) -> list[Row]:
        """Returns the records of the next batch with all metadata, in order."""
        end = json.loads(json.dumps(self.plan() if end is None else end))
        read = Read(metadata=tuple(self.source.metadata_schema().names))
        found: list[Row] = []
        tasks = self.source.partitions(self.at, end)
        for task in tasks:
            copy = pickle.loads(pickle.dumps(self.source))
            for each in copy.read(pickle.loads(pickle.dumps(task)), read):
                found += each.to_pylist()
        self.tasks = len(tasks)
        self.lost += [bad.error.message for bad in read.bad]
        self.at = end
        return sorted(found, key=lambda row: (row["topic"], row["partition"], row["offset"]))

    def values(self) -> list[bytes | None]:
        """The values of the next batch."""
        return [row["payload"] for row in self.batch()]


def sink(broker: Kafka | str, topic: str, **options: Any) -> KafkaSink:
    """Returns a sink as the planner creates it."""
    address = broker if isinstance(broker, str) else broker.address
    given = {"brokers": address, "topic": topic, **options}
    made = KafkaSink(KafkaSink.config_type.model_validate(given), Context("tests", "out"))
    form: Any = registry.find("format", "json")
    made.format = form(form.config_type())
    return made


class Writing:
    """One partition of one batch of a sink, driven by hand."""

    def __init__(
        self, sink: KafkaSink, number: int = 0, partition: int = 0, *,
        query: str = "query", client: Any = None, schema: pa.Schema | None = None,
    ) -> None:  # fmt: skip
        self.sink = sink
        self._schema = schema
        self._batch, self._partition = BatchId(query, number), partition
        self._client = client or pickle.loads(pickle.dumps(sink)).open()
        self._writer: Any = None

    def write(self, given: Sequence[Row]) -> list[Failure]:
        """Encodes and writes rows. Returns the rejected rows."""
        batch = pa.RecordBatch.from_pylist(list(given), self._schema)
        self.sink.check_schema(batch.schema)
        if self._writer is None:
            self._writer = self.sink.writer(
                self._client, self._batch, self._partition, batch.schema
            )
        assert self.sink.format is not None
        encoded = self.sink.format.encode(self.sink.encoded(batch))
        return list(self._writer.write(batch, encoded.payloads))

    def commit(self) -> None:
        """Commits, as a task that succeeds."""
        self._writer.commit()

    def abort(self) -> None:
        """Aborts, as a task that fails."""
        self._writer.abort()


def write(sink: KafkaSink, given: Sequence[Row], number: int = 0, **more: Any) -> list[Failure]:
    """Writes a batch of one partition."""
    writing = Writing(sink, number, **more)
    failures = writing.write(given)
    writing.commit()
    return failures


def numbered(first: int, last: int) -> Iterator[bytes]:
    """JSON records with the ids from `first` to before `last`."""
    return (b'{"id":%d}' % number for number in range(first, last))
