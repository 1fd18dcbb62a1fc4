"""Kafka sink."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.kafka.access import check_creation, check_operation
from penstock.connectors.kafka.administration import TopicLimits, await_limits, create_topic
from penstock.connectors.kafka.client import Admin, check_properties
from penstock.connectors.kafka.config import KafkaSinkConfig
from penstock.connectors.kafka.errors import unknown_topic
from penstock.connectors.kafka.records import RecordMapping
from penstock.connectors.kafka.transactions import (
    INTERNAL_TOPIC,
    TransactionalId,
    TransactionalProducer,
    TransactionWriter,
    read_marker,
)
from penstock.connectors.kafka.writer import DELIVERY_TIMEOUT, KafkaWriter, RecordProducer
from penstock.core.errors import raise_all
from penstock.sdk import BatchId, Capability, Sink, Writer
from penstock.sdk.columns.checks import check_columns, check_primary_key

QUEUE_SIZE = 64 << 20
"""The bytes of undelivered records of a producer."""
MAX_MESSAGE_SIZE = 1_000_000_000
"""The largest `message.max.bytes` of librdkafka."""


class KafkaSink(Sink[KafkaSinkConfig]):
    """Writes records to topics of Apache Kafka.

    `format` (by default json) encodes the values of records. The key, headers, partition,
    timestamp and topic come from columns.

    Records are written by an idempotent producer, or in transactions with
    `delivery: exactly_once`. With `mode: upsert` the primary key is the key of the record, and a
    delete is a record without a value (a tombstone), which removes the key from a compacted topic.

    ```yaml
    type: kafka
    from: orders
    brokers: localhost:9092
    topic: orders-{country}
    key: "{customer}"
    delivery: exactly_once
    ```
    """

    acknowledges: str | None = "all replicas in sync have each record"
    variants = ("delivery: at_least_once", "delivery: exactly_once")
    capabilities = frozenset(
        {Capability.BYTES, Capability.ORDERED, Capability.UPSERT, Capability.DELETE}
    )
    optional_capabilities = {Capability.EXACTLY_ONCE: "delivery: exactly_once"}
    extra = "kafka"
    client_modules = ("confluent_kafka",)
    uses_primary_key = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self._transactional:
            self.capabilities = self.capabilities | self.optional_capabilities.keys()
            self.acknowledges = "the transaction is committed"

    def topic(self) -> str | None:
        return self.config.topic.constant

    def validate(self) -> None:
        check_properties(self.config)

    def check(self) -> None:
        topic = self.config.topic.constant
        existing = Admin(self.config).topics(f'write to topic "{self.config.topic}"')
        if topic is not None and topic not in existing and not self.config.create:
            raise unknown_topic(topic, existing, "Set create: true to create the topic.")

    def check_access(self) -> bool:
        self.check()
        topic, admin = self.config.topic.constant, Admin(self.config)
        if topic is None or topic not in admin.topics(f'write to topic "{topic}"'):
            return False
        return check_operation(admin, [topic], "WRITE")

    def check_creation(self) -> bool:
        topic = self.config.topic.constant
        return topic is not None and check_creation(Admin(self.config), topic)

    def recover(self) -> None:
        topic = self.config.topic.constant
        if topic is not None and self.config.create:
            create_topic(Admin(self.config), topic, self.config.create)

    def check_schema(self, columns: pa.Schema) -> None:
        column_errors = check_columns(self.config.exclude_columns, columns, "exclude_columns")
        raise_all([*self.mapping.check(columns), *column_errors])
        super().check_schema(columns)
        if self.mode == "upsert":
            option = "key" if self.config.key is not None else "key_columns"
            used = self.mapping.key_columns(columns)
            raise_all(check_primary_key(self.primary_key, used, option))

    def encoded(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        excluded = self.config.exclude_columns
        return rows.drop_columns(excluded) if excluded else rows

    def partitioning(self, columns: pa.Schema) -> tuple[int, Sequence[str]] | None:
        if not self._transactional:
            return None
        keys = self.mapping.key_columns(columns)
        keys = keys or tuple(field.name for field in columns if _is_deterministic(field.type))
        return (self.config.concurrency, keys) if keys else (1, ())

    def open(self) -> Producers:
        return Producers(self.config)

    def writer(
        self, client: Producers, batch: BatchId, partition: int, schema: pa.Schema
    ) -> Writer:
        if not self._transactional:
            return KafkaWriter(client.idempotent(), self.mapping)
        id_ = self._transactional_id(partition)
        return TransactionWriter(
            lambda renew: client.transactional(id_, renew), batch, self.mapping
        )

    def last_batch(self, query: str) -> BatchId | None:
        if not self._transactional:
            return None
        ids = map(self._transactional_id, range(self.config.concurrency))
        markers = [read_marker(id_, query, self.config) for id_ in ids]
        batches = [batch for batch in markers if batch is not None]
        return max(batches, key=lambda batch: (batch.number, batch.content), default=None)

    def _transactional_id(self, partition: int) -> TransactionalId:
        prefix = self.config.transactional_id
        prefix = prefix or f"penstock.{self.context.pipeline}.{self.context.node}"
        return TransactionalId(
            f"{prefix}.{partition}", self.config.topic.constant or INTERNAL_TOPIC
        )

    @property
    def _transactional(self) -> bool:
        return self.config.delivery == "exactly_once"

    @property
    def mapping(self) -> RecordMapping:
        """The mapping of rows to records."""
        return RecordMapping(self.config, self.primary_key, upserts=self.mode == "upsert")


class Producers:
    """The producers of a process for one sink."""

    def __init__(self, config: KafkaSinkConfig) -> None:
        self._config = config
        self._admin = Admin(config)
        self._limits: dict[str, TopicLimits] = {}
        self._idempotent: RecordProducer | None = None
        self._transactional: dict[TransactionalId, TransactionalProducer] = {}

    def idempotent(self) -> RecordProducer:
        """Returns the producer without transactions."""
        if self._idempotent is None:
            self._idempotent = self._create({})
        return self._idempotent

    def transactional(self, id_: TransactionalId, renew: bool) -> TransactionalProducer:
        """Returns the producer of a transactional ID; with `renew` a new one."""
        producer = self._transactional.get(id_)
        if producer is not None and (renew or not producer.usable):
            self._transactional.pop(id_).close()
            producer = None
        if producer is None:
            records = self._create({"transactional.id": id_.name})
            producer = TransactionalProducer(id_, self._config, records)
            self._transactional[id_] = producer
        return producer

    def close(self) -> None:
        """Discards undelivered records and closes all producers."""
        for producer in self._transactional.values():
            producer.close()
        if self._idempotent is not None:
            self._idempotent.close()
        self._idempotent, self._transactional = None, {}

    def limits(self, topic: str) -> TopicLimits:
        """Returns the limits of a topic, cached once the topic is known."""
        if topic in self._limits:
            return self._limits[topic]
        limits = await_limits(self._admin, topic)
        if size := self._config.user_properties().get("message.max.bytes"):
            limits = limits._replace(size=int(size))
        if limits.known:
            self._limits[topic] = limits
        return limits

    def _create(self, properties: dict[str, Any]) -> RecordProducer:
        config = self._config
        topic, timeout = config.topic.constant, round(config.transaction_timeout * 1000)
        limits = TopicLimits(known=False) if topic is None else self.limits(topic)
        max_size = limits.size if limits.known else 0
        defaults = {
            "enable.idempotence": True,
            "partitioner": config.partitioner,
            "compression.type": config.compression,
            "linger.ms": 20,
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": max(QUEUE_SIZE, 2 * max_size) >> 10,
            "message.timeout.ms": min(DELIVERY_TIMEOUT * 1000, timeout),
            "message.max.bytes": max_size or MAX_MESSAGE_SIZE,
        }
        if properties:
            defaults["transaction.timeout.ms"] = timeout
        target = f'topic "{config.topic}"'
        return RecordProducer(config, {**defaults, **properties}, self.limits, target)


def _is_deterministic(type_: pa.DataType) -> bool:
    """Returns whether Spark computes values of a type reproducibly and can partition by them.

    The sum of floating-point numbers depends on the order of the rows.
    """
    return not (pa.types.is_floating(type_) or pa.types.is_nested(type_))
