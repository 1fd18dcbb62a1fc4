"""Connection handler of the TCP source: byte streams to journal messages."""

from __future__ import annotations

import asyncio
import socket

from penstock.connectors.tcp.config import TcpSourceConfig
from penstock.connectors.tcp.errors import connection_lost, framing_error, incomplete_message
from penstock.core.errors import PenstockError, Transient
from penstock.core.log import make
from penstock.sdk import Journal, Message
from penstock.sdk.messages.framing import FrameDecoder, frame_decoder
from penstock.sdk.network.byte_budget import ByteBudget, Share
from penstock.sdk.network.connection_limits import ConnectionCounter

CHUNK_BYTES = 64 << 10
_MAX_MESSAGES_PER_APPEND = 1000
"""Even empty messages of one append fit into the smallest journal."""
_MAX_LOGGED_ERRORS = 100


class ConnectionHandler:
    """Appends the messages of connections to the journal.

    Messages of more than `max_message_size` bytes are discarded. The handler is the callback of an
    asyncio server. `failed` is a future with the error after which the journal accepts no more
    messages.
    """

    def __init__(
        self, config: TcpSourceConfig, journal: Journal, budget: ByteBudget | None = None
    ) -> None:
        self._config, self._journal = config, journal
        self._max_size = min(config.max_message_size, config.journal.max_size // 2)
        self._budget = budget or ByteBudget()
        self._connections = ConnectionCounter(config)
        self._tasks: set[asyncio.Task[None]] = set()
        self._logged: set[str] = set()
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peername = writer.get_extra_info("peername")
        if not self._connections.add(peername):
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self.receive(reader, writer)
        except Transient as error:
            self._log_framing_error(error)
        except PenstockError as error:
            if not self.failed.done():
                self.failed.set_exception(error)
        finally:
            self._connections.remove(peername)
            self._tasks.discard(task)
            writer.transport.abort()

    async def receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Appends the messages of a connection until the peer closes it.

        Raises Transient if the connection fails or the data does not match `framing`.
        """
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        host, port, *_ = writer.get_extra_info("peername")
        metadata = {"remote": host, "remote_port": port}
        decoder = frame_decoder(self._config.framing, self._max_size)
        try:
            with self._budget.share() as share:
                await self._receive_messages(reader, decoder, share, metadata)
        except OSError as error:
            decoder.finish()
            raise connection_lost(self._config, error.strerror or str(error)) from None
        finally:
            self._count_lost(decoder)

    async def _receive_messages(
        self,
        reader: asyncio.StreamReader,
        decoder: FrameDecoder,
        share: Share,
        metadata: dict[str, object],
    ) -> None:
        """Appends messages until the end of the stream. Raises Transient or OSError."""
        host = str(metadata["remote"])
        remaining = self._config.idle_timeout
        while True:
            await share.await_room()
            data, seconds = await _read(reader, remaining if decoder.buffered else None)
            if data is None:
                decoder.lost += 1
                raise incomplete_message(host)
            if not data:
                break
            payloads = decoder.feed(data)
            new = bool(payloads) or not decoder.buffered
            remaining = self._config.idle_timeout if new else remaining - seconds
            self._count_lost(decoder)
            share.resize(decoder.buffered + sum(map(len, payloads)))
            await self._append(payloads, metadata)
            share.resize(decoder.buffered)
            if decoder.error is not None:
                raise framing_error(decoder.error, host)
        await self._append(decoder.finish(), metadata)

    async def close(self) -> None:
        """Closes all accepted connections."""
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _log_framing_error(self, error: Transient) -> None:
        """Writes an error of `framing` to the receiver's log, once for each message."""
        new = error.message not in self._logged and len(self._logged) < _MAX_LOGGED_ERRORS
        if error.code in ("out-of-step", "cut-off") and new:
            self._logged.add(error.message)
            make().warning(error.message, code=error.code, hint=error.hint)

    async def _append(self, payloads: list[bytes], metadata: dict[str, object]) -> None:
        messages = [Message(payload, metadata) for payload in payloads]
        size = _MAX_MESSAGES_PER_APPEND
        chunks = [messages[start : start + size] for start in range(0, len(messages), size)]
        await asyncio.gather(*(self._journal.append(chunk) for chunk in chunks))

    def _count_lost(self, decoder: FrameDecoder) -> None:
        if decoder.lost:
            self._journal.lose(decoder.lost)
            decoder.lost = 0


async def _read(reader: asyncio.StreamReader, timeout: float | None) -> tuple[bytes | None, float]:
    """Returns the next bytes and the seconds until their arrival; None after the timeout."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    try:
        async with asyncio.timeout(timeout) as scope:
            data = await reader.read(CHUNK_BYTES)
    except TimeoutError:
        if not scope.expired():
            raise
        return None, loop.time() - start
    return data, loop.time() - start
