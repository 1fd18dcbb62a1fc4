"""The source of a subscription, which hands out messages and wants them acknowledged."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.connectors.pulsar.about import METADATA, about, payload
from penstock.connectors.pulsar.client import closed, using
from penstock.connectors.pulsar.config import PulsarSourceConfig
from penstock.connectors.pulsar.connection import connected
from penstock.connectors.pulsar.faults import faults
from penstock.connectors.pulsar.greeting import unreachable
from penstock.connectors.pulsar.topics import partitions
from penstock.sdk import Journal, Message, ReceivingSource

if TYPE_CHECKING:
    from pulsar import Client, Consumer
    from pulsar import Message as Taken

_MOST = 500
"""Messages that are made durable together."""
_MOST_BYTES = 4 << 20
_LOOK = 300
"""How long is waited for a message before the connection is looked at, in milliseconds."""
_AHEAD = 200
"""Messages of a partition that are fetched before they are wanted."""


class SubscriptionSource(ReceivingSource[PulsarSourceConfig]):
    """A consumer of a subscription; what is in the journal is acknowledged."""

    extra = "pulsar"
    clients = ("pulsar",)
    parallelism = "the consumer"
    acknowledges = "the subscription gets its ack once the message is on disk"

    def about(self) -> pa.Schema:
        return METADATA

    def check(self) -> None:
        with using(self.config, self._doing("find")) as client:
            partitions(client, self.config.topics)

    async def receive(self, journal: Journal) -> None:
        client = await asyncio.to_thread(connected, self.config)
        try:
            with faults(self.config, self._doing("subscribe")):
                consumer = await asyncio.to_thread(self._subscribed, client)
                journal.ready.set()
                while True:
                    some = await asyncio.to_thread(self._taken, consumer)
                    await asyncio.gather(*(_kept(each, consumer, journal) for each in some))
        finally:
            await asyncio.to_thread(closed, client)

    def _subscribed(self, client: Client) -> Consumer:
        from pulsar import ConsumerType, InitialPosition

        type_ = {
            "exclusive": ConsumerType.Exclusive,
            "shared": ConsumerType.Shared,
            "failover": ConsumerType.Failover,
            "key_shared": ConsumerType.KeyShared,
        }[self.config.subscription_type or "exclusive"]
        from_ = {"earliest": InitialPosition.Earliest, "latest": InitialPosition.Latest}
        return client.subscribe(
            self.config.topics, self.config.subscription, type_, receiver_queue_size=_AHEAD,
            consumer_name=self.config.consumer_name, initial_position=from_[str(self.config.start)],
        )  # fmt: skip

    def _taken(self, consumer: Consumer) -> list[Taken]:
        """The next messages that are there; it may be that there are none."""
        from pulsar import Timeout

        some: list[Taken] = []
        size = 0
        try:
            while len(some) < _MOST and size < _MOST_BYTES:
                some.append(consumer.receive(0 if some else _LOOK))
                size += len(some[-1].data())
        except Timeout:
            if not some and not consumer.is_connected():
                raise unreachable(self.config, "the connection was lost") from None
        return some

    def _doing(self, what: str) -> str:
        return f'{what}: topic "{", ".join(self.config.topics)}"'


async def _kept(message: Taken, consumer: Consumer, journal: Journal) -> None:
    known = {name: about(message, name) for name in METADATA.names}
    await journal.append([Message(payload(message), known)])
    consumer.acknowledge(message)
