"""The connection of a worker to Spark, whose descriptors code of the user may close."""

from __future__ import annotations

import os
import socket
from pathlib import Path


class Connection:
    """The descriptors of the socket between this process and Spark: the socket and its copies."""

    def __init__(self) -> None:
        self._socket: tuple[int, int] | None = None
        self._descriptors: tuple[int, ...] = ()

    def set(self, sock: socket.socket) -> None:
        """Sets the socket that the worker reads and writes."""
        self._socket, self._descriptors = _file_of(sock.fileno()), ()

    def find(self) -> None:
        """Finds the descriptors, once. PySpark copies that of the socket before it runs a task."""
        if self._socket is not None and not self._descriptors:
            numbers = (int(path.name) for path in Path("/dev/fd").iterdir())
            self._descriptors = tuple(n for n in numbers if _file_of(n) == self._socket)

    def is_open(self) -> bool:
        """Returns whether all descriptors that were found are open."""
        return all(_file_of(number) == self._socket for number in self._descriptors)


CONNECTION = Connection()


def _file_of(number: int) -> tuple[int, int] | None:
    """Returns device and inode of the file of a descriptor; None if it is closed."""
    try:
        status = os.fstat(number)
    except OSError:
        return None
    return status.st_dev, status.st_ino
