"""The source of UDP datagrams."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import struct
import sys
from typing import Annotated, Self

import pyarrow as pa
from pydantic import AfterValidator, Field, model_validator

from penstock.connectors.udp.datagrams import LARGEST, DatagramConfig, resolved
from penstock.core.errors import StateError
from penstock.sdk import ByteSize, Journal, Message, ReceivingConfig, ReceivingSource, Transient
from penstock.sdk.kit.address import Address
from penstock.sdk.kit.framing import divider

_COUNT_SECONDS = 0.2
_TOGETHER = 128 << 10
"""The bytes that are given to the journal at once: by so much it may become too large."""
_OVERHEAD = 64
_MEMORY_INFO, _NUMBERS, _DROPS = 55, struct.Struct("=9I"), 8
"""SO_MEMINFO of Linux: nine numbers about a socket, of which the last counts what it dropped."""


def _group(text: str) -> str:
    if not ipaddress.IPv4Address(text).is_multicast:
        raise ValueError("expected the address of a group, from 224.0.0.0 to 239.255.255.255")
    return text


class UdpSourceConfig(DatagramConfig, ReceivingConfig):
    listen: Address
    """The address to listen at, as `host:port`; the host 0.0.0.0 is all of the machine's."""
    group: Annotated[str, AfterValidator(_group)] | None = None
    """A multicast group (IPv4) to join."""
    max_message: ByteSize = Field(default=LARGEST, ge=1)
    """The largest message; what is larger is left out, and counted as lost."""
    buffer: ByteSize = Field(default=4 << 20, ge=1)
    """What the system keeps for us while we are busy, as far as it allows that."""

    @model_validator(mode="after")
    def _joinable(self) -> Self:
        if self.group is not None and "[" in self.listen:
            raise ValueError("group is about IPv4: give a listen of its kind, as 0.0.0.0:5000")
        return self


class UdpSource(ReceivingSource[UdpSourceConfig]):
    """Takes messages from UDP datagrams, also those that are sent to a multicast group.

    A sender of datagrams does not wait: those that come while nobody listens are lost. Those that
    come while the journal or the system's buffer is full are lost and counted, the latter on
    Linux. So is the rest of a datagram, as one message, where a length in digits is no number.

    ```yaml
    type: udp
    listen: 0.0.0.0:5000
    group: 239.1.2.3
    metadata: {sender: remote}
    ```
    """

    parallelism = "the socket"
    acknowledges = None

    def about(self) -> pa.Schema:
        return pa.schema([("remote", pa.string()), ("remote_port", pa.int32())])

    def check(self) -> None:
        """Needs an address to listen at, and a group that can be joined."""
        self._socket().close()

    async def receive(self, journal: Journal) -> None:
        loop = asyncio.get_running_loop()
        with self._socket() as sock:
            taking = Taking(self.config, sock, journal)
            loop.add_reader(sock, taking.take)
            try:
                journal.ready.set()
                while True:
                    await asyncio.wait([taking.failed], timeout=_COUNT_SECONDS)
                    taking.count_drops()
                    if taking.failed.done():
                        await taking.failed
            finally:
                loop.remove_reader(sock)
                taking.count_drops()

    def _socket(self) -> socket.socket:
        config = self.config
        family, address = resolved(config.listen)
        sock = socket.socket(family, socket.SOCK_DGRAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, config.buffer)
            if config.group is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
            if config.group is not None:
                joined = socket.inet_aton(config.group) + socket.inet_aton(config.interface)
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, joined)
        except OSError as error:
            sock.close()
            raise Transient(
                f"cannot listen at {config.listen}: {error.strerror}",
                code="listen",
                hint="another program may listen there, or the machine has no such interface",
            ) from None
        sock.setblocking(False)
        return sock


class Taking:
    """Takes what a socket has, without waiting. `failed` is done when that is not possible."""

    def __init__(self, config: UdpSourceConfig, sock: socket.socket, journal: Journal) -> None:
        self._config, self._socket, self._journal = config, sock, journal
        self._dropped = 0
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def take(self) -> None:
        """Takes some of the datagrams that are there."""
        found: list[Message] = []
        size = 0
        try:
            while size < _TOGETHER:
                data, sender = self._socket.recvfrom(LARGEST + 1)
                size += len(data) + _OVERHEAD
                about = {"remote": sender[0], "remote_port": sender[1]}
                found += [Message(payload, about) for payload in self._divided(data)]
        except BlockingIOError:
            pass
        except OSError as error:
            self._fail(Transient(f"could not receive: {error.strerror}", code="receive"))
        try:
            if found:
                self._journal.offer(found)
        except StateError as error:
            self._fail(error)

    def count_drops(self) -> None:
        """Counts the datagrams that the system had no room for (Linux)."""
        if sys.platform == "linux":
            told = self._socket.getsockopt(socket.SOL_SOCKET, _MEMORY_INFO, _NUMBERS.size)
            dropped = _NUMBERS.unpack(told)[_DROPS]
            self._journal.lose(dropped - self._dropped)
            self._dropped = dropped

    def _fail(self, error: Transient | StateError) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)

    def _divided(self, data: bytes) -> list[bytes]:
        if self._config.framing == "datagram":
            payloads, lost = [data], 0
            if len(data) > self._config.max_message:
                payloads, lost = [], 1
        else:
            messages = divider(self._config.framing, self._config.max_message)
            payloads = messages.divided(data) + messages.ended()
            lost = messages.lost
        if lost:
            self._journal.lose(lost)
        return payloads
