"""The source of ZeroMQ sockets."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pyarrow as pa

from penstock.connectors.zeromq.endpoint import EndpointConfig, Opened
from penstock.sdk import Journal, Message, ReceivingConfig, ReceivingSource

_TOGETHER = 128 << 10
"""The bytes of one append: they fit into any journal."""
_OVERHEAD = 64
_LOOK_SECONDS = 0.2


class ZeromqSourceConfig(EndpointConfig, ReceivingConfig):
    socket: Literal["sub", "pull"] = "sub"
    """Our end: `sub` where the others publish (PUB), `pull` where they push (PUSH)."""
    topic: str | list[str] = ""
    """The beginnings of topics to subscribe to (`sub`); all if left out."""

    @property
    def topics(self) -> list[str]:
        return [self.topic] if isinstance(self.topic, str) else self.topic


class ZeromqSource(ReceivingSource[ZeromqSourceConfig]):
    """Takes messages from a ZeroMQ socket: SUB or PULL.

    The payload is the last part of a message; where it has several, the first is the topic, and
    `parts` are all before the payload. While the journal is full nothing is taken: those who push
    wait then, and those who publish lose what is above their own mark. ZeroMQ tells a sender
    nothing of what became of its messages, and those in our memory are lost when we are killed.

    ```yaml
    type: zeromq
    connect: tcp://publisher.example.com:5555
    topic: [orders, payments]
    metadata: {kind: topic}
    ```
    """

    parallelism = "the socket"
    acknowledges = None
    extra = "zeromq"
    clients = ("zmq",)

    def about(self) -> pa.Schema:
        return pa.schema([("topic", pa.string()), ("parts", pa.list_(pa.binary()))])

    def check(self) -> None:
        """Needs an endpoint to bind, or those that we connect to."""
        opened = self._opened()
        try:
            opened.await_others()
        finally:
            opened.close()

    async def receive(self, journal: Journal) -> None:
        opened = await asyncio.to_thread(self._opened)
        try:
            await asyncio.to_thread(opened.await_others)
            journal.ready.set()
            while True:
                opened.look()
                if messages := await _some(opened.socket):
                    await journal.append(messages)
        finally:
            opened.close()

    def _opened(self) -> Opened:
        kind = self.config.socket.upper()
        opened = Opened(self.config, kind)
        if kind == "SUB":
            for topic in self.config.topics:
                opened.socket.subscribe(topic)
        return opened


async def _some(socket: Any) -> list[Message]:
    """What is there, once something is; nothing if that takes long."""
    import zmq

    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    loop.add_reader(socket.fd, came.set)
    try:
        if not socket.events & zmq.POLLIN:
            await asyncio.wait_for(came.wait(), _LOOK_SECONDS)
    except TimeoutError:
        pass
    finally:
        loop.remove_reader(socket.fd)
    found: list[Message] = []
    size = 0
    while size < _TOGETHER and socket.events & zmq.POLLIN:
        parts = socket.recv_multipart(zmq.NOBLOCK)
        size += _OVERHEAD + sum(map(len, parts))
        found.append(_message(parts))
    return found


def _message(parts: list[bytes]) -> Message:
    topic = parts[0].decode(errors="replace") if len(parts) > 1 else None
    return Message(parts[-1], {"topic": topic, "parts": parts[:-1]})
