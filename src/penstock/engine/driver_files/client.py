"""The task's end: requests to the driver for files of its state directory."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge

import pyarrow as pa

from penstock.core.error_codec import decode
from penstock.core.errors import StateError, Transient
from penstock.journal.chunks import Chunk

CONNECT_SECONDS = 30.0
READ, WRITE, TABLE, LOOKUP, JOURNAL = "read", "write", "table", "lookup", "journal"
"""The operations."""
END = b""
"""The message after the parts of a response, before its error."""
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


@dataclass(frozen=True)
class DriverFiles:
    """The address of a server of files. Both ends prove that they have the key."""

    host: str
    port: int
    key: bytes = field(repr=False)

    def read(self, path: str) -> bytes:
        """Returns the content of a file. Raises StateError without the file."""
        return b"".join(self._request(READ, path))

    def write(self, path: str, content: bytes) -> None:
        """Writes a file durably, unless an earlier attempt of the task has written it."""
        for _ in self._request(WRITE, path, content=content):
            pass

    def table(self, directory: str, batch: int | None) -> pa.Table:
        """Returns the content of a lookup table for a batch, which the driver reads."""
        content = b"".join(self._request(TABLE, directory, batch))
        return pa.ipc.open_file(pa.py_buffer(content)).read_all()

    def lookup(
        self, name: str, keys: pa.RecordBatch, metadata: Sequence[str], *, isolated: bool
    ) -> bytes:
        """Returns the pickled rows and bad records of keys of a lookup table."""
        content = pa.BufferOutputStream()
        with pa.ipc.new_stream(content, keys.schema) as writer:
            writer.write_batch(keys)
        request = content.getvalue().to_pybytes()
        return b"".join(self._request(LOOKUP, name, [*metadata], isolated, content=request))

    def journal(self, directory: str, start: int, end: int) -> Iterator[Chunk]:
        """Yields chunks with the records of a journal from `start` to before `end`.

        The driver reads a chunk when this machine has received the one before.
        """
        return self._request(JOURNAL, directory, start, end)

    def _request(self, operation: str, *arguments: object, content: bytes = b"") -> Iterator[bytes]:
        """Yields the parts of a response. Raises Transient if the driver does not respond."""
        with self._connected() as connection:
            connection.send_bytes(json.dumps([operation, *arguments]).encode())
            connection.send_bytes(content)
            while (part := connection.recv_bytes()) != END:
                yield part
            error = connection.recv_bytes().decode()
        if error:
            raise decode(error) or StateError(error)

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        try:
            peer = socket.create_connection((self.host, self.port), CONNECT_SECONDS)
            peer.settimeout(None)
            set_options(peer)
            with Connection(peer.detach()) as connection:
                answer_challenge(connection, self.key)
                deliver_challenge(connection, self.key)
                yield connection
        except (OSError, EOFError, AuthenticationError) as error:
            raise Transient(
                f"an executor cannot reach the driver at {self.host}:{self.port}, which serves the "
                "state",
                code="driver-unreachable", detail=str(error) or type(error).__name__,
                hint="Permit connections from executors to all ports of the driver, or set "
                "runtime.state to a path that all machines share.",
            ) from error  # fmt: skip


def set_options(peer: socket.socket) -> None:
    """Makes a connection end when the other machine is lost. A slow response does not end it.

    Without TCP_NODELAY each message after another one of the same end waits for an acknowledgement.
    """
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if (option := getattr(socket, name, None)) is not None:
            peer.setsockopt(socket.IPPROTO_TCP, option, value)
