"""A real Apache Kafka of one node.

Three fixtures, from the cheapest to the dearest:

* `kafka` is the broker of the whole test run, for tests that do it no harm. Each makes topics of
  its own: `topic = kafka.create_topic(partitions=4)`.
* `breakable_kafka` is another one, for tests that stop, kill and pause their broker. Each gets it
  running. It creates no topic that is only written to.
* `own_kafka` starts a new one: `broker = own_kafka(properties={...})`.

The first two have a listener of each protocol: `kafka.over("sasl_ssl")`. Outside of pytest:
`with Kafka() as broker: ...`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec

from servers import kafka_files
from servers.certificates import Authority
from servers.install import installed
from servers.kafka_files import VERSION, format_data, java
from servers.kafka_security import Listener, Protocol
from servers.kafka_security import properties as secured_properties
from servers.server import Server, free_port

_KNOWN_IN = 30.0
_VISIBLE_IN = 60.0


class Kafka(Server):
    """A broker at `address`, with transactions, for messages of up to 32 MB.

    With `secured` it also listens `over` the other protocols; `heavy` gives it the memory and the
    compiler for measuring; `properties` are the broker's own; `home` is where its jars are.
    """

    name = "kafka"
    title = f"Apache Kafka {VERSION}"

    def __init__(
        self,
        port: int | None = None,
        *,
        secured: bool = False,
        heavy: bool = False,
        properties: Mapping[str, Any] | None = None,
        home: Path | None = None,
    ) -> None:
        home = home or installed(kafka_files.NAME, _install)
        super().__init__(port)
        self.authority = Authority(self.directory.path)
        protocols = get_args(Protocol) if secured else ()
        self._listeners = {each: Listener(self, each, free_port()) for each in protocols}
        self._home = home
        self._heavy = heavy
        self._controller = free_port()
        self._extra = properties or {}
        self._admin: AdminClient | None = None

    @property
    def address(self) -> str:
        """Host and port, as in `bootstrap.servers`."""
        return f"127.0.0.1:{self.port}"

    def client(self) -> dict[str, Any]:
        """The properties of librdkafka that let a client in."""
        return {"bootstrap.servers": self.address}

    def over(self, protocol: Protocol) -> Listener:
        """The broker as clients of another protocol see it."""
        return self._listeners[protocol]

    def command(self) -> Sequence[str]:
        """Formats the data directory at the first start."""
        properties = self.directory.path / "server.properties"
        if not self._data.exists():
            properties.write_text("".join(f"{k}={v}\n" for k, v in self._properties().items()))
            format_data(self._home, properties, self._data)
        return [*java(self._home, self._heavy, learns=True), "kafka.Kafka", str(properties)]

    def ready(self) -> None:
        """Asks for the topics."""
        self.admin.list_topics(timeout=5)

    @property
    def admin(self) -> AdminClient:
        """confluent-kafka's client for all that has no method here."""
        if self._admin is None:
            self._admin = AdminClient(
                {
                    "bootstrap.servers": self.address,
                    "reconnect.backoff.max.ms": 200,
                    "log_level": 0,
                }
            )
        return self._admin

    def create_topic(self, name: str | None = None, partitions: int = 1, **configs: Any) -> str:
        """Makes a topic, with `cleanup_policy="compact"` as cleanup.policy; returns its name.

        The broker knows the topic then.
        """
        name = name or f"topic-{uuid.uuid4().hex[:12]}"
        config = {key.replace("_", "."): str(value) for key, value in configs.items()}
        try:
            _done(self.admin.create_topics([NewTopic(name, partitions, config=config)]))
        except KafkaException as error:
            if error.args[0].code() != KafkaError._TIMED_OUT:
                raise
            _done(self.admin.create_topics([NewTopic(name, partitions, config=config)]))
        until = time.monotonic() + _KNOWN_IN
        while name not in self.admin.list_topics(timeout=60).topics:
            assert time.monotonic() < until, f"{name} does not appear"
            time.sleep(0.02)
        return name

    def delete_topic(self, name: str) -> None:
        """Deletes a topic with its records."""
        _done(self.admin.delete_topics([name]))

    def add_partitions(self, name: str, total: int) -> None:
        """Gives a topic partitions until it has `total`, and is known to have them."""
        _done(self.admin.create_partitions([NewPartitions(name, total)]))
        until = time.monotonic() + _KNOWN_IN
        while len(self.admin.list_topics(name, timeout=60).topics[name].partitions) < total:
            assert time.monotonic() < until, f"{name} does not get its partitions"
            time.sleep(0.05)

    def delete_records(self, name: str, before: dict[int, int]) -> None:
        """Truncates partitions: what comes before the offset is gone."""
        offsets = [TopicPartition(name, partition, at) for partition, at in before.items()]
        _done(self.admin.delete_records(offsets))

    def messages(self, topic: str, **properties: Any) -> list[Message]:
        """What a reader of committed records sees, partition by partition, in order."""
        consumer = Consumer(
            {**self.client(), "log_level": 0, "group.id": "looks",
             "isolation.level": "read_committed", "enable.partition.eof": True,
             "enable.auto.commit": False, **properties}
        )  # fmt: skip
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
        found: list[Message] = []
        ends = 0
        while ends < len(partitions):
            message = consumer.poll(30)
            assert message is not None, f"nothing comes of {topic}"
            if message.error() is None:
                found.append(message)
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                ends += 1
        consumer.close()
        return sorted(found, key=lambda each: (each.partition() or 0, each.offset() or 0))

    def end(self, topic: str, isolation: IsolationLevel, partition: int = 0) -> int:
        """Where a partition ends for such a reader."""
        at = TopicPartition(topic, partition)
        asked = self.admin.list_offsets({at: OffsetSpec.latest()}, isolation_level=isolation)
        return int(asked[at].result(30).offset)

    def await_visible(self, topic: str, partitions: int = 1) -> None:
        """Returns when no transaction of a topic's partitions is open."""
        until = time.monotonic() + _VISIBLE_IN
        for number in range(partitions):
            while len({self.end(topic, each, number) for each in IsolationLevel}) > 1:
                assert time.monotonic() < until, f"{topic} [{number}]: a transaction is open"
                time.sleep(0.02)

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """The offsets of a consumer group, by partition."""
        consumer = Consumer({**self.client(), "group.id": group})
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        found = consumer.committed([TopicPartition(topic, each) for each in partitions], 30)
        consumer.close()
        return {each.partition: each.offset for each in found}

    @property
    def _data(self) -> Path:
        return self.directory.path / "data"

    def _properties(self) -> dict[str, Any]:
        secured = {name.upper(): listener.port for name, listener in self._listeners.items()}
        listeners = {"PLAINTEXT": self.port, **secured}
        advertised = [f"{name}://127.0.0.1:{port}" for name, port in listeners.items()]
        controller = f"127.0.0.1:{self._controller}"
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{controller}",
            "listeners": ",".join([*advertised, f"CONTROLLER://{controller}"]),
            "advertised.listeners": ",".join(advertised),
            "listener.security.protocol.map": ",".join(f"{n}:{n}" for n in listeners)
            + ",CONTROLLER:PLAINTEXT",
            "log.dirs": self._data,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 4,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "metadata.max.idle.interval.ms": 0,
            "broker.heartbeat.interval.ms": 500,
            "broker.session.timeout.ms": 3_000,
            "group.initial.rebalance.delay.ms": 0,
            "message.max.bytes": 32 << 20,
            "replica.fetch.max.bytes": 32 << 20,
            "transaction.max.timeout.ms": 900_000,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
            "log.cleaner.backoff.ms": 100,
            **(secured_properties(self.authority) if secured else {}),
            **self._extra,
        }


def _install(home: Path) -> None:
    kafka_files.fetch(home)
    with Kafka(home=home) as broker:
        broker.stop()
    kafka_files.classes(home).touch()


def _done(futures: dict[Any, Any]) -> None:
    """Waits longer than the request timeout of a client, which repeats a request that got lost."""
    for future in futures.values():
        future.result(90)


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """One broker for all tests that do not harm it; each makes topics of its own."""
    with Kafka(secured=True) as broker:
        yield broker


@pytest.fixture(scope="session")
def breakable_kafka_server() -> Iterator[Kafka]:
    """The broker of `breakable_kafka`."""
    with Kafka(secured=True, properties={"auto.create.topics.enable": "false"}) as broker:
        yield broker


@pytest.fixture
def breakable_kafka(breakable_kafka_server: Kafka) -> Iterator[Kafka]:
    """A running broker that the test may stop, kill and pause, and that others share."""
    breakable_kafka_server.restore()
    yield breakable_kafka_server
    print(breakable_kafka_server.last_words())


@pytest.fixture
def own_kafka() -> Iterator[Callable[..., Kafka]]:
    """Starts brokers that are new: `broker = own_kafka()`."""
    started: list[Kafka] = []

    def start(**options: Any) -> Kafka:
        started.append(Kafka(**options).__enter__())
        return started[-1]

    yield start
    for broker in started:
        print(broker.last_words())
        broker.close()


def count_clients() -> int:
    """Returns the number of clients in this process, by their threads; 0 without Linux."""
    count = 0
    for thread in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):
            count += thread.read_text().startswith("rdk:main")
    return count
