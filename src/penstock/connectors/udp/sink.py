"""The UDP sink."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa

from penstock.connectors.udp.config import MAX_DATAGRAM_BYTES, UdpSinkConfig, resolve_address
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
from penstock.sdk.messages.framing import encode_frame


class UdpSink(Sink[UdpSinkConfig]):
    """Sends rows as UDP datagrams, to one host or to a multicast group.

    UDP has no acknowledgements: lost datagrams are not detected. Rows larger than a datagram
    (65,507 bytes) become dead letters. With a framing other than `datagram`, rows are packed into
    datagrams of up to `max_datagram_size`.

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
        """Resolves the address. UDP cannot detect whether a program listens."""
        self.open().close()

    def open(self) -> socket.socket:
        config = self.config
        family, address = resolve_address(config.connect)
        sock = socket.socket(family, socket.SOCK_DGRAM)
        try:
            if family == socket.AF_INET:
                interface = socket.inet_aton(config.interface)
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, config.hops)
            sock.connect(address)
        except OSError as error:
            sock.close()
            raise _send_error(config, error) from None
        return sock

    def writer(self, client: Any, batch: BatchId, partition: int, schema: pa.Schema) -> Writer:
        return UdpWriter(client, self.config)


class UdpWriter(Writer):
    """Sends all rows of a call before `write` returns."""

    def __init__(self, sock: socket.socket, config: UdpSinkConfig) -> None:
        self._socket, self._config = sock, config
        self._count = 0

    def write(
        self, rows: pa.RecordBatch, payloads: Any = None, operations: pa.StringArray | None = None
    ) -> Sequence[Failure]:
        failures: list[Failure] = []
        datagram = b""
        for index, payload in enumerate(payloads.to_pylist()):
            try:
                frame = self._encode(payload)
            except Rejected as error:
                failures.append(Failure(index, error))
                continue
            if self._config.framing == "datagram":
                self._send(frame)
                continue
            if datagram and len(datagram) + len(frame) > self._config.max_datagram_size:
                self._send(datagram)
                datagram = b""
            datagram += frame
        if datagram:
            self._send(datagram)
        return failures

    def commit(self) -> Receipt:
        return {"datagrams": self._count}

    def _encode(self, payload: bytes) -> bytes:
        framing = self._config.framing
        frame = payload if framing == "datagram" else encode_frame(payload, framing)
        if len(frame) > MAX_DATAGRAM_BYTES:
            raise Rejected(
                f"expected at most {MAX_DATAGRAM_BYTES:,} bytes, found {len(frame):,}",
                code="too-large",
            )
        return frame

    def _send(self, datagram: bytes) -> None:
        try:
            # The error is of an earlier datagram (ICMP); the current datagram was not sent.
            with suppress(ConnectionRefusedError):
                self._socket.send(datagram)
                self._count += 1
                return
            self._socket.send(datagram)
        except OSError as error:
            raise _send_error(self._config, error) from None
        self._count += 1


def _send_error(config: UdpSinkConfig, error: OSError) -> Transient:
    return Transient(
        f"could not send to {config.connect}: {error.strerror}",
        code="unreachable",
        hint="Check the address and the network route.",
    )
