"""Channels that we are subscribed to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from penstock.connectors.redis.connection import listening
from penstock.connectors.redis.faults import fault
from penstock.connectors.redis.keeping import RedisReceiving
from penstock.connectors.redis.options import names
from penstock.sdk import Journal, Message

METADATA = pa.schema([("channel", pa.string()), ("pattern", pa.string())])


class ChannelSource(RedisReceiving):
    """Nobody keeps what is published: it is taken as it comes, or counted as lost."""

    acknowledges = None

    def about(self) -> pa.Schema:
        return METADATA

    async def receive(self, journal: Journal) -> None:
        channels, patterns = names(self.config.channel), names(self.config.pattern)
        missing = len({*channels}) + len({*patterns})
        async with listening(self.config, alone=True) as client, client.pubsub() as pubsub:
            if channels:
                await pubsub.subscribe(*channels)
            if patterns:
                await pubsub.psubscribe(*patterns)
            asked = False
            while True:
                said = await pubsub.get_message(timeout=self.config.timeout)
                if said is None and asked:
                    raise fault(TimeoutError(), self.config)
                if said is None:
                    await pubsub.ping()
                elif said["type"] in ("subscribe", "psubscribe"):
                    missing -= 1
                    if not missing:
                        journal.ready.set()
                elif said["type"] in ("message", "pmessage"):
                    journal.offer([_message(said)])
                asked = said is None


def _message(said: Mapping[str, Any]) -> Message:
    pattern = said["pattern"]
    return Message(
        said["data"],
        {
            "channel": said["channel"].decode(errors="replace"),
            "pattern": None if pattern is None else pattern.decode(errors="replace"),
        },
    )
