"""Streams that are read as a consumer of a group."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.redis import entries
from penstock.connectors.redis.connection import listening
from penstock.connectors.redis.ids import Id
from penstock.connectors.redis.keeping import RedisReceiving, keep, together
from penstock.connectors.redis.options import names
from penstock.sdk import Journal, Message

_STARTS = {"earliest": "0-0", "latest": "$"}


class GroupSource(RedisReceiving):
    """Entries are acknowledged to the group once they are on disk."""

    acknowledges = "XACK once the entry is on disk"

    def about(self) -> pa.Schema:
        return entries.METADATA

    async def receive(self, journal: Journal) -> None:
        async with listening(self.config) as client:
            members = [Member(self, client, journal, each) for each in names(self.config.stream)]
            for each in members:
                await each.join()
            journal.ready.set()
            await together([each.consume() for each in members])


class Member:
    """Our part in the group of one stream."""

    def __init__(self, source: GroupSource, client: Any, journal: Journal, stream: str) -> None:
        self._config = source.config
        self._client, self._journal, self._stream = client, journal, stream
        self._us = (source.config.group, source.config.consumer or source.ours)
        self._wait = round(source.wait * 1000)

    async def join(self) -> None:
        """Makes the group, and the stream, where there is none."""
        from redis.exceptions import ResponseError

        start = self._config.start
        first = _STARTS.get(start) or str(Id.of(start).before)
        try:
            await self._client.xgroup_create(self._stream, self._us[0], first, mkstream=True)
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise

    async def consume(self) -> None:
        """What we did not finish the last time, and then what comes, for ever."""
        while await self._take("0"):
            pass
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            if loop.time() >= due:
                await self._claim()
                due = loop.time() + self._config.claim_after / 2
            await self._take(">")

    async def _take(self, after: str) -> bool:
        """Whether something came."""
        given = await self._client.xreadgroup(
            *self._us, {self._stream: after}, self._config.in_flight, self._wait
        )
        found = [entry for _, entries_ in _pairs(given) for entry in entries_]
        await self._finish(found)
        return bool(found)

    async def _claim(self) -> None:
        """Takes over what others did not finish."""
        idle, after = round(self._config.claim_after * 1000), b"0-0"
        while True:
            after, found, *_ = await self._client.xautoclaim(
                self._stream, *self._us, idle, after, self._config.in_flight
            )
            await self._finish(found)
            if after == b"0-0":
                return

    async def _finish(self, found: Sequence[tuple[bytes, Mapping[bytes, bytes] | None]]) -> None:
        """Keeps entries and acknowledges them; those that were deleted meanwhile have no fields."""
        if not found:
            return
        await keep(self._journal, [self._message(Id.of(id_), f) for id_, f in found if f])
        await self._client.xack(self._stream, self._us[0], *(id_ for id_, _ in found))

    def _message(self, id_: Id, fields: Mapping[bytes, bytes]) -> Message:
        field = self._config.field
        known = entries.about(self._stream, id_, fields, field)
        return Message(entries.payload(fields, field), known)


def _pairs(given: Any) -> Any:
    """What was read by stream, in either version of the protocol."""
    return given.items() if isinstance(given, dict) else given or ()
