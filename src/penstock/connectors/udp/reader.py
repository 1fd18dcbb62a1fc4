"""Datagram receiver of the UDP source: datagrams to journal messages."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys

from penstock.connectors.udp.config import MAX_DATAGRAM_BYTES, UdpSourceConfig
from penstock.core.errors import StateError
from penstock.sdk import Journal, Message, Transient
from penstock.sdk.messages.framing import frame_decoder

_MAX_BYTES_PER_OFFER = 128 << 10
"""The journal may exceed its size by this much."""
_OVERHEAD_BYTES = 64
_SO_MEMINFO, _MEMINFO, _DROPS = 55, struct.Struct("=9I"), 8
"""SO_MEMINFO of Linux: nine counters of a socket; the last one is the number of drops."""


class DatagramReceiver:
    """Offers the datagrams of a socket to the journal, without blocking.

    `failed` is a future with the error after which no more datagrams can be received.
    """

    def __init__(self, config: UdpSourceConfig, sock: socket.socket, journal: Journal) -> None:
        self._config, self._socket, self._journal = config, sock, journal
        self._dropped = 0
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def receive(self) -> None:
        """Offers a limited number of waiting datagrams to the journal."""
        messages: list[Message] = []
        size = 0
        try:
            while size < _MAX_BYTES_PER_OFFER:
                data, sender = self._socket.recvfrom(MAX_DATAGRAM_BYTES + 1)
                size += len(data) + _OVERHEAD_BYTES
                metadata = {"remote": sender[0], "remote_port": sender[1]}
                messages += [Message(payload, metadata) for payload in self._split(data)]
        except BlockingIOError:
            pass
        except OSError as error:
            self._fail(Transient(f"could not receive: {error.strerror}"))
        try:
            if messages:
                self._journal.offer(messages)
        except StateError as error:
            self._fail(error)

    def count_drops(self) -> None:
        """Counts the datagrams that the socket dropped because its buffer was full (Linux)."""
        if sys.platform == "linux":
            counters = self._socket.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size)
            dropped = _MEMINFO.unpack(counters)[_DROPS]
            self._journal.lose(dropped - self._dropped)
            self._dropped = dropped

    def _fail(self, error: Transient | StateError) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)

    def _split(self, datagram: bytes) -> list[bytes]:
        """Returns the messages of a datagram and counts those that are lost."""
        max_size = self._config.max_message_size
        if self._config.framing == "datagram":
            lost = int(len(datagram) > max_size)
            payloads = [] if lost else [datagram]
        else:
            decoder = frame_decoder(self._config.framing, max_size)
            payloads = decoder.feed(datagram) + decoder.finish()
            lost = decoder.lost
        if lost:
            self._journal.lose(lost)
        return payloads
