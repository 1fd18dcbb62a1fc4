"""The TCP sink."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.connectors.tcp.client import TcpClient
from penstock.connectors.tcp.config import TcpSinkConfig
from penstock.connectors.tcp.server import BroadcastServer
from penstock.connectors.tcp.writer import BroadcastWriter, TcpWriter
from penstock.sdk import BatchId, Capability, Context, Receipt, Sink, Writer
from penstock.sdk.messages.packing import unpack_messages


class TcpSink(Sink[TcpSinkConfig]):
    """Sends rows over TCP, as a client (`connect`) or as a server (`listen`).

    With `connect`, a batch is complete when the operating system of the peer has acknowledged all
    bytes; the program of the peer may not have read the bytes yet. Each partition of a batch has a
    connection.

    With `listen`, all connected subscribers receive all rows, and subscribers that disconnect miss
    the remaining rows. The driver sends the rows, so a batch has to fit into its memory.

    Rows that contain the delimiter, or are longer than the length prefix allows, become dead
    letters.

    ```yaml
    type: tcp
    from: lines
    connect: collector.example.com:9000
    framing: {length: 4}
    tls: true
    ```
    """

    acknowledges: str | None = "the operating system of the peer has acknowledged all bytes"
    variants = ("connect: collector.example.com:9000", "listen: 0.0.0.0:9000")
    capabilities = frozenset({Capability.BYTES, Capability.ORDERED})
    _server: BroadcastServer | None = None

    def __init__(self, config: TcpSinkConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        if config.connect is None:
            self.parallelism, self.acknowledges = "the driver", None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_server": None}

    def check(self) -> None:
        if self.config.connect is not None:
            TcpClient(self.config).close()
        elif self._server is None:
            BroadcastServer(self.config).close()

    def open(self) -> TcpClient | None:
        return None if self.config.connect is None else TcpClient(self.config)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        if client is None:
            return BroadcastWriter(partition, self.config.framing)
        return TcpWriter(client, self.config.framing)

    def recover(self) -> None:
        if self.config.listen is not None:
            self._open_server().update_subscribers()

    def commit(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        if self.config.listen is not None and receipts:
            server = self._open_server()
            server.await_subscribers(self.config.min_subscribers)
            server.send(frame for frames in unpack_messages(receipts) for frame in frames)

    def tick(self) -> None:
        if self._server is not None:
            self._server.update_subscribers()

    def complete(self) -> None:
        self.close()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def _open_server(self) -> BroadcastServer:
        if self._server is None:
            self._server = BroadcastServer(self.config)
        return self._server
