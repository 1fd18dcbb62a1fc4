"""A member of MongoDB that answers commands with errors, and passes the others on to a server."""

from __future__ import annotations

import socket
import struct
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

_HEADER = struct.Struct("<iiii")
_OP_MSG = 2013
_FLAGS, _KIND = 4, 1


class FailingMember:
    """A listener at `port`. It answers commands in `answers`, each once, in place of the server."""

    def __init__(self, target: int) -> None:
        self._target = target
        self.answers: deque[tuple[str, Mapping[str, Any]]] = deque()
        """Names of commands with documents."""
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with suppress(OSError), near, socket.create_connection(("127.0.0.1", self._target)) as far:
            while True:
                message = _receive(near)
                reply = self._answer(message)
                if reply is None:
                    far.sendall(message)
                    reply = _receive(far)
                near.sendall(reply)

    def _answer(self, message: bytes) -> bytes | None:
        import bson

        _, request, _, operation = _HEADER.unpack_from(message)
        if operation != _OP_MSG or not self.answers:
            return None
        start = _HEADER.size + _FLAGS + _KIND
        size = int.from_bytes(message[start : start + 4], "little")
        (name, *_) = bson.decode(message[start : start + size])
        if name != self.answers[0][0]:
            return None
        body = bytes(_FLAGS + _KIND) + bson.encode(self.answers.popleft()[1])
        return _HEADER.pack(_HEADER.size + len(body), 1, request, _OP_MSG) + body


def _receive(connection: socket.socket) -> bytes:
    """Returns a message. Raises OSError at the end of a connection."""
    header = _exactly(connection, _HEADER.size)
    (size, *_) = _HEADER.unpack(header)
    return header + _exactly(connection, size - _HEADER.size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the connection has ended")
        data += part
    return data
