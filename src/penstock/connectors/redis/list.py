"""Lists that messages are popped from, with a processing list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.redis.client import async_connection
from penstock.connectors.redis.config import split_names
from penstock.connectors.redis.page_size import PageSize
from penstock.connectors.redis.reader import RedisReceivingSource, append_in_chunks, run_all
from penstock.sdk import Journal, Message

METADATA = pa.schema([("list", pa.string())])


class ListSource(RedisReceivingSource):
    """Moves messages atomically to a processing list and removes them once they are on disk."""

    acknowledges = "removed from the processing list once the message is on disk"

    def message_metadata_schema(self) -> pa.Schema:
        return METADATA

    async def receive(self, journal: Journal) -> None:
        async with async_connection(self.config) as client:
            names = split_names(self.config.list)
            queues = [Queue(self, client, journal, name) for name in names]
            for queue in queues:
                await queue.recover()
            journal.ready.set()
            await run_all([queue.consume() for queue in queues])


class Queue:
    """A list with its processing list."""

    def __init__(self, source: ListSource, client: Any, journal: Journal, name: str) -> None:
        config = source.config
        self._client, self._journal, self._name = client, journal, name
        self._page_size, self._block_seconds = PageSize(config.max_in_flight), source.block_seconds
        # The hash tag puts both lists into the same slot of a cluster.
        tagged = name if "{" in name else f"{{{name}}}"
        self._processing = config.processing or f"{tagged}:{source.node_name}"
        self._sides = (config.side.upper(), "RIGHT")

    async def recover(self) -> None:
        """Consumes the messages that an earlier run left in the processing list."""
        while messages := await self._client.lrange(
            self._processing, 0, self._page_size.entries - 1
        ):
            await self._append_and_remove(messages)

    async def consume(self) -> None:
        """Consumes messages until cancelled."""
        while True:
            first = await self._client.blmove(
                self._name, self._processing, self._block_seconds, *self._sides
            )
            if first is not None:
                await self._append_and_remove([first, *await self._move_available()])

    async def _move_available(self) -> list[bytes]:
        """Moves available messages without waiting."""
        count = min(await self._client.llen(self._name), self._page_size.entries - 1)
        pipeline = self._client.pipeline(transaction=False)
        for _ in range(count):
            pipeline.lmove(self._name, self._processing, *self._sides)
        return [message for message in await pipeline.execute() if message is not None]

    async def _append_and_remove(self, payloads: Sequence[bytes]) -> None:
        messages = [Message(payload, {"list": self._name}) for payload in payloads]
        self._page_size.update([len(payload) for payload in payloads])
        await append_in_chunks(self._journal, messages)
        pipeline = self._client.pipeline(transaction=False)
        for payload in payloads:
            pipeline.lrem(self._processing, 1, payload)
        await pipeline.execute()
