"""The source of a stream whose messages are shared by the members of a group."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.nats.client import connect
from penstock.connectors.nats.errors import translate_errors
from penstock.connectors.nats.receiver import SubscriberSource
from penstock.connectors.nats.stream import STREAM_METADATA, stream_metadata
from penstock.sdk import Journal, Message

if TYPE_CHECKING:
    from nats.aio.client import Client

_MAX_FETCH_MESSAGES = 64
_MAX_FETCH_BYTES = 64 << 20
_FETCH_SECONDS = 5.0
_CLOSE_SECONDS = 5.0


class QueueConsumerSource(SubscriberSource):
    """Consumes messages with a durable pull consumer, and acknowledges those in the journal."""

    acknowledges = "JetStream gets its ack once the message is on disk"

    def message_metadata_schema(self) -> pa.Schema:
        return STREAM_METADATA

    async def receive(self, journal: Journal) -> None:
        client = await connect(self.config)
        try:
            with translate_errors(self.config, f'read stream "{self.config.stream}"'):
                subscription = await self._subscribe(client)
                journal.ready.set()
                while True:
                    await _fetch(subscription, journal, _fetch_count(client))
        finally:
            with suppress(Exception):
                await asyncio.wait_for(client.close(), _CLOSE_SECONDS)

    async def _check(self) -> None:
        client = await connect(self.config)
        try:
            with translate_errors(self.config, f'find stream "{self.config.stream}"'):
                await self._jetstream(client).stream_info(self.config.stream)
        finally:
            await client.close()

    async def _subscribe(self, client: Client) -> Any:
        """Creates the consumer unless it exists. Returns its subscription."""
        from nats.js.api import AckPolicy, ConsumerConfig
        from nats.js.errors import NotFoundError

        stream, group = self.config.stream, self.config.group
        jetstream = self._jetstream(client)
        try:
            await jetstream.consumer_info(stream, group)
        except NotFoundError:
            subject = next(iter(self.config.subjects), None)
            config = ConsumerConfig(
                durable_name=group, ack_policy=AckPolicy.EXPLICIT, filter_subject=subject,
                **self.config.consumer_settings.non_default(),
            )  # fmt: skip
            await jetstream.add_consumer(stream, config)
        return await jetstream.pull_subscribe_bind(group, stream)

    def _jetstream(self, client: Client) -> Any:
        return client.jetstream(timeout=self.config.timeout)


def _fetch_count(client: Client) -> int:
    """Returns the number of messages of the server's maximum size that fit into memory."""
    return min(_MAX_FETCH_MESSAGES, max(1, _MAX_FETCH_BYTES // client.max_payload))


async def _fetch(subscription: Any, journal: Journal, count: int) -> None:
    try:
        messages = await subscription.fetch(count, _FETCH_SECONDS)
    except TimeoutError:
        return
    await asyncio.gather(*(_append_and_acknowledge(message, journal) for message in messages))


async def _append_and_acknowledge(message: Any, journal: Journal) -> None:
    metadata = {name: stream_metadata(message, name) for name in STREAM_METADATA.names}
    await journal.append([Message(bytes(message.data), metadata)])
    await message.ack()
