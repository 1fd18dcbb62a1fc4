"""TCP client of the sink: a connection that is kept between batches."""

from __future__ import annotations

import fcntl
import socket
import struct
import sys
import termios
import time

from penstock.connectors.tcp.config import TcpSinkConfig
from penstock.connectors.tcp.errors import connection_lost, open_error
from penstock.sdk import Transient

_MIN_DELAY = 0.001
_MAX_DELAY = 0.05
_TCP_ESTABLISHED = 1


class TcpClient:
    """A connection to a listening program. Methods raise Transient or Permanent."""

    def __init__(self, config: TcpSinkConfig) -> None:
        self._config = config
        self._socket = self._connect()

    def send(self, data: bytes) -> None:
        """Sends data. Waits while the peer does not read, and reconnects a closed connection."""
        if not is_established(self._socket):
            self.close()
            self._socket = self._connect()
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise self._connection_lost(error) from None

    def flush(self) -> None:
        """Returns once the operating system of the peer has acknowledged all sent bytes."""
        deadline, delay = time.monotonic() + self._config.write_timeout, _MIN_DELAY
        while self._unacknowledged_bytes():
            self._check_socket_error()
            if time.monotonic() > deadline:
                raise self._connection_lost(TimeoutError())
            time.sleep(delay)
            delay = min(2 * delay, _MAX_DELAY)
        self._check_socket_error()

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()

    def _connect(self) -> socket.socket:
        config = self._config
        host, _ = config.host_and_port
        context = config.ssl_context()
        try:
            plain = socket.create_connection(config.host_and_port, config.timeout)
            try:
                connection = context.wrap_socket(plain, server_hostname=host) if context else plain
            except BaseException:
                plain.close()
                raise
        except OSError as error:
            raise open_error(config, error) from None
        connection.settimeout(config.write_timeout)
        return connection

    def _check_socket_error(self) -> None:
        """Raises Transient if the peer has reset the connection."""
        if number := self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise self._connection_lost(OSError(number, "closed by the peer"))

    def _unacknowledged_bytes(self) -> int:
        """Returns the number of sent bytes without a TCP acknowledgement (Linux; 0 elsewhere)."""
        if sys.platform != "linux":
            return 0
        buffer = fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, b"\0" * 4)
        (count,) = struct.unpack("i", buffer)
        return int(count)

    def _connection_lost(self, error: OSError) -> Transient:
        return connection_lost(self._config, error.strerror or str(error) or "write timeout")


def is_established(connection: socket.socket) -> bool:
    """Returns whether neither side has closed a connection (Linux; True elsewhere)."""
    if sys.platform != "linux":
        return True
    state = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return state == _TCP_ESTABLISHED
