"""The sink of UDP datagrams."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pydantic import Field

from penstock.connectors.udp.datagrams import LARGEST, DatagramConfig, resolved
from penstock.sdk import (
    BatchId,
    Capability,
    Failure,
    Receipt,
    Rejected,
    Sink,
    Transient,
    Writer,
)
from penstock.sdk.kit.address import Address
from penstock.sdk.kit.framing import framed


class UdpSinkConfig(DatagramConfig):
    connect: Address
    """Where datagrams go, as `host:port`; the host may be a multicast group."""
    max_datagram: int = Field(default=1400, ge=1, le=LARGEST)
    """The most bytes of a datagram that holds several messages."""
    hops: int = Field(default=1, ge=0, le=255)
    """How many routers a datagram to a multicast group passes; 0 stays on this machine."""


class UdpSink(Sink[UdpSinkConfig]):
    """Sends rows as UDP datagrams, also to a multicast group.

    Nobody tells whether a datagram arrived. Rows that do not fit into one (65,507 bytes) become
    dead letters. With another framing than `datagram` there are as many rows in each as fit.

    ```yaml
    type: udp
    from: metrics
    connect: collector.example.com:8125
    framing: lines
    ```
    """

    acknowledges = None
    capabilities = frozenset({Capability.BYTES})

    def check(self) -> None:
        """Needs an address that is known; nobody can say whether somebody listens there."""
        self.open().close()

    def open(self) -> socket.socket:
        config = self.config
        family, address = resolved(config.connect)
        sock = socket.socket(family, socket.SOCK_DGRAM)
        try:
            if family == socket.AF_INET:
                through = socket.inet_aton(config.interface)
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, through)
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, config.hops)
            sock.connect(address)
        except OSError as error:
            sock.close()
            raise _failed(config, error) from None
        return sock

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return UdpWriter(client, self.config)


class UdpWriter(Writer):
    """Sends the rows that it is given before it takes more."""

    def __init__(self, sock: socket.socket, config: UdpSinkConfig) -> None:
        self._socket, self._config = sock, config
        self._count = 0

    def write(self, rows: pa.RecordBatch, payloads: Any = None) -> Sequence[Failure]:
        failures: list[Failure] = []
        held = b""
        for at, payload in enumerate(payloads.to_pylist()):
            try:
                data = self._framed(payload)
            except Rejected as error:
                failures.append(Failure(at, error))
                continue
            if self._config.framing == "datagram":
                self._send(data)
                continue
            if held and len(held) + len(data) > self._config.max_datagram:
                self._send(held)
                held = b""
            held += data
        if held:
            self._send(held)
        return failures

    def commit(self) -> Receipt:
        return {"datagrams": self._count}

    def _framed(self, payload: bytes) -> bytes:
        framing = self._config.framing
        data = payload if framing == "datagram" else framed(payload, framing)
        if len(data) > LARGEST:
            raise Rejected(f"{len(data):,} bytes do not fit into a datagram", code="too-long")
        return data

    def _send(self, data: bytes) -> None:
        try:
            with suppress(ConnectionRefusedError):  # said of an earlier one; this one is not sent
                self._socket.send(data)
                self._count += 1
                return
            self._socket.send(data)
        except OSError as error:
            raise _failed(self._config, error) from None
        self._count += 1


def _failed(config: UdpSinkConfig, error: OSError) -> Transient:
    return Transient(
        f"could not send to {config.connect}: {error.strerror}",
        code="unreachable",
        hint="does the machine have a way there?",
    )
