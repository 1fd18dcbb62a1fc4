"""Administration of topics for a sink: creation and limits."""

from __future__ import annotations

import time
from typing import NamedTuple

from penstock.connectors.kafka.client import RETRY_INTERVAL, Admin
from penstock.connectors.kafka.config import TopicConfig
from penstock.core.errors import Permanent

_UNLIMITED = 2**63
_CREATION_TIMEOUT = 3.0
"""The longest time in which a broker creates a topic, in seconds."""


class TopicLimits(NamedTuple):
    """The largest record of a topic in bytes, and the limits of timestamps in milliseconds.

    A `keyed` topic is compacted, and accepts no record without a key. A topic that does not exist
    is not `known`.
    """

    size: int = 1_048_588
    before: int = _UNLIMITED
    after: int = _UNLIMITED
    keyed: bool = False
    known: bool = True

    def accepts_timestamp(self, timestamp: int) -> bool:
        """Returns whether the topic accepts a record with a timestamp at the current time."""
        ahead = timestamp - time.time() * 1000
        return -self.before <= ahead <= self.after


def create_topic(admin: Admin, name: str, create: TopicConfig | bool) -> None:
    """Creates a topic unless it exists."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import NewTopic

    settings = create if isinstance(create, TopicConfig) else TopicConfig()
    config = {key: _text(value) for key, value in settings.config.items()}
    topic = NewTopic(name, settings.partitions, settings.replication or -1, config=config)

    def call(timeout: float) -> None:
        futures = admin.client.create_topics(
            [topic], operation_timeout=timeout, request_timeout=timeout
        )
        try:
            futures[name].result(timeout + 1)
        except KafkaException as error:
            if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise

    admin.request(f'create topic "{name}"', call)


def await_limits(admin: Admin, topic: str) -> TopicLimits:
    """Returns the limits of a topic, as `topic_limits` does.

    A topic that was just created, or that the brokers create on request, is unknown to a broker for
    a moment: its limits are awaited.
    """
    action, deadline = f'write to topic "{topic}"', time.monotonic() + _CREATION_TIMEOUT
    while not (limits := topic_limits(admin, topic)).known and time.monotonic() < deadline:
        admin.request(action, lambda timeout: admin.client.list_topics(topic, timeout))
        time.sleep(RETRY_INTERVAL)
    return limits


def topic_limits(admin: Admin, topic: str) -> TopicLimits:
    """Returns the limits of a topic; the defaults without access to its configuration."""
    from confluent_kafka.admin import ConfigResource, ResourceType

    def call(timeout: float) -> TopicLimits:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        futures = admin.client.describe_configs([resource], request_timeout=timeout)
        entries = futures[resource].result(timeout + 1)
        config = {name: entry.value for name, entry in entries.items()}
        size = int(config["max.message.bytes"])
        keyed = "compact" in (config.get("cleanup.policy") or "")
        if config.get("message.timestamp.type") == "LogAppendTime":
            return TopicLimits(size, keyed=keyed)
        before, after = (
            int(config.get(f"message.timestamp.{side}.max.ms", _UNLIMITED))
            for side in ("before", "after")
        )
        return TopicLimits(size, before, after, keyed)

    try:
        return admin.request(f'write to topic "{topic}"', call)
    except Permanent as error:
        if error.code not in ("authorization", "unknown-topic"):
            raise
        return TopicLimits(known=error.code != "unknown-topic")


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
