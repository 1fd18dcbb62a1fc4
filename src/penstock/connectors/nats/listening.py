"""The source of subjects: what is published while we listen."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pyarrow as pa

from penstock.connectors.nats.config import NatsSourceConfig
from penstock.connectors.nats.connection import connected, faults, flushed
from penstock.core.errors import StateError
from penstock.sdk import Journal, Message, Permanent, ReceivingSource

METADATA = pa.schema(
    [
        ("subject", pa.string()),
        ("reply", pa.string()),
        ("headers", pa.map_(pa.string(), pa.string())),
    ]
)


class SubjectSource(ReceivingSource[NatsSourceConfig]):
    """Subscribes to subjects; nobody waits until a message is safe."""

    parallelism = "the connection"
    acknowledges: str | None = None
    extra = "nats"
    clients = ("nats", "nkeys")

    def about(self) -> pa.Schema:
        return METADATA

    def check(self) -> None:
        asyncio.run(self._tried())

    async def receive(self, journal: Journal) -> None:
        config = self.config
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def took(message: Any) -> None:
            journal.offer([Message(bytes(message.data), _about(message))])

        async def hear(error: Exception) -> None:
            forbidden = "permissions violation" in str(error).casefold()
            if (forbidden or isinstance(error, StateError)) and not ended.done():
                ended.set_exception(_forbidden(str(error)) if forbidden else error)

        async def lost() -> None:
            if not ended.done():
                ended.set_exception(config.unreachable("the connection was lost"))

        client = await connected(config, error_cb=hear, closed_cb=lost, drain_timeout=5)
        try:
            with faults(config, "subscribe"):
                for subject in config.subjects:
                    await client.subscribe(
                        subject, config.queue_group or "", took,
                        pending_msgs_limit=0, pending_bytes_limit=0,
                    )  # fmt: skip
                await flushed(client, config)
            if not ended.done():
                journal.ready.set()
            await ended
        finally:
            with suppress(Exception):
                await client.drain()

    async def _tried(self) -> None:
        await (await connected(self.config)).close()


def _about(message: Any) -> dict[str, Any]:
    return {
        "subject": message.subject,
        "reply": message.reply or None,
        "headers": message.headers,
    }


def _forbidden(said: str) -> Permanent:
    return Permanent(
        f"the NATS server does not let us subscribe: {said.removeprefix('nats: ')}",
        code="not-authorized",
        hint="the user needs the right to subscribe to it",
    )
