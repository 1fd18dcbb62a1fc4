"""The sink that sends rows to a WebSocket server."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Literal
from uuid import uuid4

import pyarrow as pa

from penstock.connectors.http.asking import unreachable
from penstock.connectors.http.websocket.connection import Link, WebsocketConfig
from penstock.sdk import (
    BatchId,
    Capability,
    Failure,
    Receipt,
    Rejected,
    Sink,
    Writer,
)
from penstock.sdk.kit.background import Background


class WebsocketSinkConfig(WebsocketConfig):
    frame: Literal["text", "binary"] = "text"
    """What rows are sent as."""


class WebsocketSink(Sink[WebsocketSinkConfig]):
    """Connects to a WebSocket server and sends it each row as a message.

    A batch is done when the server has answered a ping that came after its rows: it has read
    them, which is all that a WebSocket can tell. What the server sends is not kept.

    ```yaml
    type: websocket
    from: prices
    url: wss://wall.example.com/prices
    auth: {token: "${env:TOKEN}"}
    ```
    """

    acknowledges = "the server has answered a ping that came after the rows"
    capabilities = frozenset({Capability.BYTES, Capability.ORDERED})
    extra = "http"
    clients = ("aiohttp",)

    def check(self) -> None:
        client = self.open()
        try:
            client.connection()
        finally:
            client.close()

    def open(self) -> Client:
        return Client(self.config)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return WebsocketWriter(client.connection(), self.config)


class Client:
    """A connection that is kept between batches, and made again where it was lost."""

    def __init__(self, config: WebsocketSinkConfig) -> None:
        self._config = config
        self._background = Background()
        self._connection: Connection | None = None

    def connection(self) -> Connection:
        """One that is not lost yet."""
        if self._connection is None or self._connection.ended:
            self._drop()
            self._connection = Connection(self._config, self._background)
        return self._connection

    def close(self) -> None:
        """Leaves."""
        self._drop()
        self._background.close()

    def _drop(self) -> None:
        dropped, self._connection = self._connection, None
        if dropped is not None:
            dropped.close()


class Connection:
    """A link whose server is heard out, so that it can always send."""

    def __init__(self, config: WebsocketSinkConfig, background: Background) -> None:
        self._config, self._background = config, background
        self._answers: dict[bytes, asyncio.Event] = {}
        self._link = Link(config)
        self._listening: asyncio.Task[None] = background.run(self._opened())

    @property
    def ended(self) -> bool:
        """Whether it is lost."""
        return self._listening.done()

    def send(self, payloads: Sequence[bytes]) -> None:
        """Sends messages. Raises Transient where the connection is lost."""
        self._background.run(self._unless_lost(self._sent(payloads)))

    def confirm(self) -> None:
        """Returns when the server has read all that was sent. Raises Transient."""
        self._background.run(self._unless_lost(self._ponged()))

    def close(self) -> None:
        """Leaves."""
        self._background.run(self._closed())

    async def _opened(self) -> asyncio.Task[None]:
        await self._link.open()
        listening = asyncio.ensure_future(self._listen())
        # A loss between two batches is nobody's error: the next batch connects again.
        listening.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            await self._link.greet()
        except BaseException:
            listening.cancel()
            await self._link.close()
            raise
        return listening

    async def _listen(self) -> None:
        while True:
            frame = await self._link.receive()
            if frame.payload in self._answers:
                self._answers[frame.payload].set()

    async def _sent(self, payloads: Sequence[bytes]) -> None:
        for payload in payloads:
            await self._link.send(payload, self._config.frame)

    async def _ponged(self) -> None:
        token = uuid4().bytes
        answered = self._answers[token] = asyncio.Event()
        await self._link.ping(token)
        try:
            async with asyncio.timeout(self._config.timeout):
                await answered.wait()
        except TimeoutError:
            raise unreachable(self._config.url, "a ping is not answered") from None
        finally:
            self._answers.pop(token, None)

    async def _unless_lost(self, doing: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(doing)
        await asyncio.wait([task, self._listening], return_when=asyncio.FIRST_COMPLETED)
        if not self._listening.done():
            return task.result()
        task.cancel()
        await asyncio.wait([task])
        return self._listening.result()

    async def _closed(self) -> None:
        self._listening.cancel()
        await asyncio.wait([self._listening])
        await self._link.close()


class WebsocketWriter(Writer):
    """Sends the rows that it is given before it takes more."""

    def __init__(self, connection: Connection, config: WebsocketSinkConfig) -> None:
        self._connection, self._config = connection, config
        self._count = 0

    def write(self, rows: pa.RecordBatch, payloads: Any = None) -> Sequence[Failure]:
        bodies = payloads.to_pylist()
        failures = []
        if self._config.frame == "text":
            failures = [Failure(at, _NO_TEXT) for at, body in enumerate(bodies) if not _text(body)]
        bad = {failure.index for failure in failures}
        good = [body for at, body in enumerate(bodies) if at not in bad]
        self._connection.send(good)
        self._count += len(good)
        return failures

    def commit(self) -> Receipt:
        self._connection.confirm()
        return {"messages": self._count}


_NO_TEXT = Rejected("it is no text (UTF-8); frame: binary sends what it is", code="no-text")


def _text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
