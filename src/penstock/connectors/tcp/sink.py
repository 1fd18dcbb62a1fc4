"""The sink of TCP connections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pydantic import Field

from penstock.connectors.tcp.broadcast import Broadcast
from penstock.connectors.tcp.connection import ConnectionConfig
from penstock.connectors.tcp.sending import Link
from penstock.sdk import BatchId, Capability, Context, Duration, Failure, Receipt, Sink, Writer
from penstock.sdk.kit.framing import Framing, all_framed
from penstock.sdk.kit.handing import handed, taken


class TcpSinkConfig(ConnectionConfig):
    patience: Duration = 60.0
    """How long the other side may read nothing; who listens leaves it then."""
    subscribers: int = Field(default=0, ge=0)
    """How many must be connected to us before a batch is sent, for those who listen."""


class TcpSink(Sink[TcpSinkConfig]):
    """Sends rows over TCP connections: one that is made, or those of all who connect to us.

    Who connects: a batch is done when the other side's system has acknowledged all of it, which
    is not to say that the program there has read it. Each partition of a batch has a connection.

    Who listens: everybody who is connected gets everything, and who leaves misses the rest. The
    driver sends it, so a batch has to fit into its memory.

    Rows that have a delimiter in them, or are longer than their prefix can tell, become dead
    letters.

    ```yaml
    type: tcp
    from: lines
    connect: collector.example.com:9000
    framing: {length: 4}
    tls: true
    ```
    """

    acknowledges: str | None = "the system at the other side has acknowledged all bytes"
    variants = ("connect: collector.example.com:9000", "listen: 0.0.0.0:9000")
    capabilities = frozenset({Capability.BYTES, Capability.ORDERED})
    _broadcast: Broadcast | None = None

    def __init__(self, config: TcpSinkConfig, context: Context | None = None) -> None:
        super().__init__(config, context)
        if config.connect is None:
            self.parallelism, self.acknowledges = "the driver", None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_broadcast": None}

    def check(self) -> None:
        if self.config.connect is not None:
            Link(self.config, self.config.patience).close()
        elif self._broadcast is None:
            Broadcast(self.config, self.config.patience).close()

    def open(self) -> Link | None:
        if self.config.connect is None:
            return None
        return Link(self.config, self.config.patience)

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        if client is None:
            return HandingWriter(partition, self.config.framing)
        return TcpWriter(client, self.config.framing)

    def recover(self) -> None:
        if self.config.listen is not None:
            self._listening().look()

    def finish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        if self.config.listen is not None and receipts:
            broadcast = self._listening()
            broadcast.await_takers(self.config.subscribers)
            broadcast.send(data for parts in taken(receipts) for data in parts)

    def tick(self) -> None:
        if self._broadcast is not None:
            self._broadcast.look()

    def complete(self) -> None:
        self.close()

    def close(self) -> None:
        if self._broadcast is not None:
            self._broadcast.close()
            self._broadcast = None

    def _listening(self) -> Broadcast:
        if self._broadcast is None:
            self._broadcast = Broadcast(self.config, self.config.patience)
        return self._broadcast


class TcpWriter(Writer):
    """Sends the rows that it is given before it takes more."""

    def __init__(self, link: Link, framing: Framing) -> None:
        self._link, self._framing = link, framing
        self._count = 0

    def write(self, rows: pa.RecordBatch, payloads: Any = None) -> Sequence[Failure]:
        data, failures = all_framed(payloads, self._framing)
        self._link.send(b"".join(data))
        self._count += len(data)
        return failures

    def commit(self) -> Receipt:
        self._link.await_receipt()
        return {"messages": self._count}


class HandingWriter(Writer):
    """Hands the rows to the driver."""

    def __init__(self, partition: int, framing: Framing) -> None:
        self._partition, self._framing = partition, framing
        self._data: list[bytes] = []

    def write(self, rows: pa.RecordBatch, payloads: Any = None) -> Sequence[Failure]:
        data, failures = all_framed(payloads, self._framing)
        self._data += data
        return failures

    def commit(self) -> Receipt:
        return handed(self._partition, [self._data])
