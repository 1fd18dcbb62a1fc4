"""The source of subjects without a stream."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pyarrow as pa

from penstock.connectors.nats.client import connect, flush
from penstock.connectors.nats.config import NatsSourceConfig
from penstock.connectors.nats.errors import connection_error, translate_errors
from penstock.core.errors import StateError
from penstock.sdk import Journal, Message, Permanent, ReceivingSource

_METADATA = pa.schema(
    [
        ("subject", pa.string()),
        ("reply", pa.string()),
        ("headers", pa.map_(pa.string(), pa.string())),
    ]
)
_DRAIN_SECONDS = 5


class SubscriberSource(ReceivingSource[NatsSourceConfig]):
    """Subscribes to subjects. Core NATS has no acknowledgements."""

    parallelism = "the connection"
    acknowledges: str | None = None
    extra = "nats"
    client_modules = ("nats", "nkeys")

    def message_metadata_schema(self) -> pa.Schema:
        return _METADATA

    def check(self) -> None:
        asyncio.run(self._check())

    async def receive(self, journal: Journal) -> None:
        config = self.config
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def on_message(message: Any) -> None:
            journal.offer([Message(bytes(message.data), _message_metadata(message))])

        async def on_error(error: Exception) -> None:
            forbidden = "permissions violation" in str(error).casefold()
            if (forbidden or isinstance(error, StateError)) and not ended.done():
                ended.set_exception(_permission_error(str(error)) if forbidden else error)

        async def on_close() -> None:
            if not ended.done():
                ended.set_exception(connection_error(config, "the connection was lost"))

        client = await connect(
            config, error_cb=on_error, closed_cb=on_close, drain_timeout=_DRAIN_SECONDS
        )
        try:
            with translate_errors(config, "subscribe"):
                for subject in config.subjects:
                    await client.subscribe(
                        subject, config.group or "", on_message,
                        pending_msgs_limit=0, pending_bytes_limit=0,
                    )  # fmt: skip
                await flush(client, config)
            if not ended.done():
                journal.ready.set()
            await ended
        finally:
            with suppress(Exception):
                await client.drain()

    async def _check(self) -> None:
        await (await connect(self.config)).close()


def _message_metadata(message: Any) -> dict[str, Any]:
    return {
        "subject": message.subject,
        "reply": message.reply or None,
        "headers": message.headers,
    }


def _permission_error(reason: str) -> Permanent:
    return Permanent(
        f"cannot subscribe: the NATS server denied permission: {reason.removeprefix('nats: ')}",
        code="authorization",
        hint="Grant the user the permission to subscribe to the subject.",
    )
