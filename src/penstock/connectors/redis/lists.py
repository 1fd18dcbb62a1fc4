"""Lists that messages are taken from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.redis.connection import listening
from penstock.connectors.redis.keeping import RedisReceiving, keep, together
from penstock.connectors.redis.options import names
from penstock.sdk import Journal, Message

METADATA = pa.schema([("list", pa.string())])


class ListSource(RedisReceiving):
    """Messages move to a list of ours in one step, and are removed there once they are on disk."""

    acknowledges = "removed from our list once the message is on disk"

    def about(self) -> pa.Schema:
        return METADATA

    async def receive(self, journal: Journal) -> None:
        async with listening(self.config) as client:
            queues = [Queue(self, client, journal, each) for each in names(self.config.list)]
            for each in queues:
                await each.finish()
            journal.ready.set()
            await together([each.drain() for each in queues])


class Queue:
    """One list, and the one where its messages wait for the disk."""

    def __init__(self, source: ListSource, client: Any, journal: Journal, name: str) -> None:
        config = source.config
        self._client, self._journal, self._name = client, journal, name
        self._most, self._wait = config.in_flight, source.wait
        # One server of a cluster has both, by the part of the name in braces.
        tagged = name if "{" in name else f"{{{name}}}"
        self._held = config.processing or f"{tagged}:{source.ours}"
        self._ways = (config.side.upper(), "RIGHT")

    async def finish(self) -> None:
        """Keeps what moved and was not removed the last time."""
        while found := await self._client.lrange(self._held, 0, self._most - 1):
            await self._keep(found)

    async def drain(self) -> None:
        """Takes what comes, for ever."""
        while True:
            first = await self._client.blmove(self._name, self._held, self._wait, *self._ways)
            if first is not None:
                await self._keep([first, *await self._more()])

    async def _more(self) -> list[bytes]:
        """What is there beside a first one."""
        count = min(await self._client.llen(self._name), self._most - 1)
        moves = self._client.pipeline(transaction=False)
        for _ in range(count):
            moves.lmove(self._name, self._held, *self._ways)
        return [each for each in await moves.execute() if each is not None]

    async def _keep(self, found: Sequence[bytes]) -> None:
        await keep(self._journal, [Message(each, {"list": self._name}) for each in found])
        removals = self._client.pipeline(transaction=False)
        for each in found:
            removals.lrem(self._held, 1, each)
        await removals.execute()
