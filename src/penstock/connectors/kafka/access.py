"""Privileges on topics, as the brokers report them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from penstock.connectors.kafka.client import Admin
from penstock.core.errors import Permanent


def check_operation(
    admin: Admin, topics: Sequence[str], operation: Literal["READ", "WRITE"]
) -> bool:
    """Returns whether the brokers have reported the operations on topics that exist.

    Raises Permanent if the user lacks the operation on one of them.
    """
    from confluent_kafka import TopicCollection
    from confluent_kafka.admin import AclOperation

    def call(timeout: float) -> dict[str, list[AclOperation] | None]:
        futures = admin.client.describe_topics(
            TopicCollection(list(topics)), include_authorized_operations=True,
            request_timeout=timeout,
        )  # fmt: skip
        return {name: each.result(timeout + 1).authorized_operations
                for name, each in futures.items()}  # fmt: skip

    found = admin.request(f"describe {', '.join(topics)}", call)
    for name, operations in found.items():
        if operations and AclOperation[operation] not in operations:
            raise Permanent(
                f'the user may not {operation.lower()} the topic "{name}"', code="authorization",
                hint=f'Grant the user the operation {operation} on the topic "{name}".',
            )  # fmt: skip
    return bool(found) and all(found.values())


def check_creation(admin: Admin, topic: str) -> bool:
    """Returns true if the user may create a topic, which is validated and not created."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import NewTopic

    def call(timeout: float) -> bool:
        futures = admin.client.create_topics(
            [NewTopic(topic, -1, -1)], validate_only=True, request_timeout=timeout
        )
        try:
            futures[topic].result(timeout + 1)
        except KafkaException as error:
            if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise
        return True

    return admin.request(f'create topic "{topic}"', call)
