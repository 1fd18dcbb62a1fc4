"""The UDP source."""

from __future__ import annotations

import asyncio
import socket

import pyarrow as pa

from penstock.connectors.udp.config import UdpSourceConfig, resolve_address
from penstock.connectors.udp.reader import DatagramReceiver
from penstock.sdk import Journal, ReceivingSource, Transient

_COUNT_SECONDS = 0.2


class UdpSource(ReceivingSource[UdpSourceConfig]):
    """Receives messages from UDP datagrams, also from a multicast group.

    UDP has no flow control: datagrams that arrive while the source is stopped are lost. Datagrams
    that arrive while the journal or the socket's buffer is full are lost and counted (drops of the
    socket on Linux only). After an invalid length prefix in digits the rest of the datagram counts
    as one lost message.

    ```yaml
    type: udp
    listen: 0.0.0.0:5000
    multicast_group: 239.1.2.3
    metadata: {sender: remote}
    ```
    """

    parallelism = "the socket"
    acknowledges = None

    def message_metadata_schema(self) -> pa.Schema:
        return pa.schema([("remote", pa.string()), ("remote_port", pa.int32())])

    def check(self) -> None:
        """Binds the address once, and joins the multicast group."""
        self._open_socket().close()

    async def receive(self, journal: Journal) -> None:
        loop = asyncio.get_running_loop()
        with self._open_socket() as sock:
            receiver = DatagramReceiver(self.config, sock, journal)
            loop.add_reader(sock, receiver.receive)
            try:
                journal.ready.set()
                while True:
                    await asyncio.wait([receiver.failed], timeout=_COUNT_SECONDS)
                    receiver.count_drops()
                    if receiver.failed.done():
                        await receiver.failed
            finally:
                loop.remove_reader(sock)
                receiver.count_drops()

    def _open_socket(self) -> socket.socket:
        config = self.config
        family, address = resolve_address(config.listen)
        sock = socket.socket(family, socket.SOCK_DGRAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, config.buffer)
            if config.multicast_group is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
            if config.multicast_group is not None:
                group = socket.inet_aton(config.multicast_group)
                membership = group + socket.inet_aton(config.interface)
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        except OSError as error:
            sock.close()
            raise Transient(
                f"could not listen on {config.listen}: {error.strerror}",
                code="listen",
                hint="Stop the program that uses the address, or correct listen and interface.",
            ) from None
        sock.setblocking(False)
        return sock
