"""Pulsar source of a subscription, whose messages are journaled and acknowledged."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.connectors.pulsar.client import close_client, connect, use_client
from penstock.connectors.pulsar.config import PulsarSourceConfig
from penstock.connectors.pulsar.errors import translate_errors, unreachable
from penstock.connectors.pulsar.metadata import METADATA, message_metadata, message_payload
from penstock.connectors.pulsar.prefetch import Prefetch
from penstock.connectors.pulsar.reader import list_partitions
from penstock.sdk import Journal, Message, ReceivingSource

if TYPE_CHECKING:
    from pulsar import Client, Consumer
    from pulsar import Message as PulsarMessage

_MAX_BATCH_RECORDS = 500
"""The largest number of messages that are journaled together."""
_MAX_BATCH_SIZE = 4 << 20
_POLL_TIMEOUT = 300
"""Milliseconds to wait for a message before the connection is checked."""


class SubscriptionSource(ReceivingSource[PulsarSourceConfig]):
    """Consumes a subscription and acknowledges journaled messages."""

    extra = "pulsar"
    client_modules = ("pulsar",)
    parallelism = "the consumer"
    acknowledges = "acknowledged to the subscription once the message is on disk"

    def message_metadata_schema(self) -> pa.Schema:
        return METADATA

    def check(self) -> None:
        with use_client(self.config, self._action("find")) as client:
            list_partitions(client, self.config.topics)

    async def receive(self, journal: Journal) -> None:
        client = await asyncio.to_thread(connect, self.config)
        try:
            with translate_errors(self.config, self._action("subscribe")):
                prefetch = Prefetch()
                consumer = await asyncio.to_thread(self._subscribe, client, prefetch.count)
                journal.ready.set()
                while True:
                    messages = await asyncio.to_thread(self._poll, consumer)
                    await asyncio.gather(
                        *(_append(message, consumer, journal) for message in messages)
                    )
                    changes = [prefetch.observe(len(message.data())) for message in messages]
                    if any(changes):
                        await asyncio.to_thread(consumer.close)
                        consumer = await asyncio.to_thread(self._subscribe, client, prefetch.count)
        finally:
            await asyncio.to_thread(close_client, client)

    def _subscribe(self, client: Client, prefetch: int) -> Consumer:
        from pulsar import ConsumerType, InitialPosition

        type_ = {
            "exclusive": ConsumerType.Exclusive,
            "shared": ConsumerType.Shared,
            "failover": ConsumerType.Failover,
            "key_shared": ConsumerType.KeyShared,
        }[self.config.subscription_type or "exclusive"]
        start = {"earliest": InitialPosition.Earliest, "latest": InitialPosition.Latest}
        return client.subscribe(
            self.config.topics, self.config.subscription, type_, receiver_queue_size=prefetch,
            consumer_name=self.config.consumer, initial_position=start[str(self.config.start)],
        )  # fmt: skip

    def _poll(self, consumer: Consumer) -> list[PulsarMessage]:
        """Returns the next messages, possibly none."""
        from pulsar import Timeout

        messages: list[PulsarMessage] = []
        size = 0
        try:
            while len(messages) < _MAX_BATCH_RECORDS and size < _MAX_BATCH_SIZE:
                messages.append(consumer.receive(0 if messages else _POLL_TIMEOUT))
                size += len(messages[-1].data())
        except Timeout:
            if not messages and not consumer.is_connected():
                raise unreachable(self.config, "the connection was lost") from None
        return messages

    def _action(self, verb: str) -> str:
        return f'{verb}: topic "{", ".join(self.config.topics)}"'


async def _append(message: PulsarMessage, consumer: Consumer, journal: Journal) -> None:
    metadata = {name: message_metadata(message, name) for name in METADATA.names}
    await journal.append([Message(message_payload(message), metadata)])
    consumer.acknowledge(message)
