"""The WebSocket source: receives the messages of a server."""

from __future__ import annotations

import asyncio

import pyarrow as pa

from penstock.connectors.http.websocket.client import WebsocketConnection
from penstock.connectors.http.websocket.config import WebsocketSourceConfig
from penstock.sdk import Journal, Message, ReceivingSource


class WebsocketSource(ReceivingSource[WebsocketSourceConfig]):
    """Connects to a WebSocket server. Each message, text or binary, is a record.

    The WebSocket protocol has no acknowledgements: messages that the server sends while the source
    is disconnected are lost. While the journal is full, the source stops reading, or drops and
    counts messages (`when_full`). Each reconnect sends `messages` again.

    ```yaml
    type: websocket
    url: wss://feed.example.com/v1
    messages: ['{"op": "subscribe", "channel": "trades"}']
    ```
    """

    parallelism = "the connection"
    acknowledges = None
    extra = "http"
    client_modules = ("aiohttp",)

    def message_metadata_schema(self) -> pa.Schema:
        return pa.schema([("frame", pa.string())])

    def check(self) -> None:
        asyncio.run(self._check())

    async def receive(self, journal: Journal) -> None:
        drops = self.config.when_full == "drop"
        async with WebsocketConnection(self.config) as connection:
            await connection.send_initial_messages()
            while True:
                frame = await connection.receive()
                journal.ready.set()
                if frame.type == "pong":
                    continue
                message = Message(frame.payload, {"frame": frame.type})
                if drops and journal.full:
                    journal.offer([message])
                else:
                    await journal.take([message])

    async def _check(self) -> None:
        async with WebsocketConnection(self.config):
            pass
