"""WebSocket clients: a connection, and a blocking client that reconnects."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple, Self
from uuid import uuid4

from penstock.connectors.http.client import new_session
from penstock.connectors.http.errors import message_too_large, translate_errors, unreachable
from penstock.connectors.http.websocket.config import WebsocketConfig, WebsocketSinkConfig
from penstock.sdk import Permanent, Transient
from penstock.sdk.network.event_loop import EventLoopThread

_MESSAGE_TOO_BIG = 1009
_CLOSE_SECONDS = 2.0

FrameType = Literal["text", "binary", "pong"]


class Frame(NamedTuple):
    """A received frame: a data message, or a pong."""

    type: FrameType
    payload: bytes


class WebsocketConnection:
    """One connection, from connect to close. Methods raise Transient or Permanent."""

    def __init__(self, config: WebsocketConfig) -> None:
        self._config = config
        self._session: Any = None
        self._socket: Any = None
        self._keep_alive_task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Connects."""
        self._session = new_session(self._config.auth, self._config.tls_settings, None)
        try:
            self._socket = await self._connect()
        except BaseException:
            await self._session.close()
            raise
        self._keep_alive_task = asyncio.ensure_future(self._send_pings())

    async def close(self) -> None:
        """Closes the connection."""
        if self._keep_alive_task is not None:
            self._keep_alive_task.cancel()
            await self._socket.close()
            await self._session.close()

    async def send_initial_messages(self) -> None:
        """Sends the option `messages`, then a ping. The pong confirms that they were read."""
        for message in self._config.messages:
            await self.send(message.reveal().encode(), "text")
        await self.ping()

    async def send(self, payload: bytes, frame_type: Literal["text", "binary"]) -> None:
        """Sends a message. Waits while the server does not read."""
        import aiohttp

        code = aiohttp.WSMsgType.TEXT if frame_type == "text" else aiohttp.WSMsgType.BINARY
        with translate_errors(self._config.url):
            async with asyncio.timeout(self._config.timeout):
                await self._socket.send_frame(payload, code)

    async def ping(self, payload: bytes = b"") -> None:
        """Sends a ping. Its pong follows once the server has read all earlier messages."""
        with translate_errors(self._config.url):
            async with asyncio.timeout(self._config.timeout):
                await self._socket.ping(payload)

    async def receive(self) -> Frame:
        """Returns the next data message or pong. Replies to pings."""
        import aiohttp

        frame_types: dict[Any, FrameType] = {
            aiohttp.WSMsgType.TEXT: "text",
            aiohttp.WSMsgType.BINARY: "binary",
            aiohttp.WSMsgType.PONG: "pong",
        }
        while True:
            with translate_errors(self._config.url):
                message = await self._socket.receive(2 * self._config.keep_alive)
                if message.type is aiohttp.WSMsgType.PING:
                    await self._socket.pong(message.data)
                    continue
            if message.type in frame_types:
                return Frame(frame_types[message.type], bytes(message.data))
            raise self._close_error(message)

    async def _connect(self) -> Any:
        import aiohttp

        config = self._config
        with translate_errors(config.url):
            async with asyncio.timeout(config.timeout):
                return await self._session.ws_connect(
                    config.url, headers=config.revealed_headers(), protocols=config.protocols,
                    max_msg_size=config.max_message_size + 1, autoping=False, decode_text=False,
                    timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_SECONDS),
                )  # fmt: skip

    async def _send_pings(self) -> None:
        """Sends pings until the connection fails. `receive` raises the error."""
        with suppress(Transient):
            while True:
                await asyncio.sleep(self._config.keep_alive)
                await self.ping()

    def _close_error(self, message: Any) -> Transient | Permanent:
        """Returns the error for a message that ends the connection."""
        code = self._socket.close_code
        if code == _MESSAGE_TOO_BIG:
            return message_too_large(self._config.max_message_size, "a message")
        reason = f"{code} {message.extra or ''}".strip()
        return unreachable(self._config.url, f"the connection was closed ({reason})")


class WebsocketClient:
    """A blocking client whose connection is kept between batches and replaced when it fails."""

    def __init__(self, config: WebsocketSinkConfig) -> None:
        self._config = config
        self._event_loop = EventLoopThread()
        self._connection: BlockingConnection | None = None

    def connection(self) -> BlockingConnection:
        """Returns an open connection, and connects if necessary."""
        if self._connection is None or self._connection.closed:
            self._disconnect()
            self._connection = BlockingConnection(self._config, self._event_loop)
        return self._connection

    def close(self) -> None:
        """Closes the connection and stops the event loop."""
        self._disconnect()
        self._event_loop.close()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class BlockingConnection:
    """A connection with a blocking interface.

    A background task reads all frames, so that a server which responds to each message never
    blocks.
    """

    def __init__(self, config: WebsocketSinkConfig, event_loop: EventLoopThread) -> None:
        self._config, self._event_loop = config, event_loop
        self._pongs: dict[bytes, asyncio.Event] = {}
        self._connection = WebsocketConnection(config)
        self._reader: asyncio.Task[None] = event_loop.run(self._open())

    @property
    def closed(self) -> bool:
        """Whether the connection is closed or has failed."""
        return self._reader.done()

    def send(self, payloads: Sequence[bytes]) -> None:
        """Sends messages. Raises Transient if the connection fails."""
        self._event_loop.run(self._run_while_open(self._send(payloads)))

    def flush(self) -> None:
        """Returns once the server has read all sent messages. Raises Transient."""
        self._event_loop.run(self._run_while_open(self._await_pong()))

    def close(self) -> None:
        """Closes the connection."""
        self._event_loop.run(self._close())

    async def _open(self) -> asyncio.Task[None]:
        await self._connection.open()
        reader = asyncio.ensure_future(self._read_frames())
        # The next batch reconnects after a failure between two batches, so the error is dropped.
        reader.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            await self._connection.send_initial_messages()
        except BaseException:
            reader.cancel()
            await self._connection.close()
            raise
        return reader

    async def _read_frames(self) -> None:
        while True:
            frame = await self._connection.receive()
            if frame.payload in self._pongs:
                self._pongs[frame.payload].set()

    async def _send(self, payloads: Sequence[bytes]) -> None:
        for payload in payloads:
            await self._connection.send(payload, self._config.frame)

    async def _await_pong(self) -> None:
        token = uuid4().bytes
        pong = self._pongs[token] = asyncio.Event()
        await self._connection.ping(token)
        try:
            async with asyncio.timeout(self._config.timeout):
                await pong.wait()
        except TimeoutError:
            raise unreachable(self._config.url, "timeout while waiting for a pong") from None
        finally:
            self._pongs.pop(token, None)

    async def _run_while_open(self, operation: Coroutine[Any, Any, None]) -> None:
        """Runs an operation. A failure of the connection cancels the operation and is raised."""
        task = asyncio.ensure_future(operation)
        await asyncio.wait([task, self._reader], return_when=asyncio.FIRST_COMPLETED)
        if not self._reader.done():
            return task.result()
        task.cancel()
        await asyncio.wait([task])
        return self._reader.result()

    async def _close(self) -> None:
        self._reader.cancel()
        await asyncio.wait([self._reader])
        await self._connection.close()
