"""A connection that rows are written to, kept between batches."""

from __future__ import annotations

import fcntl
import socket
import struct
import sys
import termios
import time

from penstock.connectors.tcp.connection import ConnectionConfig, is_established
from penstock.sdk import Transient

_PAUSE = 0.001
_LONGEST_PAUSE = 0.05


class Link:
    """A connection to whoever listens. Raises Transient or Permanent."""

    def __init__(self, config: ConnectionConfig, patience: float) -> None:
        self._config, self._patience = config, patience
        self._socket = self._opened()

    def send(self, data: bytes) -> None:
        """Returns when the system has it; waits while the other side does not read."""
        if not is_established(self._socket):
            self.close()
            self._socket = self._opened()
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise self._lost(error) from None

    def await_receipt(self) -> None:
        """Returns when the system of the other side has all that was sent."""
        until, pause = time.monotonic() + self._patience, _PAUSE
        while self._on_its_way():
            self._need_connection()
            if time.monotonic() > until:
                raise self._lost(TimeoutError())
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        self._need_connection()

    def close(self) -> None:
        """Leaves."""
        self._socket.close()

    def _opened(self) -> socket.socket:
        config = self._config
        host, _ = config.host_and_port
        context = config.context()
        try:
            plain = socket.create_connection(config.host_and_port, config.timeout)
            try:
                opened = context.wrap_socket(plain, server_hostname=host) if context else plain
            except BaseException:
                plain.close()
                raise
        except OSError as error:
            raise config.failed(error) from None
        opened.settimeout(self._patience)
        return opened

    def _need_connection(self) -> None:
        """Raises Transient if the other side has reset it."""
        if number := self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise self._lost(OSError(number, "it was closed there"))

    def _on_its_way(self) -> int:
        """The bytes that were not acknowledged by the other side's system (Linux)."""
        if sys.platform != "linux":
            return 0
        answer = fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, b"\0" * 4)
        (count,) = struct.unpack("i", answer)
        return int(count)

    def _lost(self, error: OSError) -> Transient:
        return self._config.lost(error.strerror or str(error) or "it takes no more")
