"""Streams that are read as a consumer of a consumer group."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.redis.client import async_connection
from penstock.connectors.redis.config import RedisStartAt, split_names
from penstock.connectors.redis.metadata import METADATA, entry_metadata, entry_payload, entry_size
from penstock.connectors.redis.offsets import EntryId
from penstock.connectors.redis.page_size import PageSize
from penstock.connectors.redis.reader import RedisReceivingSource, append_in_chunks, run_all
from penstock.sdk import Journal, Message

_STARTS = {"earliest": "0-0", "latest": "$"}
_PENDING, _NEW = "0", ">"
_FIRST_ID = b"0-0"


class ConsumerGroupSource(RedisReceivingSource):
    """Acknowledges entries to the group once they are on disk."""

    acknowledges = "XACK once the entry is on disk"

    def message_metadata_schema(self) -> pa.Schema:
        return METADATA

    async def receive(self, journal: Journal) -> None:
        async with async_connection(self.config) as client:
            streams = split_names(self.config.stream)
            consumers = [Consumer(self, client, journal, stream) for stream in streams]
            for consumer in consumers:
                await consumer.create_group()
            journal.ready.set()
            await run_all([consumer.consume() for consumer in consumers])


class Consumer:
    """The consumer of one stream."""

    def __init__(
        self, source: ConsumerGroupSource, client: Any, journal: Journal, stream: str
    ) -> None:
        self._config = source.config
        self._client, self._journal, self._stream = client, journal, stream
        self._group = source.config.group
        self._name = source.config.consumer or source.node_name
        self._page_size = PageSize(source.config.max_in_flight)
        self._block_milliseconds = round(source.block_seconds * 1000)

    async def create_group(self) -> None:
        """Creates the group, and the stream, unless they exist."""
        from redis.exceptions import ResponseError

        start = self._config.start
        after = start.first_id.previous if isinstance(start, RedisStartAt) else _STARTS[start]
        try:
            await self._client.xgroup_create(self._stream, self._group, str(after), mkstream=True)
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise

    async def consume(self) -> None:
        """Consumes pending entries of this consumer, then new entries until cancelled."""
        while await self._read(_PENDING):
            pass
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            if loop.time() >= due:
                await self._claim()
                due = loop.time() + self._config.claim_after / 2
            await self._read(_NEW)

    async def _read(self, after: str) -> bool:
        """Consumes available entries. Returns whether entries were available."""
        response = await self._client.xreadgroup(
            self._group, self._name, {self._stream: after}, self._page_size.entries,
            self._block_milliseconds,
        )  # fmt: skip
        entries = [entry for _, page in _stream_pages(response) for entry in page]
        await self._append_and_acknowledge(entries)
        return bool(entries)

    async def _claim(self) -> None:
        """Claims and consumes idle entries of other consumers."""
        idle, after = round(self._config.claim_after * 1000), _FIRST_ID
        while True:
            after, entries, *_ = await self._client.xautoclaim(
                self._stream, self._group, self._name, idle, after, self._page_size.entries
            )
            await self._append_and_acknowledge(entries)
            if after == _FIRST_ID:
                return

    async def _append_and_acknowledge(
        self, entries: Sequence[tuple[bytes, Mapping[bytes, bytes] | None]]
    ) -> None:
        """Acknowledges entries once they are durable. Deleted entries have no fields."""
        if not entries:
            return
        messages = [self._message(EntryId.parse(id_), fields) for id_, fields in entries if fields]
        self._page_size.update([entry_size(fields) for _, fields in entries if fields])
        await append_in_chunks(self._journal, messages)
        await self._client.xack(self._stream, self._group, *(id_ for id_, _ in entries))

    def _message(self, id_: EntryId, fields: Mapping[bytes, bytes]) -> Message:
        field = self._config.field
        return Message(
            entry_payload(fields, field), entry_metadata(self._stream, id_, fields, field)
        )


def _stream_pages(response: Any) -> Any:
    """Returns pairs of a stream and its entries, for RESP2 and RESP3."""
    return response.items() if isinstance(response, dict) else response or ()
