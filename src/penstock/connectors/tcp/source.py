"""The TCP source."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pyarrow as pa

from penstock.connectors.tcp.config import TcpSourceConfig
from penstock.connectors.tcp.errors import connection_lost, open_error
from penstock.connectors.tcp.reader import CHUNK_BYTES, ConnectionHandler
from penstock.sdk import Journal, ReceivingSource

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class TcpSource(ReceivingSource[TcpSourceConfig]):
    """Receives messages over TCP, as a server (`listen`) or as a client (`connect`).

    While the journal is full the source stops reading, so that TCP flow control stops the senders.
    TCP has no acknowledgement of messages: messages in flight are lost when the source is killed.
    When a sender disconnects in the middle of a message, the partial message is received with
    a delimiter, and lost with a length prefix.

    After an invalid length prefix in digits the source closes the connection, because the
    boundaries of the following messages are unknown. The data counts as lost, and the error is
    reported, with `listen` in `receiver.log` beside the journal.

    ```yaml
    type: tcp
    listen: 0.0.0.0:9000
    framing: lines
    metadata: {sender: remote}
    ```
    """

    parallelism = "the process that listens or connects"
    acknowledges = None

    def message_metadata_schema(self) -> pa.Schema:
        return pa.schema([("remote", pa.string()), ("remote_port", pa.int32())])

    def check(self) -> None:
        """Loads the certificates, and listens or connects once."""
        asyncio.run(self._check())

    async def receive(self, journal: Journal) -> None:
        handler = ConnectionHandler(self.config, journal)
        if self.config.connect is not None:
            async with self._connect() as streams:
                journal.ready.set()
                await handler.receive(*streams)
            raise connection_lost(self.config, "closed by the peer")
        server = await self._listen(handler)
        try:
            journal.ready.set()
            await handler.failed
        finally:
            server.close()
            await handler.close()

    async def _check(self) -> None:
        if self.config.connect is None:
            (await self._listen(lambda *_: None)).close()
            return
        async with self._connect():
            return

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Streams]:
        context = self.config.ssl_context()
        connecting = asyncio.open_connection(
            *self.config.host_and_port, ssl=context, limit=CHUNK_BYTES
        )
        try:
            reader, writer = await asyncio.wait_for(connecting, self.config.timeout)
        except OSError as error:
            raise open_error(self.config, error) from None
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    async def _listen(self, handler: Callable[..., Any]) -> asyncio.Server:
        host, port = self.config.host_and_port
        context = self.config.ssl_context()
        try:
            return await asyncio.start_server(handler, host, port, ssl=context, limit=CHUNK_BYTES)
        except OSError as error:
            raise open_error(self.config, error) from None
