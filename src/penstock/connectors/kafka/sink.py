"""The sink of Kafka topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import pyarrow as pa
from pydantic import Field, field_validator, model_validator

from penstock.connectors.kafka.addressing import Addressing, is_topic
from penstock.connectors.kafka.client import Admin, examine
from penstock.connectors.kafka.connection import ConnectionConfig
from penstock.connectors.kafka.topics import Administration, Limits, missing
from penstock.connectors.kafka.transactions import INTERNAL, Line, TransactionWriter, Transactor
from penstock.connectors.kafka.writing import DELIVERY_SECONDS, KafkaWriter, Outbox
from penstock.core.errors import raise_all
from penstock.sdk import BatchId, Capability, Config, Duration, Sink, Writer
from penstock.sdk.kit.named import need_columns
from penstock.sdk.kit.template import Template

QUEUE = 64 << 20
"""How many bytes wait in a process to be sent."""
UNLIMITED = 1_000_000_000
"""The most that librdkafka allows."""


class Creation(Config):
    """A topic as it is created."""

    partitions: int = Field(default=1, ge=1)
    """How many partitions it has."""
    replication: int | None = Field(default=None, ge=1)
    """How many brokers keep each; the cluster's own default if left out."""
    config: dict[str, str | int | bool] = {}
    """The topic's own settings, such as `cleanup.policy: compact`."""


class KafkaSinkConfig(ConnectionConfig):
    topic: Template
    """The topic. `{column}` in it is replaced by the row's value: `orders-{country}`."""
    key: str | list[str] | None = None
    """The column whose value is the record's key; several are joined with colons."""
    headers: dict[str, Template] | str | None = None
    """Headers, `{source: shop, user: "{user}"}`, or the name of a column that holds them."""
    partition: str | None = None
    """A column with the number of the partition, instead of the partitioner's choice."""
    timestamp: str | None = None
    """A TIMESTAMP column with the record's time; without it, and for null, the time of writing."""
    exclude: list[str] = []
    """Columns that are not part of the value."""
    partitioner: Literal[
        "murmur2_random", "murmur2", "consistent_random", "consistent", "random",
        "fnv1a_random", "fnv1a",
    ] = "murmur2_random"  # fmt: skip
    """How a key chooses its partition; the default is that of Java's clients."""
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    """How records are compressed on their way and in the topic."""
    delivery: Literal["at_least_once", "exactly_once"] = "at_least_once"
    """`exactly_once` writes each batch in transactions, for readers of committed records."""
    writers: int = Field(default=2, ge=1)
    """How many transactions write a batch side by side, with `exactly_once`."""
    transactional_id: str | None = None
    """How the names of transactions begin; `penstock.PIPELINE.NODE` if left out."""
    transaction_timeout: Duration = 300.0
    """How long a transaction may take before the cluster gives it up."""
    create: Creation | bool = False
    """Create the topic if it is missing."""

    @field_validator("topic")
    @classmethod
    def _named(cls, topic: Template) -> Template:
        if topic.constant is not None and not is_topic(topic.constant):
            raise ValueError("not the name of a topic: letters, digits and . _ - are allowed")
        return topic

    @model_validator(mode="after")
    def _creatable(self) -> KafkaSinkConfig:
        if self.create and self.topic.constant is None:
            raise ValueError(
                f'create makes one topic, and "{self.topic}" is another for each row: '
                "such topics must be there, or be created by the brokers themselves"
            )
        return self


class KafkaSink(Sink[KafkaSinkConfig]):
    """Writes records to topics of Apache Kafka.

    `format` (json, if it is not said) makes the values; key, headers and topic come from columns.

    Records are written by an idempotent producer, or in transactions, as `delivery` says. With
    `mode: upsert` the primary key is the record's key.

    ```yaml
    type: kafka
    from: orders
    brokers: localhost:9092
    topic: orders-{country}
    key: customer
    delivery: exactly_once
    ```
    """

    acknowledges: str | None = "all replicas in sync have each record"
    variants = ("delivery: at_least_once", "delivery: exactly_once")
    capabilities = frozenset({Capability.BYTES, Capability.ORDERED, Capability.UPSERT})
    by_option = {Capability.EXACTLY_ONCE: "delivery: exactly_once"}
    extra = "kafka"
    clients = ("confluent_kafka",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self._transactional:
            self.capabilities = self.capabilities | self.by_option.keys()
            self.acknowledges = "the transaction is committed"

    def topic(self) -> str | None:
        return self.config.topic.constant

    def examine(self) -> None:
        examine(self.config)

    def check(self) -> None:
        topic = self.config.topic.constant
        administration = Administration(Admin(self.config))
        existing = administration.topics(self._doing)
        if topic is not None and topic not in existing and not self.config.create:
            raise missing(topic, existing, "create: true makes it")

    def recover(self) -> None:
        topic = self.config.topic.constant
        if topic is None or not self.config.create:
            return
        wanted = self.config.create if isinstance(self.config.create, Creation) else Creation()
        config = {name: _text(value) for name, value in wanted.config.items()}
        Administration(Admin(self.config)).create(
            topic, wanted.partitions, wanted.replication, config
        )

    def accepts(self, columns: pa.Schema) -> None:
        raise_all(
            [
                *self._addressing.mistakes(columns),
                *need_columns(self.config.exclude, columns, "exclude"),
            ]
        )
        super().accepts(columns)

    def encoded(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.drop_columns(self.config.exclude) if self.config.exclude else rows

    def division(self, columns: pa.Schema) -> tuple[int, Sequence[str]] | None:
        if not self._transactional:
            return None
        keys = self._addressing.key or tuple(f.name for f in columns if _repeatable(f.type))
        return (self.config.writers, keys) if keys else (1, ())

    def open(self) -> Producers:
        return Producers(self)

    def writer(
        self, client: Producers, batch: BatchId, partition: int, schema: pa.Schema
    ) -> Writer:
        if not self._transactional:
            return KafkaWriter(client.plain(), self._addressing)
        line = Line(f"{self._prefix}.{partition}", self.config.topic.constant or INTERNAL)
        return TransactionWriter(
            lambda renew: client.transactor(line, renew), batch, self._addressing
        )

    @property
    def _transactional(self) -> bool:
        return self.config.delivery == "exactly_once"

    @property
    def _prefix(self) -> str:
        given = self.config.transactional_id
        return given or f"penstock.{self.context.pipeline}.{self.context.node}"

    @property
    def _doing(self) -> str:
        return f'write to topic "{self.config.topic}"'

    @property
    def _addressing(self) -> Addressing:
        config = self.config
        key = (config.key,) if isinstance(config.key, str) else tuple(config.key or ())
        return Addressing(
            config.topic, key or self.primary_key, config.headers, config.partition,
            config.timestamp,
        )  # fmt: skip


class Producers:
    """The producers of one process for one sink."""

    def __init__(self, sink: KafkaSink) -> None:
        self._sink, self._config = sink, sink.config
        self._shown = f'topic "{self._config.topic}"'
        self._administration = Administration(Admin(self._config))
        self._limits: dict[str, Limits] = {}
        self._plain: Outbox | None = None
        self._transactors: dict[Line, Transactor] = {}

    def plain(self) -> Outbox:
        """The producer without transactions."""
        if self._plain is None:
            self._plain = self._outbox({})
        return self._plain

    def transactor(self, line: Line, renew: bool) -> Transactor:
        """The producer of a line's transactions."""
        known = self._transactors.get(line)
        if known is not None and (renew or known.spent):
            self._transactors.pop(line).close()
            known = None
        if known is None:
            outbox = self._outbox({"transactional.id": line.name})
            known = self._transactors[line] = Transactor(line, self._config, outbox)
        return known

    def close(self) -> None:
        """Lets go of the connections; what has not been sent yet is dropped."""
        for transactor in self._transactors.values():
            transactor.close()
        if self._plain is not None:
            self._plain.close()
        self._plain, self._transactors = None, {}

    def limits(self, topic: str) -> Limits:
        """What a topic takes."""
        if topic not in self._limits:
            given = self._config.given().get("message.max.bytes")
            found = self._administration.limits(topic)
            self._limits[topic] = found._replace(size=int(given)) if given else found
        return self._limits[topic]

    def _outbox(self, properties: dict[str, Any]) -> Outbox:
        topic, timeout = self._config.topic.constant, round(self._config.transaction_timeout * 1000)
        largest = self.limits(topic).size if topic is not None else 0
        own = {
            "enable.idempotence": True,
            "partitioner": self._config.partitioner,
            "compression.type": self._config.compression,
            "linger.ms": 20,
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": max(QUEUE, 2 * largest) >> 10,
            "message.timeout.ms": min(DELIVERY_SECONDS * 1000, timeout),
            "message.max.bytes": largest or UNLIMITED,
        }
        if properties:
            own["transaction.timeout.ms"] = timeout
        return Outbox(self._config, {**own, **properties}, self.limits, self._shown)


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _repeatable(type_: pa.DataType) -> bool:
    """Whether Spark computes a value the same again, to the last bit, and can divide rows by it.

    A sum of floating numbers depends on the order of the rows.
    """
    return not (pa.types.is_floating(type_) or pa.types.is_nested(type_))
