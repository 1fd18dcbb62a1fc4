"""The driver's end: a server of the files below the state directory, for the tasks of a run.

Tasks read files, write new ones, and request the content of lookup tables, rows by their keys, and
the content of journals. The server listens on a port of the driver's host. Its key is shipped to
tasks within their functions, and is in no setting.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import pyarrow as pa

from penstock.core.error_codec import encode
from penstock.core.errors import PenstockError, StateError
from penstock.core.files.durable import create_directory_durably, rename_durably, sync
from penstock.core.files.private_files import open_private
from penstock.core.served_state import serves_state
from penstock.engine.driver_files.client import (
    END,
    JOURNAL,
    LOOKUP,
    READ,
    TABLE,
    WRITE,
    DriverFiles,
    set_options,
)
from penstock.engine.driver_files.handshakes import Handshakes
from penstock.journal.chunks import Chunk
from penstock.journal.reader import read_chunks
from penstock.sdk import Read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PAUSE_SECONDS = 0.1
"""The time after a failure to accept a connection."""
_MAX_REQUEST = 1 << 16
_servers: list[FileServer] = []
"""The open servers of this process."""


class TableOfBatch(Protocol):
    """A function that returns the content of a lookup table for a batch."""

    def __call__(self, batch: int | None = None, *, isolated: bool = False) -> pa.Table: ...


class FileServer:
    """A server of the files below a directory, and of the lookup tables `tables` there.

    `lookups` are functions that respond to requests for rows by their keys.
    """

    def __init__(self, root: Path, host: str, bind: str) -> None:
        self.root, self.tables = root, dict[str, TableOfBatch]()
        self.lookups = dict[str, Callable[[pa.RecordBatch, Read], bytes]]()
        self._writing, self._closed = threading.Lock(), threading.Event()
        self._handshakes = Handshakes()
        family = socket.AF_INET6 if ":" in bind else socket.AF_INET
        self._listener = socket.create_server((bind, 0), family=family, backlog=128)
        port = self._listener.getsockname()[1]
        self.address = DriverFiles(host, port, secrets.token_bytes(32))
        threading.Thread(target=self._accept, name="penstock-files", daemon=True).start()

    def close(self) -> None:
        """Accepts no more requests. Those in progress end."""
        self._closed.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        """Accepts connections, also after a failure, as at the limit of open files or threads."""
        while not self._closed.is_set():
            try:
                self._listener.settimeout(self._handshakes.await_place())
                peer, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                self._closed.wait(_PAUSE_SECONDS)
                continue
            self._handshakes.begin(peer)
            try:
                threading.Thread(target=self._serve, args=(peer,), daemon=True).start()
            except RuntimeError:
                self._handshakes.end(peer)
                peer.close()
                self._closed.wait(_PAUSE_SECONDS)

    def _serve(self, peer: socket.socket) -> None:
        """Serves a connection, which has one request."""
        with (
            suppress(OSError, EOFError, AuthenticationError),
            peer,
            Connection(os.dup(peer.fileno())) as connection,
        ):
            try:
                set_options(peer)
                deliver_challenge(connection, self.address.key)
                answer_challenge(connection, self.address.key)
            finally:
                self._handshakes.end(peer)
            operation, *arguments = json.loads(connection.recv_bytes(_MAX_REQUEST))
            self._respond(connection, operation, arguments, connection.recv_bytes())

    def _respond(
        self, connection: Connection, operation: str, arguments: list[Any], content: bytes
    ) -> None:
        """Sends the parts of a response, and then the text of an error, which may be empty."""
        operations: dict[str, Callable[..., Iterable[Chunk]]] = {
            READ: lambda path: [self._read(path)],
            WRITE: lambda path: [self._write(path, content)],
            TABLE: lambda directory, batch: [self._table(directory, batch)],
            LOOKUP: lambda *given: [self._look_up(content, *given)],
            JOURNAL: lambda path, *range_: read_chunks(self._path(path), *range_),
        }
        error = ""
        try:
            for part in operations[operation](*arguments):
                if part != END:
                    connection.send_bytes(part)
        except PenstockError as failure:
            error = encode(failure)
        except Exception as failure:
            error = f"the driver cannot {operation} {arguments[0]}: {failure!r}"
        connection.send_bytes(END)
        connection.send_bytes(error.encode())

    def _path(self, path: str) -> Path:
        found = Path(path)
        if ".." in found.parts or not found.is_relative_to(self.root):
            raise StateError(f"{path} is not below {self.root}")
        return found

    def _read(self, path: str) -> bytes:
        return self._path(path).read_bytes()

    def _write(self, path: str, content: bytes) -> bytes:
        target = self._path(path)
        create_directory_durably(target.parent)
        hidden = target.with_name(f".{target.name}.{uuid4().hex[:8]}")
        try:
            with open_private(hidden, "wb") as file:
                file.write(content)
            sync(hidden)
            with self._writing:
                if not target.exists():
                    rename_durably(hidden, target)
        finally:
            hidden.unlink(missing_ok=True)
        return b""

    def _table(self, directory: str, batch: int | None) -> bytes:
        """Returns the content of a lookup table. A decoder that crashes does not end the driver."""
        table, sink = self.tables[directory](batch, isolated=True), pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        content: bytes = sink.getvalue().to_pybytes()
        return content

    def _look_up(self, content: bytes, name: str, metadata: list[str], isolated: bool) -> bytes:
        (keys,) = pa.ipc.open_stream(content)
        return self.lookups[name](keys, Read(metadata=tuple(metadata), isolated=isolated))


@contextmanager
def serving(session: SparkSession, root: Path) -> Iterator[bool]:
    """Serves the files below a directory to the tasks of a session.

    Yields whether it does (see `serves_state`).
    """
    conf = session.sparkContext.getConf()
    if not serves_state(dict(conf.getAll())):
        yield False
        return
    host = str(conf.get("spark.driver.host")).strip("[]")
    bind = str(conf.get("spark.driver.bindAddress", host)).strip("[]")
    server = FileServer(root, host, bind)
    _servers.append(server)
    try:
        yield True
    finally:
        _servers.remove(server)
        server.close()


def server_of(path: Path) -> FileServer | None:
    """Returns the open server of a path; None without one, as for a local master."""
    servers = (server for server in _servers if path.is_relative_to(server.root))
    return next(servers, None)


def served(path: Path) -> DriverFiles | None:
    """Returns the address of the server of a path; None without one."""
    server = server_of(path)
    return None if server is None else server.address
