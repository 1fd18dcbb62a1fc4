"""Base of the sources that receive into the journal: consumer groups, lists and channels."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any

from penstock.connectors.redis.client import connection
from penstock.connectors.redis.config import RedisSourceConfig
from penstock.sdk import Journal, Message, ReceivingSource

_APPEND_BYTES = 256 << 10
_BLOCK_SECONDS = 1.0


class RedisReceivingSource(ReceivingSource[RedisSourceConfig]):
    """Base of the receiving sources."""

    parallelism = "the receiving process"
    extra = "redis"
    client_modules = ("redis",)

    def check(self) -> None:
        with connection(self.config) as client:
            client.ping()

    @property
    def node_name(self) -> str:
        """The default name of this source at the server."""
        return f"{self.context.pipeline}.{self.context.node}"

    @property
    def block_seconds(self) -> float:
        """The longest time that a blocking command waits for messages."""
        return min(_BLOCK_SECONDS, self.config.timeout / 2)


async def append_in_chunks(journal: Journal, messages: Sequence[Message]) -> None:
    """Returns once all messages are durable. The chunks fit into a small journal."""
    for chunk in _chunks(messages):
        await journal.append(chunk)


async def run_all(coroutines: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Runs coroutines until the first one fails, and cancels the others."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _chunks(messages: Sequence[Message]) -> Iterator[list[Message]]:
    chunk: list[Message] = []
    size = 0
    for message in messages:
        size += len(message.payload or b"")
        if chunk and size > _APPEND_BYTES:
            yield chunk
            chunk, size = [], len(message.payload or b"")
        chunk.append(message)
    yield chunk
