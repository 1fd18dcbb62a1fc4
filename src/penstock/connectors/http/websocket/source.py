"""The source of what a WebSocket server sends."""

from __future__ import annotations

import asyncio
from typing import Literal

import pyarrow as pa

from penstock.connectors.http.websocket.connection import Link, WebsocketConfig
from penstock.sdk import Journal, Message, ReceivingConfig, ReceivingSource


class WebsocketSourceConfig(WebsocketConfig, ReceivingConfig):
    when_full: Literal["wait", "drop"] = "wait"
    """What happens while the journal is full: the server is made to `wait`, as TCP does it, or
    messages are dropped and counted, for servers that close connections that are slow."""


class WebsocketSource(ReceivingSource[WebsocketSourceConfig]):
    """Connects to a WebSocket server; each message that it sends, text or binary, is a record.

    A WebSocket server is told nothing of what became of its messages: those that it sends while
    we are away are lost. A full journal makes it wait, or drops messages and counts them
    (`when_full`). After a lost connection `messages` are sent again.

    ```yaml
    type: websocket
    url: wss://feed.example.com/v1
    messages: ['{"op": "subscribe", "channel": "trades"}']
    ```
    """

    parallelism = "the connection"
    acknowledges = None
    extra = "http"
    clients = ("aiohttp",)

    def about(self) -> pa.Schema:
        return pa.schema([("frame", pa.string())])

    def check(self) -> None:
        asyncio.run(self._tried())

    async def receive(self, journal: Journal) -> None:
        drops = self.config.when_full == "drop"
        async with Link(self.config) as link:
            await link.greet()
            while True:
                frame = await link.receive()
                journal.ready.set()
                if frame.kind == "pong":
                    continue
                message = Message(frame.payload, {"frame": frame.kind})
                if drops and journal.full:
                    journal.offer([message])
                else:
                    await journal.take([message])

    async def _tried(self) -> None:
        async with Link(self.config):
            pass
