"""The source of a stream whose messages are shared with others, each for one of them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.nats.connection import connected, faults
from penstock.connectors.nats.listening import SubjectSource
from penstock.connectors.nats.stream import METADATA, about
from penstock.sdk import Journal, Message

if TYPE_CHECKING:
    from nats.aio.client import Client

_MOST = 64
"""Messages that are asked for at once."""
_WAIT = 5.0


class SharedSource(SubjectSource):
    """Takes messages by a durable consumer that others may use, too.

    JetStream is told that a message arrived once it is in the journal.
    """

    acknowledges = "JetStream gets its ack once the message is on disk"

    def about(self) -> pa.Schema:
        return METADATA

    async def receive(self, journal: Journal) -> None:
        client = await connected(self.config)
        try:
            with faults(self.config, f'read stream "{self.config.stream}"'):
                taking = await self._begun(client)
                journal.ready.set()
                while True:
                    await _take(taking, journal)
        finally:
            with suppress(Exception):
                await asyncio.wait_for(client.close(), _WAIT)

    async def _tried(self) -> None:
        client = await connected(self.config)
        try:
            with faults(self.config, f'find stream "{self.config.stream}"'):
                await self._streams(client).stream_info(self.config.stream)
        finally:
            await client.close()

    async def _begun(self, client: Client) -> Any:
        from nats.js.api import AckPolicy, ConsumerConfig
        from nats.js.errors import NotFoundError

        stream, group = self.config.stream, self.config.queue_group
        streams = self._streams(client)
        try:
            await streams.consumer_info(stream, group)
        except NotFoundError:
            subject = next(iter(self.config.subjects), None)
            config = ConsumerConfig(
                durable_name=group, ack_policy=AckPolicy.EXPLICIT, filter_subject=subject,
                **self.config.consumer_settings.given(),
            )  # fmt: skip
            await streams.add_consumer(stream, config)
        return await streams.pull_subscribe_bind(group, stream)

    def _streams(self, client: Client) -> Any:
        return client.jetstream(timeout=self.config.timeout)


async def _take(taking: Any, journal: Journal) -> None:
    try:
        found = await taking.fetch(_MOST, _WAIT)
    except TimeoutError:
        return
    await asyncio.gather(*(_keep(message, journal) for message in found))


async def _keep(message: Any, journal: Journal) -> None:
    known = {name: about(message, name) for name in METADATA.names}
    await journal.append([Message(bytes(message.data), known)])
    await message.ack()
