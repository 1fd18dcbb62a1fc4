"""A WebSocket, as a client has it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field

from penstock.connectors.http.asking import reaching, session, unreachable
from penstock.connectors.http.endpoint import AUTH, EndpointConfig
from penstock.sdk import ByteSize, Duration, Permanent, Secret, Transient
from penstock.sdk.kit.address import url_of

_TOO_BIG = 1009
_CLOSE_SECONDS = 2.0

Kind = Literal["text", "binary", "pong"]


class WebsocketConfig(EndpointConfig):
    url: Annotated[str, AfterValidator(url_of("ws", "wss", user=AUTH))]
    """The server, as `ws://host:port/path`, or `wss://host/path` for TLS."""
    messages: list[Secret] = []
    """What is sent, as text, after each connect: a login, subscriptions."""
    protocols: list[str] = []
    """The subprotocols that we understand; the server chooses one."""
    ping: Duration = Field(default=30.0, gt=0)
    """How often the server is pinged; a connection that is silent for twice as long is lost."""
    max_message: ByteSize = Field(default=16 << 20, ge=1)
    """The largest message that is taken."""


class Frame(NamedTuple):
    """What the server sent: a message, or the answer to a ping."""

    kind: Kind
    payload: bytes


class Link:
    """One connection, from when it is made until it is lost. Raises Transient or Permanent."""

    def __init__(self, config: WebsocketConfig) -> None:
        self._config = config
        self._session: Any = None
        self._socket: Any = None
        self._pinging: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Connects."""
        self._session = session(self._config.auth, self._config.tls, None)
        try:
            self._socket = await self._connected()
        except BaseException:
            await self._session.close()
            raise
        self._pinging = asyncio.ensure_future(self._keep_alive())

    async def close(self) -> None:
        """Leaves."""
        if self._pinging is not None:
            self._pinging.cancel()
            await self._socket.close()
            await self._session.close()

    async def greet(self) -> None:
        """Sends the messages of the options, and a ping: its answer says that they are taken."""
        for message in self._config.messages:
            await self.send(message.reveal().encode(), "text")
        await self.ping()

    async def send(self, payload: bytes, kind: Kind) -> None:
        """Sends a message; waits while the server takes none."""
        import aiohttp

        code = aiohttp.WSMsgType.TEXT if kind == "text" else aiohttp.WSMsgType.BINARY
        with reaching(self._config.url):
            async with asyncio.timeout(self._config.timeout):
                await self._socket.send_frame(payload, code)

    async def ping(self, payload: bytes = b"") -> None:
        """Sends a ping, which the server answers after all that was sent before."""
        with reaching(self._config.url):
            async with asyncio.timeout(self._config.timeout):
                await self._socket.ping(payload)

    async def receive(self) -> Frame:
        """What the server sent next. Its pings are answered."""
        import aiohttp

        kinds: dict[Any, Kind] = {
            aiohttp.WSMsgType.TEXT: "text",
            aiohttp.WSMsgType.BINARY: "binary",
            aiohttp.WSMsgType.PONG: "pong",
        }
        while True:
            with reaching(self._config.url):
                message = await self._socket.receive(2 * self._config.ping)
                if message.type is aiohttp.WSMsgType.PING:
                    await self._socket.pong(message.data)
                    continue
            if message.type in kinds:
                return Frame(kinds[message.type], bytes(message.data))
            raise self._lost(message)

    async def _connected(self) -> Any:
        import aiohttp

        config = self._config
        with reaching(config.url):
            async with asyncio.timeout(config.timeout):
                return await self._session.ws_connect(
                    config.url, headers=config.revealed_headers(), protocols=config.protocols,
                    max_msg_size=config.max_message + 1, autoping=False, decode_text=False,
                    timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_SECONDS),
                )  # fmt: skip

    async def _keep_alive(self) -> None:
        """Until a ping cannot be sent, which whoever receives is told as well."""
        with suppress(Transient):
            while True:
                await asyncio.sleep(self._config.ping)
                await self.ping()

    def _lost(self, message: Any) -> Transient | Permanent:
        """What a message says that ends the connection."""
        code = self._socket.close_code
        if code == _TOO_BIG:
            return Permanent(
                f"a message has more than {self._config.max_message:,} bytes",
                code="too-large",
                hint="max_message says how large it may be",
            )
        said = f"{code} {message.extra or ''}".strip()
        return unreachable(self._config.url, f"the connection was closed ({said})")
