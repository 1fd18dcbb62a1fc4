"""The source of ZeroMQ sockets."""

from __future__ import annotations

import asyncio
from typing import Any, Literal, Self

import pyarrow as pa
from pydantic import model_validator

from penstock.connectors.zeromq.endpoint import Endpoint, EndpointConfig, Opened
from penstock.connectors.zeromq.start import Following
from penstock.sdk import Journal, Message, ReceivingConfig, ReceivingSource, Transient

_TOGETHER = 128 << 10
"""The bytes of one append: they fit into any journal."""
_OVERHEAD = 64
_LOOK_SECONDS = 0.2


class ZeromqSourceConfig(EndpointConfig, ReceivingConfig):
    socket: Literal["sub", "pull"] = "sub"
    """Our end: `sub` where the others publish (PUB), `pull` where they push (PUSH)."""
    topic: str | list[str] = ""
    """The beginnings of topics to subscribe to (`sub`); all if left out."""
    sync: Endpoint | None = None
    """Start in step with a program of stream_data_processor: the endpoint (REP) at which we ask
    when it calls. For `socket: sub` with one `connect`."""

    @model_validator(mode="after")
    def _in_step(self) -> Self:
        if self.sync is None:
            return self
        if self.socket != "sub" or len(self.others) != 1:
            raise ValueError("sync is for who subscribes to one: give socket: sub and a connect")
        if self.topics != [""]:
            raise ValueError("with sync messages have one part: leave out topic")
        if self.sync in self.others:
            raise ValueError("sync needs another endpoint than connect")
        return self

    @property
    def topics(self) -> list[str]:
        return [self.topic] if isinstance(self.topic, str) else self.topic


class ZeromqSource(ReceivingSource[ZeromqSourceConfig]):
    """Takes messages from a ZeroMQ socket: SUB or PULL.

    The payload is the last part of a message; where it has several, the first is the topic, and
    `parts` are all before the payload. While the journal is full nothing is taken: those who push
    wait then, and those who publish lose what is above their own mark. ZeroMQ tells a sender
    nothing of what became of its messages, and those in our memory are lost when we are killed.

    With `sync` the publisher is a program of stream_data_processor, or our sink with `sync`. When
    it calls (`connect`) we ask, and what it sends then has no gap; what it sends without a call
    is taken as well. Its `end` does not end a run: we wait for the next call, also from another
    publisher at the same endpoint. Neither word is a row.

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
        following = Following(self.config, self.config.sync)
        try:
            await asyncio.to_thread(opened.await_others)
            journal.ready.set()
            lost: Transient | None = None
            while True:
                lost = lost or _lost(opened)
                if messages := await _some(opened.socket, 0 if lost else _LOOK_SECONDS):
                    await journal.append(following.rows(messages))
                    if following.called:
                        await asyncio.to_thread(following.answer)
                elif lost is not None:
                    if not following.ended:
                        raise lost
                    lost = None
        finally:
            following.close()
            opened.close()

    def _opened(self) -> Opened:
        kind = self.config.socket.upper()
        opened = Opened(self.config, kind)
        if kind == "SUB":
            for topic in self.config.topics:
                opened.socket.subscribe(topic)
        return opened


def _lost(opened: Opened) -> Transient | None:
    """A connection that is not there any more; what came before may wait to be taken."""
    try:
        opened.look()
    except Transient as error:
        return error
    return None


async def _some(socket: Any, seconds: float) -> list[Message]:
    """What is there, once something is; nothing if that takes long."""
    import zmq

    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    loop.add_reader(socket.fd, came.set)
    try:
        if not socket.events & zmq.POLLIN:
            async with asyncio.timeout(seconds):
                await came.wait()
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
