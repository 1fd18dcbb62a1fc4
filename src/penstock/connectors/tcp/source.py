"""The source of TCP connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pyarrow as pa
from pydantic import Field

from penstock.connectors.tcp.connection import ConnectionConfig
from penstock.connectors.tcp.taking import CHUNK, Taking
from penstock.sdk import ByteSize, Journal, ReceivingConfig, ReceivingSource

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class TcpSourceConfig(ConnectionConfig, ReceivingConfig):
    max_message: ByteSize = Field(default=16 << 20, ge=1)
    """The largest message, and never more than half of the journal. What is larger is left out,
    and counted as lost."""


class TcpSource(ReceivingSource[TcpSourceConfig]):
    """Takes messages from TCP connections: of those who connect to us, or of one that we make.

    While the journal is full nothing is read, which makes senders wait. TCP tells a sender
    nothing of what became of its messages: those on their way are lost when we are killed. A
    message without an end, when its sender leaves, is taken where messages end with a delimiter,
    and is lost where its length says that more should come.

    Where a length in digits is no number, nothing that follows can be told apart: the connection
    is left, what came is counted as lost, and an error says what it was, or `receiver.log` beside
    the journal where others connect to us.

    ```yaml
    type: tcp
    listen: 0.0.0.0:9000
    framing: lines
    metadata: {sender: remote}
    ```
    """

    parallelism = "the process that listens or connects"
    acknowledges = None

    def about(self) -> pa.Schema:
        return pa.schema([("remote", pa.string()), ("remote_port", pa.int32())])

    def check(self) -> None:
        """Needs the certificates, and an address to listen at or somebody to connect to."""
        asyncio.run(self._tried())

    async def receive(self, journal: Journal) -> None:
        most = min(self.config.max_message, self.config.journal.size // 2)
        taking = Taking(self.config, most, journal)
        if self.config.connect is not None:
            async with self._connected() as connection:
                journal.ready.set()
                await taking.take(*connection)
            raise self.config.lost("it was closed there")
        server = await self._listening(taking)
        try:
            journal.ready.set()
            await taking.failed
        finally:
            server.close()
            await taking.close()

    async def _tried(self) -> None:
        if self.config.connect is None:
            (await self._listening(lambda *_: None)).close()
            return
        async with self._connected():
            return

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Connection]:
        tls = self.config.context()
        opening = asyncio.open_connection(*self.config.host_and_port, ssl=tls, limit=CHUNK)
        try:
            reader, writer = await asyncio.wait_for(opening, self.config.timeout)
        except OSError as error:
            raise self.config.failed(error) from None
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    async def _listening(self, serve: Callable[..., Any]) -> asyncio.Server:
        host, port = self.config.host_and_port
        tls = self.config.context()
        try:
            return await asyncio.start_server(serve, host, port, ssl=tls, limit=CHUNK)
        except OSError as error:
            raise self.config.failed(error) from None
