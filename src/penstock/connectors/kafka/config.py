"""Options of the Kafka source and sink."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import (
    Field,
    field_validator,
    model_validator,
)

from penstock.connectors.kafka.auth import SaslAuth
from penstock.sdk import Config, Duration, PositiveDuration, Secret, StartAt
from penstock.sdk.columns.template import KeyTemplate, Template
from penstock.sdk.config import RegularExpression
from penstock.sdk.network.tls import Tls, TlsOption, resolve_tls
from penstock.sdk.properties import Properties

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_PROPERTY_OPTIONS = {
    "bootstrap.servers": "brokers",
    "metadata.broker.list": "brokers",
    "group.id": "group",
    "isolation.level": "isolation",
    "auto.offset.reset": "reset",
    "compression.type": "compression",
    "compression.codec": "compression",
    "partitioner": "partitioner",
    "transactional.id": "transactional_id",
    "transaction.timeout.ms": "transaction_timeout",
}
"""Properties of librdkafka that are options of their own."""
_FIXED_PROPERTIES = ("enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof")


def is_topic(name: str) -> bool:
    """Returns whether a text is a valid topic name."""
    return bool(_TOPIC.fullmatch(name)) and name not in (".", "..")


class ConnectionConfig(Config):
    brokers: str | list[str]
    """The bootstrap brokers, one or several: `host:port`."""
    tls: TlsOption = None
    """TLS settings: `true`, or the CA certificate and the client certificate. By default no
    TLS."""
    auth: SaslAuth | None = None
    """SASL authentication. By default none."""
    properties: Properties = {}
    """Other properties of librdkafka, such as `client.id`."""

    @field_validator("brokers")
    @classmethod
    def _check_brokers(cls, brokers: str | list[str]) -> str | list[str]:
        if not brokers or not all(brokers):
            raise ValueError("expected at least one broker, as host:port")
        return brokers

    @field_validator("properties")
    @classmethod
    def _check_properties(cls, properties: dict[str, Secret]) -> dict[str, Secret]:
        for name in properties:
            option = _PROPERTY_OPTIONS.get(name)
            if option in cls.model_fields:
                raise ValueError(f"{name} is set by the option {option}")
            if option is not None:
                raise ValueError(f"{name} is not supported here")
            if name in _FIXED_PROPERTIES:
                raise ValueError(f"{name} cannot be set: offsets are stored in the state directory")
        return properties

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        if self.uses_msk_iam and self.resolved_tls is None:
            raise ValueError("mechanism AWS_MSK_IAM requires tls: true")
        return self

    @property
    def uses_msk_iam(self) -> bool:
        """Whether tokens are signed with AWS credentials."""
        return self.auth is not None and self.auth.mechanism == "AWS_MSK_IAM"

    @property
    def resolved_tls(self) -> Tls | None:
        """The TLS settings of the connection; None without TLS."""
        return resolve_tls(self.tls)

    @property
    def address(self) -> str:
        """The brokers as one text."""
        return self.brokers if isinstance(self.brokers, str) else ",".join(self.brokers)

    def check_files(self) -> None:
        """Raises Permanent if a certificate file does not exist."""
        if self.resolved_tls is not None:
            self.resolved_tls.check_files()

    def user_properties(self) -> dict[str, str]:
        """Returns the option `properties`, which overrides properties set by Penstock."""
        return {name: value.reveal() for name, value in self.properties.items()}


class KafkaStartAt(StartAt):
    """A start position in topics: a timestamp, or offsets."""

    offsets: dict[str, dict[int, int]] | None = None
    """The first offset of each topic and partition: `{clicks: {0: 17}}`. Other partitions start at
    the earliest record."""

    @field_validator("offsets", mode="before")
    @classmethod
    def _check_shape(cls, offsets: object) -> object:
        if isinstance(offsets, dict) and not all(
            isinstance(topic, dict) for topic in offsets.values()
        ):
            raise ValueError("expected offsets by topic and partition: {clicks: {0: 17}}")
        return offsets


class KafkaSourceConfig(ConnectionConfig):
    topic: str | list[str] | None = None
    """The topic, or several."""
    pattern: RegularExpression | None = None
    """A regular expression that matches the whole names of topics. New topics are discovered."""
    start: Literal["earliest", "latest", "committed"] | KafkaStartAt = "earliest"
    """The start position of the first run: `earliest`, `latest`, `committed` (the offsets of the
    consumer group), `{timestamp: TIME}` or `{offsets: {TOPIC: {PARTITION: OFFSET}}}`. Later runs
    resume."""
    reset: Literal["earliest", "latest"] = "earliest"
    """The start position of partitions without a committed offset, with `start: committed`."""
    group: str | None = None
    """The consumer group to which offsets are committed. By default `penstock.PIPELINE.NODE`."""
    isolation: Literal["committed", "uncommitted"] = "committed"
    """Whether records of open and aborted transactions are skipped."""
    max_records: int | None = Field(default=None, ge=1)
    """The largest number of records of a batch."""
    discovery_interval: Duration = 10.0
    """The interval at which new partitions and topics are discovered."""
    tombstones: Literal["decode", "delete"] = "decode"
    """A record without a value is decoded by the format, which most formats reject. `delete` makes
    it a delete of the row with its key, and all other records updates."""
    key_format: Literal["text", "json"] = "text"
    """The format of the keys of tombstones: the values of the primary key, joined by colons, or a
    JSON object of them."""
    on_data_loss: Literal["fail", "continue"] = "fail"
    """The action when records were deleted before they were read. `continue` records the gap as a
    dead letter."""

    @model_validator(mode="after")
    def _check_topic(self) -> Self:
        if not self.topic and not self.pattern:
            raise ValueError("topic or pattern is required")
        if "reset" in self.model_fields_set and self.start != "committed":
            raise ValueError("reset requires start: committed")
        if "key_format" in self.model_fields_set and self.tombstones != "delete":
            raise ValueError("key_format requires tombstones: delete")
        return self

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of the option `topic`."""
        topic = self.topic
        return () if topic is None else (topic,) if isinstance(topic, str) else tuple(topic)


class TopicConfig(Config):
    """Properties of a topic that is created if it does not exist."""

    partitions: int = Field(default=1, ge=1)
    """The number of partitions."""
    replication: int | None = Field(default=None, ge=1)
    """The replication factor. By default the default of the cluster."""
    config: dict[str, str | int | bool] = {}
    """Further configuration of the topic: `{cleanup.policy: compact}`."""


class KafkaSinkConfig(ConnectionConfig):
    topic: Template
    """The topic, a template: `orders-{country}`."""
    key: KeyTemplate | None = None
    """The key, a template: `"{user}"`."""
    key_columns: list[str] = []
    """The columns of the key, instead of `key`. Several are joined with colons."""
    headers: dict[str, Template] = {}
    """The headers, templates: `{source: shop, user: "{user}"}`."""
    headers_column: str | None = None
    """A column that contains the headers, instead of `headers`."""
    partition_column: str | None = None
    """A column with the number of the partition. By default the partitioner selects it."""
    timestamp_column: str | None = None
    """A TIMESTAMP column with the timestamp of the record. By default the time of writing."""
    exclude_columns: list[str] = []
    """Columns that are not part of the value."""
    partitioner: Literal[
        "murmur2_random", "murmur2", "consistent_random", "consistent", "random",
        "fnv1a_random", "fnv1a",
    ] = "murmur2_random"  # fmt: skip
    """The partitioner. The default selects the same partitions as the Java client."""
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    """The compression of records."""
    delivery: Literal["at_least_once", "exactly_once"] = "at_least_once"
    """The delivery guarantee. `exactly_once` writes each batch in transactions, for consumers that
    read committed records."""
    concurrency: int = Field(default=2, ge=1)
    """The number of parallel transactions of a batch, with `exactly_once`."""
    transactional_id: str | None = None
    """The prefix of transactional IDs. By default `penstock.PIPELINE.NODE`."""
    transaction_timeout: PositiveDuration = 300.0
    """The time after which the cluster aborts a transaction."""
    create: TopicConfig | bool = False
    """Create the topic if it does not exist."""

    @field_validator("topic")
    @classmethod
    def _check_topic(cls, topic: Template) -> Template:
        if topic.constant is not None and not is_topic(topic.constant):
            raise ValueError("expected a topic name of letters, digits and . _ -")
        return topic

    @model_validator(mode="after")
    def _check_alternatives(self) -> Self:
        if self.key is not None and self.key_columns:
            raise ValueError("key and key_columns are mutually exclusive")
        if self.headers and self.headers_column is not None:
            raise ValueError("headers and headers_column are mutually exclusive")
        if self.create and self.topic.constant is None:
            raise ValueError(
                f'create requires a topic without columns, found "{self.topic}"; '
                "create the topics, or enable auto.create.topics.enable in the brokers"
            )
        return self
