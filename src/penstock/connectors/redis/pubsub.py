"""Channels and channel patterns (Pub/Sub)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from penstock.connectors.redis.client import async_connection
from penstock.connectors.redis.config import split_names
from penstock.connectors.redis.errors import translate_error
from penstock.connectors.redis.reader import RedisReceivingSource
from penstock.sdk import Journal, Message

METADATA = pa.schema([("channel", pa.string()), ("pattern", pa.string())])


class PubSubSource(RedisReceivingSource):
    """Receives published messages. Messages that do not fit into the journal count as lost."""

    acknowledges = None

    def message_metadata_schema(self) -> pa.Schema:
        return METADATA

    async def receive(self, journal: Journal) -> None:
        channels, patterns = split_names(self.config.channel), split_names(self.config.pattern)
        unconfirmed = len({*channels}) + len({*patterns})
        async with (
            async_connection(self.config, single_node=True) as client,
            client.pubsub() as pubsub,
        ):
            if channels:
                await pubsub.subscribe(*channels)
            if patterns:
                await pubsub.psubscribe(*patterns)
            pinged = False
            while True:
                event = await pubsub.get_message(timeout=self.config.timeout)
                if event is None and pinged:
                    raise translate_error(TimeoutError(), self.config)
                if event is None:
                    await pubsub.ping()
                elif event["type"] in ("subscribe", "psubscribe"):
                    unconfirmed -= 1
                    if not unconfirmed:
                        journal.ready.set()
                elif event["type"] in ("message", "pmessage"):
                    journal.offer([_message(event)])
                pinged = event is None


def _message(event: Mapping[str, Any]) -> Message:
    pattern = event["pattern"]
    return Message(
        event["data"],
        {
            "channel": event["channel"].decode(errors="replace"),
            "pattern": None if pattern is None else pattern.decode(errors="replace"),
        },
    )
