"""What the sources that receive have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any

from penstock.connectors.redis.connection import connected
from penstock.connectors.redis.options import RedisSourceConfig
from penstock.sdk import Journal, Message, ReceivingSource

SHARE = 256 << 10
WAIT = 1.0
"""Seconds in which a server answers that it has nothing."""


class RedisReceiving(ReceivingSource[RedisSourceConfig]):
    """Base of those that receive."""

    parallelism = "the process that receives"
    extra = "redis"
    clients = ("redis",)

    def check(self) -> None:
        with connected(self.config) as client:
            client.ping()

    @property
    def ours(self) -> str:
        """What the server knows us by."""
        return f"{self.context.pipeline}.{self.context.node}"

    @property
    def wait(self) -> float:
        """How long the server may wait for a message before it answers."""
        return min(WAIT, self.config.timeout / 2)


async def keep(journal: Journal, messages: Sequence[Message]) -> None:
    """Returns when all are durable. They are given in shares that fit into a small journal."""
    for share in _shares(messages):
        await journal.append(share)


async def together(parts: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Runs all of them until the first one fails; the others are cancelled."""
    tasks = [asyncio.ensure_future(each) for each in parts]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _shares(messages: Sequence[Message]) -> Iterator[list[Message]]:
    share: list[Message] = []
    size = 0
    for message in messages:
        size += len(message.payload or b"")
        if share and size > SHARE:
            yield share
            share, size = [], len(message.payload or b"")
        share.append(message)
    yield share
